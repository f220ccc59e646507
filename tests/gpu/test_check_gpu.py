"""`python -m dy2static.check_gpu`: it counts what holds and what does not."""
import warnings

import numpy as np
import pytest

from dy2static import FallbackWarning
from dy2static.backends.cuda.launches import launching
from dy2static.check_gpu import __main__ as command
from dy2static.check_gpu import calls, launches, models, open_sizes, products, samples, speed
from dy2static.check_gpu.checks import Checks
from dy2static.compat import cuda
from dy2static.native import announce, nvrtc
from dy2static.native.emulated import EmulatedDevice, emulated_cudnn, missing

needs_emulator = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.fixture
def few(monkeypatch):
    """Few samples, one model, and a compiler for one architecture."""
    names = ("exp", "sum", "matmul")
    found = [case for case in samples.cases(None, 1) if case.graph.nodes[0].op.name in names]
    assert len(found) == len(names)
    convolved = samples.cases("float32", 1, ("conv",), EmulatedDevice(library=emulated_cudnn()).plan)
    monkeypatch.setattr(samples, "cases", lambda dtype, most, *convolutions: convolved if convolutions else found)
    monkeypatch.setattr(models, "MODELS", {"LSTM": models.MODELS["LSTM"]})
    monkeypatch.setattr(calls, "emulated", lambda checks, quick: None)      # tested alone
    monkeypatch.setattr(open_sizes, "FUNCTIONS", {name: open_sizes.FUNCTIONS[name] for name in ("elements", "sums")})
    return found


@needs_emulator
def test_all_holds(few, capsys):
    assert command.main(["--emulated", "--quick"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    count = 2 * len(few) + nvrtc.available()
    assert last.endswith(" passed, 0 failed") and int(last.split()[0]) > count
    assert "convolutions by cuDNN, float64: 1 graphs, 0 kernels, 0 failed" in lines
    assert any(line.startswith("regions of LSTM: ") and not line.startswith("regions of LSTM: 0") for line in lines)


@needs_emulator
def test_what_is_wrong_is_said(few, capsys, monkeypatch):
    monkeypatch.setattr(models, "MODELS", {})
    first, product = few[0], next(case for case in few if case.name.startswith("matmul"))
    first.expected = [np.asarray(x) + 1 for x in first.expected]
    monkeypatch.setattr(launches, "check", lambda device, report, streams: None)
    monkeypatch.setattr(products, "check", lambda device, report, seconds: None)
    monkeypatch.setattr(launching, "words_of", lambda step: None)           # products are steps of Python's
    monkeypatch.setattr(EmulatedDevice, "multiply", lambda device, left, right, out: out.fill(device.order))
    assert command.main(["--emulated", "--quick"]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert {line.split(":")[0] for line in lines if line.startswith("FAILED")} == {
        f"FAILED {name}" for name in (first.name, product.name, f"{product.name}, once more")}
    assert last.endswith(", 3 failed")


@pytest.mark.skipif(bool(cuda.devices()), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys):
    assert command.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "FAILED the checks: D2S401: CuPy finds no device", "  hint: `--emulated` runs what needs none", "0 passed, 1 failed"]


@needs_emulator
def test_what_is_measured_is_right():
    device = EmulatedDevice()
    random = np.random.RandomState(0)
    for name, (shape, function) in speed.FUNCTIONS.items():
        graph = speed.graph_of(function, (3, 70, 64)[-len(shape):])
        operands = [random.rand(*v.shape).astype(np.float32) for v in graph.inputs]
        case = samples.Case(name, graph, operands, samples.meaning(graph, operands))
        assert not case.difference(case.run(device, device.load(samples.kernels_of([case]))))


@needs_emulator
@pytest.mark.parametrize("status, failed", [(0, set()), (801, {"the second call is recorded", "set anew for moved arrays", "both are one graph"})])
def test_launches_and_graphs(status, failed, capsys):
    """All holds, unless the driver makes no graphs."""
    checks, device = Checks(), EmulatedDevice()
    device.state.graph_status = status
    announce.forget()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        launches.check(device, checks.check)
    assert checks.passed + checks.failed == 22 and device.state.finished == 4
    assert {line.split(":")[0] for line in capsys.readouterr().out.splitlines()} == {f"FAILED {name}" for name in failed}


def test_programs_of_cupy_calls_are_checked_on_the_stand_in(capsys):
    checks = Checks()
    calls.emulated(checks, quick=True)
    assert checks.passed > 250 and not checks.failed
    assert "programs of CuPy calls, their own dtypes: " in capsys.readouterr().out


@pytest.mark.parametrize("said, passed, failed", [("7 passed, 2 failed\nFAILED exp: other numbers\n", 7, 2), ("Segmentation fault\n", 0, 1),
                                                  ("", 0, 1)])
def test_what_another_process_says_is_counted(said, passed, failed, capsys):
    checks = Checks()
    calls.count(checks, said)
    assert (checks.passed, checks.failed) == (passed, failed) and ("FAILED" in capsys.readouterr().out)


def test_differences_of_rounding_and_of_gradients():
    """The gradient of a bias in front of batch normalization is rounding; one that is wrong is found, also a small one."""
    weights = np.linspace(-1, 1, 50, dtype="f")
    noise = np.full(8, 3e-9, "f")
    assert calls.distance([(weights, weights), (noise, -2 * noise)]) < calls._TOLERANCE
    assert calls.distance([(weights, weights + np.float32(1e-4))]) > calls._TOLERANCE
    small = np.full(8, 1e-3, "f")
    assert calls.distance([(weights, weights), (small, small * np.float32(1.0001))]) > calls._TOLERANCE
    assert calls.distance([(weights, weights), (noise, noise + np.float32(1e-4))]) > calls._TOLERANCE
