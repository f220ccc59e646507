# run: f([1, 2], [0, 1]); f([], [])
def f(xs, ys):
    return [x and y for x in xs if not x or x for y in ys and xs], (lambda x: x and xs)(ys)
# after
def f(xs, ys):
    return [_dy.and_(x, lambda : y) for x in xs if _dy.any_of(_dy.not_(x), 
        lambda : x) for y in _dy.and_(ys, lambda : xs)], (lambda x: _dy.
        and_(x, lambda : xs))(ys)
