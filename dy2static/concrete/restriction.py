"""A captured call with some of its arguments and some of its results only."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..errors import SignatureError
from ..ir.dims import Dim
from ..ir.graph import Graph
from ..passes import eliminate_dead
from ..passes.effects import has_effect
from ..world.outcome import Build, End, Input, Outcome, Write, walk
from ..world.sources import Guard, Source, Sources

_NAME = re.compile(r"[A-Za-z_]\w*")


def restricted(outcome: Outcome, names: Mapping[int, str], fed: Sequence[int], fetched: Optional[Sequence[Tuple]]) -> Outcome:
    """The call with the arguments ``fed`` in that order, giving a tuple of the results at the paths ``fetched``.

    None for ``fetched``: it gives what it gave.
    What only other results need is not computed, and not checked; what has effects is done.
    names: of the arguments by number; those that are in here and not fed are left out, all others stay where they are.

    Raises `SignatureError` where something needs an argument that is left out.
    """
    return _Restriction(outcome, names, fed, fetched).outcome()


class _Restriction:
    def __init__(self, outcome: Outcome, names: Mapping[int, str], fed: Sequence[int],
                 fetched: Optional[Sequence[Tuple]]):
        self.whole, self.names, self.fed, self.fetched = outcome, names, frozenset(fed), fetched
        kept = [k for k in range(min(names, default=0)) if k not in names]
        self.numbers = {old: new for new, old in enumerate([*kept, *fed])}
        self.sources, self._builds = Sources(), {}      # type: Sources, Dict[int, Build]
        self.needed: Set[str] = set()

    def outcome(self) -> Outcome:
        """What is left."""
        whole = self.whole
        ends = [replace(end, result=self._picked(end.result)) for end in whole.ends]
        ends = [replace(end, variables=_used(end)) for end in ends]
        graph = _restricted_graph(whole.graph, ends)
        inputs = self._used_inputs(graph, ends)
        outcome = replace(
            whole, graph=graph.with_(inputs=tuple([item.value for item in inputs])), inputs=tuple(map(self._input, inputs)),
            guards=tuple([guard for guard in map(self._guard, whole.guards) if guard is not None]),
            ends=tuple(map(self._end, ends)), named=tuple(self._named(inputs, ends)))
        self._check_sizes(outcome)
        if self.needed:
            names = [repr(name) for name in self.names.values() if name in self.needed]
            raise SignatureError(f"what is fetched, or an effect, needs {' and '.join(names)}, "
                                 f"which {'is' if len(names) == 1 else 'are'} not fed")
        return outcome

    # --- results ----------------------------------------------------------------------------------------------------

    def _picked(self, result: Optional[Build]) -> Optional[Build]:
        if result is None or self.fetched is None:
            return result
        return Build("tuple", (tuple, tuple([_part(result, path) for path in self.fetched])))

    def _end(self, end: End) -> End:
        writes = [Write(w.kind, self._source(w.container), w.key, None if w.built is None else self._build(w.built))
                  for w in end.writes]
        return replace(end, writes=tuple(writes), result=None if end.result is None else self._build(end.result))

    def _build(self, build: Build) -> Build:
        if id(build) not in self._builds:
            self._builds[id(build)] = replace(build, parts=self._parts(build.parts))
        return self._builds[id(build)]

    def _parts(self, parts: Tuple) -> Tuple:
        return tuple([self._build(part) if isinstance(part, Build) else self._source(part) if isinstance(part, Source) else
                      self._parts(part) if type(part) is tuple else part for part in parts])

    # --- inputs -----------------------------------------------------------------------------------------------------

    def _used_inputs(self, graph: Graph, ends: Sequence[End]) -> List[Input]:
        """Those that are read, and all arrays that are fed, which may be read for their sizes only."""
        read = {v for node in graph.nodes for v in node.inputs}.union(v for end in ends for v in end.values())
        return [item for item in self.whole.inputs if item.value in read or self._root(item.source) in self.fed]

    def _input(self, item: Input) -> Input:
        return item if item.source is None else replace(item, source=self._source(item.source))

    def _named(self, inputs: Sequence[Input], ends: Sequence[End]) -> Iterable[Tuple[str, Source]]:
        """The names of numbers.  Those in arguments that are left out must not be used."""
        texts = [str(guard.expected[0]) for guard in self.whole.guards if guard.test == "expr"]
        used = _names_in([*texts, *_texts(inputs, ends)])
        for name, source in self.whole.named:
            if self._is_left_out(source) is None or name in used:
                yield name, self._source(source)

    def _source(self, source: Source) -> Source:
        """The same path from where the arguments are now."""
        out = self._is_left_out(source)
        if out is not None:
            self.needed.add(out)
            return source
        key = self.numbers.get(source.key, source.key) if source.kind == "arg" else source.key
        return self.sources.get(source.kind, None if source.parent is None else self._source(source.parent), key)

    def _is_left_out(self, source: Optional[Source]) -> Optional[str]:
        """The name of the argument that a path goes from, if it is left out."""
        root = self._root(source)
        return None if root in self.numbers else self.names.get(root)       # type: ignore[arg-type]

    @staticmethod
    def _root(source: Optional[Source]) -> Optional[int]:
        """The number of the argument that a path goes from."""
        while source is not None and source.parent is not None:
            source = source.parent
        return source.key if source is not None and source.kind == "arg" else None

    def _guard(self, guard: Guard) -> Optional[Guard]:
        """The guard; None if it is of what is left out."""
        test, expected = guard.test, guard.expected
        if test == "distinct":
            kept = self._kept(expected)
            return Guard(None, test, kept) if len(kept) > 1 else None
        if test == "apart":
            written, others = map(self._kept, expected)
            return Guard(None, test, (written, others)) if written else None
        if test == "reports":
            return Guard(None, test, self._kept(expected))
        if guard.source is None:
            return guard
        if self._is_left_out(guard.source) is not None or test == "same" and self._is_left_out(expected) is not None:
            return None
        return Guard(self._source(guard.source), test, self._source(expected) if test == "same" else expected)

    def _kept(self, sources: Iterable[Source]) -> Tuple[Source, ...]:
        return tuple([self._source(source) for source in sources if self._is_left_out(source) is None])

    def _check_sizes(self, outcome: Outcome) -> None:
        """A free size that something has must be that of an argument that is there."""
        met = {guard.source: shape for guard in self.whole.guards for shape in [_shape(guard)] if shape}
        there = {symbol for guard in outcome.guards for symbol in _symbols(_shape(guard))}
        values = [*outcome.graph.values(), *[v for node in outcome.graph.walk() for v in node.outputs]]
        wanted = {symbol for v in values for symbol in _symbols(getattr(v.type, "shape", ()))}
        wanted = wanted.union(_names_in(_texts(outcome.inputs, outcome.ends))) - there
        left_out = [(self._is_left_out(source), _symbols(shape)) for source, shape in met.items()]
        for name, symbols in sorted(left_out, key=lambda pair: pair[0] not in self.needed):    # these will be there anyway
            if name is not None and wanted & symbols:
                self.needed.add(name)
                wanted -= symbols


def _part(build: Build, path: Tuple) -> Build:
    """The part of a result at a path.  Raises `SignatureError`."""
    for index, key in enumerate(path):
        if build.kind == "choice":
            number, options = build.parts
            return Build("choice", (number, tuple([(k, _part(option, path[index:])) for k, option in options])))
        items: Dict[Any, Build] = {}
        if build.kind in ("tuple", "list"):
            items = dict(enumerate(build.parts[1] if build.kind == "tuple" else build.parts))
        elif build.kind == "dict":
            items = {name.parts[0]: part for name, part in build.parts if name.kind == "const"}
        if key not in items:
            raise SignatureError(f"not every way through the function gives a result {''.join([f'[{k!r}]' for k in path])}")
        build = items[key]
    return build


def _used(end: End) -> Tuple:
    """The Variables that are given back, stored, or known to the host."""
    built = {id(part.parts[0]) for whole in end.builds for part in walk(whole) if part.kind == "variable"}
    return tuple([record for record in end.variables if id(record) in built or record.early])


def _restricted_graph(graph: Graph, ends: Sequence[End]) -> Graph:
    """What the ends need, and what has effects.  What merely may fail goes with the results that it was for."""
    inputs = set(graph.inputs)
    outputs = tuple(dict.fromkeys(v for end in ends for v in end.values() if v not in inputs))
    live, kept = set(outputs), []
    for node in reversed(graph.nodes):
        if has_effect(node) or not live.isdisjoint(node.outputs):
            live.update(node.inputs)
            kept.append(node)
    return eliminate_dead(graph.with_(outputs=outputs, nodes=tuple(reversed(kept))))


def _texts(inputs: Sequence[Input], ends: Sequence[End]) -> List[str]:
    """The expressions over numbers that go in and come out."""
    builds = [part for end in ends for whole in end.builds for part in walk(whole)]
    return [item.text for item in inputs] + [str(part.parts[0]) for part in builds if part.kind == "number"]


def _names_in(texts: Iterable[str]) -> Set[str]:
    return {name for text in texts for name in _NAME.findall(text)}


def _shape(guard: Guard) -> Tuple:
    return tuple({"array": lambda: guard.expected[0], "variable": lambda: guard.expected[2]}.get(guard.test, tuple)())


def _symbols(shape: Iterable[Any]) -> Set[str]:
    return {symbol for n in shape if isinstance(n, Dim) for symbol in n.symbols}
