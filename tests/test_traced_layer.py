"""`TracedLayer`: what it gives, in which mode, with which parameters; and the models that it saves."""
import contextlib

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import Executor, TracedLayer, to_static


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
        return x.flat[0]


@pytest.mark.parametrize("layer, message", [
    (lambda x: x, "takes a Link, not function"), (Unfit(), "`.flat` of an array"), (chainer.Chain(), "neither forward nor __call__")])
def test_wrong_layers(layer, message):
    with pytest.raises(dy2static.Dy2StaticError, match=message):
        TracedLayer.trace(layer, [x_(4, 3)])
