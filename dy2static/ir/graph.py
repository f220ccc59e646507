"""Values, nodes and graphs: immutable, each node with the user's line it comes from."""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Iterator, Mapping, Optional, Tuple

from ..errors import Location
from .op import OpDef
from .types import Type


@dataclass(frozen=True, eq=False)
class Value:
    """One result of a node or one input of a graph.  Compared by identity."""

    type: Type
    name: str = ""

    @property
    def shape(self):
        return self.type.shape

    @property
    def dtype(self):
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return len(self.type.shape)

    def __repr__(self) -> str:
        return f"{self.name or 'v'}: {self.type}"


@dataclass(frozen=True, eq=False)
class Node:
    """One application of an op: inputs and outputs are values, attrs are static, regions are graphs."""

    op: OpDef
    inputs: Tuple[Value, ...]
    outputs: Tuple[Value, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    regions: Tuple["Graph", ...] = ()
    loc: Optional[Location] = None

    def __repr__(self) -> str:
        outs = ", ".join(v.name for v in self.outputs)
        return f"{outs} = {self.op.name}({', '.join(v.name for v in self.inputs)})"


@dataclass(frozen=True, eq=False)
class Graph:
    """Nodes in an order in which they can run, with named inputs and outputs."""

    inputs: Tuple[Value, ...]
    outputs: Tuple[Value, ...]
    nodes: Tuple[Node, ...]
    name: str = "graph"

    def with_(self, **changes: Any) -> "Graph":
        """A copy with some fields replaced."""
        return replace(self, **changes)

    def values(self) -> Iterator[Value]:
        """Every value defined at this level: inputs first, then node outputs in order."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outputs

    def producers(self) -> Mapping[Value, Node]:
        """The node that made each value; inputs are absent."""
        return {value: node for node in self.nodes for value in node.outputs}

    def __str__(self) -> str:
        from_values = ", ".join(map(repr, self.inputs))
        body = "".join(f"  {node!r}\n" for node in self.nodes)
        return f"{self.name}({from_values}):\n{body}  return {', '.join(v.name for v in self.outputs)}"
