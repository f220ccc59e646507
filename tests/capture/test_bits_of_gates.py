"""Gradients of gates and activations with the NumPy backend: the bits of eager's, in single precision."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static

CASES = {
    "lstm": (F.lstm, (5, 8), (5, 32)),
    "lstm of fewer": (F.lstm, (7, 8), (5, 32)),
    "slstm": (F.slstm, (5, 8), (5, 8), (5, 32), (5, 32)),
    "tree_lstm": (F.tree_lstm, (5, 8), (5, 8), (5, 40)),
    "sigmoid": (F.sigmoid, (50,)),
    "tanh": (F.tanh, (50,)),
    "mish": (lambda x: x * F.tanh(F.softplus(x)), (50,)),
}


def _step(function, shapes):
    rng = np.random.RandomState(3)
    xs = [chainer.Variable(rng.randn(*shape).astype("f")) for shape in shapes]
    ys = function(*xs)
    ys = ys if isinstance(ys, tuple) else (ys,)
    gs = chainer.grad(list(ys), xs, [chainer.Variable(rng.randn(*y.shape).astype("f")) for y in ys])
    return [part.array for part in (*ys, *gs)]


@pytest.mark.parametrize("name", CASES)
def test_gradients_have_the_bits_of_eager(name):
    function, *shapes = CASES[name]
    for wanted, found in zip(_step(function, shapes), _step(to_static(function, backend="numpy"), shapes)):
        np.testing.assert_array_equal(found, wanted)
