"""Launches of a region, kernel by kernel and as CUDA graphs: the same results, whatever is replayed or set anew."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, List, Sequence

import numpy as np

from .. import config, ops
from ..backends.cuda.launches.ending import Ending
from ..backends.cuda.launches.launching import InC, Run
from ..backends.cuda.launches.region import DeviceRegion
from ..backends.cuda.launches.updates import STORE, UpdateRegion
from ..ir.building import Builder, building
from ..ir.graph import Graph, Value
from ..ir.types import Tensor, python_scalar
from ..native.launcher import Counts
from ..passes.in_place import Update
from . import heads

_SHAPES = ((64, 48), (48, 32), (32, 16))


def graph() -> Graph:
    """Two products and two kernels of float32."""
    builder = Builder("launched")
    x, v, w = [builder.input(Tensor(shape, np.dtype("float32")), name) for shape, name in zip(_SHAPES, "xvw")]
    with building(builder):
        return builder.build((ops.exp(_product(ops.tanh(_product(x, v)), w)),))


def _product(a: Value, b: Value) -> Value:
    return ops.matmul(a, b, transa=False, transb=False)


def meaning(x: np.ndarray, v: np.ndarray, w: np.ndarray) -> np.ndarray:
    """What the graph gives."""
    return np.exp(np.tanh(x @ v) @ w)


class Launched:
    """The region on a device, and arrays for it."""

    def __init__(self, device: Any):
        self.device, self.region, self.random = device, DeviceRegion(graph()), np.random.RandomState(0)
        kernels = self.region.function.kernels
        self.region.load(device, device.load(kernels))
        self.operands = [self.random.uniform(-1, 1, shape).astype(np.float32) for shape in _SHAPES]
        self.weights = [device.upload(x) for x in self.operands[1:]]
        self.scratch = self.new(np.full(self.region.scratch, 255, np.uint8))

    def new(self, array: np.ndarray) -> Any:
        """A new array on the device."""
        return self.device.upload(array)

    def out(self) -> Any:
        """A new array for a result."""
        return self.new(np.zeros((_SHAPES[0][0], _SHAPES[2][1]), np.float32))

    def call(self, x: Any, out: Any, scratch: Any = None) -> None:
        """Run the region."""
        self.region.call(x, *self.weights, out, self.scratch if scratch is None else scratch)

    def problem(self, x: np.ndarray, out: Any) -> str:
        """How a result differs from NumPy's; "" where it does not."""
        wanted, found = meaning(x, *self.operands[1:]), self.device.download(out)
        worst = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        return "" if worst < 1e-5 else f"it differs by {worst:.1e} of the largest element"

    @property
    def runs(self) -> List[Run]:
        """What launches the steps."""
        return self.region.runs

    @property
    def counts(self) -> Counts:
        """What has been launched how."""
        (run,) = self.runs
        return run.region.counts                             # type: ignore[attr-defined]


def check(device: Any, report: Callable[[str, str], None], streams: Sequence[ContextManager[Any]] = ()) -> None:
    """Check launches and graphs on a device.  streams: other streams of it, as managers."""
    if device.launcher() is None:
        report("the launcher", "there is none")
        return
    launched = Launched(device)
    report("a region is one run in C", "" if len(launched.runs) == 1 else f"{len(launched.runs)} runs")
    if len(launched.runs) != 1:
        return
    x = launched.operands[0]
    place, out = launched.new(x), launched.out()
    results = []
    for _ in range(4):
        launched.call(place, out)
        results.append(np.array(device.download(out)))
    report("launched by C", launched.problem(x, out))
    report("replayed: the same bits", "" if all(np.array_equal(results[0], other) for other in results[1:]) else "other bits")
    report("the second call is recorded", "" if launched.counts[:3] == (1, 3, 1) else f"{launched.counts}")
    _check_moved(launched, report)
    _check_streams(launched, report, [contextlib.nullcontext(), *streams])
    _check_off(launched, report, results[0])
    check_finished(device, report)
    _check_update(device, report)
    heads.check(device, report)


def _check_moved(launched: Launched, report: Callable[[str, str], None]) -> None:
    """New batches, new results, and new contents of parameters; results are read at the end."""
    batches = [launched.random.uniform(-1, 1, _SHAPES[0]).astype(np.float32) for _ in range(4)]
    places, outs = [launched.new(x) for x in batches], [launched.out() for _ in batches]
    for place, out in zip(places, outs):
        launched.call(place, out)
    report("set anew for moved arrays", "" if launched.counts.patched == len(batches) else f"{launched.counts}")
    for x, out in zip(batches, outs):
        report("results of earlier replays stay", launched.problem(x, out))
    launched.operands[1] = launched.operands[1] * np.float32(0.5)
    launched.weights[0][...] = launched.new(launched.operands[1])
    launched.call(places[-1], outs[-1])
    report("parameters that change", launched.problem(batches[-1], outs[-1]))
    launched.operands[1] = launched.operands[1] * np.float32(2)
    launched.weights[0][...] = launched.new(launched.operands[1])


def _check_streams(launched: Launched, report: Callable[[str, str], None], streams: Sequence[ContextManager[Any]]) -> None:
    """Each stream has working memory and arrays of its own; all are under way at one time."""
    sets = [(launched.random.uniform(-1, 1, _SHAPES[0]).astype(np.float32), stream) for stream in streams]
    launched.device.download(launched.weights[0])           # it is there, for all streams
    arrays = []
    for x, stream in sets:
        with stream:
            arrays.append((launched.new(x), launched.out(), launched.new(np.full(launched.region.scratch, 255, np.uint8))))
    for _ in range(3):
        for (_, stream), given in zip(sets, arrays):
            with stream:
                launched.call(*given)
    for (x, stream), (_, out, _) in zip(sets, arrays):
        with stream:
            report("streams beside each other", launched.problem(x, out))


def _check_off(launched: Launched, report: Callable[[str, str], None], wanted: np.ndarray) -> None:
    """The setting that turns graphs off."""
    device, place, out = launched.device, launched.new(launched.operands[0]), launched.out()
    kernels = launched.region.function.kernels
    module = device.load(kernels)
    with config.GPU_GRAPHS.set(0):
        launched.region.load(device, module)
    for _ in range(3):
        launched.call(place, out)
    same = np.array_equal(device.download(out), wanted)
    report("without graphs: the same bits", "" if same and launched.counts[:2] == (3, 0) else f"{launched.counts}, {same}")


def check_finished(device: Any, report: Callable[[str, str], None]) -> None:
    """A bias and ReLU as part of a product, also on memory that is aligned to four bytes only; NaN stays NaN."""
    random, (rows, columns) = np.random.RandomState(1), (_SHAPES[0][0], _SHAPES[1][1])
    x, w, b = [random.uniform(-1, 1, shape).astype(np.float32) for shape in (_SHAPES[0], _SHAPES[1], (columns,))]
    x[1, 2], b[3] = np.nan, np.nan
    builder = Builder("finished")
    values = [builder.input(Tensor(array.shape, np.dtype("float32")), name) for array, name in zip((x, w, b), "xwb")]
    with building(builder):
        biased = _product(*values[:2]) + ops.broadcast_to(values[2], shape=(rows, columns))
        region = DeviceRegion(builder.build((ops.relu(biased),)))
    kernels = region.function.kernels
    region.load(device, device.load(kernels))
    wanted, memory = np.maximum(x @ w + b, 0), device.upload(np.zeros(x.size + 1, np.float32))
    for begin in (0, 1):
        place, out = memory[begin:begin + x.size].reshape(x.shape), device.upload(np.zeros((rows, columns), np.float32))
        place[...] = device.upload(x)
        for _ in range(2):
            region.call(place, device.upload(w), device.upload(b), out)
        same = np.allclose(device.download(out), wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
        report(f"bias and ReLU, {begin} elements from the front", "" if same else "other numbers, or NaN is lost")


def _check_update(device: Any, report: Callable[[str, str], None]) -> None:
    """Steps whose update is launched together with a region, with rates that are powers of two: products with them are exact."""
    shape, random = (48, 32), np.random.RandomState(2)
    builder, inner = Builder("step"), Builder("update")
    x, w = [builder.input(Tensor(size, np.dtype("float32")), name) for size, name in (((48, 48), "x"), (shape, "w"))]
    with building(builder):
        graph = builder.build((ops.tanh(_product(x, w)),))
    rate = inner.input(python_scalar("py_float"), "rate")
    with building(inner):
        new = w - ops.broadcast_to(ops.scalar_to_tensor(rate, dtype=np.dtype("float32")), shape=shape) * graph.outputs[0]
    update = Update(Graph((w, graph.outputs[0], rate), (new,), tuple(inner.nodes), "update"), (0,), (0,))
    updates = UpdateRegion(update, (0,))
    ending = Ending(graph, [update], [updates])
    region = DeviceRegion(graph, tables=ending.tables)
    kernels = [*region.function.kernels, updates.kernel, STORE]
    module = device.load(kernels)
    region.load(device, module)
    last = region.runs[-1]
    assert isinstance(last, InC), "all steps are known to the launcher"
    ending.join(device, region.function, last, [updates.bind(device, module).call])
    region.defer = ending.defer
    wanted = random.rand(*shape).astype(np.float32)
    given, weights = device.upload(random.rand(48, 48).astype(np.float32)), device.upload(wanted)
    out, scratch = device.upload(np.zeros(shape, np.float32)), device.upload(np.full(region.scratch, 255, np.uint8))
    same = True
    for number in range(8):
        weights = device.upload(device.download(weights)) if number == 5 else weights
        region.call(given, weights, out, scratch)
        ending.update(weights, out, 0.5 ** number)
        wanted = wanted - np.float32(0.5 ** number) * device.download(out)
        same = same and np.array_equal(device.download(weights), wanted)
    counts = ending.counts
    report("an update launched with its region", "" if same else "other bits")
    report("both are one graph", "" if counts.replayed >= 5 and not counts.failures else f"{counts}")
