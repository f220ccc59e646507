"""State that is read after a call that is not compiled: compiled where the call is seen to read only, refused where not."""
import logging

import chainer
import numpy as np
import pytest
from against_eager import check

from dy2static import not_to_static

log = logging.getLogger("host readers")
log.addHandler(logging.NullHandler())
log.propagate = False


class Box:
    def __init__(self):
        self.n, self.name, self.sizes = 2, "box", (1, 2)


class Counting(Box):
    """Its special methods change it."""

    def __call__(self, *args):
        self.n += 1
        return 1.0

    __getitem__ = __add__ = __call__

    def __float__(self):
        self.n += 1
        return 1.0

    @property
    def counted(self):
        self.n += 1
        return self.n

    @not_to_static
    def calls(self):
        return self(1.0)

    @not_to_static
    def indexes(self):
        return self[0]

    @not_to_static
    def converts(self):
        return float(self)

    @not_to_static
    def adds(self):
        return 1.0 if self + 1 else 2.0

    @not_to_static
    def keeps(self):
        box = self
        return box.counted


@not_to_static
def reads(box, k):
    return box.n * k + len(box.sizes)


@not_to_static
def tells(box, number):
    print(box.name, box.n)
    log.info("%s %d", box.name, number)


@not_to_static
def reads_a_property(box):
    return box.counted


@not_to_static
def changes(box):
    box.n += 1


@not_to_static
def changes_another(box, other):
    print(box.n)
    other.n = 5


def read(x, box):
    reads(box, 3)
    box.n += 1
    return x * box.n


def told(x, box):
    box.n += 1
    tells(box, box.n)
    return x * box.n


def changed(x, box):
    changes(box)
    return x * box.n


def changed_second(x, box):
    changes_another(box, box)
    return x * box.n


def own_property(x, box):
    reads_a_property(box)
    return x * box.n


def of_method(name):
    def program(x, box):
        getattr(box, name)()
        return x * box.n
    return program


def calls():
    return [lambda roots: (chainer.Variable(np.ones(2, "f")), roots)] * 2


@pytest.mark.parametrize("program", [read, told])
def test_calls_that_read(program):
    check(lambda compile: (compile(program), Box()), calls(), strict=True)


@pytest.mark.parametrize("program", [changed, changed_second, own_property,
                                     *map(of_method, ("calls", "indexes", "converts", "adds", "keeps"))])
def test_calls_that_change_something(program):
    check(lambda compile: (compile(program), Counting()), calls())
