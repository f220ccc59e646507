"""A backend is a file and one registered object: programs on the interpreter of `interpreter_backend`, against eager."""
import re

import chainer
import chainer.functions as F
import interpreter_backend
import numpy as np
import pytest
from interpreter_backend import InterpreterBackend, to_static

import dy2static
from dy2static import config
from dy2static.backends.registry import BACKENDS, register


def smooth(x, w):
    return F.sum(F.tanh(F.matmul(x, w)) ** 2)


def branch(x, w):
    h = F.matmul(x, w)
    if F.sum(h).array > 0:
        h = F.sigmoid(h)
    else:
        h = h * 2
    return F.sum(h * h)


def loop(x, w):
    h, steps = x, 0
    while F.sum(h * h).array < 50 and steps < 6:
        h = h + F.tanh(F.matmul(h, w)) + 0.5
        steps += 1
    return F.sum(h) * steps


def collected(x, w):
    rows = []
    for row in x:
        if row.array.sum() > 0:
            rows.append(F.matmul(row, w))
    return F.sum(F.stack(rows)) if rows else F.sum(x)


def stays_whole(x, w):
    return F.sum(F.hard_sigmoid(F.matmul(x, w)) + F.sum(x))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The other tests have the backends that there are without it."""
    monkeypatch.setattr(config, "BACKENDS", list(config.BACKENDS))
    register(InterpreterBackend())
    yield
    del BACKENDS["interpreter"]


PROGRAMS = (smooth, branch, loop, collected, stays_whole)


def gradients(function, seed):
    """The value, the gradients, and those of the sum of their squares."""
    x, w = (chainer.Variable(np.random.RandomState(seed).uniform(-1, 1, (3, 3)).astype("f")) for _ in range(2))
    y = function(x, w)
    first = [g for g in chainer.grad([y], [x, w], enable_double_backprop=True) if g is not None]
    second = chainer.grad([sum(F.sum(g * g) for g in first)], [x, w])
    return [y.array, *[g.array for g in first], *[None if g is None else g.array for g in second]]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients_of_two_orders(function):
    compiled = to_static(function, strict=True)
    for seed in (0, 1, 2, 0):
        for one, other in zip(gradients(compiled, seed), gradients(function, seed)):
            assert (one is None) == (other is None)
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    program, = compiled.dispatcher.programs[:1]
    assert "interpret(" in program.source and not program.native_code


def test_errors_name_the_line():
    @to_static(strict=True)
    def checked(x):
        h = F.sum(x)
        if h.array < 0:
            raise ValueError("negative")
        return h

    checked(np.ones(3, "f"))
    with pytest.raises(ValueError, match="negative") as caught:
        checked(-np.ones(3, "f"))
    assert any(entry.name == "checked" and 'raise ValueError("negative")' in str(entry.statement) for entry in caught.traceback)


def test_effects_and_draws_are_in_order(capsys):
    def noisy(x):
        print("one")
        return F.dropout(x, 0.5)
    found = []
    for function in (noisy, to_static(noisy, strict=True)):
        np.random.seed(0)
        found.append([function(np.ones((2, 5), "f")).array for _ in range(2)])
    np.testing.assert_array_equal(*found)
    assert capsys.readouterr().out == "one\n" * 4


def test_profiles_have_its_parts():
    compiled = to_static(smooth)
    with compiled.profile() as profile:
        compiled(np.ones((3, 3), "f"), np.ones((3, 3), "f"))
    assert "matmul" in str(profile)


def test_it_is_one_of_the_backends():
    """The registry knows it, as do options, pipelines and the environment's setting."""
    assert "interpreter" in [pipeline.name for pipeline in dy2static.pipelines()]
    with config.BACKEND.set("interpreter"):
        compiled = dy2static.to_static(smooth, strict=True)
        compiled(np.ones((3, 3), "f"), np.ones((3, 3), "f"))
    assert "interpret(" in compiled.dispatcher.programs[0].source
    with pytest.raises(dy2static.Dy2StaticError, match='or "interpreter"'):
        dy2static.to_static(smooth, backend="zzz")


def test_it_is_small():
    """What a backend takes, and that it knows nothing of the others."""
    with open(interpreter_backend.__file__, encoding="utf-8") as file:
        text = file.read()
    assert text.count("\n") <= 150 and not re.search(r"backends\.(host|c)\b", text)
