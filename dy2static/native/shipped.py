"""Native code that comes with saved models: which file is the library of which text, and what is stored beside a model.

A file is named by the hash of the text it was made from, the flags and the CPU: where one of these differs, it is never asked for,
and the text is compiled.  Who trusts a folder lets code from it run: nothing is taken that `trust` was not told of.
"""
from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from . import store

_trusted: Dict[str, bytes] = {}
_folders: Dict[int, str] = {}       # by process
_recording: List[Dict[str, Any]] = []


def name_of(parts: Sequence[str]) -> str:
    """One hash of several texts; no two sequences of texts have the same."""
    return hashlib.sha256("\0".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


def are_there() -> bool:
    """Whether there is code that needs no compiler."""
    return bool(_trusted)


def are_wanted() -> bool:
    """Whether the names of libraries are being recorded."""
    return bool(_trusted or _recording)


def has(name: str) -> bool:
    """Whether there is a library of this name."""
    return name in _trusted


def trust(libraries: Mapping[str, bytes]) -> None:
    """From now on use these libraries, by their names, instead of compiling them."""
    _trusted.update(libraries)


def fetch(name: str) -> Optional[str]:
    """A file with the library of this name; None where there is none.  Raises OSError.

    It is this process's alone: who has not asked for code of this folder does not find it in the store.
    """
    if name not in _trusted:
        return None
    folder = _folders.get(os.getpid()) or _folders.setdefault(os.getpid(), store.temporary_folder())
    path = os.path.join(folder, f"{name}.so")
    if not os.path.exists(path):
        handle, draft = tempfile.mkstemp(dir=folder)
        with open(handle, "wb") as file:
            file.write(_trusted[name])
        os.replace(draft, path)             # whole, or not there: another thread may look for it
    return path


def contents_of(name: str) -> Optional[bytes]:
    """The trusted library of this name; None if there is none."""
    return _trusted.get(name)


@contextlib.contextmanager
def recorded() -> Iterator[Dict[str, Any]]:
    """Record the libraries that are asked for in the block: their `Build`s, by file name."""
    builds: Dict[str, Any] = {}
    _recording.append(builds)
    try:
        yield builds
    finally:
        _recording.remove(builds)


def note(name: str, build: Any) -> None:
    """Note a library that was asked for, where that is recorded."""
    for builds in _recording:
        builds[name] = build
