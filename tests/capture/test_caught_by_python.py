"""Exceptions under decisions on array values that Python itself, or its library, may catch."""
import collections
import collections.abc
import functools

import chainer.functions as F
import pytest
from against_eager import check, variable

CALLS = [lambda s=s: (variable(2, 3, seed=s, low=-0.2 - s, high=1.2 - s),) for s in range(2)]


def is_positive(x):
    return float(F.sum(x).array) > 0


class Half:
    """Has things for some values of ``x`` only."""

    def __init__(self, x):
        self.x = x

    @property
    def given(self):
        if is_positive(self.x):
            raise AttributeError("given")
        return self.x * 2

    @functools.cached_property
    def kept(self):
        return self.given * 2

    def __getitem__(self, i):
        if is_positive(self.x) or i > 1:
            raise IndexError(i)
        return self.x * i

    def __len__(self):
        if is_positive(self.x):
            raise TypeError("no length")
        return 2


class Other(Half):
    def __getattr__(self, name):
        return self.x * 7


class Steps:
    def __init__(self, x):
        self.x, self.left = x, 3

    def __iter__(self):
        return self

    def __next__(self):
        self.left -= 1
        if is_positive(self.x) or self.left < 0:
            raise StopIteration
        return self.x * self.left


class Table(collections.abc.Mapping):
    def __init__(self, x):
        self.x = x

    def __getitem__(self, key):
        if is_positive(self.x):
            raise KeyError(key)
        return self.x * key

    def __iter__(self):
        return iter((1, 2))

    def __len__(self):
        return 2


def stopped(x):
    if is_positive(x):
        raise StopIteration
    return x * 2


def default_of_a_property(x):
    return getattr(Half(x), "given", x), getattr(Half(x), "kept", x)


def asked_for_a_property(x):
    return x * 3 if hasattr(Half(x), "given") else x


def another_way_to_an_attribute(x):
    return Other(x).given


def items_until_one_is_missing(x):
    total = x * 1
    for item in Half(x):
        total = total + item
    return total


def list_of_what_has_no_length(x):
    return list(Half(x)), x * 2


def steps(x):
    total = x * 1
    for item in Steps(x):
        total = total + item
    return total, next(Steps(x), x)


def mapped(x):
    return list(map(stopped, [x, -x]))


def default_of_a_mapping(x):
    return Table(x).get(2, x * 5), 1 in Table(x)


@pytest.mark.parametrize("function", [default_of_a_property, asked_for_a_property, another_way_to_an_attribute,
                                      items_until_one_is_missing, list_of_what_has_no_length, steps, mapped, default_of_a_mapping],
                         ids=lambda f: f.__name__)
def test_caught_as_in_eager_mode(function):
    check(lambda compile: compile(function), CALLS, compiled=True, backend="numpy")
