# run: f([1, -2, 3], 2); f([], 1)
def f(xs, n):
    pairs = [(x, i) for i, x in enumerate(xs) if x > 0]
    return [x * n for x in xs if x > 0], [i + n for x, i in pairs if x > n and i]
# after
def f(xs, n):
    pairs = _dy.list_of(enumerate(xs), lambda i, x: x > 0, lambda i, x: (x,
        i), 2)
    return _dy.list_of(xs, lambda x: x > 0, lambda x: x * n, 0), _dy.list_of(
        pairs, lambda x, i: _dy.all_of(x > n, lambda : i), lambda x, i: i +
        n, 2)
