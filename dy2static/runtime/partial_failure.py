"""After a call failed half-way, gives the Variables that it had handed out by then the graph that eager would have left."""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from chainer.variable import VariableNode

from .node import connect_nowhere, connect_some, make_variable
from .segment import ArenaLease, Segment


class SegmentWiring(NamedTuple):
    """One segment, its parts as ("name", local of the entry), ("node", local), ("result", index), ("made", key).

    outputs: (index of the array, indexes of the Variable, key) per output of the segment.
    """

    segment: Segment
    inputs: Tuple[Tuple[str, Any], ...]
    held: Tuple[Tuple[str, Any], ...]
    outputs: Tuple[Tuple[int, Tuple[int, ...], Any], ...]


class FailurePlan(NamedTuple):
    """What is needed to give Variables their graph when a forward function fails half-way.

    results: the local of the forward function that holds each result.  segments: in order.
    nowhere: indexes of Variables that belong to no segment, and are no leaves.
    leaves: (key, index of the array, indexes of the Variable) of Variables made inside that segments start from.
    """

    code: Any
    results: Tuple[str, ...]
    segments: Tuple[SegmentWiring, ...]
    nowhere: Tuple[int, ...]
    leaves: Tuple[Tuple[Any, int, Tuple[int, ...]], ...]


def connect_after_failure(error: BaseException, scope: Mapping[str, Any], plan: FailurePlan, lease: Optional[ArenaLease]) -> None:
    """Connect what was computed before ``error``; ``scope`` are the locals of the entry."""
    local = _forward_locals(error, plan.code)
    results = [local.get(name) for name in plan.results]
    made: Dict[Any, Any] = {}

    def variable(array: int, early: Tuple[int, ...]) -> Any:
        found = next((results[k] for k in early if results[k] is not None), None)
        return make_variable(results[array], True) if found is None and results[array] is not None else found

    def value(part: Tuple[str, Any]) -> Any:
        kind, key = part
        if kind == "result":
            return results[key]
        if kind == "made":
            return made.get(key)
        return scope[key]._node if kind == "node" else scope[key]

    for key, array, early in plan.leaves:
        made[key] = variable(array, early)
    for segment, inputs, held, outputs in plan.segments:
        entering = [value(part) for part in inputs]
        variables: List[Any] = []
        for array, early, key in outputs:
            made[key] = variable(array, early)
            variables.append(made[key])
        if any(v is not None for v in variables):
            parts = tuple([value(part) for part in held])
            for part in parts:
                if isinstance(part, VariableNode) and part._data is None and part.get_variable_or_none() is not None:
                    part.retain_data()
            connect_some(segment, entering, variables, parts, lease)
    for early in plan.nowhere:
        if results[early] is not None:
            connect_nowhere(results[early])


def _forward_locals(error: BaseException, code: Any) -> Mapping[str, Any]:
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is code:
            return traceback.tb_frame.f_locals
        traceback = traceback.tb_next
    return {}
