"""Exported C on other machines (aarch64 in qemu, 32-bit ARM), and with inputs that are wrong, under sanitizers."""
import os
import shutil
import subprocess

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import InputSpec
from tests.export.c_library import GCC, STRICT, close

pytestmark = pytest.mark.any_python

ARM64, ARM32, QEMU = "aarch64-linux-gnu-gcc", "arm-linux-gnueabihf-gcc", "qemu-aarch64"


class MLP(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b = L.Linear(30, 40), L.Linear(40, 5)

    def forward(self, x):
        return F.softmax(self.b(F.relu(self.a(x))))


class CNN(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.bn, self.b = L.Convolution2D(3, 8, 3, pad=1), L.BatchNormalization(8), L.Convolution2D(8, 5, 3, stride=2)

    def forward(self, x):
        return F.mean(self.b(F.max_pooling_2d(F.relu(self.bn(self.a(x))), 2)), axis=(2, 3))


class Sequence(chainer.Chain):
    """A GRU that goes on while its state is far from the one before."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.gru = L.StatelessGRU(6, 8)

    def forward(self, x):
        h = F.matmul(x, x, transb=True)[:, :1] * np.ones((1, 8), "f")
        turns, far = 0, 1.0
        while far > 1e-2 and turns < 30:
            following = self.gru(h, x)
            far = float(F.max(abs(following - h)).array)
            h = following
            turns += 1
        return h


def fuzzed(x, places):
    found = []
    h = x
    while len(found) < 3 or (len(found) < 6 and float(h.array.sum()) > 1):
        h = F.tanh(h * 0.9) + 0.01
        found.append(F.sum(h, axis=1))
    rows = F.embed_id(places, h)
    return F.stack(found), rows, F.argmax(rows, axis=1)


MODELS = {"mlp": (MLP, (4, 30)), "cnn": (CNN, (2, 3, 9, 9)), "sequence": (Sequence, (3, 6))}


def written(name, folder):
    """A model in a folder with its argument and what eager gives."""
    np.random.seed(1)
    make, shape = MODELS[name]
    net, x = make(), np.random.uniform(-1, 1, shape).astype("f")
    with chainer.using_config("train", False):
        expected = net(chainer.Variable(x)).array
    made = dy2static.export.c(net, [InputSpec([None, *shape[1:]])], folder, name=name)
    np.save(folder / "x.npy", x)
    return made, expected


@pytest.mark.skipif(not (shutil.which(ARM64) and shutil.which(QEMU)), reason=f"there is no {ARM64}, or no {QEMU}")
@pytest.mark.parametrize("name", MODELS)
def test_aarch64_gives_the_same(name, tmp_path):
    made, expected = written(name, tmp_path)
    subprocess.run([ARM64, *STRICT, "-O1", "-static", f"{name}.c", "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    subprocess.run([QEMU, "./main", "--weights", f"{name}.weights", "x.npy"], cwd=tmp_path, check=True)
    close([np.load(tmp_path / "output.npy")], [expected])
    assert made.source_bytes < 300_000 and made.arena_bytes < 1_000_000


@pytest.mark.skipif(shutil.which(ARM32) is None, reason=f"there is no {ARM32}")
def test_it_compiles_for_32_bits(tmp_path):
    written("sequence", tmp_path)
    subprocess.run([ARM32, *STRICT, "-Os", "-c", "sequence.c"], cwd=tmp_path, check=True)


def test_wrong_inputs_give_codes(tmp_path):
    """Under sanitizers of addresses and of undefined behaviour: errors are told, and nothing crashes."""
    dy2static.export.c(fuzzed, [InputSpec([None, 4]), InputSpec([None], "int32")], tmp_path)
    build = [GCC, *STRICT, "-O1", "-g", "-fwrapv", "fuzzed.c", "main.c", "-o", "main", "-lm"]
    checked = subprocess.run([*build, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"], cwd=tmp_path, capture_output=True)
    if checked.returncode:                                  # a compiler without sanitizers
        subprocess.run(build, cwd=tmp_path, check=True)
    rng = np.random.RandomState(0)
    codes = set()
    for number in range(40):
        x = rng.uniform(-1, 1, (rng.randint(0, 5), 4 if number % 7 else 3)).astype("f" if number % 11 else "d")
        places = rng.randint(-1 - len(x), len(x) + 1, rng.randint(0, 5)).astype("i")
        if number % 3 == 0 and x.size:
            x.flat[rng.randint(x.size)] = rng.choice([np.nan, np.inf, -np.inf, 3e38])
        if number % 5 == 0:
            places = np.arange(len(x), dtype="i")
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "places.npy", places)
        if number % 13 == 12:
            (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:rng.randint(140)])
        done = subprocess.run(["./main", "--weights", "fuzzed.weights", "x.npy", "places.npy"], cwd=tmp_path, capture_output=True,
                              text=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        assert done.returncode in (0, 1), (number, done.returncode, done.stderr[-2000:])
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr[-2000:]
        codes.add(done.stderr.split(": ", 1)[-1].strip())
    assert any("an index is out of range" in code for code in codes) and "" in codes and len(codes) > 4
