"""Calls before and after changes of what a function uses, in eager mode and compiled."""
import warnings

import chainer
import numpy as np

from dy2static import to_static
from dy2static.errors import FallbackWarning

#: What the functions are called with.
X = chainer.Variable(np.array([1.0, 2.0], np.float32))


def same_in_each_state(function, changes, backend="numpy", captured=True):
    """Call a function eagerly and compiled, twice after each change of what it uses, and compare what comes."""
    compiled = to_static(function, backend=backend)
    seen = []
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            expected, found = outcome_of(function), outcome_of(compiled, captured)
            assert found == expected, f"after change {len(seen) // 2}"
            seen.append(expected)
    assert len(set(map(repr, seen))) > 1, "no change was one"
    if captured:
        assert compiled.stats()["fallbacks"] == 0, compiled.explain_misses()
    return compiled


def outcome_of(function, captured=True):
    """The result as plain values, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("error" if captured else "ignore", FallbackWarning)
        try:
            return plain(function(X))
        except Exception as error:
            return type(error), str(error)


def plain(item):
    if isinstance(item, chainer.Variable):
        return "Variable", plain(item.array)
    if isinstance(item, (np.ndarray, np.generic)):
        return item.dtype.char, item.tolist()
    return tuple(map(plain, item)) if isinstance(item, (tuple, list)) else (type(item), repr(item))
