# run: f([1, 0]); f([2])
import contextlib


def f(xs):
    y = 0
    with contextlib.suppress(ZeroDivisionError):
        for x in xs:
            y = 1 / x
            log.append(y)
    return y
# after
def f(xs):
    y = 0
    with contextlib.suppress(ZeroDivisionError):

        def body_0(x):
            nonlocal y
            y = 1 / x
            log.append(y)
            return ()
        _dy.for_(xs, body_0, (), names=())
    return y
