"""What tests of lists share whose length array values decide."""
import chainer
import chainer.functions as F
import numpy as np
from against_eager import variable


def param(*shape, seed=9):
    return chainer.Parameter(np.random.RandomState(seed).uniform(0.3, 0.9, shape).astype("f"))


class Box:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


#: Calls with an array and how many trips to make of it; the loops below make at least one.
TRIPS = [lambda n=n: (variable(2, 3, seed=n), np.array(n)) for n in (3, 1, 5)]
NONE_TOO = [*TRIPS, lambda: (variable(2, 3, seed=7), np.array(0))]


def rows(x, w, n):
    """Rows made in a loop that runs as long as an array says."""
    out, h, i = [], x, 0
    while i < n:
        h = F.tanh(h * w)
        out.append(h)
        i += 1
    return out
