"""Every op that kernels compute: NVRTC takes its kernels, and emulated they give what the op means."""
import functools
import re

import pytest

from dy2static.check_gpu import samples
from dy2static.native import nvrtc
from dy2static.native.device_kernels import text_of
from dy2static.native.emulated import EmulatedDevice, missing

pytestmark = pytest.mark.any_python

#: Dtypes of what is random in the operands; None: the sample's own.  For others, types in the text differ and nothing else.
DTYPES = {None: 100, "float16": 2, "float64": 2, "int32": 2, "bool": 2}

#: Turing, and Hopper.
ARCHITECTURES = ("sm_75", "sm_90")
MOST_REGISTERS = 64

#: Ops of which kernels compute at least one sample.
LEAST_TAKEN = 125


@functools.lru_cache(maxsize=None)
def cases(dtype):
    return samples.cases(dtype, DTYPES[dtype])


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_values_and_bits_do_not_depend_on_the_order_of_threads(dtype):
    device = EmulatedDevice()
    module = device.load(samples.kernels_of(cases(dtype)))
    for case in cases(dtype):
        results = case.run(device, module)
        assert not case.difference(results), f"{case.name}: {case.difference(results)}\n{case.text}"
        if "blockDim.x)" in case.text or "k += 32" in case.text:             # threads that work together
            for order in (1, 2):
                again = case.run(EmulatedDevice(order), module)
                assert all(a.tobytes() == b.tobytes() for a, b in zip(results, again)), case.name


@pytest.mark.skipif(not nvrtc.available(), reason="there is no NVRTC (python -m pip install nvidia-cuda-nvrtc)")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc_takes_all_kernels(architecture):
    """They need few registers, and none of what they hold has to go to memory."""
    for dtype in DTYPES if architecture == ARCHITECTURES[-1] else [None]:
        made = nvrtc.machine_code(text_of(samples.kernels_of(cases(dtype))), architecture, ["--ptxas-options=-v"])
        assert made.cubin
        assert set(re.findall(r"(\d+) bytes spill stores", made.log)) == {"0"}
        assert max(map(int, re.findall(r"Used (\d+) registers", made.log))) <= MOST_REGISTERS


def test_what_kernels_take():
    assert len({case.graph.nodes[0].op.name for case in cases(None)}) >= LEAST_TAKEN
