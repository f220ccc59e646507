"""Attributes that the capture's stand-ins have for themselves are none of the user's lists, numbers, arrays and Variables."""
import collections
import collections.abc
import functools
import pathlib
import re
import typing

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check

from dy2static.capture.builtin_calls import BuiltinCalls
from dy2static.heap.stand_ins import stood_for
from dy2static.symbolic.uninitialized import UninitializedParameter
from dy2static.symbolic.values import SymbolicArray, SymbolicScalar
from dy2static.transformers.function_parts import HIDDEN

pytestmark = pytest.mark.any_python

VALUES = (
    [1], [1.5, 2], {"a": 1}, {1}, 2, True, 1.5, "s", (1,), collections.deque([1]), collections.OrderedDict(a=1),
    collections.Counter("a"), np.float32(1), np.ones(3, "f"), np.array(2.0), None, re.compile("a"))
NAMES = sorted(HIDDEN | {"array", "data", "shape", "append", "__array__", "__bool__", "__call__", "__dict__", "__index__", "__iter__",
                         "__len__", "__name__"})


def made(k, x):
    """What a call makes: its stand-ins are others than those of arguments."""
    return (lambda: [x], lambda: x * 2, lambda: (x * 2).array, lambda: x.array.sum(), lambda: float(x.array[0]), lambda: {"a": x},
            lambda: x.array > 0, lambda: int(x.array[0]), lambda: "%.3f" % float(x.array[0]), lambda: {1},
            lambda: collections.deque([x]), lambda: collections.Counter("a"))[k]()


def variable():
    return chainer.Variable(np.ones(3, "f"))


def test_names_are_asked_for(monkeypatch):
    """`hasattr` and `getattr` see what Python sees, and `HIDDEN` has all names that a direct read could find."""
    found = set()

    def note(self, function, *args, inspect=BuiltinCalls.inspect):
        item = args[0]
        real = stood_for(type(item)) or (item.__class__ if type(item) in (SymbolicArray, SymbolicScalar) else None)
        if type(item) is not UninitializedParameter and real is not None:
            found.update({*dir(type(item)), *getattr(item, "__dict__", ())} - {*dir(real), *vars(chainer.Parameter())})
        return inspect(self, function, *args)
    monkeypatch.setattr(BuiltinCalls, "inspect", note)

    def names(value, k, x):
        value = value if k is None else made(k, x)
        return [name for name in NAMES if hasattr(value, name) or getattr(value, name, None) is not None], F.sum(x)

    values = [(value, None) for value in VALUES] + [(None, k) for k in range(12)] + [(variable(), None)]
    check(lambda compile: compile(names), [lambda given=given: (*given, variable()) for given in values], rounds=1)
    assert {name for name in found if not name.startswith("__")} <= HIDDEN


@pytest.mark.parametrize("value, k", [([1], None), ({"a": 1}, None), (2, None), (np.float32(1), None), (np.random, None), (None, 1),
                                      (None, 2), (None, 4)], ids=str)
def test_direct_reads(value, k):
    def read(value, k, x):
        value = value if k is None else made(k, x)
        try:
            return value.value
        except AttributeError as error:
            said = str(error)
        try:
            return value.source, said
        except AttributeError as error:
            return said, str(error), x * 2

    check(lambda compile: compile(read), [lambda: (value, k, variable())])


def test_attributes_of_the_users_variables():
    """A name that the capture uses, too, runs as Python where the user's Variable has such an attribute."""
    def make(compile):
        p = chainer.Parameter(np.ones(3, "f"))
        p.value = 3.0

        def read(x):
            return F.tanh(x) * p.value * getattr(p, "source", 2)
        return compile(read), [p]
    check(make, [lambda: (variable(),)])


def test_classes_are_asked():
    """What is iterable, and what has a hash, is no question of the stand-ins: NumPy's numbers and arrays have the same one."""
    kinds = (collections.abc.Iterable, collections.abc.Sized, typing.Hashable, collections.abc.Container, collections.abc.Sequence,
             (int, collections.abc.Mapping), float, np.ndarray, np.generic, chainer.Variable)

    def asked(value, k, x):
        value = value if k is None else made(k, x)
        return [isinstance(value, kind) for kind in kinds], F.sum(x)

    values = [(value, None) for value in VALUES] + [(None, k) for k in range(12)]
    check(lambda compile: compile(asked), [lambda given=given: (*given, variable()) for given in values], rounds=1)


def test_what_values_show_of_themselves():
    """Their class, `vars` and text, for containers of the caller's and for those that the call makes."""
    def shown(value, k, x):
        value = value if k is None else made(k, x)
        try:
            own = sorted(vars(value)) if not isinstance(value, chainer.Variable) else None
        except TypeError as error:
            own = str(error)
        return value.__class__ is type(value), value.__class__ in (list, dict, set), own, str(value), F.sum(x)

    values = [(value, None) for value in VALUES] + [(None, k) for k in range(12)] + [(variable(), None)]
    check(lambda compile: compile(shown), [lambda given=given: (*given, variable()) for given in values], rounds=1)


def test_a_text_is_made_of_bytes():
    check(lambda compile: compile(lambda name, x: (f"{name}", f"{name!r}", F.tanh(x))),
          [lambda name=name: (name, variable()) for name in (b"ab", b"cd", b"ef", "gh")], rounds=1)


def test_attributes_that_containers_cannot_have():
    def assign(value, x):
        try:
            value.flag = 1
        except AttributeError as error:
            return str(error), F.sum(x)
        return value.flag, F.sum(x)

    values = [1], {"a": 1}, {1}, collections.OrderedDict(a=1)
    check(lambda compile: compile(assign), [lambda value=value: (value, variable()) for value in values], rounds=1)


def test_attributes_of_an_ordered_dict():
    """It may have some, unlike a dict."""
    def make(compile):
        options = collections.OrderedDict(a=1)
        options.scale = 3.0
        return compile(lambda x: F.tanh(x) * options.scale * options["a"]), [options]
    check(make, [lambda: (variable(),)])


def test_attributes_of_a_partial():
    """Such as `functools.update_wrapper` sets."""
    def make(compile):
        act = functools.partial(F.leaky_relu, slope=0.5)
        act.scale, act.__name__ = 3.0, "leaky"

        def f(x, own):
            if own:
                act.seen = own
            return act(x) * act.scale, act.__name__, getattr(act, "seen", None)
        return compile(f), [vars(act)]
    check(make, [lambda: (variable(), 0), lambda: (variable(), 1), lambda: (variable(), 0)], rounds=1)


def test_attributes_of_what_a_library_makes():
    """The attribute of an attribute: `name` of the folder, and not the name under which the folder was asked for."""
    def show(path, x):
        y = F.tanh(x)
        found = pathlib.Path(path)
        print(found.parent.name, re.match("(.)", path).re.pattern)
        return y * 2
    check(lambda compile: compile(show), [lambda: ("/a/b/c", variable())])
