# run: list(f([3, -1])); list(f([]))
def f(xs):
    for x in xs:
        if x > 0:
            y = x
        yield y
# after
def f(xs):
    y = _dy.Undefined('y')
    for x in xs:

        def then_0(y):
            y = x
            return y,

        def else_0(y):
            return y,
        y, = _dy.cond(x > 0, then_0, else_0, (y,), names=('y',))
        yield _dy.read(y)
