"""Sequences that are convolved, ``(batch, channels, length)``, as images of one row: what is for images is for them, too."""
from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, Mapping, Optional, Set, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..ir.types import Tensor

#: The only row of an image, in an index in its normal form.
_ROW = (0, 1, 1)
#: What windows have along an axis of one row.
_WINDOWS = {"size": 1, "stride": 1, "pad": 0, "dilate": 1, "kernel": 1}


def images_of_sequences(graph: Graph, convolves: Callable[[Node], bool]) -> Graph:
    """The graph with convolutions over one axis, and what stands between them, on images ``(batch, channels, 1, length)``.

    convolves: whether a node is such a convolution.  What others read is reshaped, which copies nothing.  Linear in nodes + edges.
    """
    return _Images(graph, convolves).rewritten() if any(map(convolves, graph.nodes)) else graph


class _Images:
    """The nodes so far.  images: the images of sequences; plain: those of these sequences that are there as they were, too."""

    def __init__(self, graph: Graph, convolves: Callable[[Node], bool]):
        self.graph, self.convolves = graph, convolves
        self.builder = Builder(graph.name)
        for value in graph.values():
            self.builder.fresh(value.name)
        self.producers = graph.producers()
        regions = [graph, *(region for node in graph.walk() for region in node.regions)]
        self.read = Counter(v for node in graph.walk() for v in node.inputs)
        self.read.update(v for region in regions for v in region.outputs)
        self.images: Dict[Value, Value] = {}
        self.plain: Set[Value] = set()

    def rewritten(self) -> Graph:
        """The graph with these nodes about images."""
        for node in self.graph.nodes:
            self.builder.loc = node.loc
            attrs = self._attrs(node)
            if attrs is None:
                self._keep(node)
                continue
            operands = tuple([self._operand(value) for value in node.inputs])
            if node.outputs[0].ndim == 3:
                self.images.update(zip(node.outputs, self.builder.add(node.op, operands, attrs)))
            else:
                self.builder.nodes.append(replace(node, inputs=operands, attrs=attrs))
        for value in self.graph.outputs:
            self._as_it_was(value)
        return self.graph.with_(nodes=tuple(self.builder.nodes))

    def _attrs(self, node: Node) -> Optional[Dict[str, Any]]:
        """The attributes of a node that is computed on images; None for one that is not."""
        if self.convolves(node):
            return _windows(node)
        if not any(v in self.images for v in node.inputs) or any(not isinstance(v.type, Tensor) for v in node.inputs):
            return None
        rule = _RULES.get(node.op.name, _elementwise if node.op.kind == "elementwise" else None)
        others = node.outputs if node.op.name == "split" else node.outputs[:1]
        unread = not any(self.read[v] for v in node.outputs if v not in others)
        return rule(node) if rule is not None and unread else None

    def _operand(self, value: Value) -> Value:
        """The operand of a node on images: of a sequence, of filters, or the numbers of a normalization as they are."""
        if value in self.images:
            return self.images[value]
        if value.ndim != 3:
            return value
        maker = self.producers.get(value)
        if maker is not None and maker.op.name == "broadcast_to" and maker.inputs[0] not in self.images:
            (given,) = maker.inputs
            shape = (*(1,) * (3 - given.ndim), *given.shape)
            return self._added("broadcast_to", self._added("reshape", given, shape=_as_image(shape)), shape=_as_image(value.shape))
        return self._added("reshape", value, shape=_as_image(value.shape))

    def _added(self, name: str, operand: Value, **attrs: Any) -> Value:
        return self.builder.add(OPS[name], (operand,), attrs)[0]

    def _keep(self, node: Node) -> None:
        for value in (*node.inputs, *(v for inner in node.walk() for v in inner.inputs)):
            self._as_it_was(value)
        self.builder.nodes.append(node)

    def _as_it_was(self, value: Value) -> None:
        if value in self.images and value not in self.plain:
            self.plain.add(value)
            self.builder.nodes.append(Node(OPS["reshape"], (self.images[value],), (value,), {"shape": value.shape}, (),
                                           self.builder.loc))


def _as_image(shape: Tuple[Any, ...]) -> Tuple[Any, ...]:
    return (*shape[:-1], 1, shape[-1])


def _windows(node: Node) -> Dict[str, Any]:
    return {name: (_WINDOWS[name], *value) if name in _WINDOWS else value for name, value in node.attrs.items()}


def _elementwise(node: Node) -> Optional[Dict[str, Any]]:
    shape = node.outputs[0].shape
    return dict(node.attrs) if len(node.outputs) == 1 and all(v.shape == shape for v in node.inputs) else None


def _normalization(node: Node) -> Optional[Dict[str, Any]]:
    return {**node.attrs, "axis": (0, 2, 3)} if node.attrs["axis"] == (0, 2) else None


def _of_channels(node: Node) -> Optional[Dict[str, Any]]:
    return dict(node.attrs) if node.attrs["axis"] == 1 and all(v.ndim == 3 for v in node.inputs) else None


def _part(node: Node) -> Optional[Dict[str, Any]]:
    index = node.attrs["index"]
    if len(index) != 3 or not all(isinstance(entry, tuple) and len(entry) == len(_ROW) for entry in index):
        return None
    attrs = {**node.attrs, "index": (*index[:2], _ROW, index[2])}
    return {**attrs, "shape": _as_image(attrs["shape"])} if "shape" in attrs else attrs


def _reduction(node: Node) -> Optional[Dict[str, Any]]:
    return {**node.attrs, "axis": (2, 3)} if node.attrs["axis"] == (2,) and node.inputs[0].ndim == 3 else None


#: The attributes of a node on images, by op: None where that is not possible.
_RULES: Mapping[str, Callable[[Node], Optional[Dict[str, Any]]]] = {
    "fixed_batch_norm": _normalization, **{name: _windows for name in ("conv_transpose", "max_pool", "average_pool")},
    **{name: _of_channels for name in ("concat", "split")}, **{name: _part for name in ("getitem", "scatter_slice")},
    **{name: _reduction for name in ("sum", "mean", "max", "min")}}
