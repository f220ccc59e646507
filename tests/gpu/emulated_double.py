"""Kernels on arrays of the stand-in for CuPy: the emulator, which is given the addresses of their elements."""
import functools
import math

import numpy as np
from chainer import config
from chainer.backends import cuda

from dy2static.backends.cuda.backend import CudaBackend
from dy2static.backends.registry import register
from dy2static.native.device import freedom
from dy2static.native.emulated import EmulatedDevice, emulated_cudnn


def timed(sizes, run):
    """As `cudnn.Timer`: algorithms that work in memory take longer."""
    memory = [np.zeros(size + 16, np.uint8) for size in sizes]
    run([math.ceil(array.ctypes.data / 16) * 16 for array in memory], 0)
    return sizes[-1]


class DoubleDevice(EmulatedDevice):
    """An emulated device whose arrays are the stand-in's.  number: that of the device; 0 has cuDNN."""

    def __init__(self, number):
        super().__init__(order=number, library=None if number else emulated_cudnn())
        self.number = number

    def address(self, array):
        assert array.device.id == self.number, "an array of another device"
        return array.data.ptr

    @functools.lru_cache(maxsize=None)                          # noqa: B019  devices live as long as the process
    def launcher(self):
        """As `EmulatedDevice.launcher`; it is not given arrays of other devices."""
        def checked(function):
            def with_arrays_of_this_device(*operands):
                assert all(x.device.id == self.number for x in operands if isinstance(x, cuda.ndarray)), "an array of another device"
                return function(*operands)
            return with_arrays_of_this_device
        found = super().launcher()
        if found is not None:
            found.launch, found.pack = checked(found.launch), checked(found.pack)
        return found

    def contiguous(self, array):
        return cuda.cupy.ascontiguousarray(array)

    def place(self, products):
        place = super().place(products)
        return place._replace(stream=cuda.cupy.cuda.get_current_stream().ptr, modes=place.modes | freedom())

    def plan(self, convolution):
        self.timer = timed if config.autotune else None
        return super().plan(convolution)

    def convolve(self, plan, operands, workspace):
        self.is_free = bool(freedom())
        super().convolve(plan, operands, workspace)

    def error(self, failure):
        return super().error(failure) if self.state.message else cuda.cupy.cuda.driver.CUDADriverError(failure.status)

    def current(self):
        return cuda.Device(self.number)

    def upload(self, array):
        return cuda.cupy.array(array)


def use():
    """Let programs on arrays of the stand-in run emulated kernels; returns the backend."""
    made = CudaBackend(DoubleDevice)
    register(made)
    return made
