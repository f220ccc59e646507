"""What a call stores before it ends, because a later line may raise, as writes at its end."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Optional

from ..ir.graph import Node, Value
from ..ir.types import Scalar, Tensor
from ..record.builds import Build, Const, FromValue, FromVariable
from ..record.inputs import ObjectInput
from ..record.outcome import Outcome
from ..record.writes import WRITES, SetItem, Write
from ..runtime.host_calls import StateCall, fill


def with_writes_last(outcome: Outcome) -> Outcome:
    """The call with its stores of attributes outside of branches and loops among its last writes.

    That is all that is seen of them by those who see a call that ended.
    """
    if len(outcome.ends) != 1:
        return outcome
    containers = {item.value: item.source for item in outcome.inputs if isinstance(item, ObjectInput)}
    variables = {value: record for record in outcome.ends[0].variables for value in record.early}
    stored: List[Write] = []
    kept: List[Node] = []
    for node in outcome.graph.nodes:
        call = node.attrs.get("call")
        if isinstance(call, StateCall) and WRITES.get(call.name) is SetItem and node.inputs[0] in containers:
            _, key, item = fill(call.args, node.inputs)
            built = FromVariable(variables[item]) if isinstance(item, Value) and item in variables else _as_build(item)
            if built is not None:
                stored.append(SetItem(containers[node.inputs[0]], key, built))
                continue
        kept.append(node)
    if not stored:
        return outcome
    read = {value for node in outcome.graph.with_(nodes=tuple(kept)).walk() for value in node.inputs}
    kept = [node for node in kept if not variables.keys() & set(node.outputs) or read.intersection(node.outputs)]
    end, = outcome.ends
    last = {(write.container.path(), str(write.key)): write for write in (*stored, *end.writes)}
    return replace(outcome, graph=outcome.graph.with_(nodes=tuple(kept)), ends=(replace(end, writes=tuple(last.values())),))


def _as_build(item: Any) -> Optional[Build]:
    """What stores an array or a number of the graph, or a plain value; None for other objects."""
    if isinstance(item, Value):
        return FromValue(item) if isinstance(item.type, (Tensor, Scalar)) else None
    return Const(item) if item is None or type(item) in (bool, int, float, str) else None
