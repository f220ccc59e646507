"""Chainer's own code goes through the front end and comes out doing the same."""

import inspect
import types

import chainer
import chainer.functions as F
import chainer.links as L
import numpy
import pytest
from test_transformers import converted

from dy2static.pyast import parser
from dy2static.pyast.printer import unparse


def functions_of(module):
    """The Python functions that a module of Chainer shows, and the methods of its classes."""
    found = {}
    for value in vars(module).values():
        holders = [vars(cls) for cls in value.__mro__] if isinstance(value, type) else [{"": value}]
        for holder in holders:
            for function in holder.values():
                function = inspect.unwrap(
                    getattr(function, "fget", None) or getattr(function, "__func__", function)
                )
                if isinstance(function, types.FunctionType) and function.__module__.startswith("chainer."):
                    found[function] = None
    return list(found)


@pytest.mark.parametrize("module", [L, F, chainer], ids=lambda module: module.__name__)
def test_everything_converts(module):
    functions = functions_of(module)
    assert len(functions) > 200
    for function in functions:
        converted(function)


def test_everything_prints():
    for function in functions_of(L)[::7]:
        unparse(parser.parse(function))


def lstm(link, x):
    h = link(x)
    return h, link(x[:1]), link.c, link.h


CASES = [
    (lambda: L.Linear(3, 2), None, [L.Linear.forward]),
    (lambda: L.Linear(2), None, [L.Linear.forward, L.Linear._initialize_params, chainer.Link.__call__]),
    (
        lambda: chainer.Sequential(L.Linear(2), F.relu),
        None,
        [chainer.Sequential.forward, chainer.Link.__call__],
    ),
    (lambda: L.LSTM(3, 2), lstm, [L.LSTM.forward]),
    (lambda: L.LSTM(None, 2), lstm, [L.LSTM.forward, chainer.Link.__call__]),
    (lambda: L.BatchNormalization(3), None, [L.BatchNormalization.forward]),
    (lambda: L.Maxout(3, 2, 2), None, [L.Maxout.forward]),
]


@pytest.mark.parametrize("make, call, functions", CASES)
def test_links_do_the_same(make, call, functions, monkeypatch):
    x = numpy.random.RandomState(0).rand(4, 3).astype("f")

    def run():
        numpy.random.seed(0)
        results = (call or (lambda link, x: link(x)))(make(), x)
        return [result.array for result in (results if isinstance(results, tuple) else [results])]

    eager = run()
    for function in functions:
        cls = next(
            cls
            for cls in (L.Linear, L.LSTM, L.BatchNormalization, L.Maxout, chainer.Sequential, chainer.Link)
            if vars(cls).get(function.__name__) is function
        )
        monkeypatch.setattr(cls, function.__name__, converted(function))
    for expected, actual in zip(eager, run()):
        numpy.testing.assert_array_equal(actual, expected)


def test_private_names_and_errors_are_kept(monkeypatch):
    """``Link.__call__`` calls ``self.__check_init_done``, which raises where ``__init__`` did not run."""

    class Forgetful(L.Linear):
        def __init__(self):
            pass

    monkeypatch.setattr(chainer.Link, "__call__", converted(chainer.Link.__call__))
    with pytest.raises(RuntimeError, match="__init__"):
        Forgetful()(numpy.zeros((1, 3), "f"))


def test_functions_do_the_same():
    x = numpy.random.RandomState(0).rand(4, 3).astype("f")
    for function in (F.relu, F.softmax, F.dropout, F.batch_normalization, F.accuracy):
        arguments = {F.batch_normalization: (x, x[0], x[1]), F.accuracy: (x, numpy.array([0, 1, 2, 0], "i"))}
        results = []
        for each in (function, converted(function)):
            numpy.random.seed(0)
            results.append(each(*arguments.get(function, (x,))).array)
        numpy.testing.assert_array_equal(*results)
