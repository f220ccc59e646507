"""Saved models: what is loaded does what was saved, in this process and in others, and is trained and saved again."""
import collections
import json
import os
import subprocess
import sys
import textwrap

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer.link_hooks import SpectralNormalization, WeightStandardization

import dy2static
from dy2static import InputSpec, SaveError, SaveWarning, TranslatedLayer, load, save, to_static
from dy2static.errors import SignatureError

Pair = collections.namedtuple("Pair", "total parts")
SCALE = 3
TABLE = np.arange(6, dtype=np.float32).reshape(2, 3)


def array(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def chain(forward, **links):
    """A Chain of these links whose ``forward`` is the function."""
    cls = type("Model", (chainer.Chain,), {"forward": forward})
    np.random.seed(0)
    return cls(**{name: make() for name, make in links.items()})


# The programs --------------------------------------------------------------------------------------------------------


def mlp(self, x):
    return self.l2(F.dropout(F.relu(self.l1(x)), 0.4))


def normalised(self, x):
    h = F.max_pooling_2d(F.relu(self.bn(self.conv(x))), 2)
    return self.l1(h)


def steps(x):
    rows = [F.tanh(x[:, i]) * i for i in range(x.shape[1])]
    return F.stack(rows[::-1]), rows[-1]


def branches(self, x):
    h = self.l1(x)
    if h.array.sum() > 0:
        h = F.tanh(h) * 2
    elif h.array.max() > 0.2:
        return -h
    return h + 1


def doubled(x):
    n = 0
    while F.sum(x * x).array < 10:
        x = x * 2
        n += 1
    return x, n


def collected(self, xs):
    hs = []
    for x in F.separate(xs, axis=0):
        if x.array.sum() > 0:
            hs.append(self.l1(x))
    return F.stack(hs).mean() if hs else F.sum(xs)


def structured(self, batch, scales, flag=True):
    a, b = batch["a"], batch["b"][0]
    y = self.l1(a) * scales[0] + b
    return {"y": y, "pair": Pair(F.sum(y), [y[0], None]), "n": len(scales), "flag": flag, "name": "y"}


def of_globals(x):
    return x * SCALE + TABLE


def by_contents(self, x, t):
    return F.softmax_cross_entropy(self.l2(F.embed_id(x, self.e.W)), t), F.argmax(self.l2(self.e(x)), axis=1)


def twice(self, x):
    return self.l1(F.sigmoid(self.l1(x))) * self.scale


def masked(x):
    y = x.array.copy()
    y[y < 0] = 0
    return F.sum(x * y), np.argsort(y, axis=1), float(y.max())


def linear(inner, outer):
    return lambda: L.Linear(inner, outer)


class Case:
    """A program, its arguments for a seed and a size, and what `save` is given."""

    def __init__(self, make, args, specs=None, sizes=(1, 2, 5)):
        self.make, self.args, self.specs, self.sizes = make, args, specs, sizes


def _with_scale():
    model = chain(twice, l1=linear(4, 4))
    model.scale = 0.5
    return model


CASES = {
    "mlp": Case(lambda: chain(mlp, l1=linear(4, 6), l2=linear(6, 3)), lambda n: (array(n, 4, seed=n),), [InputSpec([None, 4])]),
    "normalised": Case(
        lambda: chain(normalised, conv=lambda: L.Convolution2D(2, 3, 3), bn=lambda: L.BatchNormalization(3), l1=linear(12, 2)),
        lambda n: (array(n, 2, 6, 6, seed=n),), [InputSpec([None, 2, 6, 6])], (2, 5)),
    "branches": Case(lambda: chain(branches, l1=linear(4, 3)), lambda n: (array(n, 4, seed=n),), [InputSpec([None, 4])], (1, 2, 3, 6)),
    "while": Case(lambda: doubled, lambda n: (chainer.Variable(array(n, 3, seed=n)),), [InputSpec([None, 3])]),
    "list": Case(lambda: chain(collected, l1=linear(3, 2)), lambda n: (array(4, n, 3, seed=n),), [InputSpec([4, None, 3])]),
    "structured": Case(
        lambda: chain(structured, l1=linear(4, 3)),
        lambda n: ({"a": array(n, 4, seed=n), "b": [chainer.Variable(array(n, 3))]}, (2.0, 3)),
        [{"a": InputSpec([None, 4]), "b": [InputSpec([None, 3])]}, (2.0, 3)]),
    "globals": Case(lambda: of_globals, lambda n: (chainer.Variable(array(2, 3, seed=n)),), [InputSpec([2, 3])], (1,)),
    "integers": Case(
        lambda: chain(by_contents, e=lambda: L.EmbedID(5, 4), l2=linear(4, 3)),
        lambda n: (np.arange(n, dtype=np.int32) % 5, np.arange(n, dtype=np.int32) % 3),
        [InputSpec([None], "int32"), InputSpec([None], "int32")]),
    "steps": Case(lambda: steps, lambda n: (chainer.Variable(array(2, n, seed=n)),), [InputSpec([2, None])]),
    "shared": Case(_with_scale, lambda n: (array(n, 4, seed=n),), [InputSpec([None, 4])]),
    "numpy": Case(lambda: masked, lambda n: (chainer.Variable(array(n, 3, seed=n)),), [InputSpec([2, 3])], (2,)),
}


def flat(item):
    """The leaves of a result, in order."""
    if isinstance(item, dict):
        return [leaf for part in item.values() for leaf in flat(part)]
    return [leaf for part in item for leaf in flat(part)] if isinstance(item, (tuple, list)) else [item]


def skeleton(item):
    """The types of a result and of its parts; a named tuple by its fields."""
    if isinstance(item, tuple):
        return getattr(item, "_fields", ()), tuple(map(skeleton, item))
    if isinstance(item, list):
        return list(map(skeleton, item))
    return {key: skeleton(part) for key, part in item.items()} if isinstance(item, dict) else type(item)


def run(function, link, args):
    """What a call gives, and the gradients of the sum of what it gives and of its square; the random state is set before."""
    variables = [leaf for leaf in flat(args) if isinstance(leaf, chainer.Variable)]
    for x in variables:
        x.cleargrad()
    if link is not None:
        link.cleargrads()
    np.random.seed(3)
    result = function(*args)
    leaves = flat(result)
    losses = [F.sum(y * y) + F.sum(y) for y in leaves if isinstance(y, chainer.Variable) and y.requires_grad and y.dtype.kind == "f"]
    grads = []
    if losses and chainer.config.enable_backprop:
        sum(losses).backward()
        grads = [x.grad for x in variables] + ([p.grad for _, p in sorted(link.namedparams())] if link is not None else [])
    return result, [leaf.array if isinstance(leaf, chainer.Variable) else leaf for leaf in leaves], grads


def assert_same(found, expected):
    assert skeleton(found[0]) == skeleton(expected[0])
    for a, b in zip(found[1] + found[2], expected[1] + expected[2]):
        if isinstance(b, (np.ndarray, np.generic)):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
        else:
            assert type(a) is type(b) and a == b


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", CASES)
def test_same_as_eager(name, backend, tmp_path):
    case = CASES[name]
    model = case.make()
    save(model, tmp_path / "m", case.specs)
    loaded = load(tmp_path / "m", backend=backend)
    assert isinstance(loaded, TranslatedLayer) and isinstance(loaded, chainer.Link)
    links = (model, loaded) if isinstance(model, chainer.Link) else (None, None)
    for train in (False, True):
        for enable_backprop in (True, False):
            with chainer.using_config("train", train), chainer.using_config("enable_backprop", enable_backprop):
                for n in case.sizes:
                    expected = run(model, links[0], case.args(n))
                    assert_same(run(loaded, links[1], case.args(n)), expected)
    if links[0] is not None:
        state = [[(path, link.__dict__[key]) for path, link in links.namedlinks() for key in sorted(link._persistent)]
                 for links in links]
        for (path, expected), (other, found) in zip(*state):
            assert path == other
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", ["array", "variable", "detached"])
def test_every_way_to_give_an_array(kind, tmp_path):
    model = CASES["mlp"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    x = array(3, 4)
    given = {"array": lambda: x, "variable": lambda: chainer.Variable(x),
             "detached": lambda: chainer.Variable(x, requires_grad=False)}[kind]
    assert_same(run(loaded, loaded, (given(),)), run(model, model, (given(),)))


def test_after_calls_without_a_spec(tmp_path):
    """What was called is saved, in both modes, with the shapes it had."""
    model = to_static(CASES["mlp"].make())
    model(array(3, 4))
    save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    for train in (False, True):
        with chainer.using_config("train", train):
            assert_same(run(loaded, loaded, (array(3, 4),)), run(model, model, (array(3, 4),)))
    with pytest.raises(SignatureError, match=r"\(3, 4\) float32"):
        loaded(array(2, 4))
    assert "another number or kind of arguments\n  hint: give" in str(pytest.raises(SignatureError, loaded, array(3, 4), 2).value)


def test_the_model_is_not_called(tmp_path):
    """`save` changes nothing, and prints nothing."""
    calls = []

    class Model(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.bn = L.BatchNormalization(3)
            self.count = 0

        def forward(self, x):
            self.count += 1
            calls.append(self.count)
            return self.bn(x) * np.random.rand()
    model, random = Model(), np.random.get_state()[1].tolist()
    before = model.bn.avg_mean.copy()
    save(model, tmp_path / "m", [InputSpec([None, 3])])
    assert (model.count, calls) == (0, []) and np.random.get_state()[1].tolist() == random
    np.testing.assert_array_equal(model.bn.avg_mean, before)
    loaded = load(tmp_path / "m")
    for _ in range(3):
        loaded(array(4, 3))
    assert loaded.count == 3 and calls == []


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


def test_second_order(tmp_path):
    model = CASES["shared"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")

    def penalty(model):
        x = chainer.Variable(array(3, 4))
        model.cleargrads()
        g, = chainer.grad([F.sum(model(x))], [x], enable_double_backprop=True)
        F.sum(g * g).backward()
        return [g.array, x.grad] + [p.grad for _, p in sorted(model.namedparams())]
    for a, b in zip(penalty(loaded), penalty(model)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


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


def test_arguments_by_name(tmp_path):
    save(chain(lambda self, x, y: self.l1(x) - y, l1=linear(4, 4)), tmp_path / "m", [InputSpec([None, 4]), InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    np.testing.assert_array_equal(loaded(y=array(2, 4), x=array(2, 4, seed=1)).array,
                                  loaded(array(2, 4, seed=1), array(2, 4)).array)


def test_sizes_of_their_own(tmp_path):
    """Free axes that need not be equal are not; others are, and what does not fit is an error."""
    def both(x, y):
        return F.sum(x, axis=0) + F.sum(y, axis=0)
    save(both, tmp_path / "own", [InputSpec([None, 3]), InputSpec([None, 3])])
    np.testing.assert_allclose(load(tmp_path / "own")(array(2, 3), array(5, 3)).array, both(array(2, 3), array(5, 3)).array, rtol=1e-6)
    save(lambda x, y: F.sum(F.relu(x) * y), tmp_path / "equal", [InputSpec([None, 3]), InputSpec([None, 3])])
    loaded = load(tmp_path / "equal")
    loaded(array(4, 3), array(4, 3))
    with pytest.raises(SignatureError, match=r"this call with ndarray \(4, 3\) float32, ndarray \(5, 3\) float32; the nearest wants"):
        loaded(array(4, 3), array(5, 3))


def neighbours(x, adjacency):
    degree = F.sum(adjacency, axis=1) + 1
    return F.matmul(adjacency * F.broadcast_to(F.expand_dims(degree, 1), adjacency.shape), x)


def within_lengths(x, n):
    keep = np.arange(x.shape[1])[None, :] < n[:, None]
    return F.sum(F.where(keep, F.sum(x, axis=2), np.zeros(x.shape[:2], "f")), axis=1)


def causal(x):
    keep = np.broadcast_to(np.tril(np.ones((x.shape[1], x.shape[1]), bool)), (x.shape[0], 4, x.shape[1], x.shape[1]))
    scores = F.broadcast_to(F.expand_dims(F.matmul(x, x, transb=True), 1), keep.shape)
    return F.sum(F.where(keep, scores, np.zeros(keep.shape, "f")), axis=3)


@pytest.mark.parametrize("function, specs, wrong", [
    (neighbours, [InputSpec([None, 3]), InputSpec([None, None])], ((4, 3), (4, 5))),
    (neighbours, [InputSpec(["nodes", 3]), InputSpec(["nodes", "nodes"])], ((4, 3), (5, 5))),
    (within_lengths, [InputSpec([None, None, 4]), InputSpec([None], "int32")], ((3, 2, 4), (2,))),
    (causal, [InputSpec([None, None, 4])], None)])
def test_sizes_that_have_to_be_equal_are_found(function, specs, wrong, tmp_path):
    """Also those of two axes of one array, of axes of several numbers, and those that have a name; others stay free, and small."""
    def arrays(*shapes):
        return [array(*shape) if spec.dtype.kind == "f" else np.arange(shape[0], dtype="i") for shape, spec in zip(shapes, specs)]
    save(function, tmp_path / "m", specs)
    loaded = load(tmp_path / "m")
    for n, m in ((2, 3), (5, 4), (1, 2), (3, 1)):
        given = arrays(*{neighbours: ((n, 3), (n, n)), within_lengths: ((n, m, 4), (n,)), causal: ((n, m, 4),)}[function])
        np.testing.assert_allclose(loaded(*given).array, function(*given).array, rtol=1e-5)
    if wrong is not None:
        with pytest.raises(SignatureError):
            loaded(*arrays(*wrong))


def test_images_that_must_not_be_too_small(tmp_path):
    """Where windows have to fit, sizes are free from a power of two on; the batch may be one."""
    def forward(self, x):
        h = F.relu(self.conv2(F.max_pooling_2d(F.relu(self.conv(x)), 2)))
        return self.l1(F.average(h, axis=(2, 3)))
    model = chain(forward, conv=lambda: L.Convolution2D(2, 4, 5), conv2=lambda: L.Convolution2D(4, 4, 3, pad=1), l1=linear(4, 2))
    save(model, tmp_path / "m", [InputSpec([None, 2, None, None])])
    loaded = load(tmp_path / "m")
    for shape in ((1, 2, 9, 20), (3, 2, 16, 8), (2, 2, 33, 33)):
        assert_same(run(loaded, loaded, (array(*shape),)), run(model, model, (array(*shape),)))
    with pytest.raises(SignatureError, match="8 or more"):
        loaded(array(2, 2, 6, 6))


def test_images_whose_sizes_must_be_multiples(tmp_path):
    """Where they are halved and doubled again.  Other functions may call what was loaded with sizes of their own."""
    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.conv(x)), 2)
        return F.concat([x, self.back(F.max_pooling_2d(h, 2))])
    model = chain(forward, conv=lambda: L.Convolution2D(2, 4, 3, pad=1), back=lambda: L.Deconvolution2D(4, 2, 4, stride=4))
    save(model, tmp_path / "m", [InputSpec([None, 2, None, None])])
    loaded = load(tmp_path / "m")
    for shape in ((1, 2, 8, 20), (3, 2, 16, 4), (2, 2, 36, 40)):
        assert_same(run(loaded, loaded, (array(*shape),)), run(model, model, (array(*shape),)))
    with pytest.raises(SignatureError, match="a multiple of 4, 4 or more"):
        loaded(array(2, 2, 6, 8))
    outer = to_static(lambda x: loaded(F.tile(x, (1, 1, 2, 2))) * 2, dynamic=True)
    for n in (4, 6, 8, 10):
        x = array(1, 2, n, 2 * n)
        np.testing.assert_allclose(outer(x).array, model(np.tile(x, (1, 1, 2, 2))).array * 2, rtol=1e-5, atol=1e-6)


def test_sizes_up_to_the_rows_of_a_table(tmp_path):
    table = array(16, 3, seed=4)
    model = chain(lambda self, x: self.l1(F.mean(x + table[None, :x.shape[1]], axis=1)), l1=linear(3, 2))
    save(model, tmp_path / "m", [InputSpec([None, None, 3])])
    loaded = load(tmp_path / "m")
    for shape in ((1, 1, 3), (3, 7, 3), (2, 16, 3)):
        np.testing.assert_allclose(loaded(array(*shape)).array, model(array(*shape)).array, rtol=1e-5)
    with pytest.raises(SignatureError, match="2 to 16"):
        loaded(array(2, 17, 3))


def test_modes_of_the_layer(tmp_path):
    """``eval()`` and ``train()`` of one layer; until then the configuration decides."""
    model = CASES["mlp"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    x = array(3, 4)
    with chainer.using_config("train", False):
        expected = model(x).array
        np.testing.assert_allclose(loaded(x).array, expected, rtol=1e-6)
        loaded.train()
        assert not np.allclose(loaded(x).array, expected)
    loaded.eval()
    np.testing.assert_allclose(loaded(x).array, expected, rtol=1e-6)


def test_another_process(tmp_path):
    """Neither the module of the model nor what it imports is there; the layer prints and raises as the model did."""
    (tmp_path / "mymodel.py").write_text(textwrap.dedent("""
        import dy2static, chainer, chainer.functions as F, chainer.links as L, numpy as np, private_helpers

        class Model(chainer.Chain):
            def __init__(self):
                super().__init__()
                with self.init_scope():
                    self.l1 = L.Linear(3, 2)

            def forward(self, x):
                h = private_helpers.scaled(self.l1(x))
                if h.array.sum() > 100:
                    raise ValueError("too large")
                print("sum", round(float(h.array.sum()), 3))
                return h

        if __name__ == "__main__":
            np.random.seed(0)
            model = Model()
            dy2static.save(model, "saved", [dy2static.InputSpec([None, 3])])
            print(model(np.ones((2, 3), "f")).array.tolist())
    """))
    (tmp_path / "private_helpers.py").write_text("def scaled(x):\n    return x * 2\n")
    first = python(tmp_path, "mymodel.py")
    for name in ("mymodel.py", "private_helpers.py"):
        os.remove(tmp_path / name)
    (tmp_path / "serve.py").write_text(textwrap.dedent("""
        import dy2static, numpy as np, sys
        model = dy2static.load("saved")
        print(model(np.ones((2, 3), "f")).array.tolist())
        try:
            model(np.full((2, 3), 1e6, "f") * np.sign(model.l1.W.array.sum(0)))
        except ValueError as error:
            print(error)
        assert "mymodel" not in sys.modules
    """))
    second = python(tmp_path, "serve.py")
    assert second.splitlines()[:2] == first.splitlines() and "too large" in second


def python(folder, script):
    """What a script prints."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(dy2static.__file__)))
    done = subprocess.run([sys.executable, script], cwd=folder, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


# What is refused -----------------------------------------------------------------------------------------------------


class Mine:
    def __init__(self, y):
        self.y = y


class Counts:
    calls = 0


def test_what_cannot_be_saved(tmp_path):
    """One message each, with the line of the user's where there is one, and nothing is left behind."""
    def with_host_call(x):
        open(os.devnull).close()
        return x * 2

    def with_object(x):
        return Mine(x * 2)

    class Own(chainer.FunctionNode):
        def forward(self, inputs):
            return inputs[0] * 2,

    for function, message in ((with_host_call, "host"), (with_object, "Mine"), (lambda x: Own().apply((x,))[0], "cannot be saved"),
                              (lambda x: x.reshape(int(x.array.sum()), -1), "contents of an array")):
        with pytest.raises(SaveError, match=message) as caught:
            save(function, tmp_path / "m", [InputSpec([2, 3])])
        assert message == "Mine" or "test_save.py" in str(caught.value)
    with pytest.raises(SaveError, match="call it once"):
        save(chain(lambda self, x: self.l1(x), l1=linear(None, 2)), tmp_path / "m", [InputSpec([2, 3])])
    for size in (4, None):
        with pytest.raises(SaveError, match=r"raises InvalidType for what input_spec describes(.|\n)*64 != 3"):
            save(chain(lambda self, x: self.l1(x), l1=linear(3, 2)), tmp_path / "m", [InputSpec([size, 64])])
    with pytest.raises(SaveError, match="not called yet"):
        save(lambda x: x, tmp_path / "m")
    def counted(x):                             # a file with the path to a class could not be read again
        Counts.calls += 1
        return x * Counts.calls
    with pytest.raises(SaveError, match="attributes of Counts cannot be saved"):
        save(counted, tmp_path / "m", [InputSpec([2, 3])])
    with pytest.raises(SaveError, match="a size"):
        save(lambda x: x * np.hanning(x.shape[0]).astype("f")[:, None], tmp_path / "m", [InputSpec([None, 3])])
    assert os.listdir(tmp_path) == []


def test_training_that_cannot_be_saved(tmp_path):
    """Inference is saved, and a warning says why training is not; calling it says so again."""
    def forward(self, x):
        if chainer.config.train:
            open(os.devnull).close()
        return self.l1(x)
    with pytest.warns(SaveWarning, match="for training: .*host"):
        save(chain(forward, l1=linear(4, 2)), tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    with pytest.raises(SignatureError, match="without train=True.*host"):
        loaded(array(2, 4))
    with chainer.using_config("train", False):
        assert loaded(array(2, 4)).shape == (2, 2)


def test_gradients_inside(tmp_path):
    """Without backprop there are none: that mode is not saved, and a call in it says why."""
    def penalty(self, x):
        x = chainer.Variable(x)
        g, = chainer.grad([F.sum(self.l1(x) ** 2)], [x], enable_double_backprop=True)
        return F.sum(g * g)
    model = chain(penalty, l1=linear(4, 2))
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    assert_same(run(loaded, loaded, (array(3, 4),)), run(model, model, (array(3, 4),)))
    with pytest.raises(SignatureError, match="without train=True, enable_backprop=False"), chainer.no_backprop_mode():
        loaded(array(3, 4))


def test_something_else_is_not_replaced(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "thesis.txt").write_text("all of it")
    with pytest.raises(SaveError, match="no saved model"):
        save(of_globals, tmp_path / "m", [InputSpec([2, 3])])
    save(of_globals, tmp_path / "n", [InputSpec([2, 3])])
    save(of_globals, tmp_path / "n", [InputSpec([2, 3])])
    assert sorted(os.listdir(tmp_path)) == ["m", "n"] and (tmp_path / "m" / "thesis.txt").exists()


def test_the_files_can_be_read(tmp_path):
    """JSON with the names of the user's lines, and arrays with the names of the parameters."""
    from safetensors.numpy import load_file
    model = CASES["mlp"].make()
    save(model, tmp_path / "m", [InputSpec([None, 4], name="x")])
    assert set(load_file(str(tmp_path / "m" / "arrays.safetensors"))) >= {"l1.W", "l1.b", "l2.W", "l2.b"}
    document = json.loads((tmp_path / "m" / "programs.json").read_text())
    assert document["arguments"] == ["x"] and document["places"][0][0] == "test_save.py"
    assert json.loads((tmp_path / "m" / "manifest.json").read_text())["version"] == 1
    assert str(tmp_path) not in (tmp_path / "m" / "programs.json").read_text()
