"""One-node graphs of the samples that ops declare, with their operands and what they give."""
from __future__ import annotations

import warnings
import zlib
from typing import Any, Dict, Iterable, Iterator, List, Optional, Protocol, Sequence, Tuple

import numpy as np

from ..backends.cuda.emit import supported
from ..backends.cuda.launches.region import Device, DeviceRegion
from ..backends.cuda.text.function import Planner, no_plan
from ..ir.building import Builder, building
from ..ir.graph import Graph
from ..ir.interpret import interpret
from ..ir.op import OPS, OpDef, Sample, sample
from ..ir.types import Scalar, Tensor, type_of
from ..native.device_kernels import Kernel

#: How far results may be from NumPy's, by the dtype of floats: of themselves, or of a tenth; sums of their largest element.
TOLERANCE = {"float16": 4e-3, "float32": 4e-6, "float64": 1e-11}

#: More operands: what is a row for a warp, a block, or several; sums that blocks share; rows too long for the memory of a block.
MORE: Dict[str, Tuple[Sample, ...]] = {
    "sum": (sample((3, 17), axis=1), sample((700, 3), axis=0), sample((3, 5, 7), axis=(0, 2)), sample((2, 5000), axis=1),
            sample((9, 300), axis=1), sample((3, 5, 7), axis=1, keepdims=True), sample((2, 700, 40), axis=1),
            sample((70000,), axis=0), sample((300, 7, 40), axis=(0, 1, 2))),
    "max": (sample((3, 17), axis=1), sample((170, 3), axis=0), sample((3, 5, 7), axis=(0, 2)), sample((4, 300), axis=1),
            sample((40000,), axis=0)),
    "min": (sample((3, 17), axis=1), sample((170, 3), axis=0)),
    "softmax": (sample((5, 37), axis=1), sample((5, 37), axis=0), sample((2, 5, 3, 4), axis=1), sample((5, 1500), axis=1),
                sample((2, 11000), axis=1)),
    "log_softmax": (sample((5, 37), axis=1), sample((2, 5, 3, 4), axis=1), sample((6, 300), axis=1)),
    "batch_norm": (sample((5, 3), (3,), (3,)), sample((4, 3, 2, 5), (3,), (3,), axis=(0, 2, 3))),
    "batch_norm_grad": (sample((5, 3), (3,), (5, 3), (3,), (3,)),
                        sample((4, 3, 2, 5), (3,), (4, 3, 2, 5), (3,), (3,), axis=(0, 2, 3))),
    "fixed_batch_norm": (sample((4, 3, 5), (3,), (3,), (3,), (3,), low=0.1, axis=(0, 2)),),
    "fixed_batch_norm_grad": (sample((4, 3, 5), (3,), (3,), (3,), (4, 3, 5), (3,), (3,), axis=(0, 2)),),
    "batch_renorm": (sample((4, 3, 5), (3,), (3,), (3,), (3,), low=0.1, axis=(0, 2)),),
    "batch_renorm_grad": (sample((5, 3), (3,), (5, 3), (3,), (3,), (5, 3), (5, 3), low=0.1),),
    "standardize": (sample((5, 37)), sample((3, 1))),
    "scale_shift_grad": (sample((2, 3, 4), (3,), (2, 3, 4)),),
    "soft_labels": (sample((4, 3), (4, 3), low=0.1), sample((4, 3, 2), (4, 3, 2), low=0.1, eps=1e-3)),
    "contrast": (sample((4, 3), np.array([1, 0, 1, 0], np.int32), ()), sample((2, 5), np.array([0, 1], "f"), ())),
    "pick": (sample((7, 30), np.arange(40) % 7 - 3, index=("at",)),
             sample((6, 4, 50), np.arange(30) % 4, index=(slice(1, 6, 2), "at"))),
    "argmax": (sample(np.array([[1, np.nan, 3], [2, 2, 1]]), axis=1), sample((3, 5, 2), axis=1), sample(np.arange(6) % 4),
               sample(np.where(np.arange(2100).reshape(3, 700) % 699 == 350, np.nan, 1.0), axis=1), sample((3, 70, 2), axis=1),
               sample(np.arange(900) % 37)),
    "argmin": (sample(np.where(np.arange(200).reshape(2, 100) == 150, np.nan, np.arange(200).reshape(2, 100) % 7), axis=1),),
    "cumsum": (sample((3, 700), axis=1), sample((300, 5), axis=0), sample((5000, 3), axis=0)),
    "cumprod": (sample((3, 40), axis=1, low=0.9, high=1.1),),
    "put": (sample((5, 6), (3, 2), np.array([2, -4, 2]), index=("at", slice(4, 0, -2))),
            sample((4, 5), (2, 3), np.array([[1], [3]]), np.array([0, 2, 4]), index=("at", "at")),
            sample((400, 3), (300, 3), np.arange(300) * 7 % 400 - 200, index=("at",))),
    "add_at": (sample((4, 6, 3), (3, 4, 2), np.array([1, -1, 1]), index=(slice(0, 4), "at", slice(0, 3, 2))),
               sample((4, 6, 3), (3, 6), np.array([1, -1, 1]), np.array(2), index=("at", slice(0, 6), "at")),
               sample((4, 6), (3, 1, 6), np.array([1, -1, 1]), index=("at", None)),
               sample((6, 40, 5), (3, 300, 5), np.arange(300) * 7 % 37 - 20, index=(slice(0, 6, 2), "at"))),
    "add_along": (sample((3, 300), np.arange(900).reshape(3, 300) * 7 % 37 - 20, size=40),),
    "scatter_add": (sample((2, 200, 70), np.arange(200) % 5 - 2, axis=1, shape=(2, 5, 70)),
                    sample((700, 50), np.arange(700) * 7 % 37 - 20, shape=(40, 50)),
                    sample((300, 1100), np.arange(300) % 3, shape=(9, 1100))),
}


class CheckedDevice(Device, Protocol):
    """A device from which arrays of NumPy's are copied."""

    def download(self, array: Any) -> np.ndarray:
        """A copy of an array of the device, when all that was launched before is done."""


class Case:
    """A graph of one node, its operands, what NumPy makes of them, and its kernels."""

    def __init__(self, name: str, graph: Graph, operands: Sequence[Any], expected: Sequence[Any],
                 plan: Planner = no_plan):
        self.name, self.graph, self.operands, self.expected = name, graph, operands, expected
        self.region = DeviceRegion(graph, plan)

    @property
    def kernels(self) -> Tuple[Kernel, ...]:
        """Its kernels."""
        return self.region.function.kernels

    @property
    def text(self) -> str:
        """Their text."""
        return "\n".join(kernel.text for kernel in self.kernels)

    def run(self, device: CheckedDevice, module: Any) -> List[np.ndarray]:
        """The outputs, as arrays of NumPy's.  Memory that is to be written is full of what is no result."""
        self.region.load(device, module)
        given = [device.upload(np.asarray(x)) for x in self.operands]
        arrays = [device.upload(np.full(v.shape, 77).astype(v.dtype)) for v in self.graph.outputs]
        size = self.region.function.scratch
        self.region.call(*given, *arrays, *([device.upload(np.full(size, 255, np.uint8))] if size else []))
        return [device.download(array) for array in arrays]

    def difference(self, results: Sequence[np.ndarray]) -> str:
        """How results differ from what is expected; "" where they do not."""
        return difference(self.graph, results, self.expected)


def difference(graph: Graph, results: Sequence[np.ndarray], expected: Sequence[Any]) -> str:
    """How results of a graph differ from what is expected; "" where they do not."""
    values = [v for v in (*graph.inputs, *graph.outputs) if isinstance(v.type, (Tensor, Scalar))]
    dtypes = {v.dtype.name for v in values} | {x.dtype.name for x in results}
    tolerance = max([TOLERANCE.get(name, 0.0) for name in dtypes], default=0.0)
    summed = any(node.op.kind == "contraction" or node.op.name in ("sum", "mean", "scatter_add", "cumsum") for node in graph.nodes)
    for actual, wanted in zip(results, map(np.asarray, expected)):
        if actual.dtype != wanted.dtype or actual.shape != wanted.shape:
            return f"{actual.dtype}{actual.shape} instead of {wanted.dtype}{wanted.shape}"
        scale = float(np.abs(wanted).max()) if summed and wanted.size else 0.1
        with np.errstate(all="ignore"):
            close = np.isclose(actual, wanted, rtol=tolerance, atol=tolerance * scale, equal_nan=True)
        if not close.all():
            place = tuple(np.argwhere(~close)[0])
            return f"{actual[place]!r} instead of {wanted[place]!r} at {tuple(map(int, place))}"
    return ""


def cases(dtype: Optional[str] = None, most: int = 100, ops: Iterable[str] = tuple(OPS), plan: Planner = no_plan) -> List[Case]:
    """The cases of ops that kernels compute, or cuDNN.

    dtype: of what is random, None: the sample's own.  most: for each op.  plan: how cuDNN computes a convolution.
    """
    found: List[Case] = []
    for op in map(OPS.__getitem__, ops):
        for name, graph, operands in graphs(op, dtype, most):
            expected = meaning(graph, operands) if supported(graph.nodes[0]) else None
            if expected is not None:
                found.append(Case(name, graph, operands, expected, plan))
    return found


class HasKernels(Protocol):
    """What has kernels."""

    @property
    def kernels(self) -> Tuple[Kernel, ...]:
        """Its kernels."""


def kernels_of(cases: Iterable[HasKernels]) -> List[Kernel]:
    """The kernels of cases, each of them once."""
    return list(dict.fromkeys([kernel for case in cases for kernel in case.kernels]))


def graphs(op: OpDef, dtype: Optional[str], most: int) -> Iterator[Tuple[str, Graph, List[Any]]]:
    """The graphs of an op's samples, with names and operands."""
    for number, one in enumerate((*op.samples, *MORE.get(op.name, ()))[:most]):
        random = np.random.RandomState(zlib.crc32(f"{op.name}-{number}".encode()))
        kind = dtype or one.dtype
        if kind != one.dtype and not any(isinstance(x, tuple) for x in one.operands):
            continue
        low, high = (one.low, one.high) if np.dtype(kind).kind == "f" else (1, 9)
        operands = [np.asarray(random.uniform(low, high, x)).astype(kind) if isinstance(x, tuple) else x for x in one.operands]
        builder = Builder(op.name)
        try:
            inputs = [builder.input(type_of(x), name) for x, name in zip(operands, "stuvwxyz")]
            with building(builder):
                yield f"{op.name}-{number}-{dtype or 'own'}", builder.build(builder.add(op, tuple(inputs), one.attrs)), operands
        except (TypeError, ValueError):                      # not for this dtype
            continue


def meaning(graph: Graph, operands: Sequence[Any]) -> Optional[Sequence[Any]]:
    """What a graph gives; None where NumPy does not take these dtypes."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return interpret(graph, *operands)
        except TypeError:
            return None
