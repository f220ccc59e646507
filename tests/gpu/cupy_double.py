"""A stand-in for CuPy on machines without a GPU: `install` it before Chainer is imported, or run a test `on_double`.

With ``--gpu`` (`use_device`), these tests run on the CuPy that is installed, in the process of pytest.

Arrays have NumPy's elements and CuPy's rules: NumPy cannot convert them, sums and elements are arrays without axes, indices
wrap, there are no floating-point warnings, keywords are those of CuPy 14.2 (`cupy_names.txt`), and there are two devices. Kernels
that Chainer writes are compiled for the processor. It says nothing about speed, streams, or CUDA's own functions.
"""
import atexit
import functools
import importlib
import inspect
import multiprocessing.connection
import os
import subprocess
import sys
import traceback
import types
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

# ---------------------------------------------------------------------------------------------------------------- installation


def installed():
    """Whether the package ``cupy`` of this process is the stand-in."""
    return getattr(sys.modules.get("cupy"), "is_double", False)


def install():
    """Make the stand-in the package ``cupy`` of this process, and return it.  Raises RuntimeError where Chainer is there already."""
    if installed():
        return sys.modules["cupy"]
    if "chainer" in sys.modules:
        raise RuntimeError("the stand-in for CuPy has to be installed before Chainer is imported")
    import cupy_double_modules
    return cupy_double_modules.install()


# ------------------------------------------------------------------------------------------------------------------------ tests


_uses_device = []


def use_device():
    """From now on, tests that are defined `on_double` run on the CuPy that is installed."""
    _uses_device.append(True)


def on_device():
    """Whether tests run on the CuPy that is installed, and not on the stand-in."""
    return bool(_uses_device)


def tolerance(number):
    """A tolerance for the stand-in, which computes as NumPy does; a device's functions and sums round differently: ten times as much."""
    return 10 * number if on_device() else number


class Failed(AssertionError):
    """A test failed in the process of the stand-in; the text is its traceback."""


def on_double(test):
    """A test that runs in another process, in which the stand-in is CuPy, or on a device.  Its arguments are pickled."""
    test.is_for_devices = True
    if installed() or on_device():
        return test

    @functools.wraps(test)
    def run(*args, **kwargs):
        said = _ask((inspect.getsourcefile(test), test.__qualname__, args, kwargs))
        if said is not None:
            raise Failed(f"on the stand-in for CuPy:\n{said}")
    return run


_server = []


def _ask(request):
    if not _server:
        here, there = multiprocessing.Pipe()
        path = os.pathsep.join([str(FOLDER), str(FOLDER.parent), str(FOLDER.parent.parent), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen([sys.executable, str(FOLDER / "cupy_double.py"), str(there.fileno())], pass_fds=[there.fileno()],
                                   env={**os.environ, "PYTHONPATH": path})
        there.close()
        _server.append(here)
        atexit.register(lambda: (here.close(), process.wait()))
    _server[0].send(request)
    return _server[0].recv()


def _serve(file):
    """Run the tests that are asked for until the other end is closed."""
    asked = multiprocessing.connection.Connection(int(file))
    importlib.import_module("conftest")
    importlib.import_module("emulated_double").use()
    while True:
        try:
            source, name, args, kwargs = asked.recv()
        except EOFError:
            return
        try:
            found = importlib.import_module(_importable(source))
            for part in name.split("."):
                found = getattr(found, part)
            found(*args, **kwargs)
            said = None
        except BaseException:
            said = traceback.format_exc()
        asked.send(said)


def _importable(source):
    """The name of the module of a file, whose folder is made a place to import from."""
    folder = str(Path(source).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return Path(source).stem


if __name__ == "__main__":
    sys.modules["cupy_double"] = types.ModuleType("cupy_double")
    vars(sys.modules["cupy_double"]).update(globals())
    install()
    _serve(sys.argv[1])
