"""Nodes that run as one call of compiled code, and how such a call is written into a generated function."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Mapping, NamedTuple, Optional, Protocol, Sequence, Tuple

import numpy as np

from ..ir.devices import is_gpu
from ..ir.graph import Graph, Node, Value
from ..ir.op import OpDef
from ..ir.types import Tensor, place_of, placed


def _infer(*types: Any, region: Graph) -> Tuple[Any, ...]:
    return tuple(v.type for v in region.outputs)


#: Nodes that run as one compiled function; ``region`` is what they compute.  Only partitions make them: they have no gradient.
NATIVE = OpDef("native", ("*operands",), {"region": None}, "native", _infer, numpy="{out}")

#: The same for operations that run even if their results are never read: they draw random numbers, or may raise.
NATIVE_EFFECT = OpDef("native", ("*operands",), {"region": None}, "native", _infer, numpy="{out}", effect=True)

#: A reshape of views of an array: compiled code copies them if the array is in C order, else the result may be a view.
NATIVE_VIEW = OpDef("native_view", ("x",), {"region": None}, "view", lambda x, *, region: region.outputs[0].type, view=True,
                    numpy="{x}")


def is_native(node: Node) -> bool:
    """Whether a node is a region that is compiled as a whole."""
    return node.op is NATIVE or node.op is NATIVE_EFFECT


def with_calls(graph: Graph, call_of: Callable[[Graph], CompiledRegion],
               view_of: Optional[Callable[[Graph], CompiledCall]] = None) -> Graph:
    """The graph whose native nodes, also those in loops and branches, have their calls in ``attrs["call"]``.

    call_of: makes the call of a region.  One that needs scratch memory is given it behind its outputs, on the same GPU.
    view_of: the same for a `NATIVE_VIEW`, where there are any.
    """
    def called(node: Node) -> Node:
        if node.op is NATIVE_VIEW:
            assert view_of is not None
            return replace(node, attrs={**node.attrs, "call": view_of(node.attrs["region"])})
        if not is_native(node):
            regions = tuple([with_calls(region, call_of, view_of) for region in node.regions])
            return replace(node, regions=regions) if regions else node
        call = call_of(node.attrs["region"])
        device = next(filter(is_gpu, [place_of(v.type) for v in node.outputs]), "")
        scratch = Value(placed(Tensor((call.scratch,), np.dtype(np.uint8)), device), "scratch")
        return replace(node, outputs=node.outputs + ((scratch,) if call.scratch else ()), attrs={**node.attrs, "call": call})
    return graph.with_(nodes=tuple(map(called, graph.nodes)))


class Conversion(NamedTuple):
    """``function(value, *settings)``, which a value passes on its way in or out.  settings: names of each, and what it is."""

    name: str
    function: Callable[..., Any]
    settings: Tuple[Tuple[str, Any], ...] = ()


class CompiledCall(Protocol):
    """What a backend puts into ``attrs["call"]`` of a native node before the text around it is written.

    The call takes the inputs of the node, then an array for each output that it fills, and gives the outputs that it does not
    fill: None, the one, or a tuple.
    """

    @property
    def call(self) -> Callable[..., Any]:
        """The function."""

    @property
    def entering(self) -> Sequence[Optional[Conversion]]:
        """Per input, what it passes before the call."""

    @property
    def given(self) -> Mapping[int, Optional[Conversion]]:
        """The indexes of the outputs that are not filled, and what they pass after the call."""


class CompiledRegion(CompiledCall, Protocol):
    """A call that may need memory while it runs."""

    @property
    def scratch(self) -> int:
        """How many bytes."""
