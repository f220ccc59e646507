"""Programs on CuPy arrays draw the numbers that eager Chainer draws: from CuPy's stream, in its order, in its dtypes."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from cupy_double import on_double

from dy2static import to_static

cupy = chainer.backends.cuda.cupy

FUNCTIONS = {
    "dropout": lambda x: F.dropout(F.dropout(x, 0.3), 0.2),
    "zoneout": lambda x: F.zoneout(x, x * 2, 0.4),
    "gaussian": lambda x: F.gaussian(x, x * 0.1),
    "dropconnect": lambda x: F.simplified_dropconnect(x, x[:3], ratio=0.3) + F.simplified_dropconnect(x, x[:3], use_batchwise_mask=False),
    "rrelu": lambda x: F.rrelu(x - 0.5),
}


def drawn(function, x):
    cupy.random.seed(0)
    return [function(x).array for _ in range(3)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@on_double
def test_draws_are_those_of_eager_mode(name, dtype):
    x = cupy.array(np.random.RandomState(0).uniform(0.1, 1, (5, 4)).astype(dtype))
    static = to_static(FUNCTIONS[name], strict=True)
    static(x)
    state = np.random.get_state()[1].copy()
    for eager, compiled in zip(drawn(FUNCTIONS[name], x), drawn(static, x)):
        assert eager.dtype == compiled.dtype
        rounding = 0 if name == "dropout" else 4e-3 if dtype == "float16" else 1e-6
        np.testing.assert_allclose(eager.get(), compiled.get(), rtol=rounding, atol=rounding)
    assert (np.random.get_state()[1] == state).all()


@pytest.mark.parametrize("name", ["dropout", "zoneout", "rrelu"])
@on_double
def test_fast_draws_are_cupys_too(name):
    x = cupy.array(np.random.RandomState(0).uniform(-1, 1, (40, 50)).astype("f"))
    state = np.random.get_state()[1].copy()
    static = to_static(FUNCTIONS[name], rng="fast", strict=True, backend="numpy")
    cupy.random.seed(1)
    first = static(x).array.get()
    cupy.random.seed(1)
    assert (static(x).array.get() == first).all() and (static(x).array.get() != first).any()
    if name == "dropout":
        assert 0.52 < (first != 0).mean() < 0.6
    assert (np.random.get_state()[1] == state).all()
