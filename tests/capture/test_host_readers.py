"""State that is read after a call that is not compiled: compiled where the call is seen to read only, refused where not."""
import functools
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


# --- libraries that call functions of the user's ------------------------------------------------------------------------


class Told(Box):
    """Its texts are counted, and what is written to it."""

    def __str__(self):
        self.n += 1
        return "told"

    __repr__ = __str__

    def write(self, text):
        self.n += 1


class Named(Box):
    def __str__(self):
        return f"{self.name}: {self.n:>3}"


class Failure(Exception):
    n = 2

    def __str__(self):
        self.n += 1
        return "failure"


def counted(box):
    def count(k):
        box.n += 1
        return k
    return count


#: Per case: what is called, for a box that it changes.
THROUGH_LIBRARIES = {
    "cached": lambda box: functools.lru_cache(maxsize=1)(counted(box)),
    "cached_partial": lambda box: functools.partial(functools.lru_cache(maxsize=1)(counted(box))),
    "vectorized": lambda box: np.vectorize(counted(box), otypes=[int]),
    "held_in_a_list": lambda box: np.vectorize(functools.partial(max, key=counted(box)), otypes=[int], excluded={0, 1}),
}


@pytest.mark.parametrize("case", THROUGH_LIBRARIES)
def test_library_objects_that_call_functions_of_the_user(case):
    def make(compile):
        box = Box()
        call = THROUGH_LIBRARIES[case](box)

        def program(x, k):
            call(k, k) if case == "held_in_a_list" else call(k)
            return x * box.n
        return compile(program), box
    check(make, [lambda k=k: (chainer.Variable(np.ones(2, "f")), k) for k in (1, 1, 2, 1)])


def printed(x, box):
    print(box)
    return x * box.n


def printed_in_a_list(x, box):
    print([1, (box,)])
    return x * box.n


def logged(x, box):
    logging.warning("%s", box)
    return x * box.n


def written(x, box):
    print("a", file=box)
    return x * box.n


def of_an_error(x, box):
    str(box)
    return x * box.n


@pytest.mark.parametrize("program, kind", [(printed, Told), (printed_in_a_list, Told), (logged, Told), (written, Told),
                                           (of_an_error, Failure)])
def test_texts_that_change_something(program, kind):
    check(lambda compile: (compile(program), kind()), calls())


def test_texts_that_change_nothing():
    check(lambda compile: (compile(printed), Named()), calls(), strict=True)
