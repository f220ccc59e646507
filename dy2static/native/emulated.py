"""An emulator of a GPU: CUDA C compiled for the processor by g++, a block as one fiber for each thread, arrays of NumPy's.

For checks without a GPU: it is thousands of times slower than one.  ``dy2static_emulated.h`` says what it finds.
"""
from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import re
import shutil
import time
from pathlib import Path
from typing import Any, ContextManager, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ..errors import BackendError
from . import launcher, store
from .background import Background
from .cudnn import Convolution, Cudnn, Mode, Plan, Timer, prepared
from .device import measuring
from .device_kernels import Kernel, text_of
from .launcher import Failure, Launcher, Place
from .process import Process

_INCLUDE = Path(__file__).with_name("include")
_HEADERS = ("dy2static_emulated.h", "dy2static_device.h", "dy2static_math.h", "dy2static_emulated_threads.h",
            "dy2static_emulated_driver.h", "dy2static_launch.h", "dy2static_emulated_cudnn.h", "dy2static_philox.h")
# In C++17 <cmath> declares special functions, which takes a quarter of the time of a kernel; what the headers use of it, g++ has.
_FLAGS = ("-std=gnu++14", "-O1", "-march=native", "-ffp-contract=off", "-fwrapv", "-fPIC", "-shared", "-w", "-I", str(_INCLUDE))

#: Bytes of memory for products.
_WORKSPACE = 1 << 14


class EmulationError(BackendError):
    """A kernel does what the emulator knows to be wrong."""


def missing() -> str:
    """Why kernels cannot be emulated; "" where they can."""
    return "" if shutil.which("g++") else "there is no g++ to compile kernels for the processor"


@functools.lru_cache(maxsize=None)
def _built(text: str) -> ctypes.CDLL:
    """The library of a text of C++.  Raises `BackendError` where g++ does not take it."""
    _load_threads()
    return ctypes.CDLL(_path(text))


def _path(text: str) -> str:
    """The file with the library of a text of C++."""
    parts = [text.encode(), repr(_FLAGS).encode(), *[(_INCLUDE / name).read_bytes() for name in _HEADERS]]
    return store.fetch("emulated-" + hashlib.sha256(b"\0".join(parts)).hexdigest(), functools.partial(_compile, text))


def emulated_cudnn() -> Any:
    """The functions of cuDNN that compute on the processor.  Raises `BackendError` where g++ does not compile them."""
    return prepared(_driver())


def _whole(text: str) -> str:
    """The text of kernels with a function around each that runs all its blocks."""
    names = re.findall(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", text)
    return f'#include "{_HEADERS[0]}"\n{text}\n' + "".join(f"DY_EMULATED({name})\n" for name in names)


def _compile(text: str, path: str) -> None:
    process = Process(["g++", *_FLAGS, "-x", "c++", "-", "-o", path], text, path)
    while not process.is_over():
        time.sleep(0.01)
    status, words = process.result()
    if status:
        raise BackendError(f"g++ does not compile the kernels:\n{words}")


class _State(ctypes.Structure):
    """``emulated::Device`` of the emulated driver."""

    _fields_ = (*[(name, ctypes.c_int64) for name in ("launched", "products", "order", "compute", "graphs", "patches", "replays",
                                                      "launch_status", "graph_status", "finished", "finish_status", "loses_nan",
                                                      "turns", "offered")],
                ("times", ctypes.c_int64 * 8), *[(name, ctypes.c_int64) for name in ("algorithm", "parts", "clock")],
                ("stream", ctypes.c_void_p), ("memory", ctypes.c_void_p), ("message", ctypes.c_char * 256))


def _driver() -> ctypes.CDLL:
    """The emulated driver, and cuDNN."""
    return _built('#include "dy2static_emulated_driver.h"\n#include "dy2static_emulated_cudnn.h"\n')


@functools.lru_cache(maxsize=None)
def _load_threads() -> None:
    """Load what runs the threads of kernels: libraries that are loaded later find its names."""
    ctypes.CDLL(_path('#include "dy2static_emulated_threads.h"\n'), ctypes.RTLD_GLOBAL)


def _table() -> ctypes.Array:
    """The table of functions of the emulated driver."""
    return (ctypes.c_void_p * len(launcher.functions())).in_dll(_driver(), "dy_emulated")


def _call(name: str, *arguments: Any) -> int:
    """Call a function of the emulated driver; gives its status."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(_table()[launcher.functions().index(name)])(*arguments))


class EmulatedDevice:
    """A device whose memory is this process's.

    order: in which threads and blocks run: 0 first to last, 1 last to first, others at random with that seed.
    launched, products: how many there were.  texts: what it was given to compile.  state: what the emulated driver knows of it.
    library: cuDNN's functions, as `emulated_cudnn` gives them, None: there is no cuDNN.  is_rounded, is_free: as `cudnn.Mode`.
    timer: measures algorithms of cuDNN.  identity: as that of `launcher.Launcher`.
    """

    def __init__(self, order: int = 0, library: Any = None, identity: str = ""):
        self._identity, self.order, self.state, self._python_products = identity, order, _State(order=order, offered=1), 0
        self.is_rounded, self.is_free = False, False
        self.timer: Optional[Timer] = None
        self._workspace = ctypes.create_string_buffer(_WORKSPACE)
        self.texts: List[str] = []
        self._cudnn = None if library is None else Cudnn(library, identity)

    @property
    def launched(self) -> int:
        """How many kernels were launched."""
        return int(self.state.launched)

    @property
    def products(self) -> int:
        """How many products, or stacks of them, were computed."""
        return int(self.state.products + self.state.finished) + self._python_products

    def prepare(self, kernels: Sequence[Kernel]) -> Background:
        """Begin to compile kernels."""
        return Background(lambda: _built(_whole(text_of(kernels))))

    def load(self, kernels: Sequence[Kernel]) -> Dict[str, Any]:
        """The functions of these kernels by their names.  Raises `BackendError`."""
        if not kernels:
            return {}
        self.texts.append(text_of(kernels))
        library = _built(_whole(self.texts[-1]))
        return {kernel.name: ctypes.addressof(ctypes.c_char.in_dll(library, f"kernel_of_{kernel.name}")) for kernel in kernels}

    def handle(self, function: Any) -> int:
        """What the emulated driver takes for a CUfunction."""
        return int(function)

    @functools.lru_cache(maxsize=None)                          # noqa: B019  devices live as long as the process
    def launcher(self) -> Optional[Launcher]:
        """What launches regions; None without a C compiler."""
        state = ctypes.addressof(self.state)                   # the context, the handle for products, and the recorder
        return launcher.made(lambda: Launcher(ctypes.addressof(_table()), state, state, _WORKSPACE, state, self._identity))

    def place(self, products: bool) -> Place:
        """The one stream."""
        modes = (7 << 8 if self.is_rounded else 0) | (launcher.FREE if self.is_free else 0) | measuring()
        return Place(0, ctypes.addressof(self._workspace), modes) if products else Place(0)

    def error(self, failure: Failure) -> Exception:
        """What the emulator has found, or the status."""
        return EmulationError(self.state.message.decode() or f"{failure.library} reports error {failure.status}")

    def launch(self, function: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        """Run all blocks of a kernel whose arguments are pointers, and numbers behind them.  Raises `EmulationError`."""
        values = [ctypes.c_void_p(int(argument)) for argument in arguments]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        _call("cuCtxSetCurrent", ctypes.byref(self.state))
        sizes = map(ctypes.c_uint, (blocks, 1, 1, threads, 1, 1, 0))
        status = _call("cuLaunchKernel", ctypes.c_void_p(function), *sizes, None, pointers, None)
        if status:
            raise self.error(Failure("driver", status, 0))

    def current(self) -> ContextManager[Any]:
        """There is only one."""
        return contextlib.nullcontext()

    def view(self, address: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array on memory that is there.  strides: in elements."""
        size = (1 + sum((n - 1) * s for n, s in zip(shape, strides))) * dtype.itemsize
        return np.ndarray(shape, dtype, (ctypes.c_char * size).from_address(address), 0, [s * dtype.itemsize for s in strides])

    def multiply(self, left: np.ndarray, right: np.ndarray, out: np.ndarray) -> None:
        """Write a product of matrices, or stacks of them."""
        self._python_products += 1
        np.matmul(left, right, out=out)

    def plan(self, convolution: Convolution) -> Optional[Plan]:
        """How the emulated cuDNN computes a convolution; None where it does not, and without it."""
        return None if self._cudnn is None else self._cudnn.plan(convolution, self.timer)

    def convolve(self, plan: Plan, operands: Sequence[int], workspace: int) -> None:
        """Compute a convolution.  operands: the addresses of the two operands and of the result.  Raises `cudnn.CudnnError`."""
        assert self._cudnn is not None, "a plan comes from cuDNN"
        self._cudnn.run(plan, 0, Mode(self.is_rounded, self.is_free), operands, workspace)

    def address(self, array: np.ndarray) -> int:
        """The address of the first element of an array."""
        return int(array.ctypes.data)

    def contiguous(self, array: Any) -> np.ndarray:
        """The array, or a copy whose elements stand in the order of memory."""
        array = np.asarray(array)
        return array if array.flags.c_contiguous and array.flags.aligned else np.array(array, order="C")

    def upload(self, array: np.ndarray) -> np.ndarray:
        """A copy of an array."""
        return np.array(array, order="C")

    def download(self, array: np.ndarray) -> np.ndarray:
        """The array itself: what was launched is done."""
        return array
