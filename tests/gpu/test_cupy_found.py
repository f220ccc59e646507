"""What `compat` does for CuPy: libraries in NVIDIA's wheels, the number of devices, a warning that would mislead."""
import ctypes
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dy2static.compat import cuda

ROOT = Path(__file__).resolve().parent.parent.parent

#: As much of a package ``cupy`` as `chainer.backends.cuda` asks for when it is imported.  NO_DEVICE: what CuPy raises without a driver.
CUPY = """
    import sys, types
    __version__ = "{version}"
    class CUDARuntimeError(RuntimeError): pass
    class Anything:
        def __init__(self, *args, **kwargs): pass
        def __getattr__(self, name):
            if name.startswith("__"): raise AttributeError(name)
            return Anything()
        def __call__(self, *args, **kwargs): return Anything()
    def getDeviceCount():
        {count}
    class ndarray: pass
    def module(name, **names):
        found = sys.modules[name] = types.ModuleType(name)
        vars(found).update(names)
        found.__getattr__ = lambda key: Anything() if not key.startswith("__") else (_ for _ in ()).throw(AttributeError(key))
        return found
    runtime = module("cupy.cuda.runtime", CUDARuntimeError=CUDARuntimeError, getDeviceCount=getDeviceCount)
    cuda = module("cupy.cuda", __path__=[], runtime=runtime, cublas=module("cupy.cuda.cublas"), Device=Anything, Event=Anything,
                  Stream=Anything, memory_hook=types.SimpleNamespace(MemoryHook=object))
    module("cupy._util", PerformanceWarning=UserWarning)
    module("cupyx", __path__=[]); module("cupyx.scipy", __path__=[]); module("cupyx.scipy.linalg"); module("cupyx.scipy.special")
    __path__ = []
    def __getattr__(key):
        if key.startswith("__") or key == "cudnn": raise AttributeError(key)
        return Anything()
"""


def run(tmp_path, version, count, program):
    """Run a program with such a CuPy; gives what it printed."""
    (tmp_path / "cupy.py").write_text(textwrap.dedent(CUPY).format(version=version, count=count))
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


PROGRAM = """
    import sys, warnings
    import dy2static
    from dy2static.compat import cuda
    print(cuda.devices())
    import chainer
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        chainer.backends.cuda.check_cuda_available()
    print(chainer.backends.cuda.available, chainer.backends.cuda.cudnn_enabled, len(said))
"""


@pytest.mark.parametrize("version, count, said", [
    ("14.2.0", "return 2", ["2", "True", "False", "0"]),
    ("13.6.0", "raise CUDARuntimeError('cudaErrorInsufficientDriver')", ["0", "True", "False", "1"]),
], ids=["CuPy 14", "CuPy 13 without a driver"])
def test_chainer_finds_cupy_and_says_what_is_true_of_cudnn(tmp_path, version, count, said):
    assert run(tmp_path, version, count, PROGRAM) == said


@pytest.mark.parametrize("has_cudnn, said", [(True, "found"), (False, "none")])
def test_doctor_counts_devices_and_looks_for_cudnn(tmp_path, has_cudnn, said):
    if has_cudnn:
        (tmp_path / "nvidia" / "cudnn" / "lib").mkdir(parents=True)
        (tmp_path / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9").write_text("")
    program = """
        import ctypes.util, sys
        from dy2static.compat import cuda
        sys.path[:] = [path for path in sys.path if "-packages" not in path]
        ctypes.util.find_library = lambda name: None
        devices, cudnn = cuda.report()
        print(devices.split()[-1], cudnn.split(": ")[1].split()[0])
    """
    assert run(tmp_path, "14.2.0", "return 2", program) == ["2", said]


def test_without_cupy_there_are_no_devices():
    program = "import sys; sys.modules['cupy'] = None\nfrom dy2static.compat import cuda\nprint(cuda.devices())"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert done.stdout.split() == ["0"]


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """The names of the libraries that are loaded from two wheels; the last of them cannot be loaded."""
    names = []

    def load(path, mode):
        assert mode == ctypes.RTLD_GLOBAL
        names.append(os.path.basename(path))
        if "cudnn" in path:
            raise OSError("no such symbol")

    for place in ("cublas/lib/libcublas.so.12", "cublas/lib/libcublasLt.so.12", "cuda_nvrtc/lib/libnvrtc.so.12",
                  "cuda_nvrtc/lib/libnvrtc.alt.so.12", "cuda_nvrtc/lib/libnvrtc-builtins.so.12.9", "cudnn/lib/libcudnn.so.8",
                  "cudnn/lib/libcudnn.so.9"):
        path = tmp_path / "nvidia" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(cuda.ctypes, "CDLL", load)
    return names


def test_cupy_13_gets_the_libraries_of_the_wheels_each_behind_what_it_needs(loaded):
    cuda.preload("13.6.0")
    assert loaded == ["libnvrtc-builtins.so.12.9", "libnvrtc.so.12", "libcublasLt.so.12", "libcublas.so.12", "libcudnn.so.8"]


def test_cupy_14_finds_them_itself(loaded):
    cuda.preload("14.2.0")
    assert not loaded
