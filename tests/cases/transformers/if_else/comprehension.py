# run: f([1, 2]); f([])
def f(xs):
    n = 2
    if xs:
        n = len(xs)
        ys = [x * n for x in xs if x]
    else:
        ys = {n: [n]}
    return ys, [n for x in xs]
# after
def f(xs):
    n = 2

    def then_0(n, ys):
        n = len(xs)
        ys = [(x * n) for x in xs if x]
        return n, ys

    def else_0(n, ys):
        ys = {n: [n]}
        return n, ys
    n, ys = _dy.cond(xs, then_0, else_0, (n, _dy.Undefined('ys')), names=(
        'n', 'ys'))
    return ys, [n for x in xs]
