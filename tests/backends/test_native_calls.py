"""NumPy calls that the capture keeps, in native code: the same values as NumPy's, and nothing between the regions."""
import numpy as np
import pytest

from dy2static import to_static
from dy2static.backends.c import vector_sorts
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


def along_axes(x, k):
    a, n = x.reshape(4, 4, 4), k.reshape(2, 12)
    return (a.mean(axis=(0, 2)), np.mean(a, axis=(-1, 0), keepdims=True), np.mean(n, axis=1), np.mean(x > 0), np.var(a, axis=1),
            a.std(axis=(1, 2), ddof=1), np.var(n), np.cumsum(a, axis=1), a.cumsum(), np.cumsum(n, axis=0), np.cumsum(x > 0),
            np.cumprod(a, axis=-1))


def sorted_values(x, k):
    a = x.reshape(4, 4, 4)
    return np.sort(x), np.sort(a, axis=0), np.sort(a * 2, axis=1), np.sort(a, axis=None), np.sort(k), np.sort(k.reshape(6, 4) - 3, axis=0)


def clipped(x, k):
    return (np.clip(x, -1, 1.5), x.clip(0.1), np.clip(x, None, 0.3), np.clip(k, 2, 5), k.clip(max=6), np.clip(x, x[::-1], 2.5),
            np.clip(x, x[0], x[1]), np.clip(x, 1, -1))


def triangles(x, k):
    a, n = x.reshape(4, 2, 8), k.reshape(6, 4)
    return (np.tril(a), np.triu(a), np.tril(a, 3), np.tril(a, k=-1), np.triu(a, 9), np.triu(n, -2), np.tril(n, -9), np.triu(a > 0, 1),
            np.tril(np.ones((3, 3), bool)) & (x[0] > 0))


CASES = (smallest, largest, sorted_rows, picked, written, sums, along_axes, sorted_values, clipped, triangles)


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
    (largest, np.zeros(16)), (sorted_rows, np.zeros(16)), (sorted_values, np.r_[np.arange(63.0), np.nan]),
    (sorted_values, np.r_[-0.0, np.arange(63.0)])], ids=["ties", "nan", "all", "rows", "nan sorted", "zeros of both signs"])
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


@pytest.mark.parametrize("dtype", ["f", "d", "i", "q", "I", "Q"])
def test_sorted_bits(dtype, monkeypatch):
    """Numbers of all sizes and signs, many and few, stand as NumPy sorts them."""
    monkeypatch.setattr(vector_sorts, "has_vectors", lambda: False)
    rng = np.random.RandomState(0)
    most = np.iinfo(dtype).max if dtype in "iqIQ" else None
    compiled = to_static(lambda x: np.sort(x), strict=True, backend="c", dynamic=False)
    for size in (2, 3, 48, 49, 1000):
        bits = np.frombuffer(rng.bytes(16 * size), dtype)[:2 * size]
        x = (rng.standard_cauchy(2 * size) * 1e3).astype(dtype) if most is None else bits.copy()
        x = x.reshape(2, size)
        x[0, :size // 3], x[1, :1] = x[0, 0], np.inf if most is None else most
        assert compiled(x).tobytes() == np.sort(x).tobytes()
    assert "native(" in compiled.program(x).source


@pytest.mark.parametrize("has_vectors", [True, False])
def test_many_are_sorted_by_numpy_if_it_has_vectors(has_vectors, monkeypatch):
    monkeypatch.setattr(vector_sorts, "has_vectors", lambda: has_vectors)
    compiled = to_static(lambda x: (np.sort(x * 2) + 1, np.argsort(x), np.sort(x[:9])), strict=True, backend="c", dynamic=False)
    x = numbers(300)
    for found, wanted in zip(compiled(x), (np.sort(x * 2) + 1, np.argsort(x), np.sort(x[:9]))):
        np.testing.assert_array_equal(found, wanted)
    assert compiled.program(x).source.count("sort(") == 2 * has_vectors


@pytest.mark.parametrize("size", [3, 40])
def test_products_with_vectors_read_a_matrix_in_order(size):
    compiled = to_static(lambda a, x: (a @ x, a.T @ x, x @ a, np.exp(-(a.T @ x)) @ a), strict=True, backend="c")
    a, x = numbers(size, size, dtype="d"), numbers(size, seed=1, dtype="d")
    for found, wanted in zip(compiled(a, x), (a @ x, a.T @ x, x @ a, np.exp(-(a.T @ x)) @ a)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
    text = compiled.program(a, x).native_code
    assert text.count("dy_gemm_f64(") == (4 if size > 32 else 2)


def steps_of_numbers(x):
    t, h, n = 0.0, 0.1, 0
    while float(np.abs(x).sum()) > 0.01:
        n += 1
        h = 0.09 * (float(np.abs(x).max()) + 1e-3) ** -0.2 + 2.0 ** -n + n ** 2 * 1e-5
        x = x - h * x
        t = t + h
    return x, t, n


def steps_of_scalars(x):
    t, h = np.float64(0), np.float64(0.1)
    while np.abs(x).sum() > 0.01:
        h = 0.1 * (np.abs(x).max() + 1) ** -0.2
        x = x - h * x
        t = t + h
    return x, t


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("function", [steps_of_numbers, steps_of_scalars], ids=lambda f: f.__name__)
def test_powers_of_numbers(function, dtype):
    """A loop with powers of numbers is native as a whole, and Python's numbers are Python's to the last bit."""
    compiled, x = to_static(function, strict=True, backend="c"), np.linspace(-1, 1, 4).astype(dtype)
    (y, t, *count), wanted = compiled(x), function(x)
    np.testing.assert_allclose(y, wanted[0], rtol=1e-5)
    assert type(t) is type(wanted[1]) and count == list(wanted[2:]) and t == pytest.approx(float(wanted[1]), rel=1e-6)
    assert "while" not in compiled.program(x).source


def test_a_power_that_is_complex():
    """Native code declines, and says what compiled code says."""
    compiled = to_static(lambda x, p: float(x.sum()) ** float(p.max()) * x, backend="c")
    x, p = np.ones(3), np.full(2, 0.5)
    assert compiled(x, p).tobytes() == (float(x.sum()) ** float(p.max()) * x).tobytes()
    with pytest.raises(TypeError, match="complex"):
        compiled(-x, p)
