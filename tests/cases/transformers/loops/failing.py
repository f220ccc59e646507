# run: f(1); f([0]); f([[1]]); f(iter([1, 'a']))
def f(xs):
    y = 0
    for x in (
            xs):
        y = y + (
            x)
    while y.real > 0 / y:
        y -= 1
    return y
# after
def f(xs):
    y = 0

    def body_0(x, y):
        y = y + x
        return y,
    y, = _dy.for_(xs, body_0, (y,), names=('y',))

    def test_1(y):
        return y.real > 0 / y

    def body_1(y):
        y -= 1
        return y,
    y, = _dy.while_(test_1, body_1, (y,), names=('y',))
    return y
