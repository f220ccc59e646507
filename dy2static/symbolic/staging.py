"""Decisions on symbolic values: both blocks are captured as regions, their writes joined, and one node is made."""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ..ir.building import Builder, building
from ..ir.graph import Graph, Node, Value
from ..ir.op import OPS
from ..passes.rewriting import with_inputs
from ..runtime.dy import Undefined
from .rollback import ABSENT, Place, Snapshot
from .values import SymbolicArray, SymbolicScalar, SymbolicVariable

_NUMBERS = {bool: "py_bool", int: "py_int", float: "py_float"}


class Branch:
    """One captured block: its nodes, what it returned and what it wrote."""

    def __init__(self, nodes: Sequence[Node], results: Tuple, writes: Dict[Place, Any]):
        self.nodes, self.results, self.writes = list(nodes), results, writes
        self.outputs: List[Value] = []


class Staging:
    """The decisions of one capture."""

    def __init__(self, capture: Any):
        self.capture = capture
        self.depth = 0

    # --- what converted code calls ------------------------------------------------------------------------------------

    def cond(self, test: Any, then: Callable, orelse: Callable, state: Tuple, names: Sequence[str] = ()) -> Tuple:
        """``if`` on a symbolic test."""
        predicate = self.predicate(test)
        before = Snapshot(self.capture, (state, then, orelse))
        branches = [self._branch(block, state, before) for block in (then, orelse)]
        return self._join(predicate, branches, before, names)

    def if_exp(self, test: Any, then: Callable, orelse: Callable) -> Any:
        """``a if test else b`` on a symbolic test."""
        return self.cond(test, lambda: (then(),), lambda: (orelse(),), ())[0]

    def and_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first and …``: the rest is evaluated where the first is true."""
        return self.if_exp(first, lambda: self._truth_of_rest(rest, True), lambda: False)

    def or_(self, first: Any, *rest: Callable[[], Any]) -> Any:
        """``first or …``: the rest is evaluated where the first is false."""
        return self.if_exp(first, lambda: True, lambda: self._truth_of_rest(rest, False))

    def _truth_of_rest(self, rest: Sequence[Callable[[], Any]], goes_on: bool) -> Any:
        value = self.truth(rest[0]())
        if len(rest) == 1:
            return value
        if isinstance(value, SymbolicScalar):
            return (self.and_ if goes_on else self.or_)(value, *rest[1:])
        return self._truth_of_rest(rest[1:], goes_on) if value is goes_on else value

    def truth(self, value: Any) -> Any:
        """``bool(value)``, symbolic for symbolic values.

        The result of ``and`` and ``or`` on array values is their truth: it may decide, but not leave the function.
        """
        if type(value) is SymbolicArray and value.value not in self.capture.known:
            return self.capture.numpy_call(bool, (value,), {})
        return value if type(value) is SymbolicScalar and value.text is None else bool(value)

    def not_(self, value: Any) -> Any:
        """``not value`` of a symbolic value."""
        truth = self.truth(value)
        return self.capture.numpy_call(_negation, (truth,), {}) if type(truth) is SymbolicScalar else not truth

    def predicate(self, test: Any) -> Value:
        """The value of the graph that decides."""
        if type(test) is SymbolicArray and test.size != 1:
            self.capture.abort("the truth of an array with more than one element")
        return test.value

    # --- capturing blocks -----------------------------------------------------------------------------------------------

    def _branch(self, block: Callable, state: Tuple, before: Snapshot) -> Branch:
        with self.region() as nodes:
            results = block(*state)
        branch = Branch(nodes, results, before.changes())
        before.restore()
        return branch

    @contextlib.contextmanager
    def region(self) -> Iterator[List[Node]]:
        """Nodes made inside the block go into a region; the list is complete when the block ends."""
        capture, outer = self.capture, self.capture.builder
        inner = outer.region()
        nodes: List[Node] = inner.nodes
        capture.builder, self.depth = inner, self.depth + 1
        try:
            with building(inner):
                yield nodes
        finally:
            capture.builder, self.depth = outer, self.depth - 1

    # --- joining --------------------------------------------------------------------------------------------------------

    def _join(self, predicate: Value, branches: List[Branch], before: Snapshot, names: Sequence[str]) -> Tuple:
        then, orelse = branches
        joined = [self._merge(a, b, branches, _name(names, i)) for i, (a, b) in enumerate(zip(then.results, orelse.results))]
        places = {}
        for place in {**then.writes, **orelse.writes}:
            a, b = (branch.writes.get(place, _SAME) for branch in branches)
            a, b = (before.read(place) if side is _SAME else side for side in (a, b))
            places[place] = self._merge(a, b, branches, str(place[1]))
        outputs = self._emit(predicate, branches)
        for place, merged in places.items():
            before.write(place, merged(outputs))
        return tuple([merged(outputs) for merged in joined])

    def _merge(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        """How to make, from the outputs of the node, the value that is ``a`` or ``b``."""
        if a is b or (type(a) is type(b) and type(a) in (bool, int, float, str, type(None)) and a == b):
            return lambda outputs: a
        if type(a) is Undefined and type(b) is Undefined:
            return lambda outputs: a
        if isinstance(a, SymbolicVariable) and isinstance(b, SymbolicVariable):
            return self._merge_variables(a, b, branches, name)
        if type(a) is SymbolicArray and type(b) is SymbolicArray and a.type == b.type:
            index = self._output(branches, a.value, b.value)
            return lambda outputs: SymbolicArray(self.capture, outputs[index])
        kinds = [_number_kind(x) for x in (a, b)]
        if kinds[0] is not None and kinds[0] == kinds[1]:
            index = self._output(branches, *[self._number(x, branch, kinds[0]) for x, branch in zip((a, b), branches)])
            return lambda outputs: SymbolicScalar(self.capture, kinds[0], value=outputs[index])
        if type(a) is tuple and type(b) is tuple and len(a) == len(b):
            parts = [self._merge(x, y, branches, name) for x, y in zip(a, b)]
            return lambda outputs: tuple([part(outputs) for part in parts])
        self.capture.abort(f"{name} is {_describe(a)} or {_describe(b)}, by a decision on array values",
                           hint="let both branches give the same kind of value")

    def _merge_variables(self, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
        if a.value.type != b.value.type:
            self.capture.abort(f"{name} is {a.value.type} or {b.value.type}, by a decision on array values")
        index = self._output(branches, a.value, b.value)
        requires_grad, connected = a.requires_grad or b.requires_grad, a.connected or b.connected
        same = a.requires_grad == b.requires_grad and a.connected and b.connected

        def make(outputs: Sequence[Value]) -> SymbolicVariable:
            merged = SymbolicVariable(self.capture, SymbolicArray(self.capture, outputs[index]), requires_grad, connected)
            # Which object it is, and whether it has a creator, depends on the decision: it must not leave.
            merged.__dict__["decided"] = not same
            return merged
        return make

    def _output(self, branches: List[Branch], a: Value, b: Value) -> int:
        pair = branches[0].outputs, branches[1].outputs
        for index, found in enumerate(zip(*pair)):
            if found[0] is a and found[1] is b:
                return index
        pair[0].append(a)
        pair[1].append(b)
        return len(pair[0]) - 1

    def _number(self, number: Any, branch: Branch, kind: str) -> Value:
        if type(number) is SymbolicScalar:
            return number.value
        builder = self.capture.builder.region()
        value, = builder.add(OPS["py_constant"], (), {"value": number}, name="number")
        branch.nodes += builder.nodes
        return value

    def _emit(self, predicate: Value, branches: List[Branch]) -> Tuple[Value, ...]:
        captured = free_values([node for b in branches for node in b.nodes], [v for b in branches for v in b.outputs])
        regions = tuple(close(self.capture.builder, b.nodes, b.outputs, captured, name)
                        for b, name in zip(branches, ("then", "orelse")))
        self.capture.event("staged", "if")
        return self.capture.builder.add(OPS["if_"], (predicate, *captured), {}, regions, name="joined")


_SAME = object()


def _negation(value: Any) -> bool:
    return not value


def _name(names: Sequence[str], index: int) -> str:
    return f"`{names[index]}`" if index < len(names) else "a value"


def _describe(value: Any) -> str:
    if type(value) is Undefined:
        return "unbound"
    if value is ABSENT:
        return "absent"
    if isinstance(value, SymbolicVariable):
        return f"a Variable {value.value.type}"
    if type(value) is SymbolicArray:
        return f"an array {value.type}"
    return repr(value) if value is None or type(value) in (bool, int, float, str) else f"a {type(value).__name__}"


def _number_kind(value: Any) -> Optional[str]:
    return value.kind if type(value) is SymbolicScalar else _NUMBERS.get(type(value))


def free_values(nodes: Sequence[Node], outputs: Sequence[Value]) -> Tuple[Value, ...]:
    """The values that nodes read, or that are outputs, and that none of the nodes makes; in order."""
    made = {v for node in nodes for v in node.outputs}
    read = [v for node in nodes for v in node.inputs] + list(outputs)
    return tuple(dict.fromkeys(v for v in read if v not in made))


def close(builder: Builder, nodes: Sequence[Node], outputs: Sequence[Value], captured: Sequence[Value],
          name: str, own: Sequence[Value] = ()) -> Graph:
    """The region of these nodes: what it reads from outside becomes inputs, after its ``own`` ones."""
    inner = {v: Value(v.type, builder.fresh(v.name)) for v in captured}
    closed = tuple(with_inputs(node, tuple(inner.get(v, v) for v in node.inputs)) for node in nodes)
    return Graph((*own, *inner.values()), tuple(inner.get(v, v) for v in outputs), closed, name)

