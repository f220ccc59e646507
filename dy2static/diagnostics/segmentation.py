"""Why the gradients of a program are computed by several FunctionNodes: what can be reached after the call splits them."""
from __future__ import annotations

from typing import Any, Dict, List, Set

from ..ir.graph import Graph, Value
from ..record.builds import FromVariable, walk
from ..record.paths import Item
from ..record.writes import Write


def splitting(program: Any) -> List[str]:
    """The places in which a call stores Variables on which others depend that can be reached, too; empty where nothing is split."""
    if len(program.segments) < 2:
        return []
    found: Dict[str, None] = {}
    for end in program.recipe.outcome.ends:
        reachable = {record.value for record in end.variables if record.connected}
        inner = _behind(program.recipe.outcome.graph, reachable) & reachable
        for write in end.writes:
            parts = () if write.built is None else walk(write.built)
            if any(isinstance(part, FromVariable) and part.record.value in inner for part in parts):
                found[_place(write)] = None
    return list(found)


def _place(write: Write) -> str:
    return write.container.describe() if write.key is None else Item(write.container, write.key, 0).describe()


def _behind(graph: Graph, values: Set[Value]) -> Set[Value]:
    """All values that some of these depend on."""
    producers = graph.producers()
    found: Set[Value] = set()
    pending = [value for start in values if start in producers for value in producers[start].inputs]
    while pending:
        value = pending.pop()
        if value not in found:
            found.add(value)
            pending += producers[value].inputs if value in producers else ()
    return found
