"""What a capture hands to code generation: the graph, and what happens around it, in terms of sources and values."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..errors import Location
from ..ir.graph import Graph, Value
from .builds import Build, FromSource, FromValue, walk
from .guards import EqualsMatch, Guard
from .inputs import Input
from .paths import Source
from .variables import EscapingVariable
from .writes import Write


@dataclass(frozen=True, eq=False)
class End:
    """How the function ends after some decisions that could not be joined; without any, there is one end.

    decisions: values that decide, and what they must be.  result: None if this end raises.
    """

    decisions: Tuple[Tuple[Value, bool], ...]
    variables: Tuple[EscapingVariable, ...]
    writes: Tuple[Write, ...]
    result: Optional[Build]

    @property
    def builds(self) -> List[Build]:
        """The result and everything that is written."""
        found = [] if self.result is None else [self.result]
        return found + [w.built for w in self.writes if w.built is not None]

    def parts(self) -> List[Build]:
        """All builds, of what is in others, too."""
        return [part for whole in self.builds for part in walk(whole)]

    def sources(self) -> List[Source]:
        """The objects of the user's that are given back or stored."""
        return [part.source for part in self.parts() if isinstance(part, FromSource)]

    def values(self) -> Tuple[Value, ...]:
        """What is read of the graph, each once: the arrays of Variables first."""
        found: Dict[Value, None] = {}
        for record in self.variables:
            found[record.value] = None
            found.update(dict.fromkeys(record.early))
        found.update((part.value, None) for part in self.parts() if isinstance(part, FromValue))
        found.update(dict.fromkeys(v for v, _ in self.decisions))
        return tuple(found)


#: The texts of events of Python's.
_DECISIONS = frozenset(("if", "while"))
_OF_PYTHON = _DECISIONS | {"bool", "float", "int"}


@dataclass(frozen=True)
class Event:
    """What became of one operation, for `explain`: kind "staged", "opaque" or "host"; why, where that is not plain."""

    at: Optional[Location]
    kind: str
    text: str
    why: str = ""

    @property
    def is_function(self) -> bool:
        """Whether it is a function of Chainer's in the graph, or a gradient; the others are of NumPy and Python."""
        return self.kind == "staged" and not self.text.startswith("numpy ") and self.text not in _OF_PYTHON

    @property
    def is_decision(self) -> bool:
        """Whether it is a decision or a loop on values that only the run knows."""
        return self.kind == "staged" and self.text in _DECISIONS


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of one capture.

    ends: one for each way in which decisions that cannot be joined may turn out; their decisions are those of a tree
        whose true sides come first.
    named: names of numbers and where they are read.  bound: names of objects that expressions use.  config: the local
        entries of ``chainer.config`` at the start.  train, enable_backprop: what that says of these.
    device: a GPU that arrays are on; "" if all are NumPy's.  current: the number of the GPU that must be the current one; -1 if
        any may be.
    spent: where the function changed arrays in place that gradients of its results would read; it has taken these itself.
    intact: where there are such arrays, the outputs of the graph whose gradients read none of them.
    takes_gradients: whether it takes gradients itself, as a training step does.
    """

    graph: Graph
    inputs: Tuple[Input, ...]
    guards: Tuple[Guard, ...]
    ends: Tuple[End, ...]
    named: Tuple[Tuple[str, Source], ...]
    bound: Tuple[Tuple[str, Any], ...]
    config: Mapping[str, Any]
    events: Tuple[Event, ...]
    keywords: Tuple[str, ...] = ()
    train: bool = True
    enable_backprop: bool = True
    spent: Optional[Location] = None
    intact: Tuple[Value, ...] = ()
    device: str = ""
    current: int = -1
    takes_gradients: bool = False

    @property
    def replaced_numbers(self) -> List[Tuple[EqualsMatch, List[Optional[Build]]]]:
        """The guards of numbers that the call itself replaces, each with what it writes there."""
        written: Dict[Any, List[Optional[Build]]] = {}
        for write in [write for end in self.ends for write in end.writes if write.reads is not None]:
            written.setdefault((write.reads, write.container, write.key), []).append(write.built)
        numbers = [g for g in self.guards if isinstance(g, EqualsMatch) and type(g.expected) in (int, float)]
        places = [(guard, (type(guard.source), guard.source.parent, guard.source.key)) for guard in numbers]
        return [(guard, written[place]) for guard, place in places if place in written]

    @property
    def variables(self) -> Tuple[EscapingVariable, ...]:
        """The Variables of all ends."""
        return tuple(dict.fromkeys(record for end in self.ends for record in end.variables))
