"""What a capture hands to code generation: the graph, and what happens around it, in terms of sources and values."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..errors import Location
from ..ir.graph import Graph, Value
from .sources import Guard, Source


@dataclass(frozen=True, eq=False)
class Input:
    """One input of the graph.  kind: "variable" (its array enters), "array", "object", or "number" (``text``)."""

    kind: str
    value: Value
    source: Optional[Source] = None
    text: str = ""
    requires_grad: bool = False


@dataclass(eq=False)
class EscapingVariable:
    """A Variable made during the capture that the user can get hold of.

    value: its array.  connected: it has a creator.  early: the Variable itself, where host calls have seen it, for each way
    through the function; a run makes at most one of them.
    """

    value: Value
    requires_grad: bool
    connected: bool
    early: Tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False)
class Build:
    """How to make one object of the result: ``kind`` with its parts.

    kinds: "const" (the object), "source" (a Source), "value" (a Value), "variable" (an EscapingVariable), "number"
    (text over bound numbers), "tuple" (type, parts), "list" (parts), "dict" (pairs), "set" (items), "object" (class,
    pairs of attributes), "choice" (a number, pairs of number and build), "method" (function,
    self), "partial" (function, args, pairs), "call" (a function that makes it, args), "cycle" (a name, the object: a list,
    dict or object that contains itself) and, in it, "again" (the name).
    """

    kind: str
    parts: Tuple[Any, ...]
    shared: int = 0


@dataclass(frozen=True, eq=False)
class Write:
    """One change of an object that existed before the call: kinds as `ShadowDict.changes` and its kin give them."""

    kind: str
    container: Source
    key: Any
    built: Optional[Build]


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

    def sources(self) -> List[Source]:
        """The objects of the user's that are given back or stored."""
        return [part.parts[0] for whole in self.builds for part in walk(whole) if part.kind == "source"]

    def values(self) -> Tuple[Value, ...]:
        """What is read of the graph, each once: the arrays of Variables first."""
        found: Dict[Value, None] = {}
        for record in self.variables:
            found[record.value] = None
            found.update(dict.fromkeys(record.early))
        for build in [part for whole in self.builds for part in walk(whole)]:
            if build.kind == "value":
                found[build.parts[0]] = None
        found.update(dict.fromkeys(v for v, _ in self.decisions))
        return tuple(found)


@dataclass(frozen=True)
class Event:
    """What became of one operation, for `explain`: kind "staged", "opaque" or "host"; why, where that is not plain."""

    at: Optional[Location]
    kind: str
    text: str
    why: str = ""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of one capture.

    ends: one for each way in which decisions that cannot be joined may turn out; their decisions are those of a tree
        whose true sides come first.
    named: names of numbers and where they are read.  bound: names of objects that expressions use.  config: the local
        entries of ``chainer.config`` at the start.  train, enable_backprop: what that says of these.
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

    @property
    def variables(self) -> Tuple[EscapingVariable, ...]:
        """The Variables of all ends."""
        return tuple(dict.fromkeys(record for end in self.ends for record in end.variables))


def walk(build: Build) -> List[Build]:
    """The build and everything in it, parts first."""
    found: List[Build] = []

    def visit(item: Any) -> None:
        if isinstance(item, Build):
            if item.kind in ("const", "source", "value", "variable", "number", "again"):
                found.append(item)
                return
            for part in item.parts:
                visit(part)
            found.append(item)
        elif isinstance(item, tuple):
            for part in item:
                visit(part)
    visit(build)
    return found
