"""Functions that are called between parts, and are changed by the user between calls."""
import warnings

import chainer
import chainer.functions as F
import pytest
from against_eager import variable
from breaks import inside, refuse

from dy2static import to_static


def divided(h, v=3.0, *, w=1.5):
    return F.tanh(h * v) * w * 2, inside(1)


def whole(h, v=3.0, *, w=1.5):
    return F.tanh(h * v) * w * 2, 1


def new_code(h, v=3.0, *, w=1.5):
    return F.sin(h * v) * w * 3, 1


def user(helper):
    """A function that calls another one between parts."""
    def f(x):
        y = refuse(F.tanh(x)) * 2
        return helper(y)[0] + helper(y, w=2.5)[0]
    return f


CHANGES = {
    "defaults": lambda helper: setattr(helper, "__defaults__", (0.5,)),
    "no defaults": lambda helper: setattr(helper, "__defaults__", None),
    "keyword defaults": lambda helper: setattr(helper, "__kwdefaults__", {"w": 7.0}),
    "an item of them": lambda helper: helper.__kwdefaults__.update(w=5.0),
    "code": lambda helper: setattr(helper, "__code__", new_code.__code__),
}


@pytest.fixture(params=[divided, whole], ids=lambda helper: helper.__name__)
def helper(request):
    """A function that is put back afterwards."""
    function = request.param
    before = function.__defaults__, dict(function.__kwdefaults__), function.__code__
    yield function
    function.__defaults__, function.__kwdefaults__, function.__code__ = before


def outcome(function):
    x = variable(3, dtype="d")
    try:
        y = function(x)
    except TypeError as error:
        return str(error)
    return [*y.array.tolist(), *chainer.grad([F.sum(y)], [x])[0].array.tolist()]


def assert_same(static, function):
    actual, expected = outcome(static), outcome(function)
    assert actual == (expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-9))


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_noticed(helper, change):
    function = user(helper)
    static = to_static(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            assert_same(static, function)
        CHANGES[change](helper)
        for _ in range(2):
            assert_same(static, function)
    assert static.stats()["cuts"]
