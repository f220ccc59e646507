# run: f(2); f(0)
def f(n):
    xs = ys = []
    self_like, (a, b) = {'k': [1]}, ([n], [n, 2])
    zs: list = [i * 2 for i in range(n)]
    for _ in range(n):
        xs.append(n)
        a += [n]
    return xs is ys, xs, a, b, zs, self_like, [n]
# after
def f(n):
    xs = ys = _dy.list_([])
    self_like, (a, b) = {'k': [1]}, (_dy.list_([n]), _dy.list_([n, 2]))
    zs: list = _dy.list_([(i * 2) for i in range(n)])
    for _ in range(n):
        xs.append(n)
        a += [n]
    return xs is ys, xs, a, b, zs, self_like, [n]
