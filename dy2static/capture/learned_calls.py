"""What calls of NumPy give and become: learned from the first of those that are alike, in all captures of a process."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from ..ir.building import Builder
from ..ir.graph import Node, Value
from ..ir.op import OpDef
from ..ir.types import Scalar, Tensor
from ..runtime.checked_range import SEEN
from ..symbolic.abstract_eval import key_of

if TYPE_CHECKING:
    from .protocols import Capture


class Ops(NamedTuple):
    """The ops that a call becomes.

    nodes: of each its op, its operands, its attributes and the types of its results.  result: that of the call.  Values are numbers
    here: first the operands of the call, then the results of the nodes.
    """

    nodes: Tuple[Tuple[OpDef, Tuple[int, ...], Dict[str, Any], Tuple[Any, ...]], ...]
    result: int

    def add(self, builder: Builder, operands: Sequence[Value]) -> Value:
        """The result of a call with these operands, whose nodes are added."""
        values = list(operands)
        for op, places, attrs, types in self.nodes:
            values += builder.place(op, tuple([values[place] for place in places]), dict(attrs), types, op.name)
        return values[self.result]


class Learned:
    """Of calls that are alike, and cannot fail: the structure of what they give, and the types of its leaves.

    ops: what they become, by which of the operands are those of Variables; None where the call stays a node of its own.
    """

    __slots__ = ("structure", "types", "ops")

    def __init__(self, structure: Any, types: Tuple[Any, ...]):
        self.structure, self.types = structure, types
        self.ops: Dict[Tuple[bool, ...], Optional[Ops]] = {}

    def learn_ops(self, differentiated: Tuple[bool, ...], nodes: Sequence[Node], operands: Sequence[Value],
                  result: Optional[Value]) -> None:
        """Take down the nodes that such a call became; result: None where it became none."""
        places: Dict[Value, int] = {}
        for place, value in enumerate(operands):
            places.setdefault(value, place)
        count, found = len(operands), []
        for node in nodes if result is not None else ():
            if node.regions or any([v not in places for v in node.inputs]):
                return                                  # it takes something else
            types = tuple([v.type for v in node.outputs])
            found.append((node.op, tuple([places[v] for v in node.inputs]), dict(node.attrs), types))
            for value in node.outputs:
                places[value], count = count, count + 1
        self.ops[differentiated] = None if result is None else Ops(tuple(found), places[result])


_LEARNED: Dict[Any, Learned] = {}
_MOST_LEARNED = 4096


def kind_of(capture: Capture, function: Callable[..., Any], form: Any, operands: Sequence[Value]) -> Any:
    """What tells a call from others that may give or become something else; None where more than that decides.

    form: of its template.
    That is so on GPUs, where sizes are not known, and where it is known what a number is, or how large.
    """
    if not operands or capture.placement.device or SEEN:
        return None
    known, texts, dimensions = capture.known, capture.number_checks.texts, capture.dimensions
    if any([v in known or v in texts or v in dimensions for v in operands]):
        return None
    types = [v.type for v in operands]
    if not all(map(_is_exact, types)):
        return None
    key = key_of(function, form, types)
    return None if key is None else (key, tuple([operands.index(v) for v in operands]))


def _is_exact(type_: Any) -> bool:
    kind = type(type_)
    return kind is Scalar or kind is Tensor and all([type(n) is int for n in type_.shape])


def learned(kind: Any) -> Optional[Learned]:
    """What has been learned of calls of a kind."""
    return None if kind is None else _LEARNED.get(kind)


def learn(kind: Any, structure: Any, types: Sequence[Any]) -> Optional[Learned]:
    """Take down what a call gave that cannot fail whatever its operands hold."""
    if kind is None or not all(map(_is_exact, types)):
        return None
    if len(_LEARNED) >= _MOST_LEARNED:
        _LEARNED.clear()
    found = _LEARNED[kind] = Learned(structure, tuple(types))
    return found
