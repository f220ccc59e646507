"""What tests of writes into arrays share."""
import chainer
import chainer.functions as F
import numpy as np
from against_eager import variable


class Box:
    """A plain object with state."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def floats(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype("f")


def mixed(*more):
    """Calls with Variables of positive, negative and mixed contents."""
    return [lambda low=low, high=high, k=k: (variable(4, seed=k, low=low, high=high), *[m() for m in more])
            for k, (low, high) in enumerate(((0.1, 1), (-1, -0.1), (-1, 1), (-0.2, 1.2)))]


class Scaled(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.w = chainer.Parameter(floats(4, seed=3))

    def forward(self, x):
        self.w.array[...] = np.clip(self.w.array, -0.5, 0.5)
        with chainer.no_backprop_mode():
            return F.sum(x * self.w)


class Holder:
    """Keeps arrays."""

    def __init__(self):
        self.kept = {}
