"""Dead code elimination."""
from __future__ import annotations

from dataclasses import replace
from typing import Collection, Iterable, List, Set, Tuple

from ...ir.graph import Graph, Node, Value
from ...ir.sizes_read import symbols_read
from ...ir.types import Extent
from ...ops.control import Loop, loop_of, returns
from ..effects import must_run


def eliminate_dead(graph: Graph) -> Graph:
    """Drop nodes that no output depends on.  Nodes with effects, or that may raise, stay, and what they need.

    In branches and loops too; unused results, state, stacks and operands of blocks are removed.  Linear in nodes +
    edges, times the number of state variables that depend on each other in loops.  Inputs of the graph stay, also
    those that nothing reads any more.
    """
    live, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if must_run(node) or not live.isdisjoint(node.outputs):
            node = _RULES[node.op.name](node, live) if node.op.name in _RULES else node
            live.update(node.inputs)
            kept.append(node)
    kept.reverse()
    if len(kept) == len(graph.nodes) and all(a is b for a, b in zip(kept, graph.nodes)):
        return graph
    return graph.with_(nodes=tuple(kept))


def eliminate_dead_in_regions(graph: Graph, saved: Tuple[Value, ...] = ()) -> Graph:
    """Drop nodes that no output depends on, where the graph has branches or loops; saved values are outputs, too."""
    if not any(node.regions for node in graph.nodes):
        return graph
    return eliminate_dead(graph.with_(outputs=graph.outputs + saved)).with_(outputs=graph.outputs)


def _if(node: Node, live: Collection[Value]) -> Node:
    """The branch with the results that are live and the operands they need."""
    wanted = [k for k, v in enumerate(node.outputs) if v in live]
    regions = [eliminate_dead(_with_outputs(region, wanted) if returns(region) else region) for region in node.regions]
    read = [_read(region) for region in regions]
    used = [j for j in range(len(node.inputs) - 1)
            if any([region.inputs[j] in values for region, values in zip(regions, read)])]
    regions = [region.with_(inputs=_pick(region.inputs, used)) for region in regions]
    if not any(map(returns, regions)):
        wanted = list(range(len(node.outputs)))
    return _kept(node, replace(node, inputs=node.inputs[:1] + _pick(node.inputs[1:], used),
                               outputs=_pick(node.outputs, wanted), regions=tuple(regions)))


def _loop(node: Node, live: Collection[Value]) -> Node:
    """The loop with the state, stacks and invariants that are live or decide about it."""
    loop = loop_of(node)
    test = None if loop.test is None else eliminate_dead(loop.test)
    before = len(loop.state) + len(loop.stacks)
    kept = list(range(len(loop.state)))
    pushes: List[int] = []
    if returns(loop.body):
        deciding = set() if test is None else _read(test)
        kept = [j for j, v in enumerate(loop.last) if v in live or test is not None and test.inputs[j] in deciding]
        pushes = [k for k, v in enumerate(loop.pushed) if v in live]
        body = _needed_body(loop, kept, pushes)
    else:
        body = eliminate_dead(loop.body)
    read = _read(body) | (set() if test is None else _read(test))
    read |= _sizes_read(body)
    stacks = [k for k in range(len(loop.stacks)) if body.inputs[len(loop.state) + k] in read]
    invariants = [i for i in range(len(loop.invariants))
                  if body.inputs[before + i] in read or test is not None and test.inputs[before + i] in read]
    entering = kept + [len(loop.state) + k for k in stacks] + [before + i for i in invariants]
    return _kept(node, Loop(
        loop.count, _pick(loop.state, kept), _pick(loop.stacks, stacks), _pick(loop.invariants, invariants),
        None if test is None else test.with_(inputs=_pick(test.inputs, entering)),
        body.with_(inputs=_pick(body.inputs, entering)), _pick(loop.last, kept), _pick(loop.pushed, pushes),
        tuple(v for v in loop.counted if v in live), loop.runs).node(node))


def _needed_body(loop: Loop, kept: List[int], pushes: List[int]) -> Graph:
    """The body for the state in ``kept``, to which the state is added that this state depends on."""
    while True:
        body = eliminate_dead(_with_outputs(loop.body, kept + [len(loop.state) + k for k in pushes]))
        read = _read(body)
        more = [j for j in range(len(loop.state)) if j not in kept and loop.body.inputs[j] in read]
        if not more:
            return body
        kept[:] = sorted(kept + more)


def _with_outputs(region: Graph, wanted: Iterable[int]) -> Graph:
    return region.with_(outputs=_pick(region.outputs, wanted))


def _read(region: Graph) -> Set[Value]:
    """The values that the nodes and the end of a region read."""
    return {v for node in region.nodes for v in node.inputs}.union(region.outputs)


def _sizes_read(region: Graph) -> Set[Value]:
    """The inputs of a region that give symbols their numbers, of those that it has in sizes."""
    sizes = [v for v in region.inputs if isinstance(v.type, Extent)]
    return {v for v in sizes if v.type.symbol in symbols_read(region)} if sizes else set()


def _pick(values: Tuple[Value, ...], indexes: Iterable[int]) -> Tuple[Value, ...]:
    return tuple(values[i] for i in indexes)


def _kept(old: Node, new: Node) -> Node:
    """The old node if nothing went."""
    same = old.inputs == new.inputs and old.outputs == new.outputs and all(
        a.nodes == b.nodes and a.outputs == b.outputs and a.inputs == b.inputs
        for a, b in zip(old.regions, new.regions))
    return old if same else new


_RULES = {"if_": _if, "while_": _loop, "scan": _loop}
