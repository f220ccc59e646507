"""Captures that stop without a line of their own: the line of the decision is taken, or the function is halved until one is found."""
import functools

import chainer.functions as F
import pytest
from against_eager import check, variable

from dy2static import to_static


def counting(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return F.tanh(function(*args)) / 2
    wrapper.calls = 0
    return wrapper


def counted(compile):
    @counting
    def inner(x):
        return F.exp(x) + 1

    def f(x):
        h = F.sin(x) * 2
        h = inner(h)
        return F.sum(h * h) + inner.calls
    return compile(f), inner.__dict__


def chosen_often(compile):
    def f(x):
        h = F.tanh(x) * 2
        a = b = c = d = F.exp(h) * x
        if h.array[0] > 0:
            a = h
        if h.array[1] > 0:
            b = h
        if h.array[2] > 0:
            c = h
        if h.array[0] + h.array[1] > 0:
            d = h
        return F.sin(a) * F.cos(b), a, b, c, d
    return compile(f), ()


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("make", [counted, chosen_often], ids=lambda make: make.__name__)
def test_as_in_eager_mode(make, backend):
    check(make, [lambda k=k: (variable(3, seed=k),) for k in range(3)], strict="parts", backend=backend)


@pytest.mark.parametrize("make, line", [(counted, "wrapper.calls += 1"), (chosen_often, "if h.array")],
                         ids=["counted", "chosen_often"])
def test_the_warning_names_a_line(make, line):
    static, _ = make(lambda f: to_static(f, strict="parts"))
    with pytest.warns(match="runs as Python, between compiled parts") as warned:
        static(variable(3))
    assert any(line in str(found.message) for found in warned)
    assert static.stats()["parts"] and not static.stats()["fallbacks"]
