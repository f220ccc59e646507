"""A GPU as CuPy has it: kernels are compiled by NVRTC and loaded by CuPy; the launcher launches them, else CuPy does.

The only module that imports CuPy for that.  Only `check_gpu` can tell whether it works on a GPU: no test runs it.
"""
from __future__ import annotations

import ctypes
import math
import threading
from typing import Any, Callable, ContextManager, Dict, Hashable, Optional, Sequence, Tuple

import chainer
import numpy as np

from ..errors import BackendError
from . import cubins, cudnn, drivers, launcher, nvrtc
from .announce import announce
from .background import Background
from .device_kernels import Kernel
from .launcher import Failure, Launcher, Place

#: The stream that is each thread's own (``cudaStreamPerThread``).
_OF_THREAD = 2

#: Streams of a device that have memory for products; that of the stream which was used least recently goes.
_MOST_STREAMS = 8

_FLOATS = tuple([np.dtype(f"f{size}") for size in (2, 4, 8)])

#: The compute type of CuPy for which products of float32 may be rounded to TF32.
_TF32 = 7


#: How often an algorithm of cuDNN is measured (the fastest time counts), and how many runs are measured together.
_TURNS, _RECORDED = 3, 4


def freedom() -> int:
    """`launcher.FREE` if convolutions may give other bits in each run: ``chainer.config.cudnn_deterministic`` is false."""
    return 0 if chainer.config.cudnn_deterministic else launcher.FREE


def measuring() -> int:
    """`launcher.MEASURED` if algorithms of products are measured: ``chainer.config.autotune`` is true."""
    return launcher.MEASURED if chainer.config.autotune else 0


class CupyDevice:
    """A device by its number; kernels are launched while it is the current one, on CuPy's current stream."""

    def __init__(self, number: int = 0):
        import cupy
        self._cupy, self._device, self._number = cupy, cupy.cuda.Device(number), number
        capability = str(self._device.compute_capability)
        self.architecture = f"sm_{capability}"
        self._workspace = drivers.workspace_of((int(capability[:-1]), int(capability[-1])))
        self._workspaces: Dict[Hashable, Any] = {}
        self._latest: Tuple[Hashable, int] = None, 0     # the stream that asked for memory last, and the address of that
        self._lock, self._made = threading.Lock(), False
        self._launcher: Optional[Launcher] = None
        self._cudnn: Optional[cudnn.Cudnn] = None
        self._is_asked = False                          # whether cuDNN has been looked for

    def prepare(self, kernels: Sequence[Kernel]) -> Background:
        """Begin to compile kernels; its result is their machine code."""
        launcher.begin()
        return Background(lambda: cubins.parts(kernels, self.architecture))

    def load(self, kernels: Sequence[Kernel]) -> Dict[str, Any]:
        """The functions of these kernels by their names.

        Raises `nvrtc.NvrtcRefused`, `nvrtc.NoNvrtc`, and `BackendError` for a driver that is older than NVRTC.
        """
        found: Dict[str, Any] = {}
        try:
            with self._device:
                for part in cubins.parts(kernels, self.architecture):
                    module = self._cupy.cuda.function.Module()
                    module.load(part.cubin)
                    found.update({name: module.get_function(name) for name in part.names})
                return found
        except self._cupy.cuda.driver.CUDADriverError as reason:
            raise BackendError(f"the driver does not load machine code of NVRTC {'.'.join(map(str, nvrtc.version()))}: {reason}",
                               hint="install the NVRTC of the driver's CUDA version") from reason

    def handle(self, function: Any) -> int:
        """The CUfunction of a kernel."""
        return int(function.ptr)

    def launcher(self) -> Optional[Launcher]:
        """What launches regions; None where that needs something that is not there."""
        with self._lock:
            if not self._made:
                self._launcher, self._made = launcher.made(self._new_launcher), True
        return self._launcher

    def _new_launcher(self) -> Launcher:
        major = self._major()
        with self._device:
            return Launcher(ctypes.addressof(drivers.table(major)), drivers.context(self._number), drivers.products_handle(major),
                            self._workspace, drivers.recorder(), self._identity("products"))

    def _major(self) -> int:
        return int(self._cupy.cuda.runtime.runtimeGetVersion()) // 1000

    def _identity(self, library: str) -> str:
        """Under which name what is measured with a library is kept; "": it is not kept."""
        device = drivers.identity(self._number, self._major())
        return device and f"{device}, {self.architecture}, {library}"

    def place(self, products: bool) -> Place:
        """CuPy's current stream; with products or convolutions, also memory for products, and the compute types that CuPy uses.

        Raises CuPy's OutOfMemoryError.
        """
        stream = int(self._cupy.cuda.get_current_stream().ptr)
        if not products:
            return Place(stream)
        half, single, double = map(self._cupy._core.get_compute_type, _FLOATS)
        modes = half | single << 8 | double << 16 | freedom() | measuring()
        user: Hashable = (stream, threading.get_ident()) if stream == _OF_THREAD else stream
        latest, address = self._latest
        return Place(stream, address if latest == user else self._memory(user), modes)

    def _memory(self, stream: Hashable) -> int:
        """The address of the memory that products use on the current stream."""
        with self._lock:
            memory = self._workspaces.pop(stream, None)
            if memory is None:
                memory = self._cupy.empty(self._workspace, np.uint8)
            self._workspaces[stream] = memory
            while len(self._workspaces) > _MOST_STREAMS:
                self._workspaces.pop(next(iter(self._workspaces)))
            self._latest = stream, int(memory.data.ptr)
            return self._latest[1]

    def error(self, failure: Failure) -> Exception:
        """The exception of CuPy for what a run reports."""
        if failure.library == "cudnn":
            return cudnn.CudnnError(f"cuDNN reports error {failure.status}")
        if failure.library == "cublas":
            return self._cupy.cuda.cublas.CUBLASError(failure.status)
        return self._cupy.cuda.driver.CUDADriverError(failure.status)

    def launch(self, function: Any, blocks: int, threads: int, arguments: Sequence[int]) -> None:
        """Launch a kernel whose arguments are pointers, and numbers behind them."""
        function((blocks,), (threads,), tuple([np.uint64(argument) for argument in arguments]))

    def current(self) -> ContextManager[Any]:
        """In its block, this is the current device."""
        return self._device                              # type: ignore[no-any-return]

    def view(self, address: int, shape: Tuple[int, ...], strides: Tuple[int, ...], dtype: Any) -> Any:
        """The array of CuPy's on memory of somebody else's.  strides: in elements."""
        size = (1 + sum((n - 1) * s for n, s in zip(shape, strides))) * dtype.itemsize
        memory = self._cupy.cuda.MemoryPointer(self._cupy.cuda.UnownedMemory(address, size, self, self._device.id), 0)
        return self._cupy.ndarray(shape, dtype, memory, tuple([s * dtype.itemsize for s in strides]))

    def multiply(self, left: Any, right: Any, out: Any) -> None:
        """Write a product of matrices, or stacks of them."""
        self._cupy.matmul(left, right, out=out)

    def plan(self, convolution: cudnn.Convolution) -> Optional[cudnn.Plan]:
        """How cuDNN computes a convolution; None where it does not, and without cuDNN.

        With ``chainer.config.autotune``, its algorithms are measured.  That waits for the device, so it is left out while the
        current stream is captured.
        """
        with self._device:
            with self._lock:
                if not self._is_asked:
                    self._is_asked, self._cudnn = True, self._found()
            is_timed = chainer.config.autotune and not self._cupy.cuda.get_current_stream().is_capturing()
            return None if self._cudnn is None else self._cudnn.plan(convolution, self._timed if is_timed else None)

    def _timed(self, sizes: Sequence[int], run: Callable[[Sequence[int], int], None]) -> float:
        """As `cudnn.Timer`, on a stream of its own.

        Runs are recorded as a graph and replayed, as in programs.  Otherwise the time in which the host launches the kernels of an
        algorithm would count, which may be longer than that of the device.
        """
        try:
            memory = [self._cupy.zeros(size, np.uint8) for size in sizes]
        except self._cupy.cuda.memory.OutOfMemoryError as reason:
            raise cudnn.CudnnError(f"there is no memory to measure a convolution: {reason}") from reason
        self._cupy.cuda.get_current_stream().synchronize()
        stream, addresses, best = self._cupy.cuda.Stream(non_blocking=True), [int(array.data.ptr) for array in memory], math.inf
        run(addresses, int(stream.ptr))                      # also loads what cuDNN needs
        stream.synchronize()
        graph = self._recorded(stream, lambda: run(addresses, int(stream.ptr)))
        for _ in range(_TURNS):
            begin, end = self._cupy.cuda.Event(), self._cupy.cuda.Event()
            begin.record(stream)
            if graph is None:
                run(addresses, int(stream.ptr))
            else:
                graph.launch(stream)
            end.record(stream)
            end.synchronize()
            best = min(best, self._cupy.cuda.get_elapsed_time(begin, end) / 1e3 / (1 if graph is None else _RECORDED))
        return best

    def _recorded(self, stream: Any, run: Callable[[], None]) -> Any:
        """Some runs as a graph; None where they cannot be recorded."""
        stream.begin_capture()
        try:
            try:
                for _ in range(_RECORDED):
                    run()
            finally:
                graph = stream.end_capture()
        except (cudnn.CudnnError, self._cupy.cuda.runtime.CUDARuntimeError):
            return None
        return graph

    def _found(self) -> Optional[cudnn.Cudnn]:
        library = cudnn.found()
        try:
            return None if library is None else cudnn.Cudnn(library, self._identity(f"cuDNN {cudnn.version()}"))
        except cudnn.CudnnError as reason:
            announce("cudnn", f"convolutions on GPUs are products of patches, which are slower than cuDNN: {reason}")
            return None

    def convolve(self, plan: cudnn.Plan, operands: Sequence[int], workspace: int) -> None:
        """Compute a convolution on CuPy's current stream.  operands: the addresses of the two operands and of the result.

        Float32 is rounded to TF32 where CuPy is set to do so in products.  Raises `cudnn.CudnnError`.
        """
        assert self._cudnn is not None, "a plan comes from cuDNN"
        mode = cudnn.Mode(self._cupy._core.get_compute_type(np.dtype(np.float32)) == _TF32, bool(freedom()))
        self._cudnn.run(plan, int(self._cupy.cuda.get_current_stream().ptr), mode, operands, workspace)

    def address(self, array: Any) -> int:
        """Where the elements of an array are."""
        return int(array.data.ptr)

    def contiguous(self, array: Any) -> Any:
        """The array, or a copy whose elements stand in the order of memory."""
        return self._cupy.ascontiguousarray(array)

    def upload(self, array: np.ndarray) -> Any:
        """A copy of an array on the device."""
        return self._cupy.asarray(array)

    def download(self, array: Any) -> np.ndarray:
        """A copy of an array of the device, when all that was launched before is done."""
        return self._cupy.asnumpy(array)
