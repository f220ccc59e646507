"""A captured call with some of its arguments and some of its results only."""
from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Set, Tuple, Union

from ..errors import SignatureError
from ..ir.dims import Dim
from ..ir.graph import Graph
from ..passes import eliminate_dead
from ..passes.effects import has_effect
from ..record.builds import Build, Choice, FromVariable, Number, TupleOf
from ..record.guards import ArrayMatch, ExpressionMatch, VariableMatch
from ..record.inputs import Input, NumberInput
from ..record.outcome import End, Outcome
from ..record.paths import Argument, Source, Sources

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
            guards=tuple([guard for guard in [guard.moved(self._moved) for guard in whole.guards] if guard is not None]),
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
        return TupleOf(tuple, tuple([_part(result, path) for path in self.fetched]))

    def _end(self, end: End) -> End:
        writes = tuple([write.mapped(self._source, self._build) for write in end.writes])
        return replace(end, writes=writes, result=None if end.result is None else self._build(end.result))

    def _build(self, build: Build) -> Build:
        if id(build) not in self._builds:
            self._builds[id(build)] = build.mapped(self._changed)
        return self._builds[id(build)]

    def _changed(self, part: Any) -> Any:
        return self._build(part) if isinstance(part, Build) else self._source(part) if isinstance(part, Source) else part

    # --- inputs -----------------------------------------------------------------------------------------------------

    def _used_inputs(self, graph: Graph, ends: Sequence[End]) -> List[Input]:
        """Those that are read, and all arrays that are fed, which may be read for their sizes only."""
        read = {v for node in graph.nodes for v in node.inputs}.union(v for end in ends for v in end.values())
        return [item for item in self.whole.inputs if item.value in read or self._root(item.source) in self.fed]

    def _input(self, item: Input) -> Input:
        return item if item.source is None else replace(item, source=self._source(item.source))

    def _named(self, inputs: Sequence[Input], ends: Sequence[End]) -> Iterable[Tuple[str, Source]]:
        """The names of numbers.  Those in arguments that are left out must not be used."""
        texts = [guard.text for guard in self.whole.guards if isinstance(guard, ExpressionMatch)]
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
        key = self.numbers.get(source.key, source.key) if isinstance(source, Argument) else source.key
        return self.sources.get(type(source), None if source.parent is None else self._source(source.parent), key)

    def _is_left_out(self, source: Optional[Source]) -> Optional[str]:
        """The name of the argument that a path goes from, if it is left out."""
        root = self._root(source)
        return None if root in self.numbers else self.names.get(root)       # type: ignore[arg-type]

    @staticmethod
    def _root(source: Optional[Source]) -> Optional[int]:
        """The number of the argument that a path goes from."""
        root = None if source is None else source.root
        return root.key if isinstance(root, Argument) else None

    def _moved(self, source: Source) -> Optional[Source]:
        """The path from where the arguments are now; None from an argument that is left out."""
        return self._source(source) if self._is_left_out(source) is None else None

    def _check_sizes(self, outcome: Outcome) -> None:
        """A free size that something has must be that of an argument that is there."""
        met = {guard.source: guard.shape for guard in _of_arrays(self.whole)}
        there = {symbol for guard in _of_arrays(outcome) for symbol in _symbols(guard.shape)}
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
        if isinstance(build, Choice):
            return replace(build, options=tuple([(k, _part(option, path[index:])) for k, option in build.options]))
        items = build.items()
        if key not in items:
            raise SignatureError(f"not every way through the function gives a result {''.join([f'[{k!r}]' for k in path])}")
        build = items[key]
    return build


def _used(end: End) -> Tuple:
    """The Variables that are given back, stored, or known to the host."""
    built = {id(part.record) for part in end.parts() if isinstance(part, FromVariable)}
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
    texts = [item.expression for item in inputs if isinstance(item, NumberInput)]
    return texts + [part.expression for end in ends for part in end.parts() if isinstance(part, Number)]


def _names_in(texts: Iterable[str]) -> Set[str]:
    return {name for text in texts for name in _NAME.findall(text)}


def _of_arrays(outcome: Outcome) -> List[Union[ArrayMatch, VariableMatch]]:
    return [guard for guard in outcome.guards if isinstance(guard, (ArrayMatch, VariableMatch))]


def _symbols(shape: Iterable[Any]) -> Set[str]:
    return {symbol for n in shape if isinstance(n, Dim) for symbol in n.symbols}
