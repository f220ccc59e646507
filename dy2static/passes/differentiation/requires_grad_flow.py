"""Which values eager would mark ``requires_grad`` in one run, given how its branches and loops went."""
from __future__ import annotations

import operator
from functools import reduce
from typing import AbstractSet, Any, Collection, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from ...ir.graph import Graph, Node, Value
from ...ir.interpret import interpret
from ...ir.types import python_scalar
from ...ops.control import Loop, loop_of, returns
from .inner_autodiff import mark_results, marks_of

_BOOL, _INT = python_scalar("py_bool"), python_scalar("py_int")


class _Known:
    """What is known at one point: for each value that requires a gradient the sources that are why (marks), and numbers.

    marks: each a number whose bits are these sources.  stacks: the marks of each item, 0 where it requires no gradient.
    """

    def __init__(self, marks: Mapping[Value, int], numbers: Mapping[Value, Any], stacks: Mapping[Value, Tuple] = {},
                 deciding: AbstractSet[Value] = frozenset()):
        self.marks, self.numbers, self.stacks, self.deciding = dict(marks), dict(numbers), dict(stacks), deciding

    def inside(self, region: Graph, outside: Sequence[Value]) -> "_Known":
        """The same in a region whose inputs are these values."""
        pairs = list(zip(region.inputs, outside))
        known = [{v: outer[x] for v, x in pairs if x in outer} for outer in (self.marks, self.numbers, self.stacks)]
        return _Known(*known, self.deciding)

    def take(self, inside: "_Known", inner: Value, outer: Value) -> None:
        """Copy what is known of a value inside to one outside."""
        self.mark(outer, inside.marks.get(inner, 0))
        if inner in inside.numbers:
            self.numbers[outer] = inside.numbers[inner]
        if inner in inside.stacks:
            self.stacks[outer] = inside.stacks[inner]

    def mark(self, value: Value, bits: int) -> None:
        """Note that a value requires a gradient because of these sources."""
        if bits:
            self.marks[value] = self.marks.get(value, 0) | bits

    def forget(self, value: Value) -> None:
        """Drop what is known of a value."""
        self.marks.pop(value, None)
        self.numbers.pop(value, None)
        self.stacks.pop(value, None)

    def key(self) -> Tuple:
        """All of it as a key."""
        return frozenset(self.marks.items()), frozenset(self.numbers.items()), frozenset(self.stacks.items())


def requires_grad_in_run(graph: Graph, sources: Sequence[Value], wanted: Collection[Value], facts: Mapping[Value, Any],
                         deciding: AbstractSet[Value]) -> List[Set[Value]]:
    """Per source, those of the wanted values of a graph that require a gradient if it does, and no other source.

    facts: the truth values of decisions, the numbers of iterations of loops, and lists of these for stacks; a decision without
        a fact may go either way.  deciding: the result of `deciding_values`.

    In one pass for all sources.
    """
    known = _Known(marks_of(sources), facts, deciding=deciding)
    _run(graph.nodes, known)
    return [{v for v in wanted if known.marks.get(v, 0) >> k & 1} for k in range(len(sources))]


def deciding_values(graph: Graph) -> Set[Value]:
    """The values, also those inside, that decide a branch or count a loop, and those that flags are computed from."""
    found: Set[Value] = set()
    _find_deciding(graph, found)
    return found


def _find_deciding(graph: Graph, found: Set[Value]) -> None:
    for node in reversed(graph.nodes):
        name = node.op.name
        if name == "if_":
            found.add(node.inputs[0])
            for region in node.regions:
                if returns(region):
                    found.update(v for v, y in zip(region.outputs, node.outputs) if y in found)
                _find_deciding(region, found)
                found.update(x for v, x in zip(region.inputs, node.inputs[1:]) if v in found)
        elif name in ("while_", "scan"):
            loop = loop_of(node)
            found.update(loop.counted if loop.count is None else (loop.count,))
            found.update(v for v, y in zip(loop.body.outputs, (*loop.last, *loop.pushed)) if y in found)
            before = -1
            while before < len(found):
                before = len(found)
                _find_deciding(loop.body, found)
                found.update(v for v, x in zip(loop.next, loop.body.inputs) if x in found)
            found.update(x for v, x in zip(loop.body.inputs, (*loop.state, *loop.stacks, *loop.invariants)) if v in found)
            found.update(y for v, y in zip(loop.items, loop.pushed) if v in found)
        elif name.startswith("py_") and not found.isdisjoint(node.outputs) and _is_told(node.inputs):
            found.update(node.inputs)


def _is_told(values: Sequence[Value]) -> bool:
    return all(v.type in (_BOOL, _INT) for v in values)


def _run(nodes: Sequence[Node], known: _Known) -> None:
    for node in nodes:
        name = node.op.name
        if name == "if_" and node.inputs[0] in known.numbers:
            region = node.regions[0 if known.numbers[node.inputs[0]] else 1]
            inside = known.inside(region, node.inputs[1:])
            if returns(region):
                inside.numbers.update((v, known.numbers[y]) for v, y in zip(region.outputs, node.outputs) if y in known.numbers)
                _run(region.nodes, inside)
                for inner, outer in zip(region.outputs, node.outputs):
                    known.take(inside, inner, outer)
        elif name in ("while_", "scan") and _count(loop_of(node), known) is not None:
            _run_loop(loop_of(node), known)
        elif name == "stack_add" and any(v in known.stacks for v in node.inputs):
            length = next(len(known.stacks[v]) for v in node.inputs if v in known.stacks)
            sides = [known.stacks.get(v, (known.marks.get(v, 0),) * length) for v in node.inputs]
            known.stacks[node.outputs[0]] = tuple([_either(a, b) for a, b in zip(*sides)])
            known.mark(node.outputs[0], _all_bits(known.stacks[node.outputs[0]]))
        elif name.startswith("py_") and not (node.op.effect or node.op.may_raise) and _is_told(node.inputs) and all(
                v in known.numbers for v in node.inputs):
            if known.deciding.isdisjoint(node.outputs) or known.numbers.keys() >= set(node.outputs):
                continue
            values = interpret(Graph(node.inputs, node.outputs, (node,)), *[known.numbers[v] for v in node.inputs])
            known.numbers.update(zip(node.outputs, values))
        else:
            mark_results(node, known.marks, False)


def _all_bits(marks: Any) -> int:
    """The sources that mark an item, or for a stack, some item of it."""
    return reduce(operator.or_, map(_all_bits, marks), 0) if isinstance(marks, tuple) else marks


def _either(a: Any, b: Any) -> Any:
    """The marks of the sum of two items."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple([_either(x, y) for x, y in zip(a, b)])
    if isinstance(a, tuple):
        a, b = b, a
    return tuple([_either(a, x) for x in b]) if isinstance(b, tuple) else a | b


def _count(loop: Loop, known: _Known) -> Any:
    return next((known.numbers[v] for v in (loop.count, *loop.counted) if v in known.numbers), None)


def _run_loop(loop: Loop, known: _Known) -> None:
    """A loop whose count is known; a ``scan`` meets the items of its stacks from the last to the first."""
    count, inputs = _count(loop, known), loop.body.inputs
    items = inputs[len(loop.state):len(loop.state) + len(loop.stacks)]
    state = known.inside(loop.body, (*loop.state, *loop.stacks, *loop.invariants))
    for v in items:
        state.forget(v)
    pushed: List[List[Any]] = [[] for _ in loop.pushed]
    numbers: List[List[Any]] = [[] for _ in loop.pushed]
    seen: Dict[Tuple, _Known] = {}                  # what iterations gave, by what was known when they began
    for entering in _entering(loop, known, state, items, count):
        key = entering.key()
        if key not in seen:
            _run(loop.body.nodes, entering)
            seen[key] = entering
        inside = seen[key]
        for inner, v in zip(loop.next, inputs):
            state.forget(v)
            state.take(inside, inner, v)
        for marks, told, v in zip(pushed, numbers, loop.items):
            marks.append(inside.stacks.get(v, inside.marks.get(v, 0)))
            told += [inside.numbers[v]] if v in inside.numbers else []
    for v, y in zip(inputs, loop.last):
        known.take(state, v, y)
    for y, marks, told in zip(loop.pushed, pushed, numbers):
        if len(told) == count:
            known.numbers.setdefault(y, tuple(told))
        known.stacks[y] = tuple(marks)
        known.mark(y, _all_bits(tuple(marks)))


def _entering(loop: Loop, known: _Known, state: _Known, items: Sequence[Value], count: int) -> Iterator[_Known]:
    """What is known when each iteration begins.

    state: what is known of state and invariants, which the caller changes between iterations.  items: those of the stacks.
    """
    flags = [known.stacks.get(x, (known.marks.get(x, 0),) * count)[::-1] for x in loop.stacks]
    read = [(v, known.numbers[x]) for v, x in zip(items, loop.stacks) if x in known.numbers]
    given = [(v, known.numbers[y]) for v, y in zip(loop.items, loop.pushed) if y in known.numbers]
    for k in range(count):
        inside = _Known(state.marks, state.numbers, state.stacks, known.deciding)
        for v, marks in zip(items, flags):
            inside.mark(v, _all_bits(marks[k]))
        inside.stacks.update((v, marks[k]) for v, marks in zip(items, flags) if isinstance(marks[k], tuple))
        inside.numbers.update((v, told[-1 - k]) for v, told in read)
        inside.numbers.update((v, told[k]) for v, told in given)
        yield inside
