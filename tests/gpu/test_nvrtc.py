"""NVRTC by ctypes: what it makes, and what it says when it does not."""
import pytest

from dy2static.native import nvrtc

needs_nvrtc = pytest.mark.skipif(not nvrtc.available(), reason="there is no NVRTC (python -m pip install nvidia-cuda-nvrtc)")


@needs_nvrtc
def test_it_makes_machine_code_with_the_headers_of_the_package():
    made = nvrtc.compile('#include "dy2static_math.h"\nextern "C" __global__ void f(float *x) { x[0] = tanh_f32(x[0]); }', "sm_80")
    assert made.cubin[:4] == b"\x7fELF" and nvrtc.version() >= (12, 0)


@needs_nvrtc
def test_a_text_that_is_wrong_is_refused_with_its_messages():
    with pytest.raises(nvrtc.NvrtcRefused, match="identifier \"y\" is undefined") as refused:
        nvrtc.compile('extern "C" __global__ void f(float *x) { x[0] = y; }')
    assert "kernels.cu(1)" in refused.value.log


def test_without_it_the_way_out_is_said(monkeypatch):
    monkeypatch.setattr(nvrtc, "_library", lambda: None)
    assert not nvrtc.available()
    with pytest.raises(nvrtc.NoNvrtc, match="nvidia-cuda-nvrtc"):
        nvrtc.compile("")
