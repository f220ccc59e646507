"""Choices between algorithms, made by measuring: once per machine, and kept on disk (``DY2STATIC_TUNE=1``).

A choice has a name and is made for subjects: a convolution of certain sizes, a region of a graph.  Its candidates compute the same,
apart from rounding; the first is the one that rules take.  What has won is written into the text that is compiled, so a program
that is loaded never changes.  Tables are files in the directory of libraries, one for each CPU, compiler, version of the kernels
and number of threads: a table of another machine is never read, and one that is damaged counts as empty.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import config
from ..errors import BackendError
from . import compiler, cpus, shipped, store, team

#: Seconds of measuring for one subject, after which no round begins; rounds at least and at most.
_SECONDS, _FEWEST, _MOST = 0.5, 5, 25
#: Another candidate than that of the rules has to take less than this part of its time: less is noise.
_MARGIN = 0.95
#: A candidate that takes so many times as long as the best one at first is not measured again.
_HOPELESS = 2.0
#: Operands of more bytes come from memory, as they do between other layers; of fewer, from the second cache.
_NEAR = 1 << 18
_ELSEWHERE = 1 << 22
#: Bytes of a line of the cache.
_LINE = 64

#: What a candidate is measured by: it computes once, and gives a number other than 0 where it cannot.
Call = Callable[[], Any]


class Choice(NamedTuple):
    """A choice between algorithms.

    about: what is chosen, for people.  kernels: the text of the kernels, of whose versions the measurements are.
    """

    name: str
    about: str
    kernels: Callable[[], str]


#: All choices, by name.
CHOICES: Dict[str, Choice] = {}


def declare(name: str, about: str, kernels: Callable[[], str]) -> Choice:
    """One more choice."""
    CHOICES[name] = Choice(name, about, kernels)
    return CHOICES[name]


class Measured(NamedTuple):
    """What was measured for one subject: the winner, and the seconds of each candidate, that of the rules first.

    A candidate that cannot compute takes forever.
    """

    seconds: Mapping[str, float]
    winner: str


def is_on() -> bool:
    """Whether choices are made by measuring.

    Not where libraries of saved models are written or loaded: their names are those of texts that rules have made.
    """
    return bool(config.TUNE.value) and not shipped.are_wanted()


def choose(choice: Choice, subject: str, nbytes: int, candidates: Callable[[], Sequence[str]],
           prepare: Callable[[Sequence[str]], Mapping[str, Call]]) -> Optional[str]:
    """The name of the candidate that was measured to be the fastest; None: rules choose.

    nbytes: of all operands.  candidates: gives their names, that of the rules first.  prepare: gives the calls to measure, by name.
    Where kernels cannot be built the rules hold.
    """
    if not is_on():
        return None
    try:
        names = candidates()
        if len(names) == 1:
            return None
        table = _table()
        found = table.get(choice.name, subject, names)
        if found is None:
            found = measure(names, nbytes, prepare(names))
            table.put(choice.name, subject, found)
    except BackendError:
        return None                     # who compiles the program that asks will say why
    return None if found.winner == names[0] else found.winner


def measure(names: Sequence[str], nbytes: int, calls: Mapping[str, Call]) -> Measured:
    """Call the candidates in turns and take the best time of each; the first wins where others are not clearly faster."""
    seconds = {name: 0.0 if not calls[name]() else math.inf for name in names}
    left = [name for name in names if seconds[name] == 0]
    seconds.update(dict.fromkeys(left, math.inf))
    begin, rounds = clock(), 0
    while rounds < _FEWEST or rounds < _MOST and clock() - begin < _SECONDS:
        for name in left:
            seconds[name] = min(seconds[name], _time(calls[name], nbytes))
        best = min(seconds.values())
        left = [name for name in left if seconds[name] <= _HOPELESS * best]
        rounds += 1
    fastest = min(names, key=lambda name: seconds[name])
    return Measured(seconds, fastest if seconds[fastest] < _MARGIN * seconds[names[0]] else names[0])


def clock() -> float:
    """Seconds: of this thread's processor time, or of the wall where several threads compute."""
    return time.thread_time() if team.wanted() == 1 else time.perf_counter()


def _time(call: Call, nbytes: int) -> float:
    if nbytes > _NEAR:
        _elsewhere().sum()              # takes the place of the operands in the nearer caches
    begin = clock()
    call()
    return clock() - begin


def _elsewhere(kept: List[np.ndarray] = []) -> np.ndarray:         # noqa: B006  made once
    if not kept:
        kept.append(np.zeros(_ELSEWHERE, np.uint8))
    return kept[0]


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An array to measure with: numbers of usual sizes, the same each time, where values of a program stand (`memory`)."""
    some = np.random.RandomState(0).standard_normal(4093).astype(dtype)
    array = memory(*shape, dtype=dtype)
    array[...] = np.resize(some, shape)
    return array


def memory(*shape: int, dtype: Any) -> np.ndarray:
    """An array that begins where a line of the cache does, as the working memory of programs does; elsewhere loads take longer."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(nbytes + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin:begin + nbytes].view(dtype).reshape(shape)


# Tables -------------------------------------------------------------------------------------------------------------


class Table:
    """What was measured on this machine: in this process, and in a file that other processes read and add to."""

    def __init__(self, path: str, machine: str):
        self.path, self.machine = path, machine
        self._known: Dict[str, Dict[str, Any]] = entries_of(path)

    def get(self, choice: str, subject: str, names: Sequence[str]) -> Optional[Measured]:
        """What was measured for a subject among just these candidates, with the same first one; else None."""
        entry = self._known.get(f"{choice}: {subject}")
        if entry is None or list(entry["nanoseconds"]) != list(names):
            return None
        return Measured({name: math.inf if ns is None else ns * 1e-9 for name, ns in entry["nanoseconds"].items()}, entry["winner"])

    def put(self, choice: str, subject: str, found: Measured) -> None:
        """Keep what was measured, with what other processes have measured meanwhile; in this process alone if there is no disk."""
        nanoseconds = {name: round(s * 1e9) if s < math.inf else None for name, s in found.seconds.items()}
        entry = {"winner": found.winner, "nanoseconds": nanoseconds}
        known = self._known = {**entries_of(self.path), **self._known, f"{choice}: {subject}": entry}    # threads may read it
        document = {"machine": self.machine, "entries": known, "checksum": _checksum(known)}
        try:
            handle, draft = tempfile.mkstemp(prefix=".new-", dir=os.path.dirname(self.path))
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(document, file, indent=1)
            os.replace(draft, self.path)
        except OSError:
            return                      # it is measured again by the next process


_tables: Dict[str, Table] = {}


def _table() -> Table:
    """The table of this machine.  Raises `failures.NoCompiler`."""
    threads = team.wanted()
    kernels = "\n".join(f"{name} {choice.kernels()}" for name, choice in sorted(CHOICES.items()))
    cpu = sorted(cpus.fields().items())
    key = compiler.key_of(f"{kernels}\n{cpu}\n{threads}", compiler.compiler())
    path = os.path.join(store.directory(), f"tuned-{key}.json")
    if path not in _tables:
        fields = dict(cpu)
        machine = f"{fields.get('model name', 'a CPU')}, -march={config.MARCH.value}, threads: {threads}"
        _tables[path] = Table(path, machine)
    return _tables[path]


def entries_of(path: str) -> Dict[str, Dict[str, Any]]:
    """The entries of a file, by choice and subject; none if it is not what was written."""
    document = _document(path)
    return {} if document is None else document["entries"]


def _document(path: str) -> Optional[Dict[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        return document if document["checksum"] == _checksum(document["entries"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _checksum(entries: Any) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def kept() -> Iterator[Tuple[str, Optional[str], Dict[str, Dict[str, Any]]]]:
    """All tables on disk: path, machine (None if the file is damaged), and entries."""
    folder = store.directory()
    for name in sorted(os.listdir(folder)):
        if name.startswith("tuned-") and name.endswith(".json"):
            path = os.path.join(folder, name)
            document = _document(path)
            yield path, None if document is None else document["machine"], {} if document is None else document["entries"]


def clear() -> int:
    """Remove all tables from the disk; returns how many.  This process keeps what it knows."""
    paths = [path for path, _, _ in kept()]
    for path in paths:
        with contextlib.suppress(FileNotFoundError):            # another process was faster
            os.unlink(path)
    return len(paths)
