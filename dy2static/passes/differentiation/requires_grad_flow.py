"""Which values eager would mark ``requires_grad`` in one run, given how its branches and loops went."""
from __future__ import annotations

from typing import AbstractSet, Any, Collection, Dict, Iterator, List, Mapping, Sequence, Set, Tuple

from ...ir.graph import Graph, Node, Value
from ...ir.interpret import interpret
from ...ir.types import python_scalar
from ...ops.control import Loop, loop_of, returns
from .activity import has_gradient
from .inner_autodiff import requires_grad

_BOOL, _INT = python_scalar("py_bool"), python_scalar("py_int")


class _Known:
    """What is known at one point: the values that require a gradient (marked), numbers, and for each item of a stack its flag."""

    def __init__(self, marked: Collection[Value], numbers: Mapping[Value, Any], stacks: Mapping[Value, Tuple] = {},
                 deciding: AbstractSet[Value] = frozenset()):
        self.marked, self.numbers, self.stacks, self.deciding = set(marked), dict(numbers), dict(stacks), deciding

    def inside(self, region: Graph, outside: Sequence[Value]) -> "_Known":
        """The same in a region whose inputs are these values."""
        pairs = list(zip(region.inputs, outside))
        return _Known([v for v, x in pairs if x in self.marked], {v: self.numbers[x] for v, x in pairs if x in self.numbers},
                      {v: self.stacks[x] for v, x in pairs if x in self.stacks}, self.deciding)

    def take(self, inside: "_Known", inner: Value, outer: Value) -> None:
        """Copy what is known of a value inside to one outside."""
        if inner in inside.marked:
            self.marked.add(outer)
        if inner in inside.numbers:
            self.numbers[outer] = inside.numbers[inner]
        if inner in inside.stacks:
            self.stacks[outer] = inside.stacks[inner]

    def forget(self, value: Value) -> None:
        """Drop what is known of a value."""
        self.marked.discard(value)
        self.numbers.pop(value, None)
        self.stacks.pop(value, None)

    def key(self) -> Tuple:
        """All of it as a key."""
        return frozenset(self.marked), frozenset(self.numbers.items()), frozenset(self.stacks.items())


def requires_grad_in_run(graph: Graph, sources: Collection[Value], facts: Mapping[Value, Any],
                         deciding: AbstractSet[Value]) -> Set[Value]:
    """The values of a graph that require a gradient if ``sources`` do.

    facts: the truth values of decisions, the numbers of iterations of loops, and lists of these for stacks; a decision without
        a fact may go either way.  deciding: the result of `deciding_values`.
    """
    known = _Known([v for v in sources if has_gradient(v.type)], facts, deciding=deciding)
    _run(graph.nodes, known)
    return known.marked


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
            sides = [known.stacks.get(v, (v in known.marked,) * length) for v in node.inputs]
            known.stacks[node.outputs[0]] = tuple([_either(a, b) for a, b in zip(*sides)])
            known.marked.update(v for v in node.outputs if _any(known.stacks[v]))
        elif name.startswith("py_") and not (node.op.effect or node.op.may_raise) and _is_told(node.inputs) and all(
                v in known.numbers for v in node.inputs):
            if known.deciding.isdisjoint(node.outputs) or known.numbers.keys() >= set(node.outputs):
                continue
            values = interpret(Graph(node.inputs, node.outputs, (node,)), *[known.numbers[v] for v in node.inputs])
            known.numbers.update(zip(node.outputs, values))
        elif not known.marked.isdisjoint(node.inputs):
            known.marked |= requires_grad([node], known.marked.intersection(node.inputs), False)


def _any(marks: Any) -> bool:
    """Whether an item is marked, or for a stack, some item of it."""
    return any(map(_any, marks)) if isinstance(marks, tuple) else marks


def _either(a: Any, b: Any) -> Any:
    """The flags of the sum of two items."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple([_either(x, y) for x, y in zip(a, b)])
    if isinstance(a, tuple):
        a, b = b, a
    return tuple([_either(a, x) for x in b]) if isinstance(b, tuple) else a or b


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
            marks.append(inside.stacks.get(v, v in inside.marked))
            told += [inside.numbers[v]] if v in inside.numbers else []
    for v, y in zip(inputs, loop.last):
        known.take(state, v, y)
    for y, marks, told in zip(loop.pushed, pushed, numbers):
        if len(told) == count:
            known.numbers.setdefault(y, tuple(told))
        known.stacks[y] = tuple(marks)
        known.marked.update((y,) if _any(tuple(marks)) else ())


def _entering(loop: Loop, known: _Known, state: _Known, items: Sequence[Value], count: int) -> Iterator[_Known]:
    """What is known when each iteration begins.

    state: what is known of state and invariants, which the caller changes between iterations.  items: those of the stacks.
    """
    flags = [known.stacks.get(x, (x in known.marked,) * count)[::-1] for x in loop.stacks]
    read = [(v, known.numbers[x]) for v, x in zip(items, loop.stacks) if x in known.numbers]
    given = [(v, known.numbers[y]) for v, y in zip(loop.items, loop.pushed) if y in known.numbers]
    for k in range(count):
        inside = _Known(state.marked, state.numbers, state.stacks, known.deciding)
        inside.marked.update(v for v, marks in zip(items, flags) if _any(marks[k]))
        inside.stacks.update((v, marks[k]) for v, marks in zip(items, flags) if isinstance(marks[k], tuple))
        inside.numbers.update((v, told[-1 - k]) for v, told in read)
        inside.numbers.update((v, told[k]) for v, told in given)
        yield inside
