"""Floating-point errors and warnings that are exceptions, where a ``try`` or ``with`` of the function sees them."""
import contextlib
import warnings

import chainer.functions as F
import numpy as np
import pytest

from dy2static import FallbackWarning, to_static

LEFT = []


class Told(UserWarning):
    """A warning of the program's own."""


@contextlib.contextmanager
def noting():
    try:
        yield
    finally:
        LEFT.append("left")


def longer(x):
    for _ in range(10):                                 # a function that is worth compiling
        x = F.tanh(x * 1.5)
    return x


def divides(x, d):
    h = longer(x)
    try:
        return h, np.divide(x, d)
    except FloatingPointError as error:
        return h, str(error)


def calls(x, d):
    try:
        y = divided(x, d)
    except ArithmeticError:
        y = x
    finally:
        LEFT.append("tried")
    return longer(y)


def divided(x, d):
    return x / d


def cleans_up(x, d):
    h = longer(x)
    with noting():
        y = x / d
    return h, y


def sets_it_inside(x, d):
    h = longer(x)
    with np.errstate(all="raise"):
        try:
            return h, np.divide(x, d)
        except FloatingPointError as error:
            return h, str(error)


def warns(x, d):
    h = longer(x)
    try:
        warnings.warn("told", Told)
    except Told as error:
        return h, str(error)
    return h, d


def filters_inside(x, d):
    h = longer(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Told)
        try:
            warnings.warn("told", Told)
        except Told as error:
            return h, str(error)
    return h, d


def outcome(function, x, d):
    try:
        return [item if isinstance(item, str) else np.asarray(getattr(item, "array", item)).tolist() for item in function(x, d)]
    except FloatingPointError as error:
        return type(error), str(error)


@pytest.mark.parametrize("function", [divides, calls, cleans_up, sets_it_inside, warns, filters_inside])
@pytest.mark.parametrize("order", [(False, True, False), (True, False)])
def test_caught_as_in_eager_mode(function, order):
    found, x = [], np.full(2, 0.5, np.float32)
    for run in (function, to_static(function, backend="numpy")):
        LEFT.clear()
        results = []
        for is_raised in order:
            with np.errstate(all="raise" if is_raised else "ignore"), warnings.catch_warnings():
                warnings.simplefilter("error" if is_raised else "ignore", Told)
                warnings.simplefilter("ignore", FallbackWarning)
                results += [outcome(run, x, d) for d in (x, x * 0)]
        found.append((results, list(LEFT)))
    assert found[0] == found[1]


@pytest.mark.parametrize("function", [divides, calls, cleans_up, warns])
def test_compiled_as_long_as_nothing_is_raised(function):
    compiled, x = to_static(function, backend="numpy", strict=True), np.full(2, 0.5, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Told)
        warnings.simplefilter("error", FallbackWarning)
        for _ in range(3):
            compiled(x, x)
    assert compiled.stats()["captures"] == 1


def test_the_error_of_an_inverse_has_a_context_and_no_cause():
    compiled, singular = to_static(lambda x: F.inv(x) * 2, backend="numpy", strict=True), np.zeros((2, 2), np.float32)
    compiled(np.eye(2, dtype="f"))
    with pytest.raises(ValueError, match="singular") as raised:
        compiled(singular)
    assert raised.value.__cause__ is None and type(raised.value.__context__) is np.linalg.LinAlgError
    assert compiled.stats()["fallbacks"] == 0
