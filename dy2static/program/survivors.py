"""Which Variables that a call hands out are still somebody's when the call is over; the others need no cut."""
from __future__ import annotations

import types
from typing import Any, Dict, Hashable, List, Mapping, Optional, Set, Tuple, Type

from ..heap.ownership import is_library
from ..ir.graph import Graph, Node, Value
from ..lowering.host import host_call
from ..ops.control import returns
from ..record.builds import FromValue, FromVariable
from ..record.inputs import ObjectInput
from ..record.outcome import Outcome
from ..record.paths import Source
from ..record.variables import EscapingVariable
from ..record.writes import WRITES, Write
from ..runtime.host_calls import Call, StateCall
from ..runtime.node import make_variable
from ..runtime.opaque import OpaqueCall

#: A place of the user's that holds something: the container and the key, or None for all of the container.
_Cell = Tuple[Source, Hashable]
_Held = Dict[_Cell, Set[EscapingVariable]]


def survivors(outcome: Outcome) -> Set[EscapingVariable]:
    """The Variables that the user can get hold of after a call that succeeds.

    A Variable that was only stored, in places that the call writes again before code of the user's could look there, is none: it
    is seen only if the call fails in between.
    """
    return _Search(outcome).found


class _Search:
    """Follows the writes of one outcome, in the order in which they happen."""

    def __init__(self, outcome: Outcome):
        self.found: Set[EscapingVariable] = set()
        self.sources = {item.value: item.source for item in outcome.inputs if isinstance(item, ObjectInput)}
        made = {v for node in outcome.graph.nodes if _function(node) is make_variable for v in node.outputs}
        self.records = {v: r for r in outcome.variables for v in r.early}
        self.found.update(r for r in outcome.variables if not r.early or not made.issuperset(r.early))
        held = self._after(outcome.graph, {}, {})
        for end in outcome.ends:
            if end.result is None:                      # it raises: the call does not succeed
                continue
            self.found.update(part.record for part in end.parts() if isinstance(part, FromVariable))
            self._seen([part.value for part in end.parts() if isinstance(part, FromValue)])
            left = dict(held)
            for write in end.writes:
                _overwrite(left, type(write), write.container, write.key)
            self._look(left)

    def _after(self, graph: Graph, held: _Held, outer: Mapping[Value, Value]) -> _Held:
        """What places hold behind a graph, in which values may have other names than outside (``outer``)."""
        held = dict(held)
        for node in graph.nodes:
            inputs = [outer.get(v, v) for v in node.inputs]
            if node.regions:
                held = self._behind_regions(node, held, inputs)
            elif _stores(node) and self.sources.get(inputs[0]) is not None:
                _, key, _ = node.attrs["call"].args
                cell = _overwrite(held, WRITES[node.attrs["call"].name], self.sources[inputs[0]], key)
                held[cell] = held.get(cell, set()).union(self.records[v] for v in inputs[1:] if v in self.records)
            else:
                if node.op is not host_call or node.attrs["call"].keeps:
                    self._seen(inputs)
                if _looks(node):
                    self._look(held)
        self._seen([outer.get(v, v) for v in graph.outputs] if outer else ())
        return held

    def _behind_regions(self, node: Node, held: _Held, inputs: List[Value]) -> _Held:
        """What places hold behind a branch or a loop: what they hold after one way through it or another."""
        is_branch = node.op.name == "if_"
        found: List[_Held] = [] if is_branch else [held]
        for region in node.regions * (1 if is_branch else 2):                   # what one iteration stores is there in the next
            after = self._after(region, held, dict(zip(region.inputs, inputs[is_branch:])))
            if returns(region):
                found.append(after)
            held = held if is_branch else _either([held, after])
        return _either(found)

    def _look(self, held: _Held) -> None:
        for records in held.values():
            self.found |= records

    def _seen(self, values: Any) -> None:
        self.found.update(self.records[v] for v in values if v in self.records)


def _function(node: Node) -> Optional[Any]:
    call = node.attrs.get("call")
    return call.function if isinstance(call, StateCall) else None


def _stores(node: Node) -> bool:
    return isinstance(node.attrs.get("call"), StateCall) and node.attrs["call"].name in WRITES


def _looks(node: Node) -> bool:
    """Whether a node runs code that may keep what it finds in objects of the user's."""
    call = node.attrs.get("call")
    if node.op is host_call:
        return call.looks and not isinstance(call, StateCall)
    if isinstance(call, OpaqueCall):
        return not is_library(call.implementation.__module__)
    given = (call.function, *call.args, *call.kwargs.values()) if isinstance(call, Call) else ()
    return any(isinstance(item, types.FunctionType) and not is_library(item.__module__ or "") for item in given)


def _overwrite(held: _Held, kind: Type[Write], container: Source, key: Any) -> _Cell:
    """The place that a change is of; what it held before is gone, unless the change only adds."""
    cell = container, kind.place(key)
    if kind.is_whole:
        for known in [known for known in held if known[0] is container]:
            del held[known]
    elif not kind.is_growing:
        held.pop(cell, None)
    return cell


def _either(all_held: List[_Held]) -> _Held:
    """What each place may hold where several ways meet."""
    joined: _Held = {}
    for held in all_held:
        for cell, records in held.items():
            joined[cell] = joined.get(cell, set()) | records
    return joined
