"""A loaded model as a Link among others: copied, shared by threads, with hooks, in serializers, and in Links of the user's."""
import copy
import threading

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import InputSpec, load, save, to_static
from dy2static.errors import SignatureError

X = np.random.RandomState(0).uniform(-1, 1, (4, 3)).astype(np.float32)


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        self.calls = 0
        with self.init_scope():
            self.l = L.Linear(3, 2)

    def forward(self, x):
        self.calls += 1
        return F.tanh(self.l(x))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    np.random.seed(0)
    path = tmp_path_factory.mktemp("saved") / "model"
    save(Model(), path, [InputSpec([None, 3])])
    return path


@pytest.fixture
def layer(path):
    return load(path)


class Names(chainer.LinkHook):
    name = "Names"

    def __init__(self):
        self.seen = []

    def forward_preprocess(self, args):
        self.seen.append(type(args.link).__name__)


def test_the_program_of_a_call_is_compiled_before_the_call(layer):
    program = layer.program(X)
    layer(X)
    assert layer.program(X) is program


COPIES = {"deepcopy": copy.deepcopy, "copy": lambda layer: layer.copy("copy"), "repeat": lambda layer: layer.repeat(1, "copy")[0]}


@pytest.mark.parametrize("how", COPIES)
def test_copies_have_parameters_and_state_of_their_own(layer, how):
    expected = layer(X).array
    other = COPIES[how](layer)
    other.l.W.array[...] = 0
    other.l.b.array[...] = 1
    np.testing.assert_allclose(other(X).array, np.tanh(np.ones((4, 2))), rtol=1e-5)
    np.testing.assert_array_equal(layer(X).array, expected)
    assert (layer.calls, other.calls) == (2, 2)


def test_loaded_twice(path):
    one, other = load(path), load(path)
    one.cleargrads()
    F.sum(one(X)).backward()
    chainer.optimizers.SGD(1.0).setup(one).update()
    assert np.abs(one(X).array - other(X).array).max() > 0.1


def test_threads(layer):
    expected, found = layer(X).array, []

    def work():
        for rows in (4, 2, 3, 4):
            found.append(np.array_equal(layer(X[:rows]).array, expected[:rows]))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 16


def test_serializers(layer, tmp_path):
    layer.l.W.array[...] = 5
    chainer.serializers.save_npz(tmp_path / "x.npz", layer)
    model = Model()
    chainer.serializers.load_npz(tmp_path / "x.npz", model)
    np.testing.assert_allclose(model(X).array, layer(X).array, rtol=1e-5)


def test_link_hooks(layer):
    hook = Names()
    with hook:
        layer(X)
    layer.add_hook(hook)
    layer(X)
    layer.delete_hook("Names")
    assert hook.seen == [type(layer).__name__] * 2
    layer.l.add_hook(Names())                           # of a Link whose call is not there
    with pytest.raises(SignatureError):
        layer(X)
    layer.l.delete_hook("Names")
    layer(X)


def test_optimizer_hooks(layer):
    optimizer = chainer.optimizers.Adam().setup(layer)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-3))
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0))
    before = F.sum(layer(X) ** 2).array
    for _ in range(20):
        optimizer.update(lambda: F.sum(layer(chainer.Variable(X)) ** 2))
    assert F.sum(layer(X) ** 2).array < before


def test_compiled_already(layer):
    assert to_static(layer) is layer


@pytest.mark.filterwarnings("ignore")
def test_in_a_link_of_the_users(layer):
    model = chainer.Sequential(layer, F.relu)
    np.testing.assert_array_equal(to_static(model)(X).array, np.maximum(layer(X).array, 0))
