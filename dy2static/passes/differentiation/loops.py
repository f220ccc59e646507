"""The gradient of ``while_`` and ``scan``: a ``scan`` through the iterations backwards."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from ...errors import InternalError
from ...ir.building import Builder, building, current
from ...ir.graph import Graph, Node, Value
from ...ir.op import LAST, OPS
from ...ir.sizes_read import made_symbols, symbols_read
from ...ir.types import python_scalar
from ...ops.control import Loop, loop_of, returns
from ..extract import extract
from .activity import active_in_body
from .cotangents import (
    Activity,
    Cotangent,
    added,
    as_value,
    continue_graph,
    cotangent,
    either,
    is_list,
    region_of,
    sizes_in,
    zeros,
)


class _Sweep(NamedTuple):
    """The backward of the body, for the gradients that may go round the loop.

    targets: indexes of inputs of the body.  state: indexes of the state that may have a gradient; certain: of that
    whose gradient is there in every iteration.  pushed: indexes of the items that have one.
    back: what `reverse` gives for the body; its given gradients are those of ``state``, then those of ``pushed``.
    """

    targets: Tuple[int, ...]
    state: Tuple[int, ...]
    certain: Tuple[int, ...]
    pushed: Tuple[int, ...]
    back: Any

    @property
    def connected(self) -> Dict[int, Activity]:
        return {i: c for i, c in zip(self.targets, self.back.connected) if c is not False}

    @property
    def gradients(self) -> Dict[int, Value]:
        return {i: g for i, g in zip(self.targets, self.back.gradients) if g is not None}


def pull_back_loop(node: Node, found: Sequence[Optional[Cotangent]], active: Set[Value],
                   reverse: Callable) -> List[Optional[Cotangent]]:
    """The gradients of the operands of a loop from those of its last state and of the stacks it pushed.

    The loop pushes what its backward reads.  The backward is a scan over these stacks, and over the gradients of
    stacks; it carries the gradients of the state and sums up those of the invariants.  A loop that did not run
    connects its invariants to nothing.
    """
    loop = loop_of(node)
    if not returns(loop.body):                                 # it has not run, else it would have raised
        return _aligned(node, loop, dict(enumerate(found[:len(loop.state)])), active)
    sweep = _settle(node, loop, found, active, reverse)
    return _aligned(node, loop, _Backward(loop, sweep, found).emit(), active)


def _aligned(node: Node, loop: Loop, gradients: Dict[int, Optional[Cotangent]], active: Set[Value]) -> List:
    """The gradients by input of the body as those by operand; those that are not asked for are left out."""
    head = len(node.inputs) - len(loop.body.inputs)
    return [gradients.get(k - head) if v in active else None for k, v in enumerate(node.inputs)]


def _settle(node: Node, loop: Loop, found: Sequence[Optional[Cotangent]], active: Set[Value],
            reverse: Callable) -> _Sweep:
    """The backward of the body once it is known which state may, and which must, have a gradient in all iterations."""
    n = len(loop.state)
    targets = active_in_body(node, active)
    possible = {j for j in range(n) if found[j] is not None}
    certain = {j for j in possible if found[j].present is True}      # type: ignore[union-attr]
    pushed = [k for k in range(len(loop.pushed)) if found[n + k] is not None]
    while True:
        state = sorted(possible)
        maybe = [p for p, j in enumerate(state) if j not in certain]
        maybe += [len(state) + p for p, k in enumerate(pushed)
                  if found[n + k].present is not True or is_list(loop.items[k])]      # type: ignore[union-attr]
        back = reverse(loop.body, targets, [*state, *(n + k for k in pushed)], maybe)
        sweep = _Sweep(tuple(targets), tuple(state), tuple(sorted(certain)), tuple(pushed), back)
        connected = sweep.connected
        more = {j for j in targets if j < n and j in connected} - possible
        less = {j for j in certain if connected.get(j) is not True}
        if not more and not less:
            return sweep
        possible |= more
        certain -= less


class _Backward:
    """Builds the scan of one sweep."""

    def __init__(self, loop: Loop, sweep: _Sweep, found: Sequence[Optional[Cotangent]]):
        self.loop, self.sweep, self.found = loop, sweep, found
        self.builder = continue_graph(sweep.back.graph)
        self.builder.loc = current().loc
        self.state: List[Tuple[Value, Value, Value]] = []      # inside at the start, operand, inside at the end
        self.stacks: Dict[Value, Value] = {}                   # inside, operand
        self.outside: Dict[Value, Value] = {}                  # inside, operand
        self.outer: Builder = current()

    def emit(self) -> Dict[int, Optional[Cotangent]]:
        """Add the scan; gives the gradients by input of the body."""
        loop, sweep = self.loop, self.sweep
        n, first = len(loop.state), len(loop.state) + len(loop.stacks)
        self.outside.update(zip(loop.body.inputs[first:], loop.invariants))
        for value, stack in zip(loop.items, loop.pushed):
            if value not in self.outside:
                self.stacks.setdefault(value, stack)
        for p, k in enumerate(sweep.pushed, start=len(sweep.state)):
            gradient = self.found[n + k]
            self.stacks[sweep.back.given[p]] = gradient.value      # type: ignore[union-attr]
            if p in sweep.back.flags:
                self.outside[sweep.back.flags[p]] = gradient.present      # type: ignore[union-attr, assignment]
        state = [self._state_gradient(p, j) for p, j in enumerate(sweep.state)]
        summed = {i: self._sum(i, loop.invariants[i - first]) for i in sweep.connected if i >= first}
        items = [i for i in sweep.connected if n <= i < first]
        seen = {i: self._flag(i, loop.stacks[i - n]) for i in items
                if sweep.connected[i] is not True and not is_list(loop.body.inputs[i])}
        results = self._scan([sweep.gradients[i] for i in items])
        gradients: Dict[int, Optional[Cotangent]] = {}
        for j, (place, flag) in zip(sweep.state, state):
            always = loop.runs and sweep.connected.get(j) is True          # each iteration gives it one, the first one too
            gradients[j] = cotangent(results[place], j in sweep.certain if flag is None else always or results[flag])
        for i, (place, flag) in summed.items():
            whole = loop.runs and sweep.connected[i] if is_list(results[place]) else self._has_run()
            gradients[i] = cotangent(results[place], whole if flag is None else results[flag])
        gradients.update((i, Cotangent(results[len(self.state) + k], results[seen[i]] if i in seen else True))
                         for k, i in enumerate(items))
        return gradients

    def _carry(self, type: Any, begin: Value, name: str, inside: Optional[Value] = None) -> Value:
        """A state variable of the scan; its index is that of its result."""
        inside = self.builder.input(type, name) if inside is None else inside
        self.state.append((inside, begin, inside))
        return inside

    def _end(self, index: int, value: Value) -> None:
        inside, begin, _ = self.state[index]
        self.state[index] = inside, begin, value

    def _state_gradient(self, position: int, j: int) -> Tuple[int, Optional[int]]:
        """Carry the gradient of one state variable, and whether it is there; gives their places among the results."""
        loop, back, before = self.loop, self.sweep.back, self.found[j]
        type, index, flag = loop.state[j].type, len(self.state), None
        self._carry(type, zeros(type) if before is None else before.value, "", back.given[position])
        if position in back.flags:
            flag = len(self.state)
            self._carry(_BOOL, as_value(False if before is None else before.present), "", back.flags[position])
        connected = self.sweep.connected.get(j, False)
        with building(self.builder):
            self._end(index, self.sweep.gradients[j] if connected is not False else zeros(type))
            if flag is not None:
                self._end(flag, as_value(connected))
        return index, flag

    def _sum(self, i: int, operand: Value) -> Tuple[int, Optional[int]]:
        """Carry the sum of the gradients of an invariant, and whether there was one where not every iteration has."""
        connected, index = self.sweep.connected[i], len(self.state)
        total = self._carry(operand.type, zeros(operand.type), f"g{operand.name}")
        with building(self.builder):
            self._end(index, added(Cotangent(total, True), Cotangent(self.sweep.gradients[i], connected)).value)
        is_sure = connected is True or self.loop.runs and self._is_in_first(connected)
        return index, None if is_sure or is_list(operand) else self._flag(i, operand)

    def _is_in_first(self, activity: Activity) -> bool:
        """Whether the first iteration of the scan, which is the last of the loop, has a gradient for sure."""
        if not isinstance(activity, Value):
            return activity is True
        back, sweep = self.sweep.back, self.sweep
        given = [self.found[j] for j in sweep.state] + [self.found[len(self.loop.state) + k] for k in sweep.pushed]
        for position, flag in back.flags.items():
            if flag is activity:
                return given[position] is not None and given[position].present is True      # type: ignore[union-attr]
        node = next((node for node in self.builder.nodes if activity in node.outputs), None)
        if node is None or node.op.name not in ("py_or", "list_has"):
            return False
        if node.op.name == "py_or":
            return any(map(self._is_in_first, node.inputs))
        gradients, place = node.inputs
        is_last = any(place in other.outputs and other.op.name == "py_constant" and other.attrs["value"] == -1
                      for other in self.builder.nodes)
        lasting = [inside for inside, part in zip(back.given, given) if part is not None and part.present is LAST]
        return is_last and any(gradients is inside for inside in lasting)

    def _flag(self, i: int, operand: Value) -> int:
        """Carry whether an input of the body had a gradient in some iteration."""
        index = len(self.state)
        there = self._carry(_BOOL, as_value(False), f"has_{operand.name}")
        with building(self.builder):
            self._end(index, as_value(either(there, self.sweep.connected[i])))
        return index

    def _scan(self, pushed: Sequence[Value]) -> Tuple[Value, ...]:
        results = tuple(end for _, _, end in self.state) + tuple(pushed)
        entering = [inside for inside, _, _ in self.state]
        graph = extract(self.builder.build(results), (*entering, *self.stacks, *self.outside))
        stacks = [*self._sizes(graph), *[v for v in graph.inputs if v in self.stacks and v not in entering]]
        known = {*entering, *stacks}
        invariants = list(dict.fromkeys(self.outside[v] for v in graph.inputs if v not in known))
        body = region_of(graph, [*entering, *stacks, *invariants], self.outside, "body")
        begins = [begin for _, begin, _ in self.state]
        operands = (self._count(), *begins, *(self.stacks[v] for v in stacks), *invariants)
        attrs = {"carried": len(entering), "reads": len(stacks), "runs": self.loop.runs}
        return self.outer.add(OPS["scan"], operands, attrs, (body,), name="g")

    def _sizes(self, graph: Graph) -> List[Value]:
        """The numbers that an iteration found out and that symbols stand for in its backward."""
        sizes, symbols = sizes_in(self.loop.body), symbols_read(graph)
        found_out = {symbol for node in self.loop.body.walk() for symbol, _, _ in made_symbols(node)}
        inside = {symbol for node in graph.walk() for region in node.regions for symbol in sizes_in(region)}
        lost = symbols.intersection(found_out) - inside - sizes.keys()
        if lost:
            raise InternalError(f"the size {sorted(lost)[0]} is not kept for the backward of a loop")
        return [v for symbol, v in sizes.items() if symbol in symbols]

    def _count(self) -> Value:
        return self.loop.counted[0] if self.loop.count is None else self.loop.count

    def _has_run(self) -> Activity:
        return True if self.loop.runs else OPS["py_compare"](self._count(), OPS["py_constant"](value=0), op=">")


_BOOL = python_scalar("py_bool")
