"""What saved models keep of the objects that their functions read and write."""
import os

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer.link_hooks import SpectralNormalization, WeightStandardization
from saved_programs import CASES, array, assert_same, chain, linear, run

from dy2static import InputSpec, SaveError, SaveWarning, load, save, to_static


class Stateful(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.lstm, self.out = L.LSTM(3, 4), L.Linear(4, 2)
        self.seen, self.steps = [], 0

    def forward(self, x):
        self.steps += 1
        self.seen.append(self.steps)
        return self.out(self.lstm(x))


def test_state_of_calls(tmp_path):
    """A recurrent model that was called, and is as before the first step: programs for that state, and for those after it."""
    np.random.seed(0)
    model = to_static(Stateful())
    for k in range(4):
        model(array(2, 3, seed=k))
    model.lstm.reset_state()
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.steps == 4 and loaded.seen == [1, 2, 3, 4]
    for k in range(3, 6):
        assert_same(run(loaded, loaded, (array(2, 3, seed=k),)), run(model, model, (array(2, 3, seed=k),)))
    assert loaded.seen == model.seen == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(loaded.lstm.h.array, model.lstm.h.array, rtol=1e-5)
    model.lstm.reset_state()
    loaded.lstm.h = loaded.lstm.c = None
    assert_same(run(loaded, loaded, (array(2, 3),)), run(model, model, (array(2, 3),)))


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_state_of_calls_to_come(backend, tmp_path):
    """A recurrent model that was never called: the state before the first step, and after it, for any size of a batch."""
    np.random.seed(0)
    model = Stateful()
    save(model, tmp_path / "m", [InputSpec([None, 3])])
    assert model.lstm.h is None and model.steps == 0
    loaded = load(tmp_path / "m", backend=backend)
    for n in (3, 1, 5):
        model.lstm.reset_state()
        loaded.lstm.h = loaded.lstm.c = None
        losses = []
        for each in (model, loaded):
            losses.append(sum([F.sum(each(array(n, 3, seed=k)) ** 2) for k in range(4)]))
            each.cleargrads()
            losses[-1].backward()
        np.testing.assert_allclose(losses[1].array, losses[0].array, rtol=1e-5)
        np.testing.assert_allclose(loaded.lstm.upward.W.grad, model.lstm.upward.W.grad, rtol=1e-4, atol=1e-6)
    assert loaded.seen == model.seen


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_trained_on_and_saved_again(backend, tmp_path):
    """The original and the loaded model take the same steps; what is then saved has the new parameters."""
    model = CASES["normalised"].make()
    save(model, tmp_path / "m", [InputSpec([None, 2, 6, 6])])
    loaded = load(tmp_path / "m", backend=backend)
    optimizers = [chainer.optimizers.MomentumSGD(0.05).setup(each) for each in (model, loaded)]
    for step in range(4):
        x, t = array(5, 2, 6, 6, seed=step), np.arange(5, dtype=np.int32) % 2
        losses = [optimizer.update(lambda: F.softmax_cross_entropy(optimizer.target(x), t)) for optimizer in optimizers]
        assert losses == [None, None]
    for (name, a), (other, b) in zip(sorted(loaded.namedparams()), sorted(model.namedparams())):
        assert name == other
        np.testing.assert_allclose(a.array, b.array, rtol=1e-4, atol=1e-6)
    save(loaded, tmp_path / "again")
    again = load(tmp_path / "again")
    with chainer.using_config("train", False):
        np.testing.assert_allclose(again(array(2, 2, 6, 6)).array, model(array(2, 2, 6, 6)).array, rtol=1e-4, atol=1e-6)


def test_serializers(tmp_path):
    """Parameters have the names they had."""
    model = CASES["normalised"].make()
    save(model, tmp_path / "m", [InputSpec([None, 2, 6, 6])])
    loaded = load(tmp_path / "m")
    for p in loaded.params():
        p.array[...] += 1
    chainer.serializers.save_npz(str(tmp_path / "p.npz"), loaded)
    chainer.serializers.load_npz(str(tmp_path / "p.npz"), model)
    np.testing.assert_array_equal(model.conv.W.array, loaded.conv.W.array)


def test_sequential(tmp_path):
    np.random.seed(0)
    model = chainer.Sequential(L.Linear(4, 5), F.relu, L.Linear(5, 2))
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    assert isinstance(loaded, chainer.ChainList) and len(loaded) == 2
    assert [name for name, _ in sorted(loaded.namedparams())] == [name for name, _ in sorted(model.namedparams())]
    assert_same(run(loaded, loaded, (array(3, 4),)), run(model, model, (array(3, 4),)))


def test_function_with_a_model_of_its_closure(tmp_path):
    """Its Link is a child of what is loaded, so that optimizers find the parameters."""
    model = CASES["mlp"].make()

    def predict(x, temperature=2.0):
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return F.softmax(model(x) / temperature)
    save(predict, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    np.testing.assert_allclose(loaded(array(3, 4)).array, predict(array(3, 4)).array, rtol=1e-5)
    assert len(list(loaded.params())) == 4


class Counting:
    """An object that is called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * self.calls


def counting_in_a_cell():
    calls = 0

    def scaled(x):
        nonlocal calls
        calls += 1
        return x * calls
    return scaled


def counting_in_a_default(x, calls=[0]):  # noqa: B006
    calls[0] += 1
    return x * calls[0]


@pytest.mark.parametrize("make", [Counting, counting_in_a_cell, lambda: counting_in_a_default])
def test_counts_of_functions(make, tmp_path):
    """One program for all counts, whether they are in an object, a closure or a list."""
    counting = make()
    save(counting, tmp_path / "m", [InputSpec([None])])
    loaded = load(tmp_path / "m")
    for count in range(1, 4):
        np.testing.assert_array_equal(loaded(array(count)), array(count) * count)


class Settings:
    def __init__(self):
        self.scale, self.activation, self.names = 2.0, F.tanh, ["a", "b"]


class Translator(chainer.Chain):
    """Two methods of one model."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.encoder, self.decoder = L.Linear(4, 3), L.Linear(3, 4)

    def forward(self, x):
        return F.mean_squared_error(self.decoder(self.encode(x)), x)

    @to_static
    def encode(self, x, scale=1.0):
        return F.tanh(self.encoder(x)) * scale

    @to_static(input_spec=[InputSpec([None, 3])])
    def decode(self, h):
        return self.decoder(h)

    @to_static
    def never_called(self, h):
        return h

    @to_static
    def on_the_host(self, h):
        open(os.devnull).close()
        return h * 2


def test_several_methods(tmp_path):
    """Compiled methods that were called, or have a spec, are saved together with what a call of the Link runs."""
    np.random.seed(0)
    model = Translator()
    model.encode(array(2, 4), 0.5)
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    for _ in range(2):
        for a, b in ((loaded(array(3, 4)), model(array(3, 4))), (loaded.encode(array(2, 4), scale=0.5), model.encode(array(2, 4), 0.5)),
                     (loaded.decode(array(5, 3)), model.decode(array(5, 3)))):
            np.testing.assert_allclose(a.array, b.array, rtol=1e-5)
        assert not hasattr(loaded, "never_called") and not hasattr(loaded, "on_the_host")
        save(loaded, tmp_path / "again")
        loaded = load(tmp_path / "again")
    optimizer = chainer.optimizers.SGD(0.1).setup(loaded)
    loaded.cleargrads()
    F.sum(loaded.encode(array(2, 4), 0.5)).backward()
    optimizer.update()
    assert not np.allclose(loaded.encode(array(2, 4), 0.5).array, model.encode(array(2, 4), 0.5).array)
    model.on_the_host(array(2, 3))
    with pytest.warns(SaveWarning, match="on_the_host is not saved: .*host"):
        save(model, tmp_path / "m", [InputSpec([None, 4])])
    save(model.encode, tmp_path / "one")
    np.testing.assert_allclose(load(tmp_path / "one")(array(2, 4), 0.5).array, model.encode(array(2, 4), 0.5).array, rtol=1e-6)


def test_objects_that_a_model_holds(tmp_path):
    """Plain objects, lists of Links that are no children, functions; and what programs change of them."""
    def forward(self, x):
        h = self.settings.activation(self.l1(x)) * self.settings.scale
        for block in self.blocks:
            h = block(h)
        self.settings.scale = self.settings.scale * 0.5
        return h, self.settings.names[0]
    model = chain(forward, l1=linear(4, 3))
    model.settings, model.blocks = Settings(), [L.Linear(3, 3), L.Linear(3, 3)]
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    for _ in range(3):
        assert_same(run(loaded, loaded, (array(2, 4),)), run(model, model, (array(2, 4),)))
    assert loaded.settings.scale == 0.25 and len(list(loaded.params())) == len(list(model.params())) == 2


def test_link_hooks(tmp_path):
    """What hooks of children do is in the graphs, with what they keep; those of the Link itself cannot be."""
    model = chain(lambda self, x: self.l2(F.relu(self.l1(x))), l1=linear(4, 5), l2=linear(5, 3))
    model.l1.add_hook(SpectralNormalization())
    model.l2.add_hook(WeightStandardization())
    model(array(2, 4))
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    for _ in range(3):
        assert_same(run(loaded, loaded, (array(2, 4),)), run(model, model, (array(2, 4),)))
    np.testing.assert_allclose(loaded.l1.W_u, model.l1.W_u, rtol=1e-5)
    with pytest.raises(SaveError, match="link hooks"):
        save(model.l1, tmp_path / "n", [InputSpec([None, 4])])
