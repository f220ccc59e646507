"""Native code beside a saved model: made when it is saved, used where it fits and where somebody asks for it."""
import json
import os
import shutil
import subprocess
import sys
import textwrap

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import InputSpec, LoadError, load, save
from dy2static.errors import BackendError
from dy2static.native import compiler

try:
    compiler.compiler()
except BackendError:
    pytest.skip("there is no C compiler", allow_module_level=True)

SCRIPT = textwrap.dedent("""
    import sys, dy2static, chainer.functions as F, numpy as np
    model = dy2static.load(sys.argv[1], native=sys.argv[2] == "native", backend="c")
    y = model(np.ones((3, 4), "f"))
    F.sum(y).backward()
    print(y.array.tolist(), bool(model.program(np.ones((3, 4), "f")).native_code))
""")


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2 = L.Linear(4, 6), L.Linear(6, 2)

    def forward(self, x):
        return self.l2(F.tanh(self.l1(x)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a model with native code, and what the model gives."""
    np.random.seed(0)
    model, folder = Model(), tmp_path_factory.mktemp("saved") / "m"
    save(model, folder, [InputSpec([None, 4])], native=True)
    return folder, model(np.ones((3, 4), "f")).array.tolist()


def run(folder, how, **environment):
    root = os.path.dirname(os.path.dirname(os.path.abspath(dy2static.__file__)))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, str(folder), how], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": root, "DY2STATIC_BACKGROUND": "0", **environment})
    assert done.returncode == 0, done.stderr
    numbers, is_native = done.stdout.rsplit(" ", 1)
    return json.loads(numbers), is_native.strip() == "True"


def test_without_a_compiler(saved, tmp_path):
    """What was compiled ahead of time needs no compiler, the backward included; without it, NumPy computes."""
    folder, expected = saved
    for how, threads, is_native in (("native", "1", True), ("native", "2", True), ("plain", "1", False)):
        found = run(folder, how, DY2STATIC_CC="no-such-compiler", DY2STATIC_CACHE_DIR=str(tmp_path / how), DY2STATIC_THREADS=threads)
        np.testing.assert_allclose(found[0], expected, rtol=1e-6)
        assert found[1] == is_native


def test_made_again_where_it_does_not_fit(saved, tmp_path):
    """Code for another CPU or of another text has another name: it is not asked for."""
    folder, expected = saved
    copy = tmp_path / "m"
    copy.mkdir()
    for name in ("programs.json", "arrays.safetensors"):
        (copy / name).write_bytes((folder / name).read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    (copy / "native").mkdir()
    for k, name in enumerate([name for name in manifest["sha256"] if name.startswith("native/")]):
        other = f"native/{k:064x}.so"
        (copy / other).write_bytes((folder / name).read_bytes())
        manifest["sha256"][other], manifest["bytes"][other] = manifest["sha256"].pop(name), manifest["bytes"].pop(name)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    found = run(copy, "native", DY2STATIC_CACHE_DIR=str(tmp_path / "cache"))
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)
    assert found[1]


def test_damaged_code_is_refused(saved, tmp_path):
    """And it is not even read by who does not ask for it."""
    folder, _ = saved
    library = next((folder / "native").iterdir())
    before = library.read_bytes()
    try:
        library.write_bytes(before[:-1] + b"x")
        with pytest.raises(LoadError, match="damaged"):
            load(folder, native=True)
        load(folder)
        library.unlink()
        with pytest.raises(LoadError, match="cannot be read"):
            load(folder, native=True)
        load(folder)
    finally:
        library.write_bytes(before)


def test_code_elsewhere_is_refused(saved, tmp_path):
    """A library is a file of the model; so is the folder that it is in."""
    folder, _ = saved
    shutil.copytree(folder, tmp_path / "m")
    os.rename(tmp_path / "m" / "native", tmp_path / "native")
    (tmp_path / "m" / "native").symlink_to(tmp_path / "native")
    with pytest.raises(LoadError, match="native is no folder of the model"):
        load(tmp_path / "m", native=True)
    load(tmp_path / "m")
