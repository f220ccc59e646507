"""Numbers that a call reads and writes: other threads may have changed them by the time the call writes what it does."""
from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional, Set, Tuple

from ..capture.handlers import HARMLESS
from ..ir.graph import Graph
from ..lowering import host
from ..lowering.checked_range import zero
from ..lowering.opaque import opaque
from ..record.guards import EqualsMatch, ExpressionMatch
from ..record.inputs import NumberInput
from ..record.outcome import End, Outcome
from ..record.paths import CellContents, Item, Source
from ..record.writes import Write

#: So often a call begins again: among others that change what it has read all the time it must end, too, and not take long.
MOST_TRIES = 4

_MANY = 3                   # items that one question is asked for
_WORD = re.compile(r"\w+")


def updates(entry: Any, end: End) -> List[str]:
    """Lines that stand right before the writes of an end, for the numbers that these replace.

    Eager reads and writes ``self.n += 1`` in one go; a program has read ``n`` before it computes.  Where another thread has
    changed it since, what is written (and given back) is computed again from what is there now, if nothing else was computed
    from it; otherwise the call begins again, if it has not had an effect yet, and not for ever.

    entry: the `program.entry.Entry` that writes the end; all guards and the forward are behind it.
    """
    outcome: Outcome = entry.outcome
    places = {(type(s), s.parent, s.key): s for s in entry.read() if isinstance(s, (Item, CellContents))}
    known = {g.source for g in outcome.guards if isinstance(g, EqualsMatch) and type(g.expected) in (int, float, bool)}
    written = [place for write in end.writes for place in [_place(write, places)] if place in entry.numbers or place in known]
    if not written:
        return []
    begins_again, reads_again = not does_more(outcome.graph), not _changes_state(outcome.graph)
    deciding, computed = _deciding(outcome), _by_word(entry.computed)
    checks, reads = [], []
    for source in dict.fromkeys(written):
        text, before = source.text(entry), entry.path(source)
        if begins_again and (source not in entry.numbers or before in deciding):
            checks.append(f"if tries and {text} is not {before}: return call(args, kwargs, tries - 1)")
        if source in entry.numbers and reads_again:
            again = [f"{name} = {expression}" for expression, name in computed.get(before, ())]
            reads += [f"now = {text}", f"if now is not {before}:", f"    {'; '.join([f'{before} = now', *again])}"]
    return _unless_all_same(list(dict.fromkeys(written)), checks + reads, entry)


def _unless_all_same(sources: List[Source], lines: List[str], entry: Any) -> List[str]:
    """The lines behind one question for all items, which takes less time than one for each."""
    items = [source for source in sources if isinstance(source, Item)]
    if len(items) != len(sources) or len(items) < _MANY or not lines:
        return lines
    keys = entry.constant(tuple([source.key for source in items]), "keys")
    pairs = ", ".join([f"{entry.path(source.parent)}, {entry.path(source)}" for source in items])
    return [f"if not same_items({keys}, {pairs}):", *[f"    {line}" for line in lines]]


def _place(write: Write, places: Dict[Any, Source]) -> Optional[Source]:
    """The path to what a write replaces, if that was read."""
    return None if write.reads is None else places.get((write.reads, write.container, write.key))


def _deciding(outcome: Outcome) -> Set[str]:
    """The numbers that enter the graph, or of which a guard looks at what is computed from them."""
    texts = [item.expression for item in outcome.inputs if isinstance(item, NumberInput)]
    texts += [guard.text for guard in outcome.guards if isinstance(guard, ExpressionMatch)]
    return {word for text in texts for word in _WORD.findall(text)}


def _by_word(computed: Mapping[str, str]) -> Dict[str, List[Tuple[str, str]]]:
    """The expressions, and the names of what they give, by each word in them."""
    found: Dict[str, List[Tuple[str, str]]] = {}
    for expression, name in computed.items():
        for word in dict.fromkeys(_WORD.findall(expression)):
            found.setdefault(word, []).append((expression, name))
    return found


def does_more(graph: Graph) -> bool:
    """Whether a run of the forward may have had an effect before it ends."""
    return any(node.op.effect and node.op not in (host.checked_call, zero) for node in graph.walk())


def _changes_state(graph: Graph) -> bool:
    """Whether a run may have changed any object by then: code of the user's, or what was written before that."""
    return any(node.op is opaque and node.attrs["call"].written is None or node.op is host.host_call and not any(
        node.attrs["call"].function is harmless for harmless in HARMLESS) for node in graph.walk())
