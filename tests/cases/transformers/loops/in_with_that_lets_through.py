# run: f([1, 0]); f([2])
import chainer


def f(xs):
    y = 0
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        for x in xs:
            y = 1 / x
            log.append(y)
    return y
# after
def f(xs):
    y = 0
    with chainer.using_config('train', False), chainer.no_backprop_mode():

        def body_0(x, y):
            y = 1 / x
            log.append(y)
            return y,
        y, = _dy.for_(xs, body_0, (y,), names=('y',))
    return y
