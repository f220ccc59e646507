"""What every test runs under: dy2static imported before Chainer, graphs verified, fixed seeds, one thread."""
import gc
import os

gc.set_threshold(50_000, 20, 10)            # most objects stay: to look for garbage as often as Python does takes a tenth of a run

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")       # before NumPy is imported, which reads them once

import dy2static  # noqa: F401  (before Chainer)
from dy2static import config

import random

import hypothesis
import messages
import numpy
import pytest
import shared_results

config.VERIFY.value = 1
config.BACKEND.value = "numpy"              # values are compared bit by bit; the tests of native code ask for it
config.STRICT_BUILD.value = 1               # a header that does not compile is no reason to test NumPy
config.BACKGROUND.value = 0                 # which call is the first of native code must not depend on the machine

# times on a shared machine say nothing, and a run must be repeatable
hypothesis.settings.register_profile("dy2static", deadline=None, derandomize=True)
hypothesis.settings.load_profile("dy2static")


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write golden files, do not compare")
    parser.addoption("--messages", metavar="FILE", help="write every error and warning of dy2static that the tests provoke to this file")


def pytest_configure(config):
    """Look at every error and warning of ours from now on."""
    messages.watch()


def pytest_sessionfinish(session):
    """Write the page of messages, where it is asked for."""
    path = session.config.getoption("--messages")
    if path is not None:
        messages.write(os.path.join(session.config.invocation_params.dir, path), os.environ.get("PYTEST_XDIST_WORKER"))


@pytest.fixture(autouse=True)
def messages_keep_the_rules():
    """A test fails that provokes a message of ours which breaks a rule."""
    messages.faults()
    yield
    assert not messages.faults()


#: The folders whose tests take longest.
_LONG = ("whole", "training", "doors")


def pytest_collection_modifyitems(items):
    """Long tests come first: at the end, each worker waits for a short test of the others."""
    items.sort(key=lambda item: not set(_LONG).intersection(item.path.parts))


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


@pytest.fixture(autouse=True)
def seeds():
    """Start every test with the same random numbers."""
    random.seed(0)
    numpy.random.seed(0)
