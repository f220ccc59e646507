"""NVRTC by ctypes: what it makes, and what it says when it does not."""
import contextlib
import sys
import types

import pytest

from dy2static.errors import BackendError
from dy2static.native import cubins, nvrtc
from dy2static.native.device import CupyDevice
from dy2static.native.device_kernels import Kernel

needs_nvrtc = pytest.mark.skipif(not nvrtc.available(), reason="there is no NVRTC (python -m pip install nvidia-cuda-nvrtc)")


@needs_nvrtc
def test_it_makes_machine_code_with_the_headers_of_the_package():
    made = nvrtc.machine_code('#include "dy2static_math.h"\nextern "C" __global__ void f(float *x) { x[0] = tanh_f32(x[0]); }', "sm_80")
    assert made.cubin[:4] == b"\x7fELF" and nvrtc.version() >= (12, 0)


@needs_nvrtc
def test_a_text_that_is_wrong_is_refused_with_its_messages():
    with pytest.raises(nvrtc.NvrtcRefused, match="identifier \"y\" is undefined") as refused:
        nvrtc.machine_code('extern "C" __global__ void f(float *x) { x[0] = y; }')
    assert "kernels.cu(1)" in refused.value.log


def test_without_it_the_way_out_is_said(monkeypatch):
    monkeypatch.setattr(nvrtc, "_library", lambda: None)
    assert not nvrtc.available()
    with pytest.raises(nvrtc.NoNvrtc, match="nvidia-cuda-nvrtc"):
        nvrtc.machine_code("")


def test_a_driver_that_does_not_load_machine_code(monkeypatch):
    """CuPy as far as `CupyDevice` uses it."""
    class CUDADriverError(Exception):
        pass

    class Module:
        def load(self, code):
            raise CUDADriverError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION")
    device = contextlib.nullcontext()
    device.compute_capability = "90"
    cuda = types.SimpleNamespace(Device=lambda number: device, function=types.SimpleNamespace(Module=Module),
                                 driver=types.SimpleNamespace(CUDADriverError=CUDADriverError))
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(cubins, "parts", lambda kernels, architecture: [cubins.Part(b"", ("kernel",))])
    monkeypatch.setattr(nvrtc, "version", lambda: (13, 5))
    with pytest.raises(BackendError, match="the driver does not load machine code of NVRTC 13.5: CUDA_ERROR_UNSUPPORTED"):
        CupyDevice().load([Kernel("kernel", "")])
