"""Attention heads that products read and write where they are, and gates that are made where they are joined."""
from __future__ import annotations

from typing import Any, Callable, Tuple

import numpy as np

from .. import ops
from ..backends.cuda.launches.region import DeviceRegion
from ..backends.cuda.program.steps import Scattered
from ..ir.building import Builder, building
from ..ir.graph import Graph
from ..ir.types import Tensor

#: Sequences, their length, heads, and units of a head.
_SIZES = 3, 40, 4, 32


def graph() -> Graph:
    """An attention without a softmax, and both of its factors side by side: elements of both in turns."""
    n, length, heads, units = _SIZES
    builder = Builder("heads")
    q, k = [builder.input(Tensor((n, length, heads * units), np.dtype("float32")), name) for name in "qk"]
    with building(builder):
        split = [ops.transpose(ops.reshape(x, shape=(n, length, heads, units)), axes=(0, 2, 1, 3)) for x in (q, k)]
        scores = ops.tanh(ops.matmul(*split, transa=False, transb=True) * 0.125)
        context = ops.transpose(ops.matmul(scores, split[1], transa=False, transb=False), axes=(0, 2, 1, 3))
        context = ops.exp(ops.reshape(context, shape=q.shape))
        return builder.build((context, ops.sum(ops.stack(ops.tanh(q), ops.exp(k), axis=3), axis=(0,))))


def meaning(q: np.ndarray, k: np.ndarray) -> Tuple[np.ndarray, ...]:
    """What the graph gives."""
    n, length, heads, units = _SIZES
    a, b = [x.astype(np.float64).reshape(n, length, heads, units).transpose(0, 2, 1, 3) for x in (q, k)]
    context = np.tanh(a @ b.swapaxes(2, 3) * 0.125) @ b
    return np.exp(context.transpose(0, 2, 1, 3).reshape(q.shape)), np.stack([np.tanh(q), np.exp(k)], 3).sum(0)


def check(device: Any, report: Callable[[str, str], None]) -> None:
    """Check heads on a device: launched, replayed, with other addresses, and with addresses that are aligned to four bytes only."""
    region, random = DeviceRegion(graph()), np.random.RandomState(3)
    region.load(device, device.load(region.function.kernels))
    tables = sum(isinstance(step, Scattered) for step in region.function.steps)
    report("heads are not copied", "" if tables == 2 else f"{tables} tables")
    shape = region.graph.inputs[0].shape
    memory = [device.upload(np.zeros(int(np.prod(shape)) + 1, np.float32)) for _ in range(4)]
    for name, begin, places in (("launched", 0, memory[:2]), ("replayed", 0, memory[:2]), ("replayed again", 0, memory[:2]),
                                ("moved", 0, memory[2:]), ("not aligned", 1, memory[:2])):
        operands = [random.uniform(-1, 1, shape).astype(np.float32) for _ in places]
        given = [place[begin:begin + x.size].reshape(shape) for place, x in zip(places, operands)]
        for place, x in zip(given, operands):
            place[...] = device.upload(x)
        results = [device.upload(np.zeros(v.shape, np.float32)) for v in region.graph.outputs]
        region.call(*given, *results, device.upload(np.full(region.scratch, 255, np.uint8)))
        same = all(np.allclose(device.download(x), wanted, rtol=1e-4, atol=1e-5) for x, wanted in zip(results, meaning(*operands)))
        report(f"heads, {name}", "" if same else "other numbers")
