"""Loaded models that compiled functions call: their graphs become parts of others, and do what they do by themselves."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from saved_programs import CASES, array, assert_same, chain, linear, run
from test_saved_objects import Stateful, Translator

from dy2static import FallbackWarning, InputSpec, enable_to_static, load, save, to_static


class WithHead(chainer.Chain):
    """A new head on a model that was loaded."""

    def __init__(self, backbone):
        super().__init__()
        with self.init_scope():
            self.backbone, self.head = backbone, L.Linear(None, 2)

    def forward(self, *args):
        h = self.backbone(*args)
        return self.head(h), h


def loaded(name, folder):
    case = CASES[name]
    save(case.make(), folder / name, case.specs)
    return lambda: load(folder / name)


@pytest.mark.filterwarnings("ignore:A batch with no more")
@pytest.mark.parametrize("name", ["mlp", "normalised", "shared", "branches"])
def test_same_as_by_itself(name, tmp_path):
    """Values, gradients, random numbers and running statistics; without a fall-back where it has one end."""
    make, case = loaded(name, tmp_path), CASES[name]
    models = []
    for _ in range(2):
        np.random.seed(1)
        models.append(WithHead(make()))
        with chainer.using_config("train", False):
            models[-1](*case.args(2))                   # initialises the head
    plain, compiled = models[0], to_static(models[1], strict=name != "branches")
    for train in (False, True):
        with chainer.using_config("train", train), warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            for n in (*case.sizes[-2:], 7, 7):
                enable_to_static(False)
                try:
                    expected = run(plain, plain, case.args(n))
                finally:
                    enable_to_static(True)
                assert_same(run(compiled, compiled, case.args(n)), expected)
    for a, b in zip(plain.links(), compiled.links()):
        for key in a._persistent:
            np.testing.assert_allclose(b.__dict__[key], a.__dict__[key], rtol=1e-5)
    if name != "branches":
        assert compiled.forward.stats()["host_call"] == 0 and compiled.forward.cache_info().fallbacks == 0


def test_one_node(tmp_path):
    """A loss of a loaded model is one function with its gradient, also the second one."""
    model = loaded("shared", tmp_path)()

    @to_static(strict=True)
    def penalty(x):
        return F.sum(model(x) ** 2)
    x = chainer.Variable(array(3, 4))

    def twice(function):
        g, = chainer.grad([function(x)], [x], enable_double_backprop=True)
        model.cleargrads()
        F.sum(g * g).backward()
        return g.array, model.l1.W.grad
    for a, b in zip(twice(penalty), twice(lambda x: F.sum(model(x) ** 2))):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert len(penalty(x).creator.inputs) == 3


def test_state_of_the_layer(tmp_path):
    """What the loaded model keeps, it keeps there as well."""
    np.random.seed(0)
    recurrent = to_static(Stateful())
    for k in range(4):
        recurrent(array(2, 3, seed=k))
    recurrent.lstm.reset_state()
    save(recurrent, tmp_path / "m")
    alone, part = load(tmp_path / "m"), load(tmp_path / "m")
    scaled = to_static(lambda x: part(x) * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for k in range(5):
            np.testing.assert_allclose(scaled(array(2, 3, seed=k)).array, 2 * alone(array(2, 3, seed=k)).array, rtol=1e-5)
    np.testing.assert_allclose(part.lstm.h.array, alone.lstm.h.array, rtol=1e-5)
    assert part.seen == alone.seen


def test_saved_again_as_a_part(tmp_path):
    """A model that calls a loaded one is saved with it."""
    model = WithHead(loaded("mlp", tmp_path)())
    with chainer.using_config("train", False):
        expected = model(array(3, 4))
        save(model, tmp_path / "whole", [InputSpec([None, 4])])
        found = load(tmp_path / "whole")(array(3, 4))
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a.array, b.array, rtol=1e-6)


def test_what_fits_no_program_is_eager(tmp_path):
    """And there it is the error that it is by itself."""
    save(chain(lambda self, x: self.l1(x), l1=linear(4, 3)), tmp_path / "m", [InputSpec([2, 4])])
    model = load(tmp_path / "m")
    double = to_static(lambda x: model(x) * 2)
    with pytest.raises(TypeError, match="no program of the loaded model"):
        double(array(3, 4))
    assert double(array(2, 4)).shape == (2, 3)


def test_no_rows(tmp_path):
    """A size of none is not one that the program for any size takes."""
    save(lambda x: F.relu(x) + 1, tmp_path / "m", [InputSpec([None, 3])])
    model = load(tmp_path / "m")
    double = to_static(lambda x: model(x) * 2, strict=True)
    for n in (0, 4, 1, 0):
        assert double(chainer.Variable(array(n, 3))).shape == (n, 3)


def test_methods(tmp_path):
    """Other methods of a loaded model, too; also one that is kept by itself."""
    model = Translator()
    model.encode(array(2, 4), 0.5)
    save(model, tmp_path / "m", [InputSpec([None, 4])])
    loaded = load(tmp_path / "m")
    both = to_static(lambda x: loaded.decode(loaded.encode(x, scale=0.5)), strict=True)
    np.testing.assert_allclose(both(array(2, 4)).array, model.decode(model.encode(array(2, 4), 0.5)).array, rtol=1e-5)
    assert both.stats()["host_call"] == 0
    kept = loaded.encode
    found = to_static(lambda x: kept(x, 0.5) * 2, strict=True)(array(2, 4))
    np.testing.assert_allclose(found.array, 2 * model.encode(array(2, 4), 0.5).array, rtol=1e-5)


def test_zeros_of_both_signs_are_different_numbers(tmp_path):
    def signed(x, s):
        return F.tanh(x) * float(np.copysign(1.0, s))
    x = chainer.Variable(np.ones((2, 3), "f"))
    save(to_static(signed), tmp_path / "m", [x, 0.0])
    model = load(tmp_path / "m")
    np.testing.assert_allclose(to_static(lambda x: model(x, 0.0))(x).array, signed(x, 0.0).array, rtol=1e-6)
    with pytest.raises(TypeError, match="no program of the loaded model"), pytest.warns(FallbackWarning):
        to_static(lambda x: model(x, -0.0))(x)
