"""Reshapes whose operand is a view that strides cannot show in the new shape: NumPy copies it, and native code is faster.

Whether NumPy copies depends on where the elements are.  Of an array that native code has made, this is known.  Another array may be
in any order in memory, and the result must be a view where NumPy gives one, so that is asked in each call (`NATIVE_VIEW`).
"""
from __future__ import annotations

from dataclasses import replace
from typing import Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

import numpy as np

from ...ir.dims import is_known
from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import dims_of
from ...ir.types import Tensor
from ..compiled_calls import NATIVE_VIEW
from ..loops import layout
from .executor import Region

#: Arrays of fewer elements are not worth a native function.
_LEAST = 4096


class Copying(NamedTuple):
    """A reshape that copies if its source is in C order.  chain: the views between them, and behind them the reshape."""

    source: Value
    chain: Sequence[Node]


def copying(node: Node, producer: Mapping[Value, Node], native: Collection[Node]) -> Optional[Copying]:
    """How a reshape copies; None for another node, for one that gives a view or few elements, and for free sizes."""
    if node.op.name != "reshape" or not all(map(is_known, dims_of(node))) or node.outputs[0].type.size < _LEAST:
        return None
    chain, value = [node], node.inputs[0]
    while _renames(before := producer.get(value)) and before in native and all(map(is_known, dims_of(before))):
        assert before is not None
        chain.append(before)
        value = before.inputs[0]
    if not isinstance(value.type, Tensor):
        return None
    places, first, copies = layout.Places(lambda: ""), 0, False
    for number, link in enumerate(reversed(chain)):
        copies = not places.settle(link)
        if copies and link is not node:
            first, value = number + 1, link.outputs[0]
    return Copying(value, tuple(reversed(chain))[first:]) if copies else None


def _renames(node: Optional[Node]) -> bool:
    return node is not None and len(node.inputs) == 1 and (node.op.name == "reshape" or node.op.name in layout.RULES)


def with_native_views(nodes: Sequence[Node], found: Mapping[Node, Copying], read: Collection[Value]) -> List[Node]:
    """Nodes in their order, the reshapes among them as native code that reads the source, without views that nothing reads then.

    read: the values that others read.
    """
    made = [_native_view(found[node]) if node in found else node for node in nodes]
    passed: Set[Node] = {link for node in nodes if node in found for link in found[node].chain}
    live, kept = set(read), []
    for node in reversed(made):
        if node not in passed or not live.isdisjoint(node.outputs):
            kept.append(node)
            live.update(node.inputs)
    return kept[::-1]


def _native_view(found: Copying) -> Node:
    """A node of its own values: they are also outside, where other nodes may make them."""
    new: Dict[Value, Value] = {found.source: Value(found.source.type, found.source.name)}
    inner = []
    for node in found.chain:
        new.update((v, Value(v.type, v.name)) for v in node.outputs)
        inner.append(replace(node, inputs=(new[node.inputs[0]],), outputs=tuple([new[v] for v in node.outputs])))
    last = found.chain[-1]
    region = Graph((new[found.source],), inner[-1].outputs, tuple(inner), "native")
    return Node(NATIVE_VIEW, (found.source,), last.outputs, {"region": region}, (), last.loc)


class CopyOrView:
    """The call of a `NATIVE_VIEW`, which gives its result: native code copies, NumPy shows what is not in C order."""

    entering = (None,)
    given = {0: None}

    def __init__(self, region: Region):
        self._region = region

    @property
    def call(self) -> Callable[[np.ndarray], np.ndarray]:
        """The function."""
        region, type = self._region, self._region.graph.outputs[0].type
        fill, by_numpy, shape, dtype = region.call, region.by_numpy, type.shape, type.dtype

        def call(x: np.ndarray) -> np.ndarray:
            if not x.flags.c_contiguous:
                return by_numpy(x)[0]
            result = np.empty(shape, dtype)
            fill(x, result)
            return result
        return call
