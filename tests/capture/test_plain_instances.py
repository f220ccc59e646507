"""Enums and named tuples: what their properties read, which Python runs as they are, is guarded or refused."""
import enum
import typing

import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import to_static


class Rates:
    low = 2.0


class Speed(enum.Enum):
    SLOW = 1
    FAST = 3

    @property
    def factor(self):
        return 2.0 if self is Speed.SLOW else 5.0

    @property
    def rate(self):
        return Rates.low * self.value


class Limited(enum.Enum):
    ALL = 2

    def limit(self):
        return LIMIT * self.value

    @property
    def limited(self):
        return self.limit()


class Named(typing.NamedTuple):
    name: str
    table = {"a": 1.0}

    @property
    def rate(self):
        return Rates.low * len(self.name)

    @property
    def found(self):
        return self.table[self.name]


LIMIT = 1.0


def factor(x, item):
    return F.relu(x) * item.factor


def rate(x, item):
    return F.relu(x) * item.rate


def found(x, item):
    return F.relu(x) * item.found


def limited(x, item):
    return F.relu(x) * item.limited


@pytest.mark.parametrize(("function", "item", "change"), [
    (factor, Speed.FAST, None),
    (rate, Speed.FAST, lambda patch: patch.setattr(Rates, "low", 7.0)),
    (rate, Named("a"), lambda patch: patch.setattr(Rates, "low", 7.0)),
    (found, Named("a"), lambda patch: patch.setitem(Named.table, "a", 7.0)),
    (limited, Limited.ALL, lambda patch: patch.setitem(globals(), "LIMIT", 7.0)),
    (rate, Speed.SLOW, lambda patch: patch.setitem(globals(), "Rates", type("Rates", (), {"low": 7.0})))])
def test_what_properties_read(function, item, change, monkeypatch):
    static = to_static(function, strict=change is None)
    x = variable(3)
    for turn in range(3):
        if turn == 2 and change is not None:
            change(monkeypatch)
        np.testing.assert_allclose(static(x, item).array, function(x, item).array, rtol=1e-6)
