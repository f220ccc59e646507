"""Building graphs: a builder collects nodes; inside ``with building(builder):`` ops and operators add to it."""
from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ..errors import InternalError, Location
from . import op as _op
from .graph import Graph, Node, Value
from .op import OPS, OpDef
from .types import Scalar, Tensor, Type

_CURRENT: contextvars.ContextVar[Optional["Builder"]] = contextvars.ContextVar("dy2static_builder", default=None)


class Builder:
    """Collects nodes in order; `build` ends it and gives the immutable graph."""

    def __init__(self, name: str = "graph"):
        self.name = name
        self.inputs: List[Value] = []
        self.nodes: List[Node] = []
        self.loc: Optional[Location] = None
        self._taken: Dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """A value name that is not taken yet, made from a hint: ``h``, ``h_1``, ``h_2``."""
        count = self._taken.get(hint, 0)
        self._taken[hint] = count + 1
        return hint if count == 0 else self.fresh(f"{hint}_{count}")

    def input(self, type: Type, name: str = "x") -> Value:
        """A new graph input of this type."""
        value = Value(type, self.fresh(name))
        self.inputs.append(value)
        return value

    def add(self, op: OpDef, inputs: Tuple[Value, ...], attrs: Mapping[str, Any] = {},
            regions: Tuple[Graph, ...] = (), name: Optional[str] = None) -> Tuple[Value, ...]:
        """Add one node; gives its outputs.  Raises what the op's ``infer`` raises for wrong operands."""
        full = {**op.attrs, **attrs}
        if regions:
            types = op.infer(*(v.type for v in inputs), regions=regions, **full)
        else:
            types = op.infer(*(v.type for v in inputs), **full)
        if not isinstance(types, tuple):
            types = (types,)
        outputs = tuple(Value(t, self.fresh(name or op.name)) for t in types)
        self.nodes.append(Node(op, tuple(inputs), outputs, full, tuple(regions), self.loc))
        return outputs

    def build(self, outputs: Tuple[Value, ...]) -> Graph:
        """The finished graph."""
        return Graph(tuple(self.inputs), tuple(outputs), tuple(self.nodes), self.name)


@contextlib.contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    """Inside the block, calling an op or using operators on values adds nodes to ``builder``."""
    token = _CURRENT.set(builder)
    try:
        yield builder
    finally:
        _CURRENT.reset(token)


def current() -> Builder:
    """The builder of the innermost `building` block."""
    builder = _CURRENT.get()
    if builder is None:
        raise InternalError("an op was applied outside `with building(...)`")
    return builder


def constant(value: Any, dtype: Any = None) -> Value:
    """A value known now: an array, or a scalar as a 0-d array of ``dtype``."""
    return OPS["constant"](value=np.asarray(value, dtype=dtype))


def _emit(op: OpDef, inputs: Tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    peers = [v.dtype for v in inputs if isinstance(v, Value) and isinstance(v.type, (Tensor, Scalar))]
    values = tuple(v if isinstance(v, Value) else constant(v, peers[0] if peers else None) for v in inputs)
    outputs = current().add(op, values, attrs)
    return outputs[0] if len(outputs) == 1 else outputs


_op._EMITTER[0] = _emit
