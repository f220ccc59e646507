"""Machine code of kernels for GPUs.  A kernel is compiled once on a machine, and several processes compile what a program needs.

Kernels are compiled in *parts*: NVRTC takes longer to begin a text than to compile a small kernel.  A part is kept on disk, and for
each kernel the name of the part that it is in.
"""
from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .. import config
from ..threads.locks import lock
from . import nvrtc, store, team
from .announce import announce
from .device_kernels import Kernel, text_of
from .process import Process

#: Kernels for which one more process pays: it takes as long to begin as these take.
FEWEST = 8

#: Most processes: each takes some hundred megabytes of memory.
_MOST = 16

#: Seconds between two looks at a process that compiles.
_GLANCE = 0.005

#: One program after the other: the second one finds what the first one has made.
_lock = lock()


class Part(NamedTuple):
    """Machine code that is loaded together, and which of the wanted kernels are in it."""

    cubin: bytes
    names: Tuple[str, ...]


def parts(kernels: Sequence[Kernel], architecture: str) -> List[Part]:
    """The machine code of kernels for one architecture: that of earlier programs and processes, or new.

    Raises `nvrtc.NvrtcRefused` and `nvrtc.NoNvrtc`.
    """
    with _lock:
        common = _common(architecture)
        found = _kept(kernels, common)
        names = {name for part in found for name in part.names}
        missing = [kernel for kernel in dict.fromkeys(kernels) if kernel.name not in names]
        if missing:
            found += _made(missing, architecture, common)
        return found


def _common(architecture: str) -> str:
    """What the machine code of all kernels depends on besides their texts."""
    return hashlib.sha256(repr((nvrtc.options(architecture), nvrtc.version(), nvrtc.headers(), text_of([]))).encode()).hexdigest()


def _key(texts: Sequence[str], common: str) -> str:
    return hashlib.sha256("\0".join([common, *texts]).encode()).hexdigest()


def _entry(kernel: Kernel, common: str) -> str:
    """The key of the name of the part that has a kernel.  Not a bare hash: the store would look at its size after some of them."""
    return f"kernel-{_key([kernel.text], common)}"


def _kept(kernels: Sequence[Kernel], common: str) -> List[Part]:
    """The parts on disk that have some of the kernels."""
    members: Dict[str, List[str]] = {}
    for kernel in kernels:
        part = store.text(_entry(kernel, common))
        if part is not None:
            members.setdefault(part.decode(), []).append(kernel.name)
    found = [(store.body(part), names) for part, names in members.items()]
    return [Part(cubin, tuple(names)) for cubin, names in found if cubin is not None]


def _made(kernels: Sequence[Kernel], architecture: str, common: str) -> List[Part]:
    """New parts: one, or one for each process."""
    shares = _shares(kernels, min(team.wanted(), _MOST, len(kernels) // FEWEST))
    found = []
    for share, cubin in zip(shares, _compiled([text_of(share) for share in shares], architecture)):
        part = _key([kernel.text for kernel in share], common)
        try:
            store.fetch(part, lambda path: _write(path, cubin))                             # noqa: B023  called at once
        except OSError as reason:
            announce("store", f"compiled kernels are not kept on disk: {reason}; name another directory in DY2STATIC_CACHE_DIR")
        else:
            for kernel in share:
                store.keep_text(_entry(kernel, common), part.encode())
        found.append(Part(cubin, tuple([kernel.name for kernel in share])))
    return found


def _write(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


def _shares(kernels: Sequence[Kernel], count: int) -> List[List[Kernel]]:
    """The kernels in so many shares, at least one, of about as much text each."""
    shares: List[List[Kernel]] = [[] for _ in range(max(1, count))]
    sizes = [0] * len(shares)
    for kernel in sorted(kernels, key=lambda kernel: -len(kernel.text)):
        least = sizes.index(min(sizes))
        shares[least].append(kernel)
        sizes[least] += len(kernel.text)
    return shares


def _compiled(texts: Sequence[str], architecture: str) -> List[bytes]:
    """The machine code of each text: the first one is compiled here, and each other one by a process of its own.

    Where a process does not begin or does not succeed, its text is compiled here: that says what is wrong.
    """
    others = [_Other(text, architecture) for text in texts[1:]]
    try:
        found = [nvrtc.machine_code(texts[0], architecture).cubin]
        for other, text in zip(others, texts[1:]):
            found.append(other.result() or nvrtc.machine_code(text, architecture).cubin)
        return found
    finally:
        for other in others:
            other.stop()


class _Other:
    """A process that compiles a text, where one can be started."""

    def __init__(self, text: str, architecture: str):
        self._draft: Optional[store.Draft] = None
        self._process: Optional[Process] = None
        try:
            self._draft = store.Draft("kernels")
            self._process = nvrtc.started(text, architecture, self._draft.path)
        except OSError:
            self.stop()

    def result(self) -> bytes:
        """What it has made, when it has ended; nothing where it did not succeed, or takes too long."""
        if self._process is None or self._draft is None:
            return b""
        until = time.monotonic() + float(config.CC_SECONDS.value)
        while not self._process.is_over():
            if time.monotonic() > until:
                return b""
            time.sleep(_GLANCE)
        status, _ = self._process.result()
        self._process = None
        return b"" if status else Path(self._draft.path).read_bytes()

    def stop(self) -> None:
        """End it, if it has not ended, and remove what it has written."""
        if self._process is not None:
            self._process.stop()
            self._process = None
        if self._draft is not None:
            self._draft.discard()
            self._draft = None
