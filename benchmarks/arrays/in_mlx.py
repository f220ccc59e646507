"""Array programs in MLX: lazy arrays of its own, compiled and not; cells of float64 are left out, which it does not compile."""
import mlx.core as mx

from arrays import stepping, workloads
from cases import Cells

VERSION = "mlx"
CELLS = Cells()
SINGLE = "chain sums_0 sums_1 spread_0"


def begin(mode):
    mx.set_default_device(mx.cpu)


@CELLS.of(SINGLE, "lazy", "compile")
def arrays(data, cell, mode):
    program = workloads.programs(mx)[cell]
    data = {name: mx.array(x) for name, x in data.items()}
    return stepping.case_of(mx.compile(program) if mode == "compile" else program, data, mx.eval)


@CELLS.of("softmax", "lazy", "compile")
def softmax(data, cell, mode):
    def step(*args):
        return workloads.softmax_step(mx, *args)
    return stepping.softmax(mx.compile(step) if mode == "compile" else step, data, mx.array, mx.eval)
