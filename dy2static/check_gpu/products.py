"""Products whose algorithms are measured (``chainer.config.autotune``): NumPy's values, the same bits in each run, and the time."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import chainer
import numpy as np

from .. import ops
from ..backends.cuda.launches.region import DeviceRegion
from ..ir.building import Builder, building
from ..ir.graph import Graph
from ..ir.types import Tensor
from .launches import check_finished

#: Products of one region: so it is replayed as a graph, and the time is that of the device.
_COUNT = 8


class Kind(NamedTuple):
    """A kind of products: the shapes of the operands, of which the right one may be turned, and their dtype."""

    left: Tuple[int, ...]
    right: Tuple[int, ...]
    turned: bool = False
    dtype: str = "float32"


#: On a GPU: steps of recurrent networks, for which cuBLAS has few blocks, a layer, and attention.
KINDS: Dict[str, Kind] = {
    "(20, 650) @ (2600, 650).T": Kind((20, 650), (2600, 650), True),
    "(20, 2600) @ (2600, 650)": Kind((20, 2600), (2600, 650)),
    "(2048, 512) @ (512, 2048)": Kind((2048, 512), (512, 2048)),
    "(2048, 512) @ (2048, 512).T": Kind((2048, 512), (2048, 512), True),
    "64 x (256, 64) @ (256, 64).T": Kind((64, 256, 64), (64, 256, 64), True),
    "float16 (20, 2600) @ (2600, 650)": Kind((20, 2600), (2600, 650), dtype="float16"),
    "float64 (20, 650) @ (650, 2600)": Kind((20, 650), (650, 2600), dtype="float64")}

#: For the emulator.
_SMALL: Dict[str, Kind] = {
    "(3, 130) @ (4, 130).T": Kind((3, 130), (4, 130), True), "2 x (3, 4) @ (4, 5)": Kind((2, 3, 4), (2, 4, 5)),
    "float16 (3, 130) @ (130, 4)": Kind((3, 130), (130, 4), dtype="float16")}

#: The largest difference from NumPy's numbers, as a part of the largest number.
_MOST = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-13}


def graph_of(kind: Kind) -> Graph:
    """Products of several left operands with the same right one."""
    builder, dtype = Builder("products"), np.dtype(kind.dtype)
    right = builder.input(Tensor(kind.right, dtype), "w")
    lefts = [builder.input(Tensor(kind.left, dtype), f"x{k}") for k in range(_COUNT)]
    with building(builder):
        return builder.build(tuple([ops.matmul(left, right, transa=False, transb=kind.turned) for left in lefts]))


def check(device: Any, report: Callable[[str, str], None], seconds: Optional[Callable[[Callable[[], Any]], float]]) -> None:
    """Check products on a device, and print their times.  seconds: measures a call on the device; None: it is emulated."""
    if device.launcher() is None:
        return
    for name, kind in (_SMALL if seconds is None else KINDS).items():
        _check_kind(device, name, kind, report, seconds)
    with chainer.using_config("autotune", True):
        check_finished(device, lambda name, problem: report(f"{name}, measured", problem))


def _check_kind(device: Any, name: str, kind: Kind, report: Callable[[str, str], None],
                seconds: Optional[Callable[[Callable[[], Any]], float]]) -> None:
    region, random = DeviceRegion(graph_of(kind)), np.random.RandomState(3)
    region.load(device, device.load(region.function.kernels))
    arrays = [random.uniform(-1, 1, value.shape).astype(kind.dtype) for value in region.graph.inputs]
    right = arrays[0].astype(np.float64)
    wanted = [left.astype(np.float64) @ (right.swapaxes(-1, -2) if kind.turned else right) for left in arrays[1:]]
    places = [device.upload(array) for array in arrays]
    outs = [device.upload(np.zeros(value.shape, kind.dtype)) for value in region.graph.outputs]
    times: List[float] = []
    for is_measured in (False, True):
        with chainer.using_config("autotune", is_measured):
            found = []
            for _ in range(3):
                region.call(*places, *outs)
                found.append([np.array(device.download(out)) for out in outs])
            if seconds is not None:
                times.append(seconds(lambda: region.call(*places, *outs)) / _COUNT)
        worst = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(found[0], wanted))
        title = f"{name}, {'measured' if is_measured else 'as cuBLAS chooses'}"
        report(title, "" if worst < _MOST[kind.dtype] else f"it differs by {worst:.1e} of the largest element")
        same = all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))
        report(f"{title}, once more", "" if same else "other bits")
    if times:
        print(f"{name}: {times[0] * 1e6:.1f} us, measured: {times[1] * 1e6:.1f} us", flush=True)
