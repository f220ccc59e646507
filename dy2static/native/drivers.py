"""NVIDIA's driver and libraries of products as the launcher calls them: a table of their functions, contexts and handles.

CuPy has loaded what is asked for here; nothing of CuPy is used.  No test runs this on a GPU.
"""
from __future__ import annotations

import ctypes
import functools
from typing import Any, Dict, Optional, Tuple

from .. import config
from ..compat.cuda import wheel_libraries
from ..errors import BackendError
from . import launcher
from .announce import announce

#: CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_MULTIPROCESSORS = 16


class NoDriver(BackendError):
    """There is no driver that can be called."""


@functools.lru_cache(maxsize=None)
def _driver() -> Any:
    """libcuda.  Raises `NoDriver`."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as reason:
        raise NoDriver(f"the driver cannot be called: {reason}") from None


@functools.lru_cache(maxsize=None)
def products(major: int, name: str = "cublas") -> Optional[Any]:
    """cuBLAS for a major version of CUDA: the one that is loaded, else that of a wheel; None where there is none.

    name: "cublasLt" is the library that finishes products; cuBLAS itself needs it, too.
    """
    for path in (f"lib{name}.so.{major}", *wheel_libraries(f"{name}.so.{major}")):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


@functools.lru_cache(maxsize=None)
def table(major: int) -> Any:
    """The functions of libcuda and cuBLAS for the launcher.  Raises `NoDriver`."""
    found: Dict[str, int] = {}
    for loaded in (_driver(), products(major), products(major, "cublasLt")):
        for name in launcher.functions():
            function = getattr(loaded, name, None)
            if function is not None:
                found[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return launcher.table_of(found)


def context(number: int) -> int:
    """The primary context of a device, which CUDA's runtime uses, too; it is kept until the process ends.  Raises `NoDriver`."""
    device, found = ctypes.c_int(), ctypes.c_void_p()
    for status in (_driver().cuDeviceGet(ctypes.byref(device), number),
                   _driver().cuDevicePrimaryCtxRetain(ctypes.byref(found), device)):
        if status:
            raise NoDriver(f"the driver reports error {status} for device {number}")
    return found.value or 0


def recorder() -> int:
    """A new stream for recording graphs on the current device; 0 where the driver has no graphs, which is announced once.

    It does not wait for the default stream, nor the other way round (CU_STREAM_NON_BLOCKING).
    """
    needed = [name for name in launcher.functions() if name.startswith(("cuGraph", "cuStream")) and name not in launcher.FOR_LOOPS]
    lacking = [name for name in needed if not hasattr(_driver(), name)]
    if lacking:
        announce("graphs", f"kernels are launched one by one: the driver is older than CUDA 12 and has no {lacking[0]}")
        return 0
    stream = ctypes.c_void_p()
    status = _driver().cuStreamCreate(ctypes.byref(stream), 1)
    if status:
        announce("graphs", f"kernels are launched one by one: a stream for CUDA graphs cannot be made (error {status})")
    return stream.value or 0


def products_handle(major: int) -> int:
    """A new handle of cuBLAS for the current device; 0 where there is no cuBLAS, or none for this device."""
    library, handle = products(major), ctypes.c_void_p()
    if library is None or library.cublasCreate_v2(ctypes.byref(handle)):
        return 0
    return handle.value or 0


def identity(number: int, major: int) -> str:
    """What decides which algorithms there are, and how fast: the device, its driver, cuBLAS, and whether TF32 is forced.

    "": one of them does not say what it is.
    """
    device, name, cores, version = ctypes.c_int(), ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_int()
    loaded = products(major, "cublasLt")
    try:
        driver = _driver()
    except NoDriver:
        return ""
    if loaded is None or any((
            driver.cuDeviceGet(ctypes.byref(device), number), driver.cuDeviceGetName(name, len(name), device),
            driver.cuDeviceGetAttribute(ctypes.byref(cores), _MULTIPROCESSORS, device),
            driver.cuDriverGetVersion(ctypes.byref(version)))):
        return ""
    loaded.cublasLtGetVersion.restype = ctypes.c_size_t
    return (f"{name.value.decode(errors='replace')}, {cores.value} multiprocessors, driver {version.value}, "
            f"cublasLt {loaded.cublasLtGetVersion()}, TF32 {config.tf32_override()}")


def workspace_of(capability: Tuple[int, int]) -> int:
    """How many bytes cuBLAS uses itself on devices of a compute capability: 32 MiB from Hopper on, else 4 MiB."""
    return (32 if capability >= (9, 0) else 4) << 20
