"""CuPy's arrays: what they are, and the devices that they are on."""
from __future__ import annotations

import threading
from typing import Any, Hashable, Optional, Set, Tuple

from chainer.backends import cuda
from chainer.backends._cpu import CpuDevice

from ..ir.devices import ARRAYS, HOST, is_device_array, number_of

#: Libraries, as "cupy", for whose arrays there is a backend: the others run eagerly.
COMPILED: Set[str] = set()

#: What says where a thing is, as Chainer and CuPy have it: one never changes.
DEVICES = (cuda.GpuDevice, cuda.Device)

#: The pointer of the default stream of each thread (``cudaStreamPerThread``).
_DEFAULT_OF_THREAD = 2

#: The classes of ufuncs of libraries other than NumPy.
GPU_UFUNCS: Tuple[type, ...] = (cuda.cupy.ufunc,) if cuda.available else ()

#: The classes of kernels that users and Chainer write in CUDA.
KERNELS = tuple([kind for kind in [getattr(cuda.cupy, name, None) for name in ("ElementwiseKernel", "ReductionKernel", "RawKernel")]
                 if isinstance(kind, type)])

if cuda.available:
    ARRAYS[cuda.ndarray] = lambda array: f"cupy:{array.device.id}"


def on_host(value: Any) -> Any:
    """A copy on the host of an array of a GPU; anything else itself."""
    return value.get() if is_device_array(value) else value


def array_type(device: str) -> type:
    """The class of the arrays of a GPU."""
    kind: type = cuda.ndarray
    return kind


def array_module(device: str) -> Any:
    """The library of the arrays of a GPU, which is called as NumPy is."""
    return cuda.cupy


def current_device() -> int:
    """The number of the GPU that new arrays are made on."""
    number: int = cuda.cupy.cuda.runtime.getDevice()
    return number


def current_stream(number: int = -1) -> Hashable:
    """What tells CuPy's current stream from others.  Each thread has its own default stream, if CuPy is set up for that.

    number: that of the device; -1 for the current one.
    """
    pointer = cuda.cupy.cuda.get_current_stream(number).ptr
    return (pointer, threading.get_ident()) if pointer == _DEFAULT_OF_THREAD else pointer


def device_named(device: Any) -> Optional[str]:
    """The device in a graph for one of Chainer's; None for one of another kind."""
    if type(device) is cuda.GpuDevice:
        return f"cupy:{device.device.id}"
    return HOST if isinstance(device, CpuDevice) else None


def chainer_device(device: str) -> Any:
    """What Chainer calls a GPU."""
    return cuda.GpuDevice.from_device_id(number_of(device))
