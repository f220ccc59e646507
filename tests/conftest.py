"""What every test runs under: dy2static imported before Chainer, graphs verified, fixed seeds, one thread."""
import gc
import importlib
import os
import sys

gc.set_threshold(50_000, 20, 10)            # most objects stay: to look for garbage as often as Python does takes a tenth of a run

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")       # before NumPy is imported, which reads them once

import dy2static  # noqa: F401  (before Chainer)
from dy2static import config
from dy2static.compat import cuda
from dy2static.runtime import collection

import random

import hypothesis
import messages
import numpy
import pytest
import shared_results

config.VERIFY.value = 1
config.BACKEND.value = "numpy"              # values are compared bit by bit; the tests of native code ask for it
config.STRICT_BUILD.value = 1               # a header that does not compile is no reason to test NumPy
config.PACE.value = 0                       # what is compiled is to be tested, and not by what it takes
config.BACKGROUND.value = 0                 # which call is the first of native code must not depend on the machine
collection._LONG = float("inf")             # memory goes back to the system in the test of that: it takes long in heaps of this size

# times on a shared machine say nothing, and a run must be repeatable
hypothesis.settings.register_profile("dy2static", deadline=None, derandomize=True)
hypothesis.settings.load_profile("dy2static")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files, do not compare")
    parser.addoption("--messages", metavar="FILE", help="write every error and warning of dy2static that the tests provoke to this file")
    parser.addoption("--gpu", action="store_true",
                     help="run the tests for GPUs, and no others, on the CuPy that is installed, not on the stand-in for it")


def pytest_configure(config):
    """Look at every error and warning of ours from now on."""
    messages.watch()
    config.addinivalue_line("markers", "gpu: it needs a device: it runs with --gpu only")
    config.addinivalue_line("markers", "any_python: all Pythons give the same result: .ci/run leaves it to the first of them")
    config.addinivalue_line("markers", "devices(count): it needs so many devices")
    config.addinivalue_line("markers", "stand_in(reason): it needs the stand-in for CuPy, or the emulator, also with --gpu")
    if config.getoption("--gpu"):
        if not cuda.devices():
            raise pytest.UsageError("--gpu: CuPy finds no device; the tests run without one, too, on a stand-in for CuPy")
        sys.path.insert(0, os.path.join(os.path.dirname(__file__), "gpu"))
        importlib.import_module("cupy_double").use_device()


def pytest_sessionfinish(session):
    """Write the page of messages, where it is asked for."""
    path = session.config.getoption("--messages")
    if path is not None:
        messages.write(os.path.join(session.config.invocation_params.dir, path), os.environ.get("PYTEST_XDIST_WORKER"))


@pytest.fixture(autouse=True)
def around_each():
    """Each test starts with the same random numbers, and fails if it provokes a message of ours which breaks a rule.

    What it tells NumPy to do about floating-point errors ends with it.  One fixture: another one for each of thousands of tests
    takes seconds.
    """
    random.seed(0)
    numpy.random.seed(0)
    messages.faults()
    with numpy.errstate():
        yield
    assert not messages.faults()


#: The folders whose tests take longest.
_LONG = ("whole", "training", "doors")

#: The folders whose tests are about captures and graphs.  Where one runs with both backends, all Pythons capture what it does for NumPy, and
#: one of them makes the native program, too: a graph is the same C text on each.  Other folders call native programs on all Pythons.
_OF_GRAPHS = ("capture", "parts", "passes", "training")


@pytest.hookimpl(tryfirst=True)             # before tests are left out by their marks
def pytest_collection_modifyitems(config, items):
    """Long tests come first: at the end, each worker waits for a short test of the others."""
    items.sort(key=lambda item: not set(_LONG).intersection(item.path.parts))
    names = {item.nodeid for item in items}
    for item in items:
        if set(_OF_GRAPHS).intersection(item.path.parts) and _numpy_twins(item) & names:
            item.add_marker(pytest.mark.any_python)
    count = cuda.devices() if config.getoption("--gpu") else 0
    for item in items:
        reason = _reason_to_skip(item, count)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _numpy_twins(item):
    """What a test for native code would be called for NumPy; nothing for other tests."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or callspec.params.get("backend") != "c":
        return set()
    words = callspec.id.split("-")
    return {f"{item.nodeid[:-len(callspec.id) - 1]}{'-'.join([*words[:k], 'numpy', *words[k + 1:]])}]"
            for k, word in enumerate(words) if word == "c"}


def _reason_to_skip(item, count):
    """Why a test does not run; "" if it does.  count: of the devices that tests use, 0 without ``--gpu``."""
    is_for_devices = item.get_closest_marker("gpu") is not None
    if not count:
        return "it needs a GPU, and runs with --gpu only" if is_for_devices else ""
    if not is_for_devices and not getattr(getattr(item, "function", None), "is_for_devices", False):
        return "--gpu: it uses no device"
    marks = {mark.name: mark.args[0] for mark in item.iter_markers() if mark.name in ("stand_in", "devices")}
    if "stand_in" in marks:
        return f"--gpu: {marks['stand_in']}"
    return f"--gpu: it needs {marks['devices']} devices" if marks.get("devices", 1) > count else ""


def pytest_collection_finish(session):
    """What has been imported and collected stays: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def share_results(tmp_path_factory):
    """What one worker has found, the others of this run need not compute again."""
    shared_results.share(tmp_path_factory.getbasetemp())


@pytest.fixture
def update_golden(request):
    """Whether golden files are to be written instead of compared with."""
    return request.config.getoption("--update-golden")
