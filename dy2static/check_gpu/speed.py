"""How fast kernels are on a device, as a share of what a copy moves; and whether they can be captured into a CUDA graph."""
from __future__ import annotations

import math
from typing import Any, Callable, ContextManager, Dict, List, Tuple

import numpy as np

from .. import ops
from ..backends.cuda.program import text_of
from ..backends.cuda.region import DeviceRegion
from ..ir.building import Builder, building
from ..ir.graph import Graph, Value
from ..ir.types import Tensor

_ROWS, _COLUMNS = 8192, 4096
_TURNS = 20


def _gelu(x: Value) -> Value:
    return x * 0.5 * (ops.special(x * 0.7071067811865476, function="erf") + 1.0)


#: Functions of one large matrix of float32.
FUNCTIONS: Dict[str, Callable[[Value], Value]] = {
    "x + 1": lambda x: x + 1.0,
    "GELU": _gelu,
    "softmax over rows": lambda x: ops.softmax(x, axis=1),
    "sums of rows": lambda x: ops.sum(x, axis=(1,), keepdims=False),
    "sums of columns": lambda x: ops.sum(x, axis=(0,), keepdims=False),
    "transposed": lambda x: ops.transpose(x, axes=(1, 0)) * 2.0,
}


def graph_of(function: Callable[[Value], Value], rows: int = _ROWS, columns: int = _COLUMNS) -> Graph:
    """The graph of such a function."""
    builder = Builder("measured")
    x = builder.input(Tensor((rows, columns), np.dtype("float32")), "x")
    with building(builder):
        return builder.build((function(x),))


def report(device: Any, check: Callable[[str, str], None]) -> None:
    """Print gigabytes per second of each function beside those of a copy, and check that graphs of launches give the same."""
    import cupy
    regions = {name: DeviceRegion(graph_of(function), number) for number, (name, function) in enumerate(FUNCTIONS.items())}
    kernels = [kernel for region in regions.values() for kernel in region.function.kernels]
    module = device.load(text_of(kernels), [kernel.name for kernel in kernels])
    x = cupy.random.rand(_ROWS, _COLUMNS, dtype=cupy.float32)
    y = cupy.empty_like(x)
    copied = 2 * x.nbytes / _seconds(cupy, lambda: cupy.copyto(y, x))
    print(f"a copy: {copied / 1e9:.0f} GB/s")
    for name, region in regions.items():
        arrays, moved = _arrays(cupy, region, x)
        region.load(device, module)
        rate = moved / _seconds(cupy, lambda: region.call(*arrays))    # noqa: B023  called before the next turn
        print(f"{name}: {rate / 1e9:.0f} GB/s, {rate / copied:.2f} of a copy")
        check(f"{name}, replayed", _replayed(cupy, region, arrays))


def streams() -> List[ContextManager[Any]]:
    """Two streams, one of which does not wait for the default stream."""
    import cupy
    return [cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)]


def _arrays(cupy: Any, region: DeviceRegion, x: Any) -> Tuple[List[Any], int]:
    """The arrays of a call, and how many bytes it has to move."""
    outputs = [cupy.empty(v.shape, v.dtype) for v in region.graph.outputs]
    scratch = [cupy.empty(region.function.scratch, cupy.uint8)] if region.function.scratch else []
    return [x, *outputs, *scratch], x.nbytes + sum(v.nbytes for v in region.graph.outputs)


def _seconds(cupy: Any, run: Callable[[], Any]) -> float:
    """What one run takes, as the device measures it: the least of several."""
    run()
    best = math.inf
    for _ in range(_TURNS):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(begin, end) / 1e3)
    return best


def _replayed(cupy: Any, region: DeviceRegion, arrays: List[Any]) -> str:
    """Whether launches that are captured into a CUDA graph give the same when it is replayed."""
    region.call(*arrays)
    wanted = cupy.asnumpy(arrays[1])
    arrays[1][...] = 0
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.use()
    try:
        cupy.cuda.Device().synchronize()
        stream.begin_capture()
        region.call(*arrays)
        stream.end_capture().launch(stream)
        stream.synchronize()
    finally:
        cupy.cuda.Stream.null.use()
    return "" if np.array_equal(cupy.asnumpy(arrays[1]), wanted) else "other numbers"
