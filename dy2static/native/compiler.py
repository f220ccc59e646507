"""The only use of the system's C compiler: from text to a loaded library, through the store on disk."""
from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shlex
import shutil
import sys
import threading
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

from .. import config
from . import cpus, library, shipped, store
from .announce import announce
from .failures import BuildFailed, NoCompiler, Refused
from .process import Process

INCLUDE = Path(__file__).parent / "include"

# No contraction: a * b + c is rounded twice, as NumPy does it; what wants fma says so.  Nothing lets the compiler
# suppose that there are no NaNs or that sums may be reordered: `#pragma omp simd reduction` says where they may.
# Headers of the compiler cost more than all flags together (immintrin.h 190 ms): texts use builtins.
FLAGS = ("-std=gnu11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-fno-strict-aliasing",
         "-fopenmp-simd", "-fPIC", "-shared", "-w",
         # what is Python's is found when the library is loaded; only Apple's linker has to be told
         *(("-Wl,-undefined,dynamic_lookup",) if sys.platform == "darwin" else ()))
_MOST = max(2, os.cpu_count() or 1)     # compilers at a time, besides those that are waited for
_GLANCE = 0.002             # between two looks at what another process makes
_PUBLISHED = 1.0            # how soon a process puts a library into the store whose compiler has ended, unless it waits itself

_built: Dict[str, "Build"] = {}
_running: List["Build"] = []         # whose compilers run
_queued: List["Build"] = []          # which come next
_worked: Set["Compiler"] = set()     # those that have made something
_hung: Set["Compiler"] = set()       # those that had time and made nothing: they are not waited for again


class Compiler(NamedTuple):
    """A compiler: its command, and what distinguishes its version from others."""

    command: Tuple[str, ...]
    identity: str

    def start(self, source: str, output: str, flags: Tuple[str, ...] = FLAGS, held: Optional[Tuple[int, str]] = None) -> Process:
        """A process that writes a shared object.  held: an open file that it keeps, and its path.  Raises OSError."""
        return Process([*self.command, *flags, "-I", str(INCLUDE), "-x", "c", "-", "-o", output, "-lm"], source, output, held)


def compiler() -> Compiler:
    """The compiler of ``DY2STATIC_CC``, or else the first of cc, gcc, clang.  Raises `NoCompiler`."""
    wanted = str(config.CC.value)
    try:
        found = _find(wanted)
    except ValueError as reason:
        raise NoCompiler(f"DY2STATIC_CC is no command of a shell: {wanted} ({reason})",
                         hint="quote it as in a shell, or leave it empty") from None
    if found is None:
        raise NoCompiler(f"there is no C compiler ({wanted or 'cc, gcc or clang'})",
                         hint="install one, or name it in DY2STATIC_CC")
    missing = cpus.lacking()
    if missing:
        raise NoCompiler(f"DY2STATIC_MARCH={cpus.march()} is more than this CPU has: {missing} is missing",
                         hint="name a lower level, or none")
    if found in _hung:
        raise NoCompiler(_took_too_long(found), hint=_MORE_TIME)
    return found


def available() -> bool:
    """Whether there is a C compiler, or code that needs none; where not, this is announced once."""
    try:
        compiler()
    except NoCompiler as reason:
        if shipped.are_there():
            return True
        # a compiler that takes too long is announced when it has
        announce("build" if reason.hint == _MORE_TIME else "compiler", f"programs run on NumPy: {reason.args[0]}; {reason.hint}")
        return False
    return True


def build(source: str, flags: Tuple[str, ...] = ()) -> library.Library:
    """The library that a C text compiles to: from this process, from the disk, or compiled now.

    flags: what this text needs besides `FLAGS`.  The same text gives the same library, with the same static variables.
    Raises `NoCompiler` or `BuildFailed`.
    """
    return start(source, flags).library()


def start(source: str, flags: Tuple[str, ...] = ()) -> "Build":
    """`build` without waiting.  Raises `NoCompiler`."""
    flags = _all_flags(flags)
    name = shipped.name_of(_parts(source, flags)) if shipped.are_wanted() else ""
    try:
        maker = compiler()
    except NoCompiler:
        if not shipped.has(name):
            raise
        maker = Compiler((), "none")            # libraries of a saved model need no compiler
    key = key_of(source, maker, flags)
    for running in list(_running):              # these may not be asked for again
        running.ready()
    # another thread may have been faster: there is one library for each text
    made = _built.get(key) or _built.setdefault(key, Build(key, source, maker, flags, name))
    made.ready()
    shipped.note(name, made)
    return made


class Build:
    """The library of one text: finished, or being compiled by another process.

    made: the library, once it has been loaded.  name: that of a file with it that may have come with a saved model.
    """

    def __init__(self, key: str, source: str, maker: Compiler, flags: Tuple[str, ...], name: str = ""):
        self.key, self._source, self._maker, self._flags, self._name = key, source, maker, flags, name
        self.made: Optional[library.Library] = None
        self._path: Optional[str] = None
        self._failed: Optional[BuildFailed] = None
        self._forget()

    def _forget(self) -> None:
        """Start over: no compiler runs for it in this process."""
        self._owner, self._lock = os.getpid(), threading.RLock()
        self._process: Optional[Process] = None
        self._draft: Optional[store.Draft] = None
        self._until = 0.0
        self._others_until = 0.0                # 0: no other process makes it
        self._alone_from = 0.0                  # from then on, whether another process makes it does not matter

    def _leave_to_parent(self) -> None:
        """Forget the compiler after a fork: it is not a child of this process."""
        if self._process is not None:
            self._process.leave()
        self._over()
        self._forget()

    def ready(self) -> bool:
        """Whether `library` has nothing to wait for.  Begins to make the library where no process does."""
        if self.made is not None:
            return True
        if self._owner != os.getpid():
            self._leave_to_parent()
        if not self._lock.acquire(blocking=False):
            return False                        # another thread waits for it
        try:
            return self._advance(0)
        finally:
            self._lock.release()

    def library(self) -> library.Library:
        """The library.  Raises `BuildFailed`."""
        self.ready()
        while self.made is None:
            with self._lock:
                done = self._advance(float(config.CC_SECONDS.value))
                if self._failed is not None:
                    _built.pop(self.key, None)  # the next one tries again
                    raise self._failed
                if done and self.made is None:
                    self._load()
        return self.made

    def _load(self) -> None:
        assert self._path is not None
        try:
            self.made = library.load(self._path)
        except OSError as reason:
            if os.path.exists(self._path):
                self._failed = self._useless(reason)
            self._path = None                   # another process has removed it meanwhile: it is made again

    def _advance(self, seconds: float) -> bool:
        """Make progress for so many seconds at most.  Returns whether the library is finished, or has failed."""
        try:
            while self._path is None and self._failed is None:
                if self._process is None:
                    self._path = store.find(self.key) or shipped.fetch(self._name)
                    if self._path is not None:
                        break
                    if not seconds and len(_running) >= _MOST:
                        _queued.extend([self] if self not in _queued else [])
                        return False
                    if not self._begin():
                        if not seconds:
                            return False
                        time.sleep(_GLANCE)
                elif not self._finish(seconds):
                    return False
        except OSError as reason:
            self._failed = self._useless(reason)
        return True

    def _begin(self) -> bool:
        """Start a compiler, unless another process makes the library.  Returns whether that is not so."""
        if self._maker in _hung:
            self._failed = BuildFailed(_took_too_long(self._maker), hint=_MORE_TIME)
            return True
        claim, now = store.Claim(self.key), time.monotonic()
        mine = claim.take()
        self._alone_from = self._alone_from or now + float(config.CC_SECONDS.value)
        late = now >= self._alone_from          # who started the other compiler may never look whether it takes too long
        if not mine:
            self._others_until = now + _PUBLISHED
        try:
            if mine:                            # another process may have ended between the look for the library and the claim
                self._path = store.find(self.key)
                if self._path is not None:
                    return True
            if not late and (not mine or now < self._others_until):
                return False                    # the library is about to appear
            self._draft = store.Draft(self.key, claim if mine else None)
            try:
                # the compiler holds the claim: whatever this process does meanwhile, others do not wait longer
                self._process = self._maker.start(self._source, self._draft.path, self._flags, claim.held)
            except OSError as reason:
                self._draft.discard()
                self._failed = BuildFailed(f"{shlex.join(self._maker.command)} does not run: {reason}")
                return True
        finally:
            if mine and self._process is None:
                claim.remove()                  # nobody would: only who builds a library removes the file
            claim.release()
        self._until = time.monotonic() + float(config.CC_SECONDS.value)
        _running.append(self)
        return True

    def _finish(self, seconds: float) -> bool:
        """Load what the compiler has written.  Returns whether it has ended."""
        process, draft = self._process, self._draft
        assert process is not None and draft is not None
        until = min(self._until, time.monotonic() + seconds)
        while not process.is_over():
            if time.monotonic() >= self._until:
                self.stop()
                self._failed = BuildFailed(_took_too_long(self._maker), hint=_MORE_TIME)
                if self._maker not in _worked:
                    _hung.add(self._maker)
                return True
            if time.monotonic() >= until:
                return False
            process.wait(until - time.monotonic())
        status, words = process.result()
        self._over()
        if status:
            draft.discard()
            is_unknown = "-march=" in words and cpus.march() != "native"
            said = f":\n{words}" if words.strip() else f" without a message (exit status {status})"
            self._failed = Refused(f"{shlex.join(self._maker.command)} refused the text{said}",
                                   hint=f"DY2STATIC_MARCH={cpus.march()} is no CPU that this compiler knows" if is_unknown else
                                   "name another compiler, or other flags, in DY2STATIC_CC")
        else:
            _worked.add(self._maker)
            self._path = draft.publish()
        with contextlib.suppress(IndexError):   # none is queued, or another thread was faster
            _queued.pop(0).ready()
        return True

    @property
    def is_compiling(self) -> bool:
        """Whether a compiler of this process works for it."""
        process = self._process
        return process is not None and not process.is_over()

    def stop(self) -> None:
        """Stop the compiler, if one runs for this process."""
        process, draft = self._process, self._draft
        if process is not None and draft is not None and self._owner == os.getpid():
            process.stop()
            self._over()
            draft.discard()

    def _over(self) -> None:
        """Note that the compiler has ended."""
        self._process = None
        if self in _running:
            _running.remove(self)

    def _useless(self, reason: OSError) -> BuildFailed:
        return BuildFailed(f"what {shlex.join(self._maker.command)} made cannot be used: {reason}")


def _took_too_long(maker: Compiler) -> str:
    return f"{shlex.join(maker.command)} takes more than {config.CC_SECONDS.value} seconds"


_MORE_TIME = "DY2STATIC_CC_SECONDS is how long it may take"


@atexit.register
def _stop() -> None:
    _queued.clear()
    for making in list(_running):
        making.stop()


def are_busy() -> bool:
    """Whether the compilers of this process leave no processor free besides the one that the process itself needs."""
    return sum([making.is_compiling for making in list(_running)]) >= max(1, cpus.cores() - 1)


def built() -> Tuple[library.Library, ...]:
    """The libraries of this process."""
    return tuple([made.made for made in _built.values() if made.made is not None])


def is_kept(source: str, flags: Tuple[str, ...] = ()) -> bool:
    """Whether `build` would find the library in this process or on disk.  Raises `NoCompiler`."""
    key = key_of(source, compiler(), _all_flags(flags))
    known = _built.get(key)
    return known is not None and known.made is not None or store.has(key)


def key_of(source: str, maker: Compiler, flags: Tuple[str, ...] = FLAGS) -> str:
    """The hash of everything that decides what the library is: text, headers, compiler, flags, CPU."""
    return shipped.name_of((*_parts(source, flags), shlex.join(maker.command), maker.identity))


def _parts(source: str, flags: Tuple[str, ...]) -> Tuple[str, ...]:
    """The hash of what determines the results of a library, whichever compiler makes it."""
    return source, _headers(), " ".join(flags), cpus.identity()


def _all_flags(flags: Tuple[str, ...]) -> Tuple[str, ...]:
    return (*FLAGS, f"-march={cpus.march()}", *_vectors(), *flags)


def _vectors() -> Tuple[str, ...]:
    """Vectors of 512 bits where there are some: left to itself gcc takes half of them, also on CPUs that do not slow down."""
    return ("-mprefer-vector-width=512",) if cpus.has_long_vectors() else ()


@functools.lru_cache(maxsize=None)
def _find(wanted: str) -> Optional[Compiler]:
    for candidate in ([wanted] if wanted else ["cc", "gcc", "clang"]):
        command = shlex.split(candidate)
        path = shutil.which(command[0]) if command else None
        if path is not None:
            # asking for the version would start a process; an update changes the file
            real = os.path.realpath(path)
            seen = os.stat(real)
            return Compiler((path, *command[1:]), f"{real} {seen.st_size} {seen.st_mtime_ns}")
    return None


@functools.lru_cache(maxsize=None)
def _headers() -> str:
    digest = hashlib.sha256()
    for path in sorted(INCLUDE.glob("*.h")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
