"""Backends, graphs, code and explanations of lazy arrays, and what strict refuses."""
import numpy as np
import pytest

from dy2static import CaptureError, FallbackWarning, lazy
from dy2static.errors import SignatureError
from dy2static.lazy.structures import structures


def last_compiled(backend):
    return next(reversed(structures.known.values())).compiled(backend)


def test_the_backend_is_that_of_the_evaluation():
    x = lazy.array(np.arange(4.0))
    with lazy.backend("numpy"):
        y = np.exp(x * 2.5) - 1
    with lazy.backend("c"):
        native = y.evaluate()
    assert last_compiled("c").cache_info().captures == 1 and last_compiled("numpy").cache_info().captures == 0
    np.testing.assert_allclose(native, np.exp(np.arange(4.0) * 2.5) - 1)


def test_a_backend_that_there_is_not():
    with pytest.raises(SignatureError, match="backend is"), lazy.backend("abacus"):
        pass


def test_graph_code_and_explanation():
    x = lazy.array(np.arange(4.0))
    y = np.sqrt(x) + 1                                  # built here
    assert "sqrt" in str(y.graph) and "def " in y.code and "sqrt" in y.code
    text = lazy.explain(y)
    assert "np.sqrt(" in text and f"{__file__}:" in text and "compiled" in text
    y.evaluate()
    assert y.graph is None and y.code is None and lazy.explain(y) == "computed already"


def test_what_no_expression_holds_is_told_once():
    y = lazy.array(np.arange(4.0)) + 1
    with pytest.warns(FallbackWarning, match="unique of a lazy array is computed at once"):
        np.unique(y)
    assert np.unique(lazy.array(np.arange(4.0)) + 2).tolist() == [2, 3, 4, 5]       # warnings are errors in the tests


def test_strict_refuses_it():
    y = lazy.array(np.arange(4.0)) + 1
    with lazy.strict(), pytest.raises(CaptureError, match="computed at once"):
        np.unique(y)
    with lazy.strict():
        assert float(y.sum()) == 10
