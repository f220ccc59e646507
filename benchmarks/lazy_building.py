"""What it costs to build an operation of a lazy array, and to build and compute one, in microseconds.

    python benchmarks/lazy_building.py

The least of several runs, on this thread; nothing else should run on its core.
"""
import sys
import timeit

import numpy as np

from dy2static import lazy
from dy2static.lazy import numpy as xp

NAMES = {"np": np, "xp": xp, "x": lazy.array(np.arange(4.0)), "y": lazy.array(np.ones(4)), "m": lazy.array(np.ones((4, 5))),
         "u": lazy.array(np.ones(4)) + 1}
BUILT = ("x + 1", "x + y", "1 - x", "-x", "np.exp(x)", "np.maximum(x, 0.0)", "np.sum(m, axis=0)", "m.sum(axis=0)",
         "np.where(x, x, y)", "np.concatenate([x, y])", "np.clip(x, 0, 1)", "x.astype(np.float32)", "m.T", "m.reshape(5, 4)",
         "u[0]", "u[1:]", "x[0]", "x[1:]", "m[:, 1]", "xp.exp(x)", "xp.sum(m, axis=0)")
COMPUTED = ("(x + 1).evaluate()", "np.asarray(x + 1)")


def microseconds(text, count=20000, repeats=9):
    """The least time of one run of an expression."""
    return min(timeit.repeat(text, globals=NAMES, number=count, repeat=repeats)) / count * 1e6


if __name__ == "__main__":
    print(f"Python {sys.version_info[0]}.{sys.version_info[1]}, NumPy {np.__version__}: microseconds")
    for expression in BUILT + COMPUTED:
        print(f"{expression:26} {microseconds(expression):6.2f}")
