"""``recompute=``: less is kept for the backward; values, gradients, draws and warnings stay what they were."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import config, to_static
from dy2static.backends.c.executor import Bundle
from dy2static.errors import SignatureError
from dy2static.ir.graph import Value
from dy2static.ir.types import Tensor, python_scalar
from dy2static.native import compiler
from dy2static.passes.memory import rematerialize
from dy2static.passes.memory.min_cut import Network

MODES = ("auto", "cheap", "sublinear", 3000, 0)


@pytest.fixture(autouse=True)
def every_byte_is_worth_it(monkeypatch):
    """The default computes again in small programs, too."""
    monkeypatch.setattr(rematerialize, "_WORTH", 1)


class Net(chainer.Chain):
    """Convolutions, batch normalisation, dropout, pooling, layer normalisation."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c1, self.c2 = L.Convolution2D(2, 4, 3, pad=1), L.Convolution2D(4, 4, 3, pad=1)
            self.bn, self.ln, self.l = L.BatchNormalization(4), L.LayerNormalization(16), L.Linear(16, 8)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.bn(self.c1(x))), 2)
        h = F.dropout(F.tanh(self.ln(F.reshape(self.c2(h), (len(x), -1)))), 0.3)
        for _ in range(3):
            h = h * F.sigmoid(h)
        return F.sum(F.tanh(self.l(h)) ** 2)


class Stack(chainer.ChainList):
    def __init__(self):
        super().__init__(*[L.Linear(8, 8) for _ in range(16)])

    def forward(self, x):
        for layer in self:
            x = F.relu(layer(x))
        return F.sum(x * x)


class Deciding(chainer.Chain):
    """Decisions and a loop on array values, with plain layers around them."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2 = L.Linear(8, 8), L.Linear(8, 8)

    def forward(self, x):
        h = F.tanh(F.sigmoid(self.l1(x)) * 2)
        if float(F.sum(h).array) > 0:
            h = F.exp(h) * F.sin(h)
        else:
            h = F.exp(-h)
        k = 0
        while float(F.sum(F.absolute(h)).array) > 3:
            h = h * 0.5 - F.tanh(h) * 0.1
            k += 1
        return F.sum(F.tanh(F.sigmoid(self.l2(h)) * 3)) * k


class Counting(chainer.Chain):
    """Writes into an array that the gradient needs as it was, and into one that nothing else needs."""

    def __init__(self):
        super().__init__()
        self.scale, self.calls = np.full((8,), 0.7, "f"), np.zeros((1,), "f")
        with self.init_scope():
            self.l = L.Linear(8, 8)

    def forward(self, x):
        h = F.tanh(self.l(x) * (self.scale * 2))
        self.scale *= 0.9
        self.calls += 1
        return F.sum(F.exp(F.tanh(h)))


NETS = {"net": (Net, (2, 2, 4, 4)), "stack": (Stack, (4, 8)), "deciding": (Deciding, (4, 8)), "counting": (Counting, (4, 8))}


def trained(make, shape, steps=3, **options):
    """All that some steps of training give, and the function."""
    np.random.seed(1)
    model = make()
    function = to_static(lambda x: model(x), strict=True, **options) if options else model
    found = []
    for k in range(steps):
        x = chainer.Variable(np.random.RandomState(k).uniform(-1, 1, shape).astype("f"))
        loss = function(x)
        model.cleargrads()
        loss.backward()
        found += [loss.array.copy(), x.grad.copy(), np.random.random_sample(2)]
        for parameter in model.params():
            found.append(parameter.grad.copy())
            parameter.array -= 0.05 * parameter.grad
        found += [np.array(value) for link in model.links() for value in vars(link).values() if isinstance(value, np.ndarray)]
    return found, function


def plan_of(function):
    return function.dispatcher.programs[0].segments[0].plan


def saved_bytes(function):
    return sum(value.nbytes for value in plan_of(function).saved)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETS)
def test_values_and_gradients_are_the_same_bit_by_bit(name, mode):
    expected, usual = trained(*NETS[name], backend="numpy", recompute="none")
    found, function = trained(*NETS[name], backend="numpy", recompute=mode)
    for a, b in zip(expected, found):
        np.testing.assert_array_equal(a, b)
    assert saved_bytes(function) <= saved_bytes(usual)


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", NETS)
def test_native_programs(name, mode):
    for a, b in zip(trained(*NETS[name])[0], trained(*NETS[name], backend="c", recompute=mode)[0]):
        np.testing.assert_allclose(a, b, 2e-4, 2e-5)


def test_how_much_is_kept():
    kept = {mode: saved_bytes(trained(*NETS["stack"], steps=1, recompute=mode)[1]) for mode in ("none", "sublinear", 500, 0)}
    one = 4 * 8 * 4
    assert kept == {"none": 16 * one, "sublinear": kept["sublinear"], 500: 3 * one, 0: 0}
    assert kept["sublinear"] <= 8 * one
    usual, cheap = (saved_bytes(trained(*NETS["net"], steps=1, recompute=mode)[1]) for mode in ("none", "cheap"))
    assert cheap < 0.6 * usual


@pytest.mark.parametrize("mode", MODES)
def test_second_gradients(mode):
    def f(x, w):
        h = F.tanh(F.matmul(x, w))
        h = F.exp(F.sin(h) * h)
        return F.sum(F.sigmoid(F.matmul(h, w)) ** 3)

    def gradients(function):
        x, w = (chainer.Variable(np.random.RandomState(k).uniform(-1, 1, (4, 4)).astype("f")) for k in range(2))
        gx, = chainer.grad([function(x, w)], [x], enable_double_backprop=True)
        (F.sum(gx * gx) + F.sum(gx)).backward()
        return [gx.array, x.grad, w.grad]

    found = gradients(to_static(f, strict=True, backend="numpy", recompute=mode))
    for a, b in zip(gradients(to_static(f, strict=True, backend="numpy")), found):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(gradients(f), found):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_nothing_warns_twice(backend):
    def f(x):
        h = F.log(F.relu(x)) * 2
        return F.sum(F.tanh(F.where(h.array > -5, h, h * 0)))

    def warned(**options):
        function = to_static(f, strict=True, backend=backend, **options)
        x = chainer.Variable(np.array([0.0, 1.0, 2.0], "f"))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            function(x).backward()
        return [str(w.message) for w in seen]
    assert warned(recompute=0) == warned() != []


def changed_inputs(x, w):
    h = F.tanh(x * w + 1)
    return F.sum(F.sigmoid(F.exp(h) * F.sin(h)) * w)


def changed_result(x, w):
    h = F.tanh(F.tanh(x) * 2)
    g = F.exp(h) * 2
    return F.sum(F.tanh(F.sigmoid(F.sin(g) * F.exp(-g)) * 2)), h, g.array.T


def changed_leaf(x, w):
    v = chainer.Variable(x.array * 2)
    h = F.exp(F.sin(F.tanh(v * w)) * 2)
    return F.sum(F.tanh(h)), v


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("function", [changed_inputs, changed_result, changed_leaf], ids=lambda f: f.__name__)
def test_the_default_reads_nothing_that_others_may_change(function, backend):
    """Whatever is written into the arrays that the caller has before the backward, gradients are those that were."""
    def gradients(run):
        x, w = (chainer.Variable(np.random.RandomState(k).uniform(-1, 1, (4, 4)).astype("f")) for k in range(2))
        results = run(x, w)
        loss, *others = results if isinstance(results, tuple) else (results,)
        for item in (x, w, *others):
            (item if isinstance(item, np.ndarray) else item.array)[...] = 0.25
        loss.backward()
        return [x.grad, w.grad]
    compiled = to_static(function, strict=True, backend=backend)
    for usual in (function, to_static(function, strict=True, backend=backend, recompute="none")):
        for a, b in zip(gradients(usual), gradients(compiled)):
            assert (a is None) == (b is None) and (a is None or np.allclose(a, b, 1e-5, 1e-6))
    assert any(segment.plan.recomputes for segment in compiled.dispatcher.programs[0].segments)


def test_the_default_leaves_small_programs_alone(monkeypatch):
    def f(x):
        return F.sum(F.exp(F.sigmoid(F.tanh(x))))
    for worth, recomputes in ((1, True), (1 << 23, False)):
        monkeypatch.setattr(rematerialize, "_WORTH", worth)
        function = to_static(f, strict=True)
        function(chainer.Variable(np.ones((64, 64), "f"))).backward()
        assert plan_of(function).recomputes is recomputes


def test_draws_are_kept_in_their_smallest_form():
    def f(x):
        return F.sum(F.dropout(F.tanh(x), 0.4) ** 2)
    for mode in ("cheap", 0):
        for rng in ("eager", "fast"):
            function = to_static(f, strict=True, recompute=mode, rng=rng)
            function(chainer.Variable(np.ones((8, 8), "f"))).backward()
            assert [v.dtype.kind for v in plan_of(function).saved] == ["b"]


def test_the_setting_and_wrong_ones():
    def f(x):
        return F.sum(F.tanh(F.tanh(x)))
    for value, kept in (("none", 2), ("0", 0), ("cheap", 0), ("auto", 1)):
        with config.RECOMPUTE.set(value):
            function = to_static(f, strict=True)
            function(chainer.Variable(np.ones((4, 4), "f")))
            assert len(plan_of(function).saved) == kept
    for wrong in ("much", -1, 0.5, True):
        with pytest.raises(SignatureError, match="recompute"):
            to_static(f, recompute=wrong)
    with config.RECOMPUTE.set("much"), pytest.raises(SignatureError, match="recompute"):
        to_static(f, strict=True)(chainer.Variable(np.ones((4, 4), "f")))


def test_what_was_computed_again_is_near_what_reads_it():
    function = trained(*NETS["stack"], steps=1, backend="numpy", recompute="sublinear")[1]
    program, = function.dispatcher.programs[0].segments[0].backward.values()
    assert program.pool.arena_bytes < 8 * 4 * 8 * 4


def test_the_cheapest_cut_nearest_to_the_end():
    network = Network()
    for begin, end, capacity in (("s", "a", 5), ("a", "b", 2), ("b", "c", 2), ("s", "d", 1), ("d", "c", 9), ("c", "t", 3)):
        network.add(begin, end, capacity)
    assert network.sink_side("s", "t") == {"t"}
    network = Network()
    for begin, end, capacity in (("s", "a", 5), ("a", "b", 2), ("b", "t", 2), ("a", "t", 1)):
        network.add(begin, end, capacity)
    assert network.sink_side("s", "t") == {"t"}
    assert Network().sink_side("s", "t") == {"t"}


def test_the_bytes_of_a_value():
    assert Value(Tensor((2, 3), np.dtype("f"))).nbytes == 24
    assert Value(python_scalar("py_int")).nbytes == 0


@pytest.mark.parametrize("mode", ["cheap", 0])
def test_arrays_of_many_sizes(mode):
    model = Stack()
    f = to_static(lambda x: model(F.tanh(F.sigmoid(x))), strict=True, backend="numpy", recompute=mode)
    for rows in (3, 4, 5, 6, 3):
        x = chainer.Variable(np.random.RandomState(rows).uniform(-1, 1, (rows, 8)).astype("f"))
        found = []
        for function in (f, lambda x: model(F.tanh(F.sigmoid(x)))):
            x.cleargrad()
            model.cleargrads()
            function(x).backward()
            found.append([x.grad, model[0].W.grad])
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, 1e-4, 1e-5)
    program = f.dispatcher.programs[0]
    assert mode or not any(len(v.shape) == 2 for v in program.segments[0].plan.saved if hasattr(v.type, "shape"))


@pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")
def test_numbers_of_rows_divide_no_loop(monkeypatch):
    """What is made again for each row stands in front of the loop over all elements, which stores nothing on the way."""
    def normalised(x, gamma):
        h = x * gamma + 1
        h = 0.5 * h * (1 + F.tanh(0.8 * (h + 0.04 * h * h * h)))
        return F.sum(F.layer_normalization(h, gamma, gamma))

    x, gamma, texts = np.random.RandomState(0).randn(64, 512).astype("f"), np.linspace(1, 2, 512, dtype="f"), {}
    gradients, begin = [], Bundle.start
    monkeypatch.setattr(Bundle, "start", lambda bundle: [begin(bundle), texts.update({mode: bundle.source})])
    for mode in ("none", "auto"):
        compiled = to_static(normalised, backend="c", recompute=mode)
        a, b = chainer.Variable(x), chainer.Variable(gamma)
        compiled(a, b).backward()
        gradients.append((a.grad, b.grad))
    for kept, again in zip(*gradients):
        np.testing.assert_allclose(again, kept, 1e-4, 1e-5)
    # the last text of each is that of the backward
    assert "tanh_f32" in texts["auto"] and "tanh_f32" not in texts["none"]
    assert texts["auto"].count(" part_") <= texts["none"].count(" part_") + 2
