"""Lazy arrays as arguments of compiled functions."""
import chainer.functions as F
import numpy as np

from dy2static import lazy, to_static


def test_a_numpy_scalar_is_reshaped():
    f = to_static(strict=True)(lambda x: np.diagonal(x.sum().reshape(1, 1)))
    assert f(np.arange(4.0)).tolist() == [6] and lazy.array(np.arange(4.0)).sum().reshape(1, 1).tolist() == [[6]]


def test_a_compiled_function_takes_them_as_arrays():
    @to_static(strict=True)
    def f(x, scale):
        return F.relu(x * scale), np.exp(x)

    for number in range(3):
        x = lazy.array(np.arange(4, dtype="f") - 2) + number
        y, z = f(x, scale=lazy.array(np.full(4, 2, "f")))
        wanted = np.arange(4, dtype="f") - 2 + number
        np.testing.assert_array_equal(y.array, np.maximum(wanted * 2, 0))
        np.testing.assert_allclose(z, np.exp(wanted), rtol=1e-6)
    assert f.cache_info().captures == 1 and f.cache_info().fallbacks == 0
