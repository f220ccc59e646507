"""Which arrays of the caller's a program changes in their own memory, at its end: what makes their contents, and from what."""
from __future__ import annotations

import collections
from typing import Dict, Mapping, NamedTuple, Optional, Set, Tuple

from ..ir.graph import Graph, Value
from ..passes.in_place import Update, part_updates
from ..record.builds import FromValue
from ..record.guards import NoOverlap, SameMemory
from ..record.inputs import ArrayInput, VariableInput
from ..record.outcome import End, Outcome
from ..record.paths import Attribute, Source
from ..record.writes import Write, WriteArray
from .nodes import Differentiation

#: Where an operand of an update is: ("input", number of an input), or ("result", number of what the forward returns).
Place = Tuple[str, int]


class InPlace(NamedTuple):
    """What a program does first, and what it then changes.

    graph: its forward, without the updates.  saved: what that returns besides its outputs.
    updates: each with the places of its operands.  writes: those that the updates do.
    """

    graph: Graph
    saved: Tuple[Value, ...]
    updates: Tuple[Tuple[Update, Tuple[Place, ...]], ...] = ()
    writes: frozenset = frozenset()


def in_place(outcome: Outcome, parts: Differentiation, writes: bool) -> InPlace:
    """The updates of a program.  writes: whether NumPy may write into parts of arrays.

    They run when nothing else can fail any more, and no call begins again.  There are none where arrays of the caller's share
    memory, and where a function has several ends.
    """
    graph = parts.graph
    nothing = InPlace(graph, parts.saved)
    if len(outcome.ends) != 1 or any(isinstance(guard, SameMemory) for guard in outcome.guards):
        return nothing
    position = {value: k for k, value in enumerate(outcome.graph.outputs)}
    (end,) = outcome.ends
    filling = {position[w.built.value]: w for w in end.writes if isinstance(w, WriteArray) and isinstance(w.built, FromValue)
               and w.built.value in position}
    targets = _targets(outcome, end, graph, filling)
    if not targets:
        return nothing
    found = part_updates(graph, targets, filling, parts.saved, _apart(outcome, graph), writes)
    if not found.updates:
        return nothing
    saved = (*parts.saved, *found.saved)
    places: Dict[Value, Place] = {v: ("result", k) for k, v in reversed(list(enumerate([*found.graph.outputs, *saved])))}
    places.update({v: ("input", i) for i, v in enumerate(graph.inputs)})
    updates = tuple([(update, tuple([places[v] for v in update.graph.inputs])) for update in found.updates])
    return InPlace(found.graph, saved, updates, frozenset([filling[k] for update in found.updates for k in update.places]))


def _targets(outcome: Outcome, end: End, graph: Graph, filling: Mapping[int, Write]) -> Dict[int, Value]:
    """Per output that only one write reads, the input that is the array which it fills."""
    uses = collections.Counter([part.value for part in end.parts() if isinstance(part, FromValue)])
    uses.update([record.value for record in outcome.variables] + [value for value, _ in end.decisions])
    containers = collections.Counter([write.container for write in filling.values()])
    inputs: Dict[Source, Value] = {}
    for item, value in zip(outcome.inputs, graph.inputs):
        if isinstance(item, (ArrayInput, VariableInput)):
            inputs[item.source] = value
    return {k: value for k, write in filling.items() if uses[write.built.value] == 1 and containers[write.container] == 1
            for value in [_input_of(write.container, inputs)] if value is not None}


def _input_of(container: Source, inputs: Mapping[Source, Value]) -> Optional[Value]:
    """The input that is an array; None where none is, or two are."""
    found = [inputs.get(container)]
    if isinstance(container, Attribute) and container.key == "array" and container.parent is not None:
        found.append(inputs.get(container.parent))
    known = [value for value in found if value is not None]
    return known[0] if len(known) == 1 else None


def _apart(outcome: Outcome, graph: Graph) -> Set[Value]:
    """The inputs that guards keep apart from each other in memory."""
    known: Set[Source] = set()
    for guard in outcome.guards:
        if isinstance(guard, NoOverlap):
            known.update(guard.written, guard.others)
    named = {source.parent if isinstance(source, Attribute) and source.key == "array" else source for source in known}
    return {value for item, value in zip(outcome.inputs, graph.inputs) if item.source in known or item.source in named}
