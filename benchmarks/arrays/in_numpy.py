"""Array programs in NumPy, and as lazy arrays."""
import os

import numpy as np

from arrays import stepping, workloads
from cases import Cells

VERSION = np.__version__
CELLS = Cells()


def begin(mode):
    if mode == "lazy":
        import dy2static
        dy2static.config.BACKGROUND.value = 0
        dy2static.config.BACKEND.value = os.environ.get("DY2STATIC_BACKEND", "c")


@CELLS.of(workloads.ELEMENTWISE, "numpy")
def numpy(data, cell, mode):
    return stepping.case_of(workloads.programs(np)[cell], data)


@CELLS.of("softmax", "numpy")
def numpy_softmax(data, cell, mode):
    return stepping.softmax(lambda *args: workloads.softmax_step(np, *args), data, lambda x: x, None)


@CELLS.of(workloads.ELEMENTWISE, "lazy")
def lazy_arrays(data, cell, mode):
    from dy2static import lazy
    program = workloads.programs(np)[cell]
    return stepping.case_of(lambda *args: program(*args).evaluate(),
                            {name: lazy.array(x, copy=False) for name, x in data.items()})


@CELLS.of("softmax", "lazy")
def lazy_softmax(data, cell, mode):
    from dy2static import lazy
    return stepping.softmax(lambda *args: workloads.softmax_step(np, *args), data, lambda x: lazy.array(x, copy=False),
                            lambda w: w.evaluate())

