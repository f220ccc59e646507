"""Kernels for sizes that only the run knows, beside those for the same sizes when these are known: the same bits."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from .. import ops
from ..backends.cuda.launches.region import DeviceRegion
from ..ir.building import Builder, building
from ..ir.dims import Dim, Size, evaluate
from ..ir.graph import Graph, Value
from ..ir.interpret import interpret
from ..ir.types import Extent, Tensor
from ..native.device_kernels import Kernel
from .samples import Case, CheckedDevice, kernels_of

#: The axes of the operands of functions: the first two sizes are those of a call, the third is known.
_AXES = {"x": (0, 1), "y": (1, 0), "k": (0, 2), "w": (2, 2), "b": (1,), "c": (2,), "i": (0,), "p": (0, 2, 1), "f": (2, 2, 2)}
_KNOWN = 6

#: In which dtype NumPy computes what is right: its sums of columns of float32 are far less exact than those of the kernels.
_WIDER = {"float16": "float32", "float32": "float64"}

#: Sizes of calls in which rows are short, of one element, for a block, and many.
SIZES = ((5, 7), (1, 1), (2, 300), (70, 3))

#: More, for a device: few long rows, many rows for blocks, sums that blocks share.
LARGE = ((3, 40000), (700, 900), (60000, 5))


def _normalized(x: Value) -> Value:
    """What is kept for a later sweep: the difference is neither stored nor cheap."""
    y = ops.tanh(x)
    y = y - ops.mean(y, axis=(1,), keepdims=True)
    return y / ops.sqrt(ops.mean(y * y, axis=(1,), keepdims=True) + 1e-5)


def _product(a: Value, b: Value) -> Value:
    return ops.matmul(a, b, transa=False, transb=False)


def _sum(x: Value, *axes: int) -> Value:
    return ops.sum(x, axis=axes, keepdims=False)


#: How windows of filters lie in an image.
_PLACES: Dict[str, Any] = {"stride": (2,), "pad": (5,), "dilate": (1,), "groups": 1}


def _convolution(p: Value, f: Value) -> Value:
    return ops.conv(p, f, size=((p.shape[2] + 4) // 2 + 1,), **_PLACES)


def _gradients(p: Value, f: Value) -> Tuple[Value, Value]:
    y = _convolution(p, f)
    return ops.conv_transpose(y, f, size=p.shape[2:], **_PLACES), ops.conv_grad_weight(p, y, size=f.shape[2:], **_PLACES)


def _largest(p: Value) -> Tuple[Value, Value]:
    found: Tuple[Value, Value] = ops.max_pool(p, kernel=(3,), size=((p.shape[2] + 1) // 2 + 1,), stride=(2,), pad=(2,))
    return found


def _pooled(p: Value) -> Tuple[Value, Value]:
    return ops.average_pool(p, kernel=(3,), size=(p.shape[2] + 2,), pad=(2,)), ops.exp(_largest(p)[0])


#: Functions of operands with these names.
FUNCTIONS: Dict[str, Tuple[str, Callable[..., Any]]] = {
    "elements": ("x", lambda x: ops.tanh(x) * 2.0 + x),
    "broadcast": ("xb", lambda x, b: x * b + b),
    "transposed": ("xy", lambda x, y: ops.transpose(x, axes=(1, 0)) + y),
    "a column": ("x", lambda x: x * ops.getitem(x, index=(slice(None), slice(0, 1)))),
    "softmax": ("k", lambda k: ops.softmax(k, axis=1)),
    "softmax of any row": ("x", lambda x: ops.softmax(x, axis=1)),
    "normalized": ("x", _normalized),
    "sums": ("x", lambda x: (_sum(x, 1), ops.max(x, axis=(1,), keepdims=False))),
    "sum of all": ("x", lambda x: _sum(x * x, 0, 1)),
    "sums of columns": ("x", lambda x: (_sum(x * 2.0, 0), x + 1.0)),
    "sums of known columns": ("k", lambda k: _sum(ops.exp(k), 0)),
    "rows and columns": ("k", lambda k: (lambda p: (_sum(p, 0), p))(ops.softmax(k, axis=1))),
    "taken": ("wi", lambda w, i: ops.take(w, i, axis=0)),
    "added by index": ("ki", lambda k, i: ops.scatter_add(k, i, axis=0, shape=(4, _KNOWN))),
    "added rows of any length": ("xi", lambda x, i: ops.scatter_add(x, i, axis=0, shape=(4, x.shape[1]))),
    "along": ("xi", lambda x, i: ops.take_along(x, ops.reshape(i, shape=(*i.shape, 1)), axis=1)),
    "joined": ("ky", lambda k, y: (ops.concat(k, k * 2.0, axis=0), ops.transpose(ops.concat(y, y, axis=0), axes=(1, 0)))),
    "cumulative": ("x", lambda x: (ops.cumsum(x, axis=1), ops.cumsum(x, axis=0))),
    "largest": ("x", lambda x: (ops.argmax(x, axis=1), ops.argmin(x, axis=0))),
    "product": ("kw", lambda k, w: ops.tanh(_product(k, w))),
    "product with a bias": ("kwc", lambda k, w, c: ops.relu(_product(k, w) + c)),
    "pooled": ("p", _pooled),
    "gradient of a pooling": ("p", lambda p: ops.unpick(*_largest(p), kernel=(3,), size=p.shape[2:], stride=(2,), pad=(2,))),
    "convolution": ("pf", _convolution),
    "gradients of a convolution": ("pf", _gradients),
    "turned product": ("xk", lambda x, k: _product(ops.transpose(x, axes=(1, 0)), k)),
}


class OpenCase:
    """One function for all sizes: its region, and what it gives for those of a call."""

    def __init__(self, name: str, dtype: str):
        self.name, (self.letters, self.function), self.dtype = name, FUNCTIONS[name], dtype
        graph = self._graph((Dim("length_n0"), Dim("length_n1")))
        symbols = sorted({symbol for v in graph.inputs if isinstance(v.type, Tensor) for n in v.shape if isinstance(n, Dim)
                          for symbol in n.symbols})
        self.symbols = tuple(symbols)
        self.graph = graph.with_(inputs=(*graph.inputs, *[Value(Extent(symbol), symbol) for symbol in symbols]))
        self.device: Any = None
        self.region = DeviceRegion(self.graph, around=self)

    def _graph(self, sizes: Tuple[Size, Size], dtype: str = "") -> Graph:
        builder, all_sizes = Builder("open"), (*sizes, _KNOWN)
        inputs = [builder.input(Tensor(tuple([all_sizes[axis] for axis in _AXES[letter]]),
                                       np.dtype("int32" if letter == "i" else dtype or self.dtype)), letter)
                  for letter in self.letters]
        with building(builder):
            found = self.function(*inputs)
        return builder.build(found if isinstance(found, tuple) else (found,))

    @property
    def kernels(self) -> Tuple[Kernel, ...]:
        """Its kernels."""
        return self.region.function.kernels

    def arrays(self, sizes: Tuple[int, int]) -> List[np.ndarray]:
        """Operands for these sizes."""
        random, all_sizes = np.random.RandomState(sum(sizes)), (*sizes, _KNOWN)
        shapes = [tuple([all_sizes[axis] for axis in _AXES[letter]]) for letter in self.letters]
        return [random.randint(0, min(4, sizes[1]), shape).astype(np.int32) if letter == "i" else
                random.uniform(-1, 1, shape).astype(self.dtype) for letter, shape in zip(self.letters, shapes)]

    def closed(self, sizes: Tuple[int, int]) -> Case:
        """The same when these sizes are known."""
        graph, arrays = self._graph(sizes), self.arrays(sizes)
        wide = self._graph(sizes, _WIDER.get(self.dtype, self.dtype))
        results = interpret(wide, *[x.astype(v.dtype) for x, v in zip(arrays, wide.inputs)])
        expected = [np.asarray(x).astype(v.dtype) for x, v in zip(results, graph.outputs)]
        return Case(f"{self.name} of {sizes}", graph, arrays, expected)

    def run(self, device: CheckedDevice, sizes: Tuple[int, int]) -> List[np.ndarray]:
        """The results for these sizes; the region is loaded."""
        self.device = device
        numbers: Mapping[str, int] = {"length_n0": sizes[0], "length_n1": sizes[1]}
        given = [device.upload(x) for x in self.arrays(sizes)]
        made = [device.upload(np.full([evaluate(n, numbers) for n in v.shape], 77).astype(v.dtype)) for v in self.graph.outputs]
        self.region.call(*given, *[numbers[symbol] for symbol in self.symbols], *made)
        return [device.download(array) for array in made]

    def empty(self, nbytes: int) -> Any:
        """Memory that is full of what is no result."""
        return self.device.upload(np.full(nbytes, 255, np.uint8))

    def calls(self, graph: Graph) -> Callable[..., Sequence[Any]]:
        """What NumPy makes of a graph."""
        def call(*arguments: Any) -> Sequence[Any]:
            arrays = [self.device.download(x) for x in arguments[:len(self.letters)]]
            return [self.device.upload(np.asarray(x)) for x in interpret(graph, *arrays, *arguments[len(self.letters):])]
        return call


def cases(dtype: str) -> List[OpenCase]:
    """A case of each function."""
    return [OpenCase(name, dtype) for name in FUNCTIONS]


def check(devices: Sequence[Any], report: Callable[[str, str], None], dtype: str = "float32",
          sizes: Sequence[Tuple[int, int]] = SIZES) -> List[OpenCase]:
    """Compare all functions with NumPy, and with kernels for known sizes, on each device; gives what was compared.

    report: told of each check its name, and what is wrong or "".
    """
    opened = cases(dtype)
    closed = [(case, size, case.closed(size)) for case in opened for size in sizes
              if not ("i" in case.letters and size[0] < 2)]
    module = devices[0].load(kernels_of([*opened, *[one for _, _, one in closed]]))
    for device in devices:
        for case in opened:
            case.region.load(device, module)
        for case, size, known in closed:
            found, wanted = case.run(device, size), known.run(device, module)
            if dtype != "float16":                                     # of several ops: NumPy rounds between them
                report(f"{known.name}, {dtype}", known.difference(found))
            same = all(a.tobytes() == b.tobytes() for a, b in zip(found, wanted))
            report(f"{known.name}, {dtype}, as of known sizes", "" if same else "other bits")
    return opened
