"""Many small products become few large ones: products with one matrix, and sums of products, as unrolled recurrences have."""
from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Collection, Dict, Hashable, Iterator, List, Optional, Sequence, Set, Tuple

from ..ir.building import Builder
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS, OpDef
from ..ir.types import Tensor
from .effects import has_effect
from .rewriting import with_regions

#: Fewer products than this stay as they are.
_FEWEST = 3
#: A product of more rows is as fast by itself.  A matrix of fewer bytes stays in the first cache in any case.
_ROWS, _SMALL = 64, 1 << 14
#: At most so many bytes are concatenated.
_LARGEST = 1 << 24
#: Draws read no arrays, so other nodes may move across them.
_DRAWS = ("random_uniform", "random_between", "random_normal", "fast_begin", "fast_uniform", "fast_between", "fast_normal")


def batch_products(graph: Graph, kept: Collection[Value] = ()) -> Graph:
    """Replace many small products by few large ones: products with one matrix, and sums of products.

    kept: values besides the outputs that are read afterwards.

    ``x[t] @ W`` for ``x[t]`` that do not depend on each other becomes one product of all rows, of which the results are
    slices; the rows are put together where they are not side by side already.  ``sum of g[t].T @ x[t]``, as in the
    gradient of a matrix that every step of a recurrence reads, becomes one product, and a sum of ``scatter_add`` one
    ``scatter_add``.  Sums of floats are reassociated.  Nothing moves across a node with effects but draws, which stay
    in order.  For graphs that are about to be run: gradients have been taken.  Linear in nodes + edges, times the
    number of matrices.
    """
    nodes = [with_regions(node, batch_products) for node in graph.nodes]
    if len([node for node in nodes if node.op.name in ("matmul", "scatter_add")]) >= _FEWEST:
        work = _Batching(graph, nodes, {*kept, *graph.outputs})
        work.share()
        work.add_up()
        nodes = work.nodes
    same = len(nodes) == len(graph.nodes) and all(a is b for a, b in zip(nodes, graph.nodes))
    return graph if same else graph.with_(nodes=tuple(nodes))


class _Batching:
    """The nodes so far, and in the builder the new ones that have no place yet."""

    def __init__(self, graph: Graph, nodes: List[Node], kept: Set[Value]):
        self.nodes, self.kept, self.outputs = nodes, kept, set(graph.outputs)
        self.builder = Builder(graph.name)
        for value in graph.values():
            self.builder.fresh(value.name)
        self.joins: Dict[Hashable, Value] = {}
        self.unread: Set[Node] = set()                # nodes without readers, once the new ones are in
        self.barriers = {node for node in nodes if _is_barrier(node)}
        self._look()

    def _look(self) -> None:
        """Find the producer and the readers of each value, and number the stretches between effects."""
        self.producer: Dict[Value, Node] = {}
        self.readers: Dict[Value, List[Node]] = {}
        self.stretch: Dict[Node, int] = {}
        self.position = {node: k for k, node in enumerate(self.nodes)}
        stretch = 0
        for node in self.nodes:
            stretch += node in self.barriers
            self.stretch[node] = stretch
            for value in node.outputs:
                self.producer[value] = node
            for value in node.inputs:
                self.readers.setdefault(value, []).append(node)

    # --- products with one matrix -------------------------------------------------------------------------------------

    def share(self) -> None:
        """Join independent products with one matrix into one product."""
        families: Dict[Hashable, List[Node]] = {}
        for node in self.nodes:
            if is_product(node) and not node.attrs["transa"]:
                x, matrix = node.inputs
                if x.shape[0] <= _ROWS and _bytes(matrix) > _SMALL:
                    families.setdefault((matrix, node.attrs["transb"], self.stretch[node]), []).append(node)
        for members in families.values():
            if len(members) >= _FEWEST:
                instead: Dict[Node, Node] = {}
                for level in self._levels(set(members)):
                    for part in _portions(level, [_bytes(n.inputs[0]) + _bytes(n.outputs[0]) for n in level]):
                        instead.update(self._one_product(part))
                if instead:
                    self._order(instead)

    def _levels(self, members: Set[Node]) -> Iterator[List[Node]]:
        """The members by the longest chain of other members that leads to them: those of one level are independent."""
        depth: Dict[Value, int] = {}                # of values that depend on a member
        levels: Dict[int, List[Node]] = {}
        for node in self.nodes:
            below = 0 if depth.keys().isdisjoint(node.inputs) else max([depth.get(v, 0) for v in node.inputs])
            if node in members:
                levels.setdefault(below, []).append(node)
                below += 1
            if below:
                depth.update(dict.fromkeys(node.outputs, below))
        return (level for level in levels.values() if len(level) >= _FEWEST)

    def _one_product(self, members: Sequence[Node]) -> Dict[Node, Node]:
        """Make the large product; returns for each product the slice, or the copy of a slice, that replaces it."""
        first = members[0]
        rows = self._join([node.inputs[0] for node in members], 0)
        whole = self._add(first.op, (rows, first.inputs[1]), first, **first.attrs)
        start, columns = 0, (0, whole.shape[1], 1)
        slices: Dict[Node, Node] = {}
        for node in members:
            stop = start + node.outputs[0].shape[0]
            index = ((start, stop, 1), columns)
            if node.outputs[0] in self.outputs:         # a view would keep all rows alive
                part = self._add(OPS["getitem"], (whole,), node, index=index)
                slices[node] = Node(OPS["copy"], (part,), node.outputs, {}, (), node.loc)
            else:
                slices[node] = Node(OPS["getitem"], (whole,), node.outputs, {"index": index}, (), node.loc)
            start = stop
        return slices

    # --- sums of products ---------------------------------------------------------------------------------------------

    def add_up(self) -> None:
        """Join products that are added up into one product."""
        instead: Dict[Node, Node] = {}
        gone: Set[Node] = set()
        for node in self.nodes:
            if node.op.name == "add" and not self._is_inner(node):
                leaves, adds = self._leaves(node)
                groups: Dict[Hashable, List[Node]] = {}
                for value in leaves:
                    key = self._kind_of_summand(value, node)
                    if key is not None:
                        groups.setdefault(key, []).append(self.producer[value])
                groups = {key: members for key, members in groups.items() if len(members) >= _FEWEST}
                if groups:
                    joined = {member for members in groups.values() for member in members}
                    parts = [v for v in leaves if self.producer.get(v) not in joined]
                    parts += [v for members in groups.values() for v in self._sums_of(members)]
                    instead[node] = self._sum(parts, node)
                    gone |= joined.union(adds)
        if instead:
            self._order(instead, gone)

    def _is_inner(self, node: Node) -> bool:
        """Whether a sum is read only by another sum."""
        readers = self.readers.get(node.outputs[0], ())
        return len(readers) == 1 and readers[0].op.name == "add" and node.outputs[0] not in self.kept \
            and self.stretch[readers[0]] == self.stretch[node]

    def _leaves(self, root: Node) -> Tuple[List[Value], List[Node]]:
        """The summands of a tree of additions, and its nodes."""
        leaves: List[Value] = []
        adds, waiting = [root], list(root.inputs)
        while waiting:
            value = waiting.pop()
            node = self.producer.get(value)
            if node is not None and node.op.name == "add" and self._is_inner(node):
                adds.append(node)
                waiting += node.inputs
            else:
                leaves.append(value)
        return leaves, adds

    def _kind_of_summand(self, value: Value, root: Node) -> Optional[Hashable]:
        """The key of the summands that can be joined with this one; None for a summand that stays."""
        node = self.producer.get(value)
        if node is None or value in self.kept or len(self.readers[value]) != 1 or self.stretch[node] != self.stretch[root]:
            return None
        if is_product(node):
            return ("matmul", node.attrs["transa"], node.attrs["transb"]) if is_worth_joining(node) else None
        if node.op.name == "scatter_add" and node.attrs["axis"] == 0 and value.dtype.kind == "f" and _is_known(*node.inputs):
            x, indices = node.inputs
            worth = indices.ndim > 0 and 2 * math.prod(x.shape) <= 3 * math.prod(value.shape)
            return ("scatter_add", indices.dtype, indices.shape[1:]) if worth else None
        return None

    def _sums_of(self, members: List[Node]) -> List[Value]:
        """The sum of nodes of one kind: one value, or several where it would be too large."""
        members = sorted(members, key=self.position.__getitem__)
        op, attrs = members[0].op, members[0].attrs
        axes = (0, 0) if op.name == "scatter_add" else (int(not attrs["transa"]), int(attrs["transb"]))
        return [self._add(op, tuple(self._join([node.inputs[k] for node in part], axis) for k, axis in enumerate(axes)),
                          part[0], **attrs)
                for part in _portions(members, [sum(map(_bytes, node.inputs)) for node in members])]

    def _sum(self, parts: Sequence[Value], root: Node) -> Node:
        """The node that gives the sum of the parts in place of the root."""
        if len(parts) == 1:
            made = self.builder.nodes.pop()
            return replace(made, outputs=root.outputs)
        total = parts[0]
        for part in parts[1:-1]:
            total = self._add(root.op, (total, part), root)
        return replace(root, inputs=(total, parts[-1]))

    # --- arrays side by side ------------------------------------------------------------------------------------------

    def _join(self, values: Sequence[Value], axis: int) -> Value:
        """The concatenation of values along an axis; without a copy where they are adjacent slices or items of one array."""
        key = (axis, *values)
        if key not in self.joins:
            self.joins[key] = (None if axis else self._slice_of_one(values) or self._taken(values)) or self._add(
                OPS["concat"], tuple(values), self.producer.get(values[0]), axis=axis)
        return self.joins[key]

    def _slice_of_one(self, values: Sequence[Value]) -> Optional[Value]:
        """The part of an array of which the values are adjacent slices, or items, in order; None where they are not."""
        spans = [self._span(v) for v in values]
        if any(span is None or span[:2] != spans[0][:2] for span in spans):      # type: ignore[index]
            return None
        array, is_item, begin, end = spans[0]      # type: ignore[misc]
        for before, after in zip(spans, spans[1:]):
            if before[3] != after[2]:      # type: ignore[index]
                return None
        stop = spans[-1][3]      # type: ignore[index]
        node = self.producer.get(values[0])
        part = array if (begin, stop) == (0, array.shape[0]) else self._add(
            OPS["getitem"], (array,), node, index=((begin, stop, 1), *((0, n, 1) for n in array.shape[1:])))
        if not is_item:
            return part
        return self._add(OPS["reshape"], (part,), node, shape=(part.shape[0] * part.shape[1], *part.shape[2:]))

    def _span(self, value: Value) -> Optional[Tuple[Value, bool, int, int]]:
        """For a slice or an item along the first axis of an array: (array, whether it is an item, begin, end); else None."""
        node = self.producer.get(value)
        if node is None or not _is_known(*node.inputs):
            return None
        if node.op.name == "unstack" and node.attrs["axis"] == 0:
            at = node.outputs.index(value)
            return node.inputs[0], True, at, at + 1
        if node.op.name != "getitem":
            return None
        (array,), (entry, *others) = node.inputs, node.attrs["index"] or (None,)
        if others != [(0, n, 1) for n in array.shape[1:]] or entry is None:
            return None
        if isinstance(entry, tuple):
            return (array, False, *entry[:2]) if entry[2] == 1 else None
        return (array, True, entry, entry + 1) if isinstance(entry, int) and value.ndim else None

    def _taken(self, values: Sequence[Value]) -> Optional[Value]:
        """One `take` in place of those of the values, if all take rows of one table and nothing else reads them."""
        makers = [self.producer.get(v) for v in values]
        for value, maker in zip(values, makers):
            if maker is None or maker.op.name != "take" or maker.attrs["axis"] or len(self.readers[value]) != 1 \
                    or value in self.kept or maker.inputs[0] is not makers[0].inputs[0]:      # type: ignore[union-attr]
                return None
        indices = [maker.inputs[1] for maker in makers]      # type: ignore[union-attr]
        if any(v.ndim == 0 or not _is_known(v) or v.shape[1:] != indices[0].shape[1:] or v.dtype != indices[0].dtype
               for v in indices):
            return None
        self.unread.update(makers)      # type: ignore[arg-type]
        return self._add(OPS["take"], (makers[0].inputs[0], self._join(indices, 0)), makers[0], axis=0)      # type: ignore

    # --- nodes --------------------------------------------------------------------------------------------------------

    def _add(self, op: OpDef, operands: Tuple[Value, ...], like: Optional[Node], **attrs: Any) -> Value:
        """Add a node and return its result.  like: the node whose line it gets."""
        self.builder.loc = None if like is None else like.loc
        (value,) = self.builder.add(op, operands, attrs)
        self.producer[value] = self.builder.nodes[-1]
        return value

    def _order(self, instead: Dict[Node, Node], gone: Collection[Node] = ()) -> None:
        """Insert the new nodes: the order stays, but each node comes after its operands, and draws stay in order."""
        makers = {v: node for node in (*self.nodes, *self.builder.nodes, *instead.values()) for v in node.outputs}
        missing = set(makers)                       # values whose nodes have no place yet
        ordered: Dict[Node, None] = {}
        draws = [node for node in self.nodes if node.op.name in _DRAWS]
        drawn = dict(zip(draws[1:], draws))
        for first in self.nodes:
            waiting = [] if first in gone and first not in instead or first in self.unread else [instead.get(first, first)]
            while waiting:
                node = waiting[-1]
                before = [] if missing.isdisjoint(node.inputs) else [makers[v] for v in node.inputs if v in missing]
                if node in drawn and drawn[node] not in ordered:
                    before.append(drawn[node])
                if before:
                    waiting += before[::-1]
                else:
                    ordered[node] = None
                    missing.difference_update(node.outputs)
                    waiting.pop()
        self.nodes = list(ordered)
        self.builder.nodes.clear()
        self.unread.clear()
        self._look()


def _is_barrier(node: Node) -> bool:
    """Whether no node may move across this one."""
    return node.op.kind == "opaque" or has_effect(node) and node.op.name not in _DRAWS


def is_product(node: Node) -> bool:
    """Whether a node is a product of two matrices of float32 or float64; float16 would round sums too coarsely."""
    return node.op.name == "matmul" and len(node.outputs[0].shape) == 2 and _is_known(*node.inputs) \
        and node.outputs[0].dtype in ("float32", "float64")


def is_worth_joining(product: Node) -> bool:
    """Whether it takes less memory traffic to store the operands of a product than to add its result to a sum."""
    (rows, columns), inner = product.outputs[0].shape, product.inputs[0].shape[0 if product.attrs["transa"] else 1]
    return _bytes(product.outputs[0]) > _SMALL and 2 * inner * (rows + columns) <= 3 * rows * columns


def _is_known(*values: Value) -> bool:
    """Whether all sizes are numbers."""
    return all(isinstance(v.type, Tensor) and all(isinstance(n, int) for n in v.type.shape) for v in values)


def _bytes(value: Value) -> int:
    return math.prod(value.shape) * value.dtype.itemsize


def _portions(members: Sequence[Node], sizes: Sequence[int]) -> Iterator[Sequence[Node]]:
    """The members in order, in parts of at most `_LARGEST` bytes, but of at least a few members."""
    part: List[Node] = []
    total = 0
    for member, size in zip(members, sizes):
        if len(part) >= _FEWEST and total + size > _LARGEST:
            yield part
            part, total = [], 0
        part.append(member)
        total += size
    yield part
