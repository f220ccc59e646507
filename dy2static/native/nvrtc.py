"""NVRTC, NVIDIA's compiler for GPUs as a library: from CUDA C to machine code.  It needs no GPU.

It is in the wheel ``nvidia-cuda-nvrtc``, or on the system.  The headers of this package can be included by their names.
"""
from __future__ import annotations

import ctypes
import functools
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from ..compat.cuda import wheel_libraries
from ..errors import BackendError
from . import nvrtc_calls
from .failures import Refused
from .process import Process

_INCLUDE = Path(__file__).with_name("include")
HEADERS = ("dy2static_math.h", "dy2static_device.h", "dy2static_philox.h")

#: Functions are for the device if they say nothing else; a function that nothing calls is no warning.  ``a * b + c`` is rounded
#: twice, as on the host: a value has the same bits in each kernel that computes it.
_OPTIONS = ("--std=c++17", "-default-device", "-diag-suppress=177", "--fmad=false")

#: Leaves out what kernels do not use (textures, functions of CUDA's runtime), which takes a tenth of the time; CUDA 12.4 has it.
_MINIMAL, _HAS_MINIMAL = "-minimal", (12, 4)


#: The names of Python's executables.
_PYTHON = re.compile(r"python[\d.]*(\.exe)?$")


class NoNvrtc(BackendError):
    """There is no NVRTC that can be loaded."""


class NvrtcRefused(Refused):
    """NVRTC does not take a text; its messages are in ``log``."""

    def __init__(self, log: str):
        self.log = log
        errors = [line for line in log.splitlines() if "error" in line] or log.splitlines()
        super().__init__(f"NVRTC does not compile what was generated: {errors[0] if errors else 'it does not say why'}")


@dataclass(frozen=True)
class MachineCode:
    """What NVRTC made of a text: machine code of one architecture, and what it says about it."""

    cubin: bytes
    log: str


class _Found(NamedTuple):
    """NVRTC, and the files that it was loaded from, in their order."""

    library: Any
    paths: Tuple[str, ...]


@functools.lru_cache(maxsize=None)
def _library() -> Optional[_Found]:
    """NVRTC, of a wheel or of the system; None where there is none."""
    before = tuple(wheel_libraries("nvrtc-builtins.so.*"))
    for path in (*wheel_libraries("nvrtc.so.*"), "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            return _Found(nvrtc_calls.loaded((*before, path)), (*before, path))
        except OSError:
            continue
    return None


def available() -> bool:
    """Whether there is an NVRTC."""
    return _library() is not None


def _loaded() -> _Found:
    found = _library()
    if found is None:
        raise NoNvrtc("there is no NVRTC", hint="python -m pip install nvidia-cuda-nvrtc")
    return found


def version() -> Tuple[int, int]:
    """The version of NVRTC, (13, 0).  Raises `NoNvrtc`."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    status = _loaded().library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    if status:
        raise BackendError(f"NVRTC reports error {status}")
    return major.value, minor.value


def options(architecture: str) -> Tuple[str, ...]:
    """The options for one architecture."""
    return (f"-arch={architecture}", *_OPTIONS, *((_MINIMAL,) if version() >= _HAS_MINIMAL else ()))


@functools.lru_cache(maxsize=None)
def headers() -> Dict[str, bytes]:
    """The contents of the headers that texts may include."""
    return {name: (_INCLUDE / name).read_bytes() for name in HEADERS}


def machine_code(text: str, architecture: str = "sm_90", more: Sequence[str] = ()) -> MachineCode:
    """The machine code of a text for one architecture.  more: options.  Raises `NvrtcRefused` and `NoNvrtc`."""
    answer = nvrtc_calls.compiled(_loaded().library, text.encode(), headers(), (*options(architecture), *more))
    if answer.status:
        raise NvrtcRefused(answer.log or f"NVRTC reports error {answer.status}")
    return MachineCode(answer.cubin, answer.log)


def started(text: str, architecture: str, output: str) -> Process:
    """A process of its own that writes the machine code of a text to a file.  Raises `NoNvrtc`, and OSError if there is no process.

    Threads would not help: NVRTC does one thing at a time in a process.  In an application that Python is a part of, there is no
    process: its executable would start the application once more.
    """
    if getattr(sys, "frozen", False) or not _PYTHON.match(Path(sys.executable or "none").name):
        raise OSError(f"{sys.executable} is no Python")
    return Process([sys.executable, "-I", "-S", nvrtc_calls.__file__, output, str(_INCLUDE), ",".join(HEADERS),
                    ",".join(options(architecture)), *_loaded().paths], text, output)
