"""`check=N` on arrays of a GPU: calls run in eager mode too, and differences name a line."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from cupy_double import on_double, tolerance
from numpy_on_double import array

from dy2static import CheckWarning, DivergenceError, to_static
from dy2static.ir.op import OPS

cupy = chainer.backends.cuda.cupy


def counted(x, state):
    y = F.tanh(x)
    state += 1
    return y * 2


@on_double
def test_each_call_happens_once():
    static = to_static(counted, strict=True, check=2)
    state, same = (cupy.zeros((3, 4), np.float32) for _ in range(2))
    for _ in range(3):
        np.testing.assert_allclose(static(array(3, 4), state).array.get(), counted(array(3, 4), same).array.get(), rtol=tolerance(1e-6))
    assert state.get().tolist() == same.get().tolist() == np.full((3, 4), 3).tolist()


class Wrong:
    """In its block, programs of CuPy calls compute hyperbolic sines for one op."""

    def __init__(self, name):
        self.op, self.code = OPS[name], OPS[name].numpy.replace(f"np.{name}(", "np.sinh(")

    def __enter__(self):
        object.__setattr__(self.op, "cupy", self.code)

    def __exit__(self, *args):
        object.__setattr__(self.op, "cupy", None)


@on_double
def test_the_line_of_a_wrong_value_is_named():
    def function(x):
        y = F.exp(x)
        z = F.tanh(y)
        return z * 2
    with Wrong("tanh"):
        with pytest.raises(DivergenceError) as found:
            to_static(function, strict=True, check=1)(array(3, 4))
    assert f"{__name__}.py:{function.__code__.co_firstlineno + 2}" in str(found.value)


@on_double
def test_gradients_are_compared():
    def function(x):
        y = F.exp(x)
        return F.sum(F.sin(y))
    x = chainer.Variable(array(3, 4))
    to_static(function, strict=True, check=1)(x).backward()
    with Wrong("cos"):
        with pytest.raises(DivergenceError, match="gradient of x"):
            to_static(function, strict=True, check=1)(x).backward()


@on_double
def test_models_and_what_draws():
    model = L.Linear(4, 3)
    model.to_device("@cupy:0")
    to_static(model, strict=True, check=2)
    for _ in range(3):
        model(array(5, 4))
    draws = (F.dropout, lambda x: x + cupy.random.rand(5, 4), lambda x: x + cupy.random.normal(x, 1),
             lambda x: x * cupy.random.choice(cupy.arange(3), 1))
    for draw in draws:
        with pytest.warns(CheckWarning, match="draws from CuPy's generator, which cannot be put back"):
            to_static(lambda x: draw(x), check=2)(array(5, 4))        # noqa: B023  called in this turn
