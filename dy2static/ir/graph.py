"""Values, nodes and graphs: immutable, each node with the user's line it comes from."""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, List, Mapping, Optional, Tuple

from ..errors import Location
from ..markup import page_part, preformatted
from ..threads.locks import cached_property
from .listing import listing
from .op import OpDef
from .picture import Picture, picture
from .types import Tensor, Type


@dataclass(frozen=True, eq=False)
class Value:
    """One result of a node or one input of a graph.  Compared by identity."""

    type: Type
    name: str = ""

    @property
    def shape(self) -> Any:
        """The shape of a tensor or scalar."""
        return self.type.shape      # type: ignore[union-attr]

    @property
    def dtype(self) -> Any:
        """The dtype of a tensor or scalar."""
        return self.type.dtype      # type: ignore[union-attr]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of an array whose size is known; 0 of anything else."""
        if not isinstance(self.type, Tensor) or not all(isinstance(n, int) for n in self.shape):
            return 0
        return math.prod(self.shape) * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"{self.name or 'v'}: {self.type}"

    # Operators add nodes to the graph being built; what they mean stands in `building`.

    def __add__(self, other: Any) -> "Value":
        return _OPERATE[0]("add", self, other)

    def __radd__(self, other: Any) -> "Value":
        return _OPERATE[0]("add", other, self)

    def __sub__(self, other: Any) -> "Value":
        return _OPERATE[0]("sub", self, other)

    def __rsub__(self, other: Any) -> "Value":
        return _OPERATE[0]("sub", other, self)

    def __mul__(self, other: Any) -> "Value":
        return _OPERATE[0]("mul", self, other)

    def __rmul__(self, other: Any) -> "Value":
        return _OPERATE[0]("mul", other, self)

    def __truediv__(self, other: Any) -> "Value":
        return _OPERATE[0]("div", self, other)

    def __rtruediv__(self, other: Any) -> "Value":
        return _OPERATE[0]("div", other, self)

    def __pow__(self, other: Any) -> "Value":
        return _OPERATE[0]("power", self, other)

    def __rpow__(self, other: Any) -> "Value":
        return _OPERATE[0]("power", other, self)

    def __matmul__(self, other: Any) -> "Value":
        return _OPERATE[0]("matmul", self, other)

    def __neg__(self) -> "Value":
        return _OPERATE[0]("neg", self)

    def __gt__(self, other: Any) -> "Value":
        return _OPERATE[0]("greater", self, other)

    def __ge__(self, other: Any) -> "Value":
        return _OPERATE[0]("greater_equal", self, other)

    def __lt__(self, other: Any) -> "Value":
        return _OPERATE[0]("less", self, other)

    def __le__(self, other: Any) -> "Value":
        return _OPERATE[0]("less_equal", self, other)


#: What sets a field of a frozen object.
_set = object.__setattr__

#: How an operator adds nodes: set by `building`, which knows builders; this module must not.
_OPERATE: List[Callable[..., Value]] = []


@dataclass(frozen=True, eq=False)
class Node:
    """One application of an op: inputs and outputs are values, attrs are static, regions are graphs.

    recomputed: it computes what was computed before, and has been warned of.
    """

    op: OpDef
    inputs: Tuple[Value, ...]
    outputs: Tuple[Value, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    regions: Tuple["Graph", ...] = ()
    loc: Optional[Location] = None
    recomputed: bool = False

    # as `dataclass` would write it, in half the time: a compilation makes tens of thousands
    def __init__(self, op: OpDef, inputs: Tuple[Value, ...], outputs: Tuple[Value, ...], attrs: Optional[Mapping[str, Any]] = None,
                 regions: Tuple["Graph", ...] = (), loc: Optional[Location] = None, recomputed: bool = False) -> None:
        _set(self, "op", op)
        _set(self, "inputs", inputs)
        _set(self, "outputs", outputs)
        _set(self, "attrs", {} if attrs is None else attrs)
        _set(self, "regions", regions)
        _set(self, "loc", loc)
        _set(self, "recomputed", recomputed)

    def walk(self) -> Iterator["Node"]:
        """The nodes in its regions, at all levels, then the node itself."""
        for region in self.regions:
            yield from region.walk()
        yield self

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
        return Graph(**{"inputs": self.inputs, "outputs": self.outputs, "nodes": self.nodes, "name": self.name, **changes})

    def values(self) -> Iterator[Value]:
        """Every value defined at this level: inputs first, then node outputs in order."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outputs

    def walk(self) -> Iterator[Node]:
        """Every node, those in regions before the node that holds them."""
        for node in self.nodes:
            if node.regions:
                yield from node.walk()
            else:
                yield node

    @cached_property
    def has_effect(self) -> bool:
        """Whether a node, or one in its regions, has an effect."""
        return any([node.op.effect or any([region.has_effect for region in node.regions]) for node in self.nodes])

    @cached_property
    def must_run(self) -> bool:
        """Whether a node, or one in its regions, has an effect or may raise."""
        return any([node.op.effect or node.op.may_raise or any([region.must_run for region in node.regions])
                    for node in self.nodes])

    def producers(self) -> Mapping[Value, Node]:
        """The node that made each value; inputs are absent."""
        return {value: node for node in self.nodes for value in node.outputs}

    def __str__(self) -> str:
        return listing(self)

    def plot(self) -> Picture:
        """The graph as a picture (SVG), which notebooks show; ``save(path)`` writes it into a file."""
        return picture(self)

    def _repr_html_(self) -> str:
        return page_part(preformatted(listing(self)))
