# run: f(1); f(0)
import contextlib


def f(x):
    with contextlib.suppress(ZeroDivisionError):
        y = 1
        if x == 0:
            y = 1 / x
        if x:
            y = 2
            z = y / (x - 1)
    return y
# after
def f(x):
    with contextlib.suppress(ZeroDivisionError):
        y = 1

        def then_0(y):
            y = 1 / x
            return y,

        def else_0(y):
            return y,
        y, = _dy.cond(x == 0, then_0, else_0, (y,), names=('y',))
        if x:
            y = 2
            z = y / (x - 1)
    return y
