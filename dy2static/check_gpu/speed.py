"""How fast kernels are on a device, as a share of what a copy moves; and whether they can be captured into a CUDA graph."""
from __future__ import annotations

import math
from typing import Any, Callable, ContextManager, Dict, List, Tuple

import numpy as np

from .. import ops
from ..backends.cuda.launches.region import DeviceRegion
from ..ir.building import Builder, building
from ..ir.graph import Graph, Value
from ..ir.types import Tensor

_TURNS = 20


def _gelu(x: Value) -> Value:
    return x * 0.5 * (ops.special(x * 0.7071067811865476, function="erf") + 1.0)


def _normalized(x: Value) -> Value:
    """A row with the mean 0 and the variance 1."""
    y = x - ops.mean(x, axis=(1,), keepdims=True)
    return y / ops.sqrt(ops.mean(y * y, axis=(1,), keepdims=True) + 1e-5)


def _gradient(x: Value, gy: Value) -> Tuple[Value, ...]:
    """What goes back through a softmax, and the sums of its columns."""
    gx = x * (gy - ops.sum(x * gy, axis=(1,), keepdims=True))
    return gx, ops.sum(gx, axis=(0,), keepdims=False)


def _planes(x: Value) -> Tuple[Value, ...]:
    """The sums of each channel of images, and those of the squares."""
    return ops.sum(x, axis=(0, 2), keepdims=False), ops.sum(x * x, axis=(0, 2), keepdims=False)


def _scores(x: Value, y: Value) -> Value:
    """The products of matrices with those of another stack, turned."""
    return ops.matmul(x, y, transa=False, transb=True)


def _scores_of_heads(x: Value, y: Value) -> Value:
    """The same of the eight heads of sequences, which are not copied."""
    shape = (*x.shape[:2], 8, x.shape[2] // 8)
    return _scores(*[ops.transpose(ops.reshape(one, shape=shape), axes=(0, 2, 1, 3)) for one in (x, y)])


#: The shape of the operands, all of float32, and a function of them.
FUNCTIONS: Dict[str, Tuple[Tuple[int, ...], Callable[..., Any]]] = {
    "x + 1": ((8192, 4096), lambda x: x + 1.0),
    "GELU": ((8192, 4096), _gelu),
    "softmax over rows": ((8192, 4096), lambda x: ops.softmax(x, axis=1)),
    "softmax over short rows": ((131072, 256), lambda x: ops.softmax(x, axis=1)),
    "softmax over odd rows": ((32768, 1001), lambda x: ops.softmax(x, axis=1)),
    "softmax over long rows": ((512, 50000), lambda x: ops.softmax(x, axis=1)),
    "normalized rows": ((32768, 768), _normalized),
    "gradient of a softmax": ((32768, 768), _gradient),
    "sums of rows": ((8192, 4096), lambda x: ops.sum(x, axis=(1,), keepdims=False)),
    "sums of columns": ((8192, 4096), lambda x: ops.sum(x, axis=(0,), keepdims=False)),
    "sums of channels": ((128, 64, 4096), _planes),
    "transposed": ((8192, 4096), lambda x: ops.transpose(x, axes=(1, 0)) * 2.0),
    "products of a stack": ((64, 256, 64), _scores),
    "products of heads": ((8, 256, 512), _scores_of_heads),
    "transposed inside": ((64, 512, 1024), lambda x: ops.transpose(x, axes=(0, 2, 1)) + 1.0),
}


def graph_of(function: Callable[..., Any], shape: Tuple[int, ...]) -> Graph:
    """The graph of such a function."""
    builder = Builder("measured")
    operands = [builder.input(Tensor(shape, np.dtype("float32")), name)
                for name in function.__code__.co_varnames[:function.__code__.co_argcount]]
    with building(builder):
        results = function(*operands)
        return builder.build(results if isinstance(results, tuple) else (results,))


def report(device: Any, check: Callable[[str, str], None]) -> None:
    """Print gigabytes per second of each function beside those of a copy, and check that graphs of launches give the same."""
    import cupy
    regions = {name: DeviceRegion(graph_of(function, shape)) for name, (shape, function) in FUNCTIONS.items()}
    kernels = [kernel for region in regions.values() for kernel in region.function.kernels]
    module = device.load(kernels)
    x = cupy.random.rand(8192, 4096, dtype=cupy.float32)
    y = cupy.empty_like(x)
    copied = 2 * x.nbytes / seconds(lambda: cupy.copyto(y, x))
    print(f"a copy: {copied / 1e9:.0f} GB/s")
    for name, region in regions.items():
        arrays, moved = _arrays(cupy, region)
        region.load(device, module)
        rate = moved / seconds(lambda: region.call(*arrays))    # noqa: B023  called before the next turn
        print(f"{name}: {rate / 1e9:.0f} GB/s, {rate / copied:.2f} of a copy")
        check(f"{name}, replayed", _replayed(cupy, region, arrays))


def streams() -> List[ContextManager[Any]]:
    """Two streams, one of which does not wait for the default stream."""
    import cupy
    return [cupy.cuda.Stream(), cupy.cuda.Stream(non_blocking=True)]


def _arrays(cupy: Any, region: DeviceRegion) -> Tuple[List[Any], int]:
    """The arrays of a call, and how many bytes it has to move."""
    outputs = [cupy.empty(v.shape, v.dtype) for v in region.graph.outputs]
    scratch = [cupy.empty(region.function.scratch, cupy.uint8)] if region.function.scratch else []
    inputs = [cupy.random.rand(*v.shape, dtype=v.dtype) for v in region.graph.inputs]
    return [*inputs, *outputs, *scratch], sum(array.nbytes for array in (*inputs, *outputs))


def seconds(run: Callable[[], Any]) -> float:
    """What one run takes, as the device measures it: the least of several."""
    import cupy
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
    result = arrays[len(region.graph.inputs)]
    wanted = cupy.asnumpy(result)
    result[...] = 0
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
    return "" if np.array_equal(cupy.asnumpy(result), wanted) else "other numbers"
