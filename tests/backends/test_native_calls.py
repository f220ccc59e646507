"""NumPy calls that the capture keeps, in native code: the same values as NumPy's, and nothing between the regions."""
import numpy as np
import pytest

from dy2static import to_static
from dy2static.backends.c.executor import Region
from dy2static.native import compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


def numbers(*shape, seed=0, dtype="f"):
    return np.random.RandomState(seed).permutation(np.linspace(-3, 3, int(np.prod(shape)))).reshape(shape).astype(dtype)


def smallest(x, k):
    best = np.argpartition(x, 4)[:4]
    best = best[np.argsort(x[best])]
    return x[best], best


def largest(x, k):
    best = np.argpartition(-x, -5)[-5:]
    return best[np.argsort(x[best] * 2)[::-1]]


def sorted_rows(x, k):
    rows = x.reshape(4, -1)
    order = np.argsort(rows)
    return order, np.argsort(k, kind="stable"), rows[:, order[0]]


def picked(x, k):
    rows = x.reshape(-1, 4)
    return rows[k % rows.shape[0]], rows[k // 2 % 3, :2], rows[1, k % 4], k // 7, k % -5


def written(x, k):
    a = np.zeros((6, 8), x.dtype)
    a[0] = x[:8]
    a[1, 2] = 3
    a[:, int(k[0])] = x[:6]
    a[k[:2] % 6, 1:3] = x[:2]
    a[-1] = k[:8]
    a *= x[0]
    a -= x[:8]
    return a


def sums(x, k):
    rows = x.reshape(4, -1)
    return (x.dot(x), rows.dot(rows.T), rows @ rows[0], np.dot(x[:4], rows), (x > 0).all(), np.any(x > 2),
            rows.mean(axis=0), np.float32(float(x[0])), np.maximum(x[0], np.float32(1)), not (x > 0).all())


CASES = (smallest, largest, sorted_rows, picked, written, sums)


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("function", CASES, ids=lambda f: f.__name__)
def test_calls(function, dtype, monkeypatch):
    compiled = to_static(function, strict=True, backend="c")
    for seed in range(3):
        x, k = numbers(64, seed=seed, dtype=dtype), np.random.RandomState(seed).randint(0, 8, 24)
        for found, wanted in zip(leaves(compiled(x.copy(), k)), leaves(function(x.copy(), k))):
            assert type(found) is type(wanted) and np.result_type(found) == np.result_type(wanted)
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    (text,) = [compiled.program(x, k).source]
    assert text.count("native(") == 1 and "call_" not in text and "native_1" not in text


@pytest.mark.parametrize("function, x", [
    (smallest, np.r_[np.arange(9.0), np.zeros(7)]), (smallest, np.r_[np.nan, np.arange(15.0)]),
    (largest, np.zeros(16)), (sorted_rows, np.zeros(16))], ids=["ties", "nan", "all", "rows"])
def test_what_is_equal(function, x, monkeypatch):
    """NumPy decides in which order equal elements stand."""
    declined = []
    decline = Region.decline
    monkeypatch.setattr(Region, "decline", lambda self, *args: declined.append(self) or decline(self, *args))
    compiled, k = to_static(function, strict=True, backend="c"), np.arange(24) % 8
    for found, wanted in zip(leaves(compiled(x, k)), leaves(function(x, k))):
        np.testing.assert_array_equal(found, wanted)
    assert declined


def seen(x, k):
    return np.argpartition(x, 4)[:4]


def seen_later(x, k):
    best = np.argpartition(x, 4)[:4]
    order = np.argsort(x[best])
    return best[order], order


def seen_elsewhere(x, k):
    best = np.argpartition(x, 4)
    return best[:4][np.argsort(x[best[:4]])], best[3:9]


@pytest.mark.parametrize("function", [seen, seen_later, seen_elsewhere], ids=lambda f: f.__name__)
def test_an_order_that_can_be_seen(function):
    """It is NumPy's."""
    compiled, x = to_static(function, strict=True, backend="c"), numbers(64)
    for found, wanted in zip(leaves(compiled(x, None)), leaves(function(x, None))):
        np.testing.assert_array_equal(found, wanted)
    assert "argpartition" in compiled.program(x, None).source
