# run: f(1, [1]); f(2, {3: 4}); f('a', 'abc'); f(1, 2)
def f(x, xs):
    return x in xs, x not in xs, [y in xs for y in [x] if y not in xs], not x in xs
# after
def f(x, xs):
    return _dy.in_(x, xs), _dy.not_(_dy.in_(x, xs)), [_dy.in_(y, xs) for y in
        [x] if _dy.not_(_dy.in_(y, xs))], not _dy.in_(x, xs)
