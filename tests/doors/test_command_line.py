"""``python -m dy2static``: commands about a user's function, and about this machine."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import dy2static
from dy2static import cli, config
from dy2static.errors import ExportWarning

MODULE = """
import chainer, chainer.functions as F, chainer.links as L
class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 3)
    def forward(self, x, n=1):
        return F.relu(self.l(x)) * n
net = Net()
def f(x):
    return F.relu(x) + 1 if float(F.sum(x).array) > 0 else x
def cut(x):
    return x.array.ctypes.shape[0]
class Given(chainer.Link):
    def __init__(self, n): super().__init__()
class Called:
    def __call__(self, x): return F.relu(x)
called = Called()
def fails(x):
    return F.reshape(x, (7,))
def scaled(x, n=1, t=None):
    return x - t * n
def mean(x):
    return F.mean(x) if len(x) > 1 else F.sum(x) * 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "of_the_user.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    sys.modules.pop("of_the_user", None)


X = ("-i", "x=2x4:float32")

#: Command lines, and what they print.
COMMANDS = {
    ("code", "of_the_user:f"): "_dy.if_exp(",
    ("code", "of_the_user.py:f", "--stages", "--diff"): "+++ Calls",
    ("explain", "of_the_user:net", *X, "-i", "n=3"): "| graph: LinearFunction; graph: ReLU; graph: MulConstant",
    ("graph", "of_the_user:Net", "-i", "2x4:float32"): "= matmul(x1, l_w, transb=True)",
    ("graph", "of_the_user:f", "-i", "2x4:float32", "--svg", "f.svg"): "wrote f.svg",
    ("bench", "of_the_user:net.forward", *X, "--calls", "3", "--backward"): "Net.forward: medians of 3 calls, alternately, with gradients",
    ("profile", "of_the_user:f", *X, "--calls", "3"): "f: 3 calls of",
    ("explore", "of_the_user:f", *X, "--calls", "2"): "wrote explorer.html",
    ("explain", "of_the_user:called", "-i", "2x4"): "argument 1: ndarray (2, 4) float32",
    ("explain", "of_the_user:fails", "-i", "2x4"): "a call that raises it shows where",
    ("cache", "size"): " files in ",
    ("completion", "bash"): "_DY2STATIC_COMPLETE",
    ("--version",): "dy2static, version ",
}


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_commands(arguments, capsys):
    assert cli.main(arguments) == 0
    assert COMMANDS[arguments] in capsys.readouterr().out


#: Mistakes, the exit status, and what is said.
MISTAKES = {
    ("explain", "of_the_user"): (1, "names no function"),
    ("explain", "of_the_user:g"): (1, "hint: there is Net, net, f, cut"),
    ("explain", "not_there:f"): (1, "there is no module not_there"),
    ("explain", "not_there.py:f"): (1, "there is no file not_there.py"),
    ("explain", "of_the_user:Given"): (1, "cannot be made without arguments"),
    ("explain", "of_the_user:F"): (1, "is no function of Python's, and no Link: module"),
    ("explain", "of_the_user:f", "-i", "x=2x4:float3"): (2, "there is no dtype 'float3'"),
    ("explain", "of_the_user:f", "-i", "x=what"): (2, "is neither an array nor a value"),
    ("explain", "of_the_user:f", "-i", "x=@no.npy"): (2, "no.npy cannot be read"),
    ("explain", "of_the_user:f", "-i", "x=@/dev/null"): (2, "/dev/null cannot be read as an array"),
    ("export", "of_the_user:f", *X, "-o", ""): (2, "the path is empty"),
    ("explain", "of_the_user:f", "-i", "x=3:int32<0"): (2, "no int32 is below 0"),
    ("explain", "of_the_user:f", "-i", "x=3:object"): (2, "there is no dtype 'object' of numbers"),
    ("explain", "of_the_user:f"): (1, "cannot be called with these inputs: missing a required argument: 'x'\n  hint: give"),
    ("explain", "of_the_user:Net.forward", *X): (1, "missing a required argument: 'self'\n  hint: name a method of an object"),
    ("graph", "of_the_user:f", *X, "--svg", "no/f.svg"): (1, "FileNotFoundError: [Errno 2] No such file or directory: 'no/f.svg'"),
    ("export", "of_the_user:net", "-i", "x=Nx4", "-o", "a.onnx", "--weights", "no.npz"): (2, "'no.npz' does not exist"),
    ("explain", "of_the_user:cut", *X, "--strict"): (1, ""),
    ("explains", "of_the_user:f"): (2, "No such command 'explains'"),
    ("bench", "of_the_user:f", *X, "--calls", "0"): (2, "is not in the range"),
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_mistakes(arguments, capsys):
    status, text = MISTAKES[arguments]
    assert cli.main(arguments) == status
    assert text in capsys.readouterr().err


#: Weights of a file, and what is said of them.
WEIGHTS = {
    "other": ({"l/W": np.zeros((3, 9)), "l/b": np.zeros(3)}, "l/W has the shape (3, 9) in the file, and (3, 4) in the Link"),
    "repeated": ({"l/W": np.zeros((1, 4)), "l/b": np.zeros(3)}, "l/W has the shape (1, 4) in the file"),
    "fewer": ({"l/W": np.zeros((3, 4))}, "does not hold the weights of of_the_user:net: l/b is not a file"),
    "right": ({"l/W": np.zeros((3, 4)), "l/b": np.zeros(3)}, ""),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_wrong_weights(name, capsys):
    arrays, text = WEIGHTS[name]
    np.savez("weights.npz", **arrays)
    command = ["export", "of_the_user:net", "-i", "x=Nx4", "-o", "made", "--format", "c", "--weights", "weights.npz"]
    assert cli.main(command) == int(bool(text))
    assert text in capsys.readouterr().err and os.path.exists("made") == (not text)
    with open("weights.npz", "r+b") as file:
        file.seek(100)
        file.write(b"damaged")
    assert cli.main(command) == 1 and "Bad CRC-32" in capsys.readouterr().err
    assert cli.main([*command[:1], "of_the_user:f", *command[2:]]) == 1 and "--weights are for a Link" in capsys.readouterr().err


def test_inputs_of_exports_belong_to_the_arguments_that_they_name(capsys):
    ReferenceEvaluator = pytest.importorskip("onnx.reference").ReferenceEvaluator   # noqa: N806

    def export(*inputs):
        given = [word for text in inputs for word in ("-i", text)]
        return cli.main(["export", "of_the_user.py:scaled", *given, "-o", "scaled.onnx"]), capsys.readouterr()

    status, said = export("t=Nx4", "x=Nx4")
    assert status == 0 and said.out == "wrote scaled.onnx: x, t -> output\n"
    ran = ReferenceEvaluator("scaled.onnx").run(None, {"x": np.full((3, 4), 5, "f"), "t": np.full((3, 4), 2, "f")})
    np.testing.assert_array_equal(ran[0], np.full((3, 4), 3, "f"))
    for inputs, text in [(("t=Nx4",), "missing a required argument: 'x'"), (("x=Nx4", "x=Nx4"), "the same argument is given twice")]:
        status, said = export(*inputs)
        assert status == 1 and text in said.err
    assert export("of_mine=Nx4", "t=Nx4")[1].out == "wrote scaled.onnx: of_mine, t -> output\n"
    with pytest.warns(ExportWarning, match="mean is exported for batch of 2 or more") as caught:
        assert cli.main(["export", "of_the_user.py:mean", "-i", "x=Nx4", "-o", "mean.onnx"]) == 0


def test_errors_of_the_user_show_the_lines_of_the_user(tmp_path, capsys):
    (tmp_path / "imports.py").write_text("import of_nobody")
    (tmp_path / "broken.py").write_text("def f(x:")
    for arguments, first, last in [
            (("bench", "of_the_user:fails", *X), 'of_the_user.py", line 21, in fails', "Actual: 8 != 7"),
            (("code", "imports.py:f"), 'imports.py", line 1, in <module>', "ModuleNotFoundError: No module named 'of_nobody'"),
            (("code", "broken.py:f"), 'broken.py", line 1', "SyntaxError: ")]:
        assert cli.main(arguments) == 1
        lines = capsys.readouterr().err.splitlines()
        assert first in lines[lines[0].startswith("Traceback")] and lines[-1].startswith(last), lines


def test_json(capsys):
    def data(*arguments):
        assert cli.main([*arguments, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    found = data("explain", "of_the_user:f", *X)
    assert found["reason"] is None and found["functions"][0]["lines"][1]["marks"][0] == {"kind": "graph", "text": "Sum", "why": ""}
    assert {"eager_seconds", "compiled_seconds", "ratio"} <= data("bench", "of_the_user:f", *X, "--calls", "2").keys()
    assert data("profile", "of_the_user:f", *X, "--calls", "2")["calls"] == 2
    names = [fact["name"] for fact in data("doctor")]
    assert names[:3] == ["C compiler", "cache", "threads"] and {"onnx", "cupy", "mpi4py", "safetensors"} <= set(names)


def test_arrays_of_inputs():
    from dy2static.cli.target import arguments_of
    np.save("a.npy", np.arange(3))
    args, kwargs = arguments_of(["2x3:float32", ":float64", "t=5:int32<10", "m=4:bool", "n=3", "a=@a.npy", "s='x'", "l=[1, 2]"])
    assert [(a.shape, a.dtype.name) for a in args] == [((2, 3), "float32"), ((), "float64")]
    assert kwargs["t"].dtype == np.int32 and 0 <= kwargs["t"].min() <= kwargs["t"].max() < 10 and kwargs["m"].dtype == bool
    assert (kwargs["n"], kwargs["s"], kwargs["l"], list(kwargs["a"])) == (3, "x", [1, 2], [0, 1, 2])


def test_doctor_without_a_compiler(capsys):
    with config.CC.set("no-such-compiler"):
        assert cli.main(["doctor", "--json"]) == 0
    fact = json.loads(capsys.readouterr().out)[0]
    assert fact["found"].startswith("none: there is no C compiler (no-such-compiler)") and "NumPy" in fact["cost"]
    assert "apt-get install gcc" in fact["remedy"]


def test_the_cache(tmp_path, capsys):
    with config.CACHE_DIR.set(str(tmp_path / "cache")):
        assert cli.main(["cache", "verify"]) == 0
        from dy2static.native import store
        open(os.path.join(store.directory(), "damaged.so"), "w").close()
        assert cli.main(["cache", "verify"]) == 1 and "damaged: damaged.so" in capsys.readouterr().out
        assert cli.main(["cache", "list"]) == 0 and "damaged: it is made again" in capsys.readouterr().out
        assert cli.main(["cache", "clear"]) == 0 and not store.entries()


@pytest.mark.skipif(os.name == "nt", reason="pipes close otherwise there")
def test_a_closed_pipe_is_no_traceback():
    command = f"{sys.executable} -m dy2static code of_the_user:f --stages | true"
    root = os.path.dirname(os.path.dirname(dy2static.__file__))
    found = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                           env=dict(os.environ, PYTHONPATH=root))
    assert found.stdout == found.stderr == ""
