"""What is made of captured graphs, kept on disk for later processes: they need not run passes or write code.

A key is the hash of everything that is read on the way from a graph to code.  What has no exact form (`ir.digest`), or cannot be
written (`ir.packing`), is not kept.  The store checks what it gives; what cannot be read is made again and replaced.
"""
from __future__ import annotations

import os
import platform
import sys
from typing import Any, NamedTuple, Optional, Tuple

import chainer
import numpy as np

from .. import config
from ..backends.base import Backend, Text
from ..ir.digest import Forms, NoForm, digest
from ..ir.op import OPS
from ..ir.packing import NotPacked, pack, unpack
from ..native import cpus, kept, store
from ..options import Recompute
from ..record.builds import Build, FromSource, FromValue, FromVariable, walk
from ..record.guards import Guard, NoOverlap, SameMemory
from ..record.outcome import End, Outcome
from ..record.paths import Source
from ..record.writes import Write
from ..runtime.segment import Expected
from .wiring import Wiring

_OPS = dict(OPS)                    # those of dy2static itself
_MOST_BYTES = 1 << 24               # of one text

#: Settings that do not decide what is made of a graph.
_ELSEWHERE = frozenset({"DY2STATIC_CACHE_DIR", "DY2STATIC_CACHE_MB", "DY2STATIC_PROGRESS", "DY2STATIC_VERBOSITY"})


class KeptForward(NamedTuple):
    """What is kept of a program: its forward, and how its nodes are wired."""

    text: Text
    wiring: Wiring


class Facts(NamedTuple):
    """What is known of a backward program besides its function: see `runtime.segment.BackwardProgram`."""

    operands: Tuple[Tuple[str, int], ...]
    expected: Tuple[Optional[Expected], ...]
    connected: Tuple[bool, ...]
    conditions: Tuple[Tuple[int, int], ...]
    bools: int
    depends: Tuple


class KeptBackward(NamedTuple):
    """What is kept of a backward program."""

    text: Text
    facts: Facts


def key_of(outcome: Outcome, backend: Backend, rng: str, recompute: Recompute) -> str:
    """The hash of what the code of a program is made from; "" where nothing is to be kept."""
    if not backend.keeps or type(backend).__module__.partition(".")[0] != __name__.partition(".")[0] or not _is_wanted():
        return ""
    try:
        return digest((_setting(), backend.name, rng, recompute, _form(outcome)))
    except (NoForm, RecursionError, ValueError):        # marshal raises a ValueError for what is nested too deeply
        return ""


def part_of(key: str, *what: Any) -> str:
    """The key of something that belongs to a program; "" where nothing is to be kept."""
    return digest((key, *what)) if key else ""


def found(key: str, kind: type) -> Any:
    """What has been kept under a key; None where there is nothing."""
    content = store.text(key) if key else None
    try:
        record = None if content is None else unpack(content)
    except NotPacked:
        return None
    return record if type(record) is kind else None


def keep(key: str, record: Any) -> None:
    """Keep what another process can go on from."""
    if not key or record.text is None:
        return
    try:
        content = pack(record)
    except NotPacked:
        return
    if len(content) <= _MOST_BYTES:
        store.keep_text(key, content)


def _is_wanted() -> bool:
    """Whether programs are kept: not where each pass is to be logged, or measurements decide about the code."""
    return kept.is_wanted() and not (config.PASS_LEVEL.value or config.VERBOSITY.value > 2 or config.TUNE.value)


def _setting() -> Tuple:
    """What is the same for all programs of this process."""
    scipy = getattr(sys.modules.get("scipy"), "__version__", "")
    flags = tuple([(name, flag.value) for name, flag in sorted(config.Flag.table.items()) if name not in _ELSEWHERE])
    return (kept.version(), sys.version, platform.machine(), np.__version__, chainer.__version__, scipy, cpus.identity(),
            os.cpu_count(), config.openmp_threads(), flags)


def _form(outcome: Outcome) -> Tuple:
    """Everything of a record that is read before its entry is written.  Raises `NoForm`."""
    forms = Forms(_OPS)
    graph = forms.graph(outcome.graph)
    inputs = tuple([(type(item).__name__, forms.number(item.value), item.requires_grad,
                     None if item.source is None else _source(forms, item.source)) for item in outcome.inputs])
    guards = tuple([_guard(forms, guard) for guard in outcome.guards if isinstance(guard, (SameMemory, NoOverlap))])
    variables = tuple([(forms.number(record), forms.number(record.value), record.requires_grad, record.connected,
                        *map(forms.number, record.early)) for record in outcome.variables])
    return (graph, inputs, guards, variables, tuple([_end(forms, end) for end in outcome.ends]), forms.of(outcome.spent),
            tuple(map(forms.number, outcome.intact)), outcome.device, outcome.train, outcome.enable_backprop)


def _source(forms: Forms, source: Source) -> Tuple:
    """A path, as far as it counts here: whether it is another one, and whether it leads to an array of something known."""
    parent = -1 if source.parent is None else forms.number(source.parent)
    return forms.number(source), type(source).__name__, parent, source.key if type(source.key) is str else None


def _guard(forms: Forms, guard: Guard) -> Tuple:
    if isinstance(guard, NoOverlap):
        return ("apart", tuple([_source(forms, each) for each in guard.written]),
                tuple([_source(forms, each) for each in guard.others]))
    return (type(guard).__name__,)


def _end(forms: Forms, end: End) -> Tuple:
    decisions = tuple([(forms.number(value), side) for value, side in end.decisions])
    return (decisions, tuple(map(forms.number, end.variables)), tuple([_write(forms, write) for write in end.writes]),
            None if end.result is None else _build(forms, end.result))


def _write(forms: Forms, write: Write) -> Tuple:
    return (type(write).__name__, _source(forms, write.container), forms.of(write.key),
            None if write.built is None else _build(forms, write.built))


def _build(forms: Forms, build: Build) -> Tuple:
    """What a build takes of the graph, in the order of `walk`; the objects around that are made by the entry."""
    found = []
    for part in walk(build):
        if isinstance(part, FromValue):
            found.append(("value", forms.number(part.value)))
        elif isinstance(part, FromVariable):
            found.append(("variable", forms.number(part.record)))
        elif isinstance(part, FromSource):
            found.append(_source(forms, part.source))
        else:
            found.append((type(part).__name__,))
    return tuple(found)

