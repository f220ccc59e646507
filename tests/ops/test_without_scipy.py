"""Functions that SciPy computes, where there is no SciPy: lowered all the same if Chainer has a slower function."""
import importlib
import sys
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static

X = np.array([[-2.0, -0.3, 0.0], [0.7, 1.5, 30.0]], "float32")


@pytest.fixture
def nothing_computed(monkeypatch):
    """No SciPy, and Chainer's functions as they are in a new process."""
    for name in ("scipy", "scipy.special"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("erf", "erfc", "ndtr"):
        monkeypatch.setattr(importlib.import_module(f"chainer.functions.math.{name}"), f"_{name}_cpu", None)


def results(function, x):
    """The value, the gradient and the texts of all warnings."""
    x = chainer.Variable(x)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        y = function(x)
        F.sum(y * y).backward()
    return y.array, x.grad, [str(w.message) for w in seen if w.category is chainer.warnings.PerformanceWarning]


@pytest.mark.parametrize("backend", ("numpy", "c"))
@pytest.mark.parametrize("name", ("erf", "erfc", "ndtr"))
def test_lowered(nothing_computed, monkeypatch, name, backend):
    function = getattr(F, name)
    fast = to_static(lambda x: function(x) * 2, backend=backend)
    first, again = results(fast, X), results(fast, X)
    assert [node.op.name for node in fast.graph.nodes if node.op.name in ("special", "opaque")] == ["special"]
    monkeypatch.setattr(importlib.import_module(f"chainer.functions.math.{name}"), f"_{name}_cpu", None)
    y, gradient, warned = results(lambda x: function(x) * 2, X)
    assert first[2] == warned and len(warned) == 1 and again[2] == []
    for found in (first, again):
        np.testing.assert_allclose(found[0], y, rtol=3e-7)
        np.testing.assert_allclose(found[1], gradient, rtol=2e-6, atol=1e-30)
    assert first[0].dtype == np.float32


def test_arrays_without_elements_are_refused_as_eagerly(nothing_computed):
    fast = to_static(lambda x: F.erf(x) * 2)
    for function in (lambda x: F.erf(x) * 2, fast):
        with pytest.raises(ValueError, match="size 0"):
            function(X[:0])
