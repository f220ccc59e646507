"""Generators of lazy arrays draw NumPy's numbers, in the order of the calls."""
import pickle

import numpy as np
import pytest

from dy2static import CaptureError, FallbackWarning, lazy

CALLS = [
    lambda rng, x: rng.normal(2, 3, (2, 3)), lambda rng, x: rng.uniform(size=5), lambda rng, x: rng.random(4, dtype="f"),
    lambda rng, x: rng.integers(10, size=6), lambda rng, x: rng.permutation(7), lambda rng, x: rng.permutation(x),
    lambda rng, x: rng.choice(x, 2, replace=False), lambda rng, x: rng.standard_normal(3), lambda rng, x: rng.normal(x, 2),
    lambda rng, x: rng.integers(5), lambda rng, x: rng.poisson(x), lambda rng, x: rng.exponential(),
]


def test_numbers_are_numpys_whatever_is_computed_first():
    x = np.arange(4.0)
    rng, numpys = lazy.random.default_rng(3), np.random.default_rng(3)
    drawn = [f(rng, lazy.array(x)) for f in CALLS]
    doubled = [2 * each for each in drawn]
    wanted = [f(numpys, x) for f in CALLS]
    for found, twice, each in reversed(list(zip(drawn, doubled, wanted))):
        assert np.asarray(found).dtype == np.asarray(each).dtype and np.array_equal(twice, 2 * each) and np.array_equal(found, each)
    assert isinstance(drawn[0], lazy.LazyArray)
    assert rng.bit_generator.state == numpys.bit_generator.state


def test_children_are_those_of_numpy_and_independent():
    rng, numpys = lazy.random.default_rng(1), np.random.default_rng(1)
    children, wanted = rng.spawn(2), numpys.spawn(2)
    rng.random(9)
    for child, each in zip(children, wanted):
        assert np.array_equal(child.random(3), each.random(3))


def test_shuffle_and_out_write_to_lazy_arrays():
    y, out = lazy.array(np.arange(8)) + 0, lazy.array(np.zeros(3))
    before, part, z, numpys = y + 1, y[2:], np.arange(8), np.random.default_rng(5)
    rng = lazy.random.default_rng(5)
    assert rng.shuffle(y) is None and rng.random(out=out) is out
    numpys.shuffle(z)
    assert y.tolist() == z.tolist() and part.tolist() == z[2:].tolist() and before.tolist() == list(range(1, 9))
    assert out.tolist() == numpys.random(3).tolist()


def test_shared_and_pickled_generators():
    numpys = np.random.default_rng(2)
    rng = lazy.random.default_rng(numpys)
    wanted = np.random.default_rng(2).random(4)
    assert [*rng.random(2).tolist(), *numpys.random(2).tolist()] == wanted.tolist() and lazy.random.default_rng(rng) is rng
    again = pickle.loads(pickle.dumps(rng))
    assert again.random(3).tolist() == rng.random(3).tolist()


def test_errors_are_numpys_and_gradients_do_not_get_lost():
    rng = lazy.random.default_rng(0)
    with pytest.raises(ValueError, match="scale < 0"):
        rng.normal(0, -1)
    x = lazy.array(np.ones(3))
    with pytest.raises(CaptureError, match="normal has no gradient"), pytest.warns(FallbackWarning, match="computed at once"):
        lazy.grad(lambda x: (rng.normal(x) * x).sum())(x)
    z = rng.standard_normal(3)
    assert lazy.grad(lambda x: (x * z).sum())(x).tolist() == z.tolist()
