"""Who is measured: the environment, the settings and the modes of each column, and how environments are made."""
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, NamedTuple, Tuple


class Column(NamedTuple):
    """One column of the table.

    framework, modes: what `measure.py` is asked for; the fastest mode that computes the right numbers counts.
    environment: the one it runs in; "" is that of `run.py` itself.  settings: further environment variables.
    cpu: what the CPU must have, a flag of /proc/cpuinfo.
    """

    title: str
    framework: str
    modes: Tuple[str, ...]
    environment: str = ""
    settings: Dict[str, str] = {}
    cpu: str = ""


COLUMNS = (
    Column("Chainer", "chainer", ("eager",)),
    Column("Chainer, AVX-512 BLAS", "chainer", ("eager",), settings={"OPENBLAS_CORETYPE": "SkylakeX"}, cpu="avx512f"),
    Column("Chainer, static_graph", "chainer", ("static_graph",)),
    Column("dy2static, numpy", "chainer", ("dy2static",), settings={"DY2STATIC_BACKEND": "numpy"}),
    Column("dy2static, c", "chainer", ("dy2static",), settings={"DY2STATIC_BACKEND": "c"}),
    Column("PyTorch", "torch", ("eager",), "torch"),
    Column("torch.compile", "torch", ("compile",), "torch"),
    Column("JAX", "jax", ("jit", "jit_bounded"), "jax"),
    Column("TensorFlow", "tensorflow", ("function",), "tensorflow"),
    Column("TensorFlow, XLA", "tensorflow", ("function_xla", "function_max_xla"), "tensorflow"),
    Column("Paddle", "paddle", ("eager",), "paddle"),
    Column("Paddle, to_static", "paddle", ("to_static",), "paddle"),
)
LIMITS = Column("products alone", "limits", ("blas", "onednn", "numpy"), "torch")
BASE = COLUMNS[0]
_CPU = Path("/proc/cpuinfo")

# What is installed in the environment of each peer; NumPy comes with all of them or is named.
PEERS = {
    "torch": ("torch==2.13.0", "numpy", "onnx", "onnxscript", "onnxruntime", "openvino"),
    "jax": ("jax", "jaxlib"),
    "arrays": ("numexpr", "numba", "mlx"),
    "tensorflow": ("tensorflow-cpu",),
    "paddle": ("paddlepaddle", "setuptools"),
}


def python_of(column, folder):
    """The Python of the column's environment in that folder, or None if it is not installed or the CPU lacks what it needs."""
    if column.cpu and column.cpu not in _CPU.read_text().split():
        return None
    if not column.environment:
        return sys.executable
    python = Path(folder) / column.environment / "bin" / "python"
    return str(python) if python.exists() else None


def install(peers, folder):
    """Make the environments of these peers; gives those that could not be made, with the last words of pip."""
    failed = {}
    for peer in peers:
        where = Path(folder) / peer
        print(f"installing {peer} in {where}", flush=True)
        for command in ((sys.executable, "-m", "venv", str(where)),
                        (str(where / "bin" / "python"), "-m", "pip", "install", "--quiet", *PEERS[peer])):
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode:
                failed[peer] = done.stdout.strip().splitlines()[-1:]
                shutil.rmtree(where, ignore_errors=True)        # half an environment is none
                break
    return failed
