"""Which values eager would mark ``requires_grad`` in one run, given how its branches and loops went."""
from __future__ import annotations

from typing import Any, Collection, Dict, List, Mapping, Sequence, Set, Tuple

from ..ir.graph import Graph, Node, Value
from ..ir.interpret import interpret
from ..ops.control import Loop, loop_of, returns
from .active import has_gradient
from .within import required


class _Known:
    """What is known at one place: which values are marked, numbers, and of stacks that are filled iteration by iteration,
    whether each item is marked.
    """

    def __init__(self, marked: Collection[Value], numbers: Mapping[Value, Any], stacks: Mapping[Value, Tuple[bool, ...]] = {}):
        self.marked, self.numbers, self.stacks = set(marked), dict(numbers), dict(stacks)

    def inside(self, region: Graph, outside: Sequence[Value]) -> "_Known":
        """The same in a region whose inputs are these values."""
        pairs = list(zip(region.inputs, outside))
        return _Known([v for v, x in pairs if x in self.marked], {v: self.numbers[x] for v, x in pairs if x in self.numbers},
                      {v: self.stacks[x] for v, x in pairs if x in self.stacks})

    def take(self, inside: "_Known", inner: Value, outer: Value) -> None:
        """Know of a value outside what is known of one inside."""
        if inner in inside.marked:
            self.marked.add(outer)
        if inner in inside.numbers:
            self.numbers[outer] = inside.numbers[inner]
        if inner in inside.stacks:
            self.stacks[outer] = inside.stacks[inner]


def marked_in_run(graph: Graph, sources: Collection[Value], facts: Mapping[Value, int]) -> Set[Value]:
    """The values of a graph that are marked if ``sources`` are.

    facts: the truth of values that decide, and how often loops ran; what is not told is assumed to go any way.
    """
    known = _Known([v for v in sources if has_gradient(v.type)], facts)
    _run(graph.nodes, known)
    return known.marked


def facts_of(graph: Graph) -> List[Value]:
    """The values of a graph that decide a branch or count a loop."""
    found: Dict[Value, None] = {}
    for node in graph.nodes:
        if node.op.name == "if_":
            found[node.inputs[0]] = None
        elif node.op.name in ("while_", "scan"):
            loop = loop_of(node)
            found.update(dict.fromkeys(loop.counted if loop.count is None else (loop.count,)))
    return list(found)


def _run(nodes: Sequence[Node], known: _Known) -> None:
    for node in nodes:
        name = node.op.name
        if name == "if_" and node.inputs[0] in known.numbers:
            region = node.regions[0 if known.numbers[node.inputs[0]] else 1]
            inside = known.inside(region, node.inputs[1:])
            if returns(region):
                _run(region.nodes, inside)
                for inner, outer in zip(region.outputs, node.outputs):
                    known.take(inside, inner, outer)
        elif name in ("while_", "scan") and _count(loop_of(node), known) is not None:
            _run_loop(loop_of(node), known)
        elif name == "stack_add" and any(v in known.stacks for v in node.inputs):
            length = next(len(known.stacks[v]) for v in node.inputs if v in known.stacks)
            sides = [known.stacks.get(v, (v in known.marked,) * length) for v in node.inputs]
            known.stacks[node.outputs[0]] = tuple([a or b for a, b in zip(*sides)])
            known.marked.update(v for v in node.outputs if any(known.stacks[v]))
        elif name.startswith("py_") and all(v in known.numbers for v in node.inputs):
            values = interpret(Graph(node.inputs, node.outputs, (node,)), *[known.numbers[v] for v in node.inputs])
            known.numbers.update(zip(node.outputs, values))
        elif not known.marked.isdisjoint(node.inputs):
            known.marked |= required([node], known.marked.intersection(node.inputs), False)


def _count(loop: Loop, known: _Known) -> Any:
    return next((known.numbers[v] for v in (loop.count, *loop.counted) if v in known.numbers), None)


def _run_loop(loop: Loop, known: _Known) -> None:
    """A loop whose count is known; a ``scan`` meets the items of its stacks from the last to the first."""
    n, first, count = len(loop.state), len(loop.state) + len(loop.stacks), _count(loop, known)
    inputs, body = loop.body.inputs, loop.body
    items = [known.stacks.get(x, (x in known.marked,) * count)[::-1] for x in loop.stacks]
    pushed: List[List[bool]] = [[] for _ in loop.pushed]
    state = known.inside(body, (*loop.state, *loop.stacks, *loop.invariants))
    for v in inputs[n:first]:
        state.marked.discard(v)
        state.stacks.pop(v, None)
    for k in range(count):
        inside = _Known(state.marked, state.numbers, state.stacks)
        inside.marked.update(v for v, marks in zip(inputs[n:first], items) if marks[k])
        _run(body.nodes, inside)
        for inner, v in zip(loop.next, inputs):
            state.marked.discard(v)
            state.numbers.pop(v, None)
            state.stacks.pop(v, None)
            state.take(inside, inner, v)
        for marks, v in zip(pushed, loop.items):
            marks.append(v in inside.marked)
    for v, y in zip(inputs, loop.last):
        known.take(state, v, y)
    for y, marks in zip(loop.pushed, pushed):
        known.stacks[y] = tuple(marks)
        known.marked.update((y,) if any(marks) else ())
