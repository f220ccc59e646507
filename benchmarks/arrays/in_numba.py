"""Array programs in Numba: the same text in nopython mode (``jit``), and loops that the compiler may fuse (``parallel``)."""
import os
import sys

sys.modules["coverage"] = None      # which Numba imports if it can: here that is another benchmark

import numba  # noqa: E402
import numpy as np  # noqa: E402

from arrays import stepping, workloads  # noqa: E402
from cases import Cells  # noqa: E402

VERSION = numba.__version__
CELLS = Cells()


def begin(mode):
    numba.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def chain(x):
    y = x * np.float32(2) + np.float32(1)
    y = np.sqrt(y) * x - np.float32(0.5)
    y = y * y + x
    return np.abs(y) / (x + np.float32(1))


@numba.njit
def normal(x):
    a = abs(x)
    k = 1 / (1 + 0.2316419 * a)
    w = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    found = 1 - 0.3989422804014327 * np.exp(a * a * -0.5) * w
    return 1 - found if x < 0 else found


def black_scholes(s, k, t):
    found = np.empty_like(s)
    for i in numba.prange(len(s)):
        root = 0.3 * np.sqrt(t[i])
        d1 = (np.log(s[i] / k[i]) + 0.065 * t[i]) / root
        found[i] = s[i] * normal(d1) - k[i] * np.exp(-0.02 * t[i]) * normal(d1 - root)
    return found


def pairs(x, c):
    found = np.empty(len(x), np.int64)
    for i in numba.prange(len(x)):
        least = np.inf
        for j in range(len(c)):
            total = 0.0
            for k in range(x.shape[1]):
                total += (x[i, k] - c[j, k]) ** 2
            if total < least:
                least, found[i] = total, j
    return found


def stencil(x):
    return 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1]) - x[1:-1, 1:-1]


def sums_0(x):
    return np.sum(x, axis=0)


def sums_1(x):
    return np.sum(x, axis=1)


def four(x):
    return x + 1


@CELLS.of("chain black_scholes pairs stencil sums_0 sums_1 four", "jit", "parallel")
def compiled(data, cell, mode):
    program = {each.__name__: each for each in (chain, black_scholes, pairs, stencil, sums_0, sums_1, four)}[cell]
    return stepping.case_of(numba.njit(program, parallel=mode == "parallel"), data)


assert set(CELLS.makers) <= set(workloads.CELLS)
