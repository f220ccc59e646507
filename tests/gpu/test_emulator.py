"""The emulator finds what is wrong with kernels: each of these has one fault, and the last has none."""
import numpy as np
import pytest

from dy2static.native.device_kernels import Kernel
from dy2static.native.emulated import EmulatedDevice, EmulationError, missing

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(bool(missing()), reason=missing())]

#: What a kernel does with ``p``, 64 floats, in blocks of 64 threads; how many blocks; what is found.
KERNELS = {
    "race": ("DY_SHARED(float, s, 64); s[threadIdx.x] = threadIdx.x; p[threadIdx.x] = s[threadIdx.x ^ 1];", 1, "order"),
    "blocks": ("if (threadIdx.x == 0) p[0] = p[0] * 2 + blockIdx.x;", 4, "order"),
    "divergent": ("if (threadIdx.x < 40) __syncthreads(); p[threadIdx.x] = 1;", 1, "barrier that not all threads reach"),
    "two barriers": ("if (threadIdx.x < 40) __syncthreads(); else\n __syncthreads();\n p[threadIdx.x] = 1;", 1, "different barriers"),
    "shuffle": ("if (threadIdx.x < 40) p[threadIdx.x] = __shfl_xor_sync(DY_ALL_LANES, 1.0f, 1);", 1, "not all lanes reach"),
    "unwritten": ("DY_SHARED(float, s, 64); if (threadIdx.x < 63) s[threadIdx.x] = 1; __syncthreads(); p[threadIdx.x] = s[threadIdx.x];",
                  1, "NaN"),
    "outside": ("p[threadIdx.x + 1] = 1;", 1, "outside"),
    "none": ("p[blockIdx.x] = dy_reduced<dy_sum>((float)threadIdx.x, 0.0f);", 4, "nothing"),
}


@pytest.fixture(scope="module")
def module():
    return EmulatedDevice().load([Kernel(f"kernel_{n}", f'extern "C" __global__ void kernel_{n}(float *p) {{ {text} }}\n')
                                  for n, (text, _, _) in enumerate(KERNELS.values())])


def found(kernel, blocks):
    """What the emulator says of a kernel."""
    results = []
    for order in range(4):
        whole = np.full(192, 77, np.float32)
        p = whole[64:128]
        p[:] = 0
        try:
            EmulatedDevice(order).launch(kernel, blocks, 64, [p.ctypes.data])
        except EmulationError as error:
            return str(error)
        if (whole[:64] != 77).any() or (whole[128:] != 77).any():
            return "wrote outside"
        results.append(p.copy())
    if not all(np.array_equal(results[0], p, equal_nan=True) for p in results):
        return "depends on the order"
    return "NaN" if np.isnan(results[0]).any() else "nothing"


@pytest.mark.parametrize("name", KERNELS)
def test_it_finds(name, module):
    _, blocks, fault = KERNELS[name]
    assert fault in found(module[f"kernel_{list(KERNELS).index(name)}"], blocks)
