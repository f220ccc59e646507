"""Regions that compute the same are one C function, and only those."""
import chainer.functions as F
import numpy as np
import pytest

from dy2static import not_to_static, to_static
from dy2static.native import compiler

pytestmark = [pytest.mark.any_python, pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")]
X = np.random.RandomState(0).randn(3, 50).astype("f")


@not_to_static
def seen(x):
    """Runs as Python between two regions."""
    return np.array(x.array if hasattr(x, "array") else x)


def equal_steps(x):
    for _ in range(5):
        x = seen(F.tanh(x * 2 + F.sum(x)))
    return x


def other_bits(x):
    """Each constant twice: numbers that are equal differ in their bits."""
    found = []
    for number in (0.0, -0.0, 1.0, 0.0, -0.0, 1.0):
        x = seen(F.absolute(x) * np.float32(number) + np.float32(-0.0))
        found.append(x)
        x = x + 1
    return found


def other_lines(x):
    """Steps of different lines, whose errors and profiles name their own."""
    x = seen(F.tanh(x * 2))
    x = seen(F.tanh(x * 2))
    return x


def other_order(x):
    """The same operations with other operands."""
    for flip in (False, True, False, True):
        a, b = F.exp(x * 0.1), F.tanh(x)
        x = seen(a / b if flip else b / a)
    return x


def other_shapes(x):
    for size in (50, 40, 40, 30):
        x = seen(F.tanh(x[:, :size] * 2))
    return x


@pytest.mark.parametrize("function, count", ((equal_steps, 1), (other_bits, 4), (other_lines, 2), (other_order, 2), (other_shapes, 4)))
def test_equal_regions_are_one_function(function, count, monkeypatch):
    sources, start = [], compiler.start
    monkeypatch.setattr(compiler, "start", lambda source, *flags: (sources.append(source), start(source, *flags))[1])
    static = to_static(function, backend="c")
    for x in (X, X[::-1].copy(), X):
        eager, ours = function(x), static(x)
        for a, b in zip(*[[each] if not isinstance(each, list) else each for each in (eager, ours)]):
            a, b = seen(a), seen(b)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            assert np.array_equal(np.signbit(a), np.signbit(b))
    assert [source.count("static int run_") for source in sources if " run_0(" in source] == [count]


def test_an_input_that_native_code_declines_reaches_the_right_region():
    """An array that is not contiguous is copied, and one region that serves several calls gets it each time."""
    static = to_static(equal_steps, backend="c")
    static(X)
    turned = np.asfortranarray(X)
    np.testing.assert_allclose(static(turned), equal_steps(turned), rtol=1e-5)
