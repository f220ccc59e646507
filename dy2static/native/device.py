"""A GPU as CuPy has it: kernels are compiled by NVRTC, and CuPy only loads and launches them.

The only module that imports CuPy for that.  Only `check_gpu` can tell whether it works on a GPU: no test runs it.
"""
from __future__ import annotations

from typing import Any, ContextManager, Dict, Optional, Sequence, Tuple

import numpy as np

from ..errors import BackendError
from . import cudnn, nvrtc
from .announce import announce
from .background import Background

#: The compute type of CuPy for which products of float32 may be rounded to TF32.
_TF32 = 7


class CupyDevice:
    """A device by its number; kernels are launched while it is the current one, on CuPy's current stream."""

    def __init__(self, number: int = 0):
        import cupy
        self._cupy, self._device = cupy, cupy.cuda.Device(number)
        self.architecture = f"sm_{self._device.compute_capability}"
        self._cudnn: Optional[cudnn.Cudnn] = None
        self._is_asked = False                          # whether cuDNN has been looked for

    def prepare(self, text: str) -> Background:
        """Begin to compile kernels; its result is their machine code."""
        return Background(lambda: nvrtc.cubin(text, self.architecture))

    def load(self, text: str, names: Sequence[str]) -> Dict[str, Any]:
        """The functions of these kernels.

        Raises `nvrtc.NvrtcRefused`, `nvrtc.NoNvrtc`, and `BackendError` for a driver that is older than NVRTC.
        """
        module = self._cupy.cuda.function.Module()
        code = nvrtc.cubin(text, self.architecture)
        try:
            with self._device:
                module.load(code)
                return {name: module.get_function(name) for name in names}
        except self._cupy.cuda.driver.CUDADriverError as reason:
            raise BackendError(f"the driver does not load machine code of NVRTC {'.'.join(map(str, nvrtc.version()))}: {reason}",
                               hint="install the NVRTC of the driver's CUDA version") from reason

    def launch(self, function: Any, blocks: int, threads: int, addresses: Sequence[int]) -> None:
        """Launch a kernel whose arguments are pointers."""
        function((blocks,), (threads,), tuple([np.uint64(address) for address in addresses]))

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
        """How cuDNN computes a convolution; None where it does not, and without cuDNN."""
        with self._device:
            if not self._is_asked:
                self._is_asked, self._cudnn = True, self._found()
            return None if self._cudnn is None else self._cudnn.plan(convolution)

    def _found(self) -> Optional[cudnn.Cudnn]:
        library = cudnn.found()
        try:
            return None if library is None else cudnn.Cudnn(library)
        except cudnn.CudnnError as reason:
            announce("cudnn", f"convolutions on GPUs are products of patches, which are slower than cuDNN: {reason}")
            return None

    def convolve(self, plan: cudnn.Plan, operands: Sequence[int], workspace: int) -> None:
        """Compute a convolution on CuPy's current stream.  operands: the addresses of the two operands and of the result.

        Float32 is rounded to TF32 where CuPy is set to do so in products.  Raises `cudnn.CudnnError`.
        """
        assert self._cudnn is not None, "a plan comes from cuDNN"
        is_rounded = self._cupy._core.get_compute_type(np.dtype(np.float32)) == _TF32
        self._cudnn.run(plan, int(self._cupy.cuda.get_current_stream().ptr), is_rounded, operands, workspace)

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
