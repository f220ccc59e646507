"""`TracedLayer`: what it gives, in which mode, with which parameters; and the models that it saves."""
import contextlib
import os
import pathlib
import subprocess
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import Executor, InputSpec, TracedLayer, load, load_inference_model, to_static


def x_(*shape):
    return np.random.RandomState(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


class MLP(chainer.Chain):
    """One input, one result; sizes are learned from the first call."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, 5)
            self.l2 = L.Linear(None, 2)

    def forward(self, x):
        return self.l2(F.dropout(F.relu(self.l1(x)), 0.5))


class Branching(chainer.Chain):
    """Decides and loops by values, with results of its own kind for each input."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 3)
            self.bn = L.BatchNormalization(3)

    def forward(self, x, y):
        h = self.bn(self.l(x))
        if float(F.sum(x).array) > 0:
            h = F.relu(h)
        else:
            h = -h
        n = 0
        while float(F.sum(y * y).array) < 10:
            y = y * 2
            n += 1
        return {"left": h, "right": [y, n]}


def leaves(result):
    if isinstance(result, dict):
        return [leaf for part in result.values() for leaf in leaves(part)]
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def same(mine, eager):
    mine, eager = leaves(mine), leaves(eager)
    assert len(mine) == len(eager)
    for one, other in zip(mine, eager):
        np.testing.assert_allclose(np.asarray(getattr(one, "array", one)), np.asarray(getattr(other, "array", other)), 1e-5, 1e-6)


def inputs_of(layer, batch=4, sign=1):
    if isinstance(layer, Branching):
        return [abs(x_(batch, 3)) * sign, x_(batch + 1, 2)]
    return [x_(batch, 3)]


@contextlib.contextmanager
def as_written():
    dy2static.enable_to_static(False)
    try:
        yield
    finally:
        dy2static.enable_to_static(True)


LAYERS = {
    "mlp": MLP, "branches and loops": Branching, "compiled class": lambda: to_static(type("Static", (MLP,), {}))(),
    "compiled link": lambda: to_static(MLP()), "of Chainer": lambda: chainer.Sequential(L.Linear(3, 4), F.relu),
}


@pytest.mark.parametrize("mode", [True, False], ids=["train", "test"])
@pytest.mark.parametrize("name", LAYERS)
def test_outputs(name, mode):
    """Traced in one mode, it stays in that; other sizes and ways through decisions are taken."""
    layer = LAYERS[name]()
    with chainer.using_config("train", mode):
        np.random.seed(3)
        outputs, traced = TracedLayer.trace(layer, inputs_of(layer))
        eager = layer.copy("copy")
        np.random.seed(3)
    for batch, sign in ((4, 1), (3, 1), (5, -1), (6, -1)):
        inputs = inputs_of(layer, batch, sign)
        with as_written(), chainer.using_config("train", mode):
            np.random.seed(4)
            expected = eager(*inputs)
        np.random.seed(4)
        got = traced(inputs)
        assert isinstance(got, list)
        same(got, expected)
        np.random.seed(4)
        same(traced.program.run(dict(zip(traced.program.feed_names, inputs))), expected)


def test_names_and_program():
    layer = Branching()
    outputs, traced = TracedLayer.trace(layer, inputs_of(layer))
    assert set(outputs) == {"left", "right"}
    assert traced.program.feed_names == ["x", "y"]
    assert [t.name for t in traced.program.fetch_targets] == ["left", "right", "right_1"]
    assert "if_(" in str(traced.program.graph) and "while_(" in str(traced.program.graph)
    assert repr(traced) == "<traced <program: x, y -> left, right, right_1>>"
    with chainer.using_config("train", False):
        left, n = Executor().run(traced.program, dict(zip("xy", inputs_of(layer))), ["left", "right_1"])
        same([left, n], [outputs["left"], outputs["right"][1]])
    assert traced.set_strategy(build_strategy=object(), exec_strategy=object()) is None


def test_one_input_needs_no_list():
    layer = MLP()
    with chainer.using_config("train", False):
        outputs, traced = TracedLayer.trace(layer, x_(4, 3))
    same(traced(x_(4, 3)), outputs)
    same(traced(chainer.Variable(x_(4, 3))), outputs)
    same(traced((x_(4, 3),)), outputs)


def test_parameters_are_those_of_the_layer():
    layer = L.Linear(3, 2)
    _, traced = TracedLayer.trace(layer, [x_(4, 3)])
    x = chainer.Variable(x_(4, 3))
    y, = traced([x])
    layer.cleargrads()
    F.sum(y * y).backward()
    np.testing.assert_allclose(layer.W.grad, 2 * y.array.T.dot(x.array), 1e-5)
    np.testing.assert_allclose(x.grad, 2 * y.array.dot(layer.W.array), 1e-5)
    layer.W.array[...] = 0
    layer.b.array[...] = 7
    assert (traced([x])[0].array == 7).all()
    assert type(layer) is L.Linear and type(layer).forward is L.Linear.forward, "the Link is as it was"


class Unfit(chainer.Chain):
    def forward(self, x):
        return x.ctypes.shape[0]


@pytest.mark.parametrize("layer, message", [
    (lambda x: x, "takes a Link, not function"), (Unfit(), "`.ctypes` of an array"), (chainer.Chain(), "neither forward nor __call__")])
def test_wrong_layers(layer, message):
    with pytest.raises(dy2static.Dy2StaticError, match=message):
        TracedLayer.trace(layer, [x_(4, 3)])


# --- saved ---

class Several(chainer.Chain):
    """Results that need different inputs."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 4)
            self.l2 = L.Linear(4, 2)
            self.bn = L.BatchNormalization(4)

    def forward(self, x, t, z):
        h = self.l2(F.dropout(self.bn(self.l1(x))))
        if float(F.sum(x).array) > 0:
            h = h * 2
        loss = F.softmax_cross_entropy(h, t)
        return {"y": h, "loss": loss, "of size": np.ones((z.shape[0], 2), np.float32), "z": (z * 2, [x])}


def several(batch=4, of_z=5, sign=1):
    return [abs(x_(batch, 3)) * sign, np.arange(batch, dtype=np.int32) % 2, x_(of_z, 2)]


RESULTS = [("y",), ("loss",), ("of size",), ("z", 0), ("z", 1, 0)]
SIZES = [(4, 5, 1), (4, 5, -1), (7, 2, 1), (1, 5, -1), (3, 1, 1), (2, 2, 1)]


def in_result(result, path):
    for key in path:
        result = result[key]
    return result


PARTS = {
    "all": (None, None), "x to y": ([0], [0]), "t and x to loss and y": ([1, 0], [1, 0]), "z to z": ([2], [3]),
    "x and z": ([0, 2], [2, 4, 0]), "twice": ([0], [0, 4, 0]), "all inputs": ([0, 1, 2], [1]), "z for its size": ([2], [2]),
    "all results": (None, [0, 1, 2, 3, 4]), "nothing but inputs": ([0], [4]),
}


#: Which are saved in train mode, too: the mode matters where there are random numbers.
IN_TRAINING = ("all", "x to y")


#: Other parts are cut out of what is saved of the whole in the same way: one Python has their tests.
FEW = [pytest.param(case, False, marks=() if case in IN_TRAINING else pytest.mark.any_python) for case in PARTS]


@pytest.mark.parametrize("case, mode", FEW + [(case, True) for case in IN_TRAINING])
def test_inference_model(case, mode, tmp_path):
    """Any batch, both ways, as eager in the mode that was traced, whatever the mode is now."""
    feed, fetch = PARTS[case]
    layer = Several()
    with chainer.using_config("train", mode):
        _, traced = TracedLayer.trace(layer, several())
    eager = layer.copy("copy")
    traced.save_inference_model(tmp_path / "model", feed, fetch)
    for p in layer.params():
        p.array[...] = 0                                # what is saved is saved
    exe = Executor()
    program, feed_names, targets = load_inference_model(tmp_path / "model", exe)
    fed = [0, 1, 2] if feed is None else feed
    paths = RESULTS if fetch is None else [RESULTS[k] for k in fetch]
    assert feed_names == ["xtz"[k] for k in fed] and len(targets) == len(paths) and program.train is mode
    for sizes in SIZES if not mode else SIZES[:3]:
        inputs = several(*sizes)
        with as_written(), chainer.using_config("train", mode):
            np.random.seed(5)
            expected = eager(*inputs)
        np.random.seed(5)
        found = exe.run(program, {name: inputs[k] for name, k in zip(feed_names, fed)}, fetch_list=targets)
        same(found, [in_result(expected, path) for path in paths])


@pytest.mark.parametrize("feed, fetch, message", [
    ([0], [1], "needs 't', which is not fed"), ([], [0], "needs 'x', which is not fed"), ([1], None, "needs 'x' and 'z', which are"),
    ([0], [2], "needs 'z', which is not fed"), ([3], [0], "no input 3"), ([0], [5], "no result 5"), ([0], [-1], "no result -1")],
    ids=str)
def test_what_is_not_fed_is_missed(feed, fetch, message, tmp_path):
    _, traced = TracedLayer.trace(Several(), several())
    with pytest.raises(dy2static.Dy2StaticError, match=message):
        traced.save_inference_model(tmp_path / "model", feed, fetch)
    assert not list(tmp_path.iterdir())


class Checking(chainer.Chain):
    """Prints one input, and raises for it."""

    def forward(self, x, y):
        if float(y.sum()) < 0:
            raise ValueError("negative")
        return x * 2


def test_effects_need_their_inputs(tmp_path):
    _, traced = TracedLayer.trace(Checking(), [x_(4, 3), abs(x_(4, 3))])
    with pytest.raises(dy2static.Dy2StaticError, match="or an effect, needs 'y'"):
        traced.save_inference_model(tmp_path / "model", feed=[0])
    traced.save_inference_model(tmp_path / "model")
    program, names, _ = load_inference_model(tmp_path / "model")
    with pytest.raises(ValueError, match="negative"):
        program.run(dict(zip(names, [x_(4, 3), -abs(x_(4, 3))])))


class Rows(chainer.Chain):
    """Needs the number of its rows."""

    def forward(self, x):
        return x * np.hanning(x.shape[0]).astype("f")[:, None]


def test_sizes_that_cannot_be_free(tmp_path):
    """Told, and saved as they were; or as an InputSpec wants."""
    _, traced = TracedLayer.trace(Rows(), [x_(4, 3)])
    with pytest.warns(dy2static.SaveWarning, match="for arrays of these sizes only"):
        traced.save_inference_model(tmp_path / "model")
    program, _, _ = load_inference_model(tmp_path / "model")
    same(program.run({"x": x_(4, 3)}), Rows().forward(x_(4, 3)))
    with pytest.raises(dy2static.Dy2StaticError, match=r"\(4, 3\)"):
        program.run({"x": x_(5, 3)})
    traced.save_inference_model(tmp_path / "other", input_spec=[InputSpec([2, None], name="rows")])
    program, _, _ = load_inference_model(tmp_path / "other")
    for n in (3, 7):
        same(program.run({"x": x_(2, n)}), Rows().forward(x_(2, n)))
    with pytest.raises(dy2static.SaveError):
        traced.save_inference_model(tmp_path / "other", input_spec=[InputSpec([None, 3])])


def test_names_of_input_specs_are_fed(tmp_path):
    method = to_static(input_spec=[InputSpec([None, 3], name="image")], strict=True)(MLP.forward)
    layer = type("Named", (MLP,), {"forward": method})()
    with chainer.using_config("train", False):
        outputs, traced = TracedLayer.trace(layer, [x_(4, 3)])
    assert traced.program.feed_names == ["image"]
    traced.save_inference_model(tmp_path / "model", [0], [0])
    program, names, targets = load_inference_model(tmp_path / "model")
    assert names == ["image"]
    same(program.run({"image": x_(4, 3).tolist()}, targets), outputs)


def test_models_of_save_and_for_load(tmp_path):
    """`load_inference_model` takes what `save` wrote, and `load` what `save_inference_model` wrote."""
    layer = MLP()
    layer(x_(4, 3))
    with chainer.using_config("train", False):
        outputs, traced = TracedLayer.trace(layer, [x_(4, 3)])
    dy2static.save(layer, tmp_path / "one", [InputSpec([None, 3])])
    traced.save_inference_model(tmp_path / "other")
    program, names, targets = load_inference_model(tmp_path / "one")
    same(program.run({"x": x_(4, 3)}), outputs)
    assert (names, program.train, targets[0].shape) == (["x"], False, (None, 2))
    loaded = load(tmp_path / "other")
    with chainer.using_config("train", False):
        y = loaded(x_(4, 3))
    same(y, outputs)
    y.backward() if y.size == 1 else F.sum(y).backward()
    assert all(p.grad is not None for p in loaded.params())
    with pytest.raises(FileNotFoundError):
        load_inference_model(tmp_path / "none")


def test_a_loaded_layer_is_traced(tmp_path):
    """Fine-tuned, and saved again with some inputs and results."""
    layer = Several()
    dy2static.save(layer, tmp_path / "one", [InputSpec([None, 3]), InputSpec([None], "int32"), InputSpec([5, 2])])
    loaded = load(tmp_path / "one")
    optimizer = chainer.optimizers.SGD().setup(loaded)
    for _ in range(3):
        loaded.cleargrads()
        loaded(*several())["loss"].backward()
        optimizer.update()
    with chainer.using_config("train", False):
        outputs, traced = TracedLayer.trace(loaded, several())
    assert traced.program.feed_names == ["x", "t", "z"] and len(traced.program.fetch_targets) == 5
    same(traced(several()), outputs)
    traced.save_inference_model(tmp_path / "other", feed=[0], fetch=[0])
    program, names, _ = load_inference_model(tmp_path / "other")
    assert names == ["x"] and program.train is False
    for batch, _, sign in SIZES:
        inputs = several(batch, 5, sign)
        same(program.run({"x": inputs[0]}), [traced(inputs)[0]])
    with pytest.raises(dy2static.Dy2StaticError, match="needs 't'"):
        traced.save_inference_model(tmp_path / "other", feed=[0], fetch=[1])


def test_another_process_needs_no_model(tmp_path):
    layer = Branching()
    inputs = inputs_of(layer)
    with chainer.using_config("train", False):
        _, traced = TracedLayer.trace(layer, inputs)
        traced.save_inference_model(tmp_path / "model", fetch=[0, 2])
        expected = layer(*inputs)
    np.savez(tmp_path / "given.npz", x=inputs[0], y=inputs[1])
    text = """
        import sys
        import numpy as np
        from dy2static import CPUPlace, Executor, load_inference_model
        exe = Executor(CPUPlace())
        program, names, targets = load_inference_model("model", exe)
        found = exe.run(program, dict(np.load("given.npz")), targets)
        np.savez("found.npz", *found)
        """
    text = "\n".join(line.strip() for line in text.splitlines())
    root = pathlib.Path(dy2static.__file__).resolve().parent.parent
    subprocess.run([sys.executable, "-c", text], cwd=tmp_path, check=True, env={**os.environ, "PYTHONPATH": str(root)})
    found = np.load(tmp_path / "found.npz")
    same([found["arr_0"], found["arr_1"]], [expected["left"], expected["right"][1]])


def test_names_of_an_input_spec(tmp_path):
    """`save` keeps them, and an executor feeds by them."""
    dy2static.save(lambda x, y: x * 2 + y, tmp_path / "m", [InputSpec([None, 2], name="image"), InputSpec([None, 2])])
    program, names, targets = load_inference_model(tmp_path / "m")
    assert names == ["image", "y"]
    ones = np.ones((3, 2), np.float32)
    found, = Executor().run(program, feed={"image": ones, "y": ones}, fetch_list=targets)
    np.testing.assert_array_equal(found, 3 * ones)
