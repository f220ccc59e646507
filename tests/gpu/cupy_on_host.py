"""Programs on arrays of the CuPy that is installed, without a GPU: `python tests/gpu/cupy_on_host.py`.

The memory of the arrays is the process's. Kernels and cuDNN are emulated, so nothing of CuPy is called that needs a device: models
whose programs are kernels only, forward and backward. Arrays, their views, captures, guards and memory are the real ones.
"""
import ctypes
import sys
import types

import cupy
import numpy as np

from dy2static.compat import cuda as libraries


class Device:
    """A device that is always current: CuPy's asks the driver."""

    compute_capability = "90"

    def __init__(self, device=None):
        self.id = 0 if device is None else int(device)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return self.id == int(other)

    def __hash__(self):
        return self.id

    def use(self):
        pass


def allocate(size):
    """Memory of the process, for CuPy."""
    memory = np.full(size + 64, 255, np.uint8)
    begin = memory.ctypes.data + -memory.ctypes.data % 64
    return cupy.cuda.MemoryPointer(cupy.cuda.UnownedMemory(begin, size, memory, 0), 0)


libraries.preload(cupy.__version__)
cupy.cuda.set_allocator(allocate)
cupy.cuda.Device, cupy.cuda.runtime.getDevice = Device, lambda: 0
cupy.cuda.get_current_stream = lambda device_id=-1: types.SimpleNamespace(ptr=0, synchronize=lambda: None)

import chainer
import chainer.functions as F
import chainer.links as L

from dy2static import to_static
from dy2static.backends.cuda.backend import CudaBackend
from dy2static.backends.registry import register
from dy2static.native.emulated import EmulatedDevice, emulated_cudnn

chainer.backends.cuda.Device = Device


class HostDevice(EmulatedDevice):
    """An emulated device for arrays of CuPy's."""

    def __init__(self, number):
        super().__init__(number, emulated_cudnn())

    def address(self, array):
        return array.data.ptr

    def contiguous(self, array):
        assert type(array) is cupy.ndarray and array.flags.c_contiguous
        return array


def seen(array):
    """The elements of an array of CuPy's, as one of NumPy's."""
    memory = (ctypes.c_char * max(array.nbytes, 1)).from_address(array.data.ptr)
    return np.ndarray(array.shape, array.dtype, memory, 0, array.strides)


def sent(array):
    """An array of CuPy's with these elements."""
    made = cupy.empty(array.shape, array.dtype)
    seen(made)[...] = array
    return made


def image_model():
    return chainer.Sequential(L.Convolution2D(2, 4, 3, pad=1), F.relu, lambda h: F.max_pooling_2d(h, 2), L.Linear(16, 8), F.tanh,
                              L.Linear(8, 3)), np.random.rand(6, 2, 4, 4).astype("f")


def normalized_model():
    return chainer.Sequential(L.Linear(5, 8), L.LayerNormalization(8), F.elu, L.Linear(8, 8), F.softmax,
                              lambda h: F.concat([h, h[:, ::2] * 2]), L.Linear(12, 3)), np.random.rand(7, 5).astype("f")


def trained(make, on_cupy):
    """Loss and gradients after three calls of a model: compiled on CuPy's arrays, or in eager mode on NumPy's."""
    np.random.seed(0)
    layers, x = make()
    model, t = L.Classifier(layers), np.random.randint(0, 3, len(x)).astype("i")
    send, read = (sent, lambda array: np.array(seen(array))) if on_cupy else (lambda array: array, np.array)
    for parameter in model.params():
        parameter.array = send(parameter.array)
    forward = to_static(model.forward, backend="c", strict=True) if on_cupy else model.forward
    for _ in range(3):
        model.cleargrads()
        loss = forward(send(x), send(t))
        loss.grad = send(np.ones((), np.float32))
        loss.backward()
    assert type(loss.array) is (cupy.ndarray if on_cupy else np.ndarray)
    return [read(loss.array), *[read(parameter.grad) for _, parameter in sorted(model.namedparams())]]


def main():
    """Print how far each model is from eager mode on NumPy's arrays; the exit status says whether one is too far."""
    register(CudaBackend(HostDevice))
    worst = 0.0
    for make in (image_model, normalized_model):
        pairs = zip(trained(make, True), trained(make, False))
        apart = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
        print(f"CuPy {cupy.__version__}, {make.__name__}: {apart:.1e} of the largest element")
        worst = max(worst, apart)
    return worst > 1e-5


if __name__ == "__main__":
    sys.exit(main())
