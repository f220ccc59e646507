"""Functions of libraries, and methods of Chainer's classes, that are replaced between two calls."""
import contextlib
import math
import random
import time
import warnings
from unittest import mock

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from changed_states import X, same_in_each_state

from dy2static import to_static

HOME = F.activation.tanh
REPLACED = {
    "chainer.functions.tanh": (lambda x: F.tanh(x), lambda x: x * 7),
    "chainer.functions.sum, by its module": (lambda x: chainer.functions.sum(x), lambda x: x * 7),
    "numpy.sum": (lambda x: x * np.sum(x.array), lambda x: np.float32(100)),
    "numpy.abs": (lambda x: np.abs(x.array), lambda x: x * 100),
    "numpy.linalg.norm": (lambda x: np.linalg.norm(x.array), lambda x: x * 100),
    "math.sqrt": (lambda x: x * math.sqrt(4.0), lambda x: 11.0),
    "builtins.len": (lambda x: x * len(x), lambda x, real=len: 11 if isinstance(x, chainer.Variable) else real(x)),
    "builtins.abs": (lambda x: abs(x), lambda x: x * 11),
    "builtins.print": (lambda x: print("hello") or x * 2, lambda text: SHOWN.append(text)),
    "time.time": (lambda x: (x * 2, time.time() > 0), lambda: -1.0),
    "numpy.random.rand": (lambda x: x * (np.random.rand(2).astype("f") < 2), lambda *shape: np.full(shape, 3.0)),
    "random.random": (lambda x: x * (random.random() < 2), lambda: 3.0),
    "chainer.functions.activation.tanh.tanh": (lambda x: HOME.tanh(x), lambda x: x * 7),
}
SHOWN = []


@pytest.mark.parametrize("name", REPLACED)
def test_functions_of_libraries_that_are_replaced(name):
    function, other = REPLACED[name]
    target, program = name.partition(",")[0], lambda x: (function(x), tuple(SHOWN[-1:]))
    with contextlib.ExitStack() as stack:
        def replace():
            stack.enter_context(mock.patch(target, other))
        same_in_each_state(program, [replace, stack.close, replace, stack.close])
    SHOWN.clear()


def test_the_module_of_an_array():
    def function(x):
        xp = chainer.backend.get_array_module(x)
        return x * xp.sum(x.array)
    with contextlib.ExitStack() as stack:
        same_in_each_state(function, [lambda: stack.enter_context(mock.patch("numpy.sum", lambda x: np.float32(100))), stack.close])


def test_recorded_warnings_replace_nothing_that_counts():
    compiled = to_static(lambda x: x * 2)
    for _ in range(3):
        with warnings.catch_warnings(record=True):
            compiled(X)
    assert compiled.stats()["captures"] == 1


def test_a_function_under_a_new_name_of_a_library():
    with contextlib.ExitStack() as stack:
        def put(function):
            return lambda: stack.enter_context(mock.patch.object(F, "of_mine", function, create=True))
        put(lambda x: x * 3)()
        same_in_each_state(lambda x: F.of_mine(x), [put(lambda x: x * 5), put(lambda x: x * 7)])


@pytest.mark.parametrize("name", ["forward_cpu", "backward", "check_type_forward"])
@pytest.mark.parametrize("first", [False, True])
def test_methods_of_functions_that_are_replaced(name, first):
    """A function with a method of somebody else's stays whole, from the first call on."""
    other = {"forward_cpu": lambda self, x: (x[0] * 7,), "backward": lambda self, indexes, gradients: (gradients[0] * 7,),
             "check_type_forward": lambda self, types: 1 / 0}[name]

    def function(x):
        y = F.tanh(x)
        gradient, = chainer.grad([y], [x])
        return y, gradient
    with contextlib.ExitStack() as stack:
        def replace():
            stack.enter_context(mock.patch.object(HOME.Tanh, name, other))
        if first:
            replace()
        changes = [stack.close, replace] if first else [replace, stack.close]
        same_in_each_state(function, changes, captured=False)       # the first call is observed


def test_methods_of_links_that_are_replaced():
    link = L.Linear(2, 2)

    def function(x):
        return link(F.expand_dims(x, 0))
    with contextlib.ExitStack() as stack:
        same_in_each_state(function, [
            lambda: stack.enter_context(mock.patch.object(L.Linear, "forward", lambda self, x: x * 2)), stack.close,
            lambda: stack.enter_context(mock.patch.object(chainer.Link, "__call__", lambda self, x: x * 3)), stack.close])


def test_methods_of_variables_that_are_replaced():
    with contextlib.ExitStack() as stack:
        same_in_each_state(lambda x: x * 3.0 + F.sum(x), [
            lambda: stack.enter_context(mock.patch.object(chainer.Variable, "__mul__", lambda self, other: self + other)), stack.close])
