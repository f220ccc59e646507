"""Arrays of the stand-in for CuPy, for tests."""
import chainer
import numpy as np

cupy = chainer.backends.cuda.cupy


def array(*shape, dtype=np.float32, seed=0):
    """Random numbers on the device."""
    return cupy.array(np.random.RandomState(seed).uniform(-1, 1, shape).astype(dtype))
