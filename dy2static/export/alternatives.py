"""Results of which arrays decide what they are: one value for each array of all alternatives, picked by the graph."""
from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from .. import ops
from ..ir.building import Builder, building
from ..ir.dims import Dim, is_known
from ..ir.graph import Graph, Node, Value
from ..ir.types import Tensor, Type
from ..lowering.host import numpy_call
from ..record.builds import Build, Choice, Const, TupleOf
from ..record.outcome import End
from ..runtime.host_calls import Call, Hole, as_it_is

#: Where a part of a result is.
Path = Tuple[str, ...]
#: A part of a result: an array, or a build of something else.
Part = Union[Value, Build]
Parts = Dict[Path, Part]


class Apart(Exception):
    """Alternatives that are no arrays of the same types at the same places."""


class Alternatives:
    """Picks among the alternatives of a result.

    value_of: the value of a build that is an array or a number, or None.  nodes: those that pick, to stand behind the graph's.
    """

    def __init__(self, value_of: Callable[[Build], Optional[Value]]):
        self._value_of, self._builder = value_of, Builder("picked")

    @property
    def nodes(self) -> Tuple[Node, ...]:
        """The nodes that pick, to stand behind those of the graph."""
        return tuple(self._builder.nodes)

    def parts(self, build: Build) -> Parts:
        """The parts of a result.  Raises `Apart`."""
        return dict(self._parts(build, ()))

    def of_ends(self, ends: Sequence[End], depth: int = 0) -> Parts:
        """The parts of the results of all ends that return, by the decisions that lead to them.  Raises `Apart`."""
        there = [end for end in ends if end.result is not None]
        if len(there) == 1:
            return self.parts(there[0].result)          # type: ignore[arg-type]
        decision = there[0].decisions[depth][0]
        sides = [[end for end in there if end.decisions[depth] == (decision, way)] for way in (True, False)]
        if not all(sides):
            return self.of_ends(there, depth + 1)
        then, otherwise = [self.of_ends(side, depth + 1) for side in sides]
        return self._picked(decision, then, otherwise)

    def _parts(self, build: Build, path: Path) -> Iterator[Tuple[Path, Part]]:
        if isinstance(build, Choice):
            yield from self._of_choice(build, path)
            return
        items = build.items()
        if not items:
            value = self._value_of(build)
            yield path, build if value is None else value
        fields = getattr(build.cls, "_fields", None) if isinstance(build, TupleOf) else None
        for key, part in items.items():
            yield from self._parts(part, (*path, str(fields[key] if fields else key)))

    def _of_choice(self, choice: Choice, path: Path) -> Iterator[Tuple[Path, Part]]:
        number = self._value_of(choice.number)
        if number is None:
            raise Apart("which object it is")
        *others, (_, last) = choice.options
        found = dict(self._parts(last, path))
        for k, option in reversed(others):
            with building(self._builder):
                chosen = ops.py_compare(number, ops.py_constant(value=k), op="==")
            found = self._picked(chosen, dict(self._parts(option, path)), found)
        yield from found.items()

    def _picked(self, decision: Value, then: Parts, otherwise: Parts) -> Parts:
        if list(then) != list(otherwise):
            raise Apart("the structure")
        return {path: self._pick(decision, then[path], otherwise[path]) for path in then}

    def _pick(self, decision: Value, a: Part, b: Part) -> Part:
        if isinstance(a, Const) and isinstance(b, Const) and type(a.value) is type(b.value) and a.value == b.value:
            return a
        a, b = self._number(a, b), self._number(b, a)
        if not (isinstance(a, Value) and isinstance(b, Value)):
            raise Apart("whether a part is an array")
        if a is b:
            return a
        joined = self._joined(a.type, b.type)
        if joined is None:
            raise Apart(f"whether a part is {a.type} or {b.type}")
        regions: List[Graph] = []
        for k in (0, 1):
            inputs, inner = (Value(a.type, "kept"), Value(b.type, "other")), Builder("option")
            given = inputs[k] if inputs[k].type == joined else _sized(inner, inputs[k], joined)
            regions.append(Graph(inputs, (given,), tuple(inner.nodes), "option"))
        value, = self._builder.add(ops.if_, (decision, a, b), regions=tuple(regions), name="picked")
        return value

    def _joined(self, a: Type, b: Type) -> Optional[Type]:
        """The type of an array that is one of two, whose sizes may differ if only the run knows them.  None where there is none."""
        if a == b:
            return a
        if not (isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype == b.dtype and a.ndim == b.ndim):
            return None
        pairs = list(enumerate(zip(a.shape, b.shape)))
        if any(n != m and (is_known(n) or is_known(m)) for _, (n, m) in pairs):
            return None
        return Tensor([n if n == m else Dim(f"picked_{len(self._builder.nodes)}_{axis}") for axis, (n, m) in pairs], a.dtype)

    def _number(self, part: Part, other: Part) -> Part:
        """A known number beside one that the run computes, as a value of the graph, too."""
        is_number = isinstance(part, Const) and type(part.value) in (bool, int, float) and isinstance(other, Value)
        if not is_number:
            return part
        with building(self._builder):
            return ops.py_constant(value=part.value)    # type: ignore[no-any-return,union-attr]


def _sized(builder: Builder, array: Value, type: Type) -> Value:
    """The same array, with other symbols for its sizes."""
    call = Call(np.ascontiguousarray, (Hole(0),), {}, as_it_is, "array", True)
    value, = builder.add(numpy_call, (array,), {"call": call, "types": (type,)}, name="sized")
    return value
