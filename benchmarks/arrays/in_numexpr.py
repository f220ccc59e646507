"""Array programs in numexpr: elementwise expressions as text."""
import os

import numexpr
import numpy as np

from arrays import stepping
from cases import Cells

VERSION = numexpr.__version__
CELLS = Cells()

_NORMAL = ("where({x} < 0, 0.3989422804014327 * exp({x} * {x} * -0.5) * {w}, "
           "1 - 0.3989422804014327 * exp({x} * {x} * -0.5) * {w})")
_WEIGHTS = ("(1 / (1 + 0.2316419 * abs({x}))) * (0.319381530 + (1 / (1 + 0.2316419 * abs({x}))) * (-0.356563782 + "
            "(1 / (1 + 0.2316419 * abs({x}))) * (1.781477937 + (1 / (1 + 0.2316419 * abs({x}))) * (-1.821255978 + "
            "(1 / (1 + 0.2316419 * abs({x}))) * 1.330274429))))")


def begin(mode):
    numexpr.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def evaluated(text):
    return lambda **names: numexpr.evaluate(text, local_dict=names, global_dict={})


@CELLS.of("chain black_scholes stencil sums_0 sums_1 four", "evaluate")
def evaluate(data, cell, mode):
    return stepping.case_of(PROGRAMS[cell], data)


def chain(x):
    half, one, two = np.float32(0.5), np.float32(1), np.float32(2)     # numbers of Python's would make it float64
    return evaluated("abs((sqrt(x * two + one) * x - half) ** 2 + x) / (x + one)")(x=x, half=half, one=one, two=two)


def black_scholes(s, k, t):
    root = evaluated("0.3 * sqrt(t)")(t=t)
    d1 = evaluated("(log(s / k) + 0.065 * t) / root")(s=s, k=k, t=t, root=root)
    d2 = evaluated("d1 - root")(d1=d1, root=root)
    one, two = (_NORMAL.format(x=x, w=_WEIGHTS.format(x=x)) for x in ("d1", "d2"))
    return evaluated(f"s * ({one}) - k * exp(-0.02 * t) * ({two})")(s=s, k=k, t=t, d1=d1, d2=d2)


def stencil(x):
    return evaluated("0.25 * (a + b + c + d) - e")(a=x[1:-1, :-2], b=x[1:-1, 2:], c=x[:-2, 1:-1], d=x[2:, 1:-1], e=x[1:-1, 1:-1])


PROGRAMS = {"chain": chain, "black_scholes": black_scholes, "stencil": stencil, "four": lambda x: evaluated("x + 1")(x=x),
            "sums_0": lambda x: evaluated("sum(x, axis=0)")(x=x), "sums_1": lambda x: evaluated("sum(x, axis=1)")(x=x)}
