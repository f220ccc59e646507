"""Machine code of kernels: compiled once, in parts, by several processes; NVRTC is asked in one test only."""
import contextlib
import os
import re
import sys

import pytest

from dy2static import config
from dy2static.native import cubins, nvrtc
from dy2static.native.device_kernels import kernel_of, text_of
from dy2static.native.nvrtc import MachineCode, NvrtcRefused

BODY = "(float *x)\n{{\n    x[threadIdx.x] = %d;\n}}\n".replace("{{", "{").replace("}}", "}")


def kernels(*numbers):
    return [kernel_of("kernel", 32, BODY % number) for number in numbers]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The texts that NVRTC was given: those in this process.  A part is the names of its kernels."""
    texts = []

    def machine_code(text, architecture):
        texts.append(text)
        return MachineCode(" ".join([architecture, *re.findall(r"kernel_\w+", text)]).encode(), "")
    monkeypatch.setattr(config.CACHE_DIR, "value", str(tmp_path))
    monkeypatch.setattr(config.THREADS, "value", 1)
    monkeypatch.setattr(nvrtc, "version", lambda: (13, 0))
    monkeypatch.setattr(nvrtc, "machine_code", machine_code)
    return texts


def names_in(parts):
    """The names of the parts, which are also in their machine code."""
    assert all(name.encode() in part.cubin for part in parts for name in part.names)
    return sorted(name for part in parts for name in part.names)


def test_kernels_of_one_text_are_one_kernel():
    first, again, other = kernels(1, 1, 2)
    assert first == again != other and kernel_of("kernel", 64, BODY % 1) != first
    assert text_of([first, again, other]).count("__global__") == 2


def test_a_kernel_is_compiled_once(asked):
    """A second program compiles what the first one does not have."""
    first, second = kernels(1, 2, 3), kernels(2, 3, 4, 4)
    assert names_in(cubins.parts(first, "sm_90")) == sorted(kernel.name for kernel in first)
    found = cubins.parts(second, "sm_90")
    assert names_in(found) == sorted({kernel.name for kernel in second}) and len(found) == 2
    assert len(asked) == 2 and asked[1] == text_of(kernels(4))
    assert cubins.parts([], "sm_90") == [] and len(asked) == 2
    cubins.parts(first, "sm_80")
    assert len(asked) == 3


def test_parts_that_are_gone_are_compiled_again(asked, tmp_path):
    cubins.parts(kernels(1), "sm_90")
    for path in (tmp_path / "native").glob("*.so"):
        path.unlink()
    assert len(cubins.parts(kernels(1), "sm_90")) == 1 and len(asked) == 2


class Other:
    """A process that compiles at once.  status: how it ends."""

    def __init__(self, text, output, status):
        self.status, self.pid = status, os.getpid()
        if not status:
            with open(output, "w") as file:
                file.write(" ".join(re.findall(r"kernel_\w+", text)))

    def is_over(self):
        return True

    def result(self):
        return self.status, ""

    def stop(self):
        raise AssertionError("it has ended")


@pytest.mark.parametrize("status, here", [(0, 1), (6, 2), (OSError("no process"), 2)], ids=["succeeds", "fails", "does not begin"])
def test_several_processes_share_the_kernels(asked, monkeypatch, tmp_path, status, here):
    """What a process does not compile is compiled here."""
    began = []

    def started(text, architecture, output):
        began.append(text)
        if isinstance(status, OSError):
            raise status
        return Other(text, output, status)
    monkeypatch.setattr(config.THREADS, "value", 2)
    monkeypatch.setattr(nvrtc, "started", started)
    few, many = kernels(*range(2 * cubins.FEWEST - 1)), kernels(*range(100, 100 + 2 * cubins.FEWEST))
    assert len(cubins.parts(few, "sm_90")) == 1 and not began
    found = cubins.parts(many, "sm_90")
    assert names_in(found) == sorted(kernel.name for kernel in many) and len(found) == 2
    assert len(began) == 1 and len(asked) == 1 + here
    assert not list((tmp_path / "native").glob(".new-*"))


@pytest.mark.parametrize("name, value", [("frozen", True), ("executable", "/usr/bin/uwsgi"), ("executable", "")])
def test_an_application_is_not_started_once_more(name, value, monkeypatch):
    monkeypatch.setattr(sys, name, value, raising=False)
    with pytest.raises(OSError, match="is no Python"):
        nvrtc.started("", "sm_90", "")


@pytest.mark.skipif(not nvrtc.available(), reason="there is no NVRTC (python -m pip install nvidia-cuda-nvrtc)")
def test_a_process_compiles_what_this_process_would(tmp_path):
    text, output = text_of(kernels(1, 2)), str(tmp_path / "made")
    with contextlib.ExitStack() as stack:
        processes = [nvrtc.started(text, "sm_90", output), nvrtc.started("wrong", "sm_90", str(tmp_path / "none"))]
        for process in processes:
            stack.callback(process.stop)
        here = nvrtc.machine_code(text, "sm_90").cubin
        while not all(process.is_over() for process in processes):
            processes[0].wait(0.05)
        stack.pop_all()
    (status, _), (wrong, said) = [process.result() for process in processes]
    assert status == 0 and wrong != 0 and "error" in said
    with open(output, "rb") as file:
        assert file.read() == here
    with pytest.raises(NvrtcRefused):
        nvrtc.machine_code("wrong", "sm_90")
