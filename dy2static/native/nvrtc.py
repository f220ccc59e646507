"""NVRTC, NVIDIA's compiler for GPUs as a library: from CUDA C to machine code.  It needs no GPU.

It is in the wheel ``nvidia-cuda-nvrtc``, or on the system.  The headers of this package can be included by their names.
"""
from __future__ import annotations

import ctypes
import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Sequence, Tuple

from ..compat.cuda import wheel_libraries
from ..errors import BackendError
from . import store
from .announce import announce
from .compiler import Refused

_INCLUDE = Path(__file__).with_name("include")
HEADERS = ("dy2static_math.h", "dy2static_device.h", "dy2static_philox.h")

#: Functions are for the device if they say nothing else; a function that nothing calls is no warning.
_OPTIONS = ("--std=c++17", "-default-device", "-diag-suppress=177", "--fmad=true")


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


@functools.lru_cache(maxsize=None)
def _library() -> Optional[Any]:
    """NVRTC, of a wheel or of the system; None where there is none."""
    for builtins in wheel_libraries("nvrtc-builtins.so.*"):          # NVRTC opens it by its name alone, wherever it is
        ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
    for path in (*wheel_libraries("nvrtc.so.*"), "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def available() -> bool:
    """Whether there is an NVRTC."""
    return _library() is not None


def _loaded() -> Any:
    library = _library()
    if library is None:
        raise NoNvrtc("there is no NVRTC", hint="python -m pip install nvidia-cuda-nvrtc")
    return library


def version() -> Tuple[int, int]:
    """The version of NVRTC, (13, 0).  Raises `NoNvrtc`."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_loaded().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def cubin(text: str, architecture: str) -> bytes:
    """The machine code of a text for one architecture: that of an earlier process, or new.  Raises as `machine_code`."""
    parts = [text, architecture, *_OPTIONS, str(version()), *[(_INCLUDE / name).read_text() for name in HEADERS]]
    key = "kernels-" + hashlib.sha256("\0".join(parts).encode()).hexdigest()
    found = store.body(key)
    if found is None:
        made = found = machine_code(text, architecture).cubin
        try:
            store.fetch(key, lambda path: _write(path, made))
        except OSError as reason:
            announce("store", f"compiled kernels are not kept on disk: {reason}; name another directory in DY2STATIC_CACHE_DIR")
    return found


def _write(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


def machine_code(text: str, architecture: str = "sm_90", options: Sequence[str] = ()) -> MachineCode:
    """The machine code of a text for one architecture.  Raises `NvrtcRefused` and `NoNvrtc`."""
    library, program, size = _loaded(), ctypes.c_void_p(), ctypes.c_size_t()
    contents = [(_INCLUDE / name).read_bytes() for name in HEADERS]
    _check(library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", len(HEADERS), _strings(contents),
                                      _strings([name.encode() for name in HEADERS])))
    try:
        flags = [flag.encode() for flag in (f"-arch={architecture}", *_OPTIONS, *options)]
        status = library.nvrtcCompileProgram(program, len(flags), _strings(flags))
        _check(library.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
        log = ctypes.create_string_buffer(size.value)
        _check(library.nvrtcGetProgramLog(program, log))
        said = log.value.decode("utf-8", "replace")
        if status:
            raise NvrtcRefused(said)
        _check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        cubin = ctypes.create_string_buffer(size.value)
        _check(library.nvrtcGetCUBIN(program, cubin))
        return MachineCode(cubin.raw, said)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _strings(texts: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * len(texts))(*texts)


def _check(status: int) -> None:
    if status:
        raise BackendError(f"NVRTC reports error {status}")
