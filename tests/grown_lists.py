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


def orders(function, x, n, w):
    """Gradients of three orders of a weighted sum of the results."""
    result = function(x, n)
    results = result if isinstance(result, tuple) else (result,)
    total = sum(F.sum(y * y * (k + 1)) for k, y in enumerate(results) if isinstance(y, chainer.Variable))
    found = [y.array for y in results if isinstance(y, chainer.Variable)]
    for _ in range(3):
        gx, gw = chainer.grad([total], [x, w], enable_double_backprop=True)
        found += [None if g is None else g.array for g in (gx, gw)]
        if gx is None or gw is None:
            break
        total = F.sum(gx * gx) + F.sum(gw * gw * gw)
    return found
