"""The door to the system's C compiler: text to a loaded library, through the store on disk."""
from __future__ import annotations

import functools
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, NamedTuple, Optional, Tuple

from .. import config
from ..errors import BackendError
from . import library, store
from .announce import announce

INCLUDE = Path(__file__).parent / "include"

# No contraction: a * b + c is rounded twice, as NumPy does it; what wants fma says so.  Nothing lets the compiler
# suppose that there are no NaNs or that sums may be reordered: `#pragma omp simd reduction` says where they may.
# Headers of the compiler cost more than all flags together (immintrin.h 190 ms): texts use builtins.
FLAGS = ("-std=gnu11", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-fno-strict-aliasing",
         "-fopenmp-simd", "-fPIC", "-shared", "-w",
         # what is Python's is found when the library is loaded; only Apple's linker has to be told
         *(("-Wl,-undefined,dynamic_lookup",) if sys.platform == "darwin" else ()))
SECONDS = 120               # longer than any text of ours takes; a compiler that hangs must not hang the user

_CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags",
               "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features")
_built: Dict[str, library.Library] = {}


class NoCompiler(BackendError):
    """There is no C compiler on this machine."""

    code = "D2S402"


class BuildFailed(BackendError):
    """The compiler refused a text, or what it made cannot be loaded."""

    code = "D2S403"


class Compiler(NamedTuple):
    """A compiler: how it is called, and what tells it from its other versions."""

    command: Tuple[str, ...]
    identity: str

    def compile(self, source: str, output: str, flags: Tuple[str, ...] = FLAGS) -> None:
        """Write a shared object.  Raises `BuildFailed` with what the compiler said."""
        command = [*self.command, *flags, "-I", str(INCLUDE), "-x", "c", "-", "-o", output, "-lm"]
        try:
            done = subprocess.run(command, input=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
                                  encoding="utf-8", errors="replace")
        except (OSError, subprocess.SubprocessError) as reason:
            raise BuildFailed(f"{shlex.join(self.command)} does not run: {reason}") from reason
        if done.returncode:
            raise BuildFailed(f"{shlex.join(self.command)} refused the text:\n{done.stdout[:2000]}")


def compiler() -> Compiler:
    """The compiler of ``DY2STATIC_CC``, or else the first of cc, gcc, clang.  Raises `NoCompiler`."""
    found = _find(str(config.CC.value))
    if found is None:
        wanted = config.CC.value or "cc, gcc or clang"
        raise NoCompiler(f"there is no C compiler ({wanted})", hint="install one, or name it in DY2STATIC_CC")
    return found


def available() -> bool:
    """Whether there is a C compiler; where not, this is announced once."""
    try:
        compiler()
    except NoCompiler as reason:
        announce("compiler", f"programs run on NumPy: {reason.args[0]}; {reason.hint}")
        return False
    return True


def build(source: str, flags: Tuple[str, ...] = ()) -> library.Library:
    """The library that a C text compiles to: from this process, from the disk, or made now.

    flags: what this text needs besides `FLAGS`.  The same text gives the same library, with the same static variables.
    Raises `NoCompiler` or `BuildFailed`.
    """
    maker, flags = compiler(), FLAGS + flags
    key = key_of(source, maker, flags)
    known = _built.get(key)
    if known is not None:
        return known
    try:
        path = store.fetch(key, lambda output: maker.compile(source, output, flags))
        # another thread may have been faster: there is one library for each text
        return _built.setdefault(key, library.load(path))
    except OSError as reason:
        raise BuildFailed(f"what {shlex.join(maker.command)} made cannot be used: {reason}") from reason


def built() -> Tuple[library.Library, ...]:
    """The libraries of this process."""
    return tuple(_built.values())


def is_kept(source: str, flags: Tuple[str, ...] = ()) -> bool:
    """Whether `build` would find the library in this process or on disk.  Raises `NoCompiler`."""
    key = key_of(source, compiler(), FLAGS + flags)
    return key in _built or store.has(key)


def key_of(source: str, maker: Compiler, flags: Tuple[str, ...] = FLAGS) -> str:
    """The hash of everything that decides what the library is: text, headers, compiler, flags, CPU."""
    parts = (source, _headers(), shlex.join(maker.command), maker.identity, " ".join(flags), cpu_identity())
    return hashlib.sha256("\0".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()


@functools.lru_cache(maxsize=None)
def cpu_identity() -> str:
    """The model and the instruction sets of the CPU, which ``-march=native`` means."""
    fields = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if not line.strip():
                    break               # the first processor stands for all
                if name.strip() in _CPU_FIELDS:
                    fields[name.strip()] = value.strip()
    except OSError:
        fields["processor"] = platform.processor()
    return f"{platform.system()} {platform.machine()} {sorted(fields.items())}"


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
