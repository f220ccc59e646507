"""Generators and context managers that Python itself ends: what they do happens once, in the program."""
import contextlib
import importlib
import linecache
import sys

import chainer.functions as F
import pytest
from against_eager import check, programs, variable

from dy2static import to_static

LOG = []


def note(what):
    LOG.append(what)


class Noting:
    """A manager, and something to close, that says what becomes of it in a list that all functions here share."""

    def __enter__(self):
        LOG.append("enter")
        return self

    def __exit__(self, kind, error, trace):
        LOG.append(("exit", kind and kind.__name__))

    def close(self):
        LOG.append("close")


def calls():
    return [lambda low=low: (variable(3, low=low, high=low + 1),) for low in (1, -2, 1, -2)]


def generator_left_on_several_paths(compile):
    LOG.clear()

    def numbers(x):
        try:
            yield F.tanh(x)
            yield x
        finally:
            note("finally")

    def f(x):
        found = numbers(x)
        h = next(found)
        return (h, next(found)) if float(x.array.sum()) > 0 else h
    return compile(f), LOG


def stack_of_managers(compile):
    LOG.clear()

    @contextlib.contextmanager
    def scope(name):
        try:
            yield name
        finally:
            LOG.append(name)

    def f(x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(Noting())
            stack.enter_context(scope("scope"))
            stack.push(lambda *details: LOG.append(len(details)))
            stack.callback(LOG.append, "callback")
            if float(x.array.sum()) > 0:
                stack.pop_all().close()
            LOG.append("in")
        return F.tanh(x)
    return compile(f), LOG


def stack_that_a_call_which_stops_leaves(compile):
    LOG.clear()

    def f(x):
        with contextlib.ExitStack() as stack:
            stack.enter_context(Noting())
            LOG.append([0] * int(abs(x.array[0])))      # not compiled
        return F.tanh(x)
    return compile(f), LOG


def raised_in_managers_with_names(compile):
    LOG.clear()

    def f(x):
        stack, closing = contextlib.ExitStack(), contextlib.closing(Noting())
        with stack, closing:
            stack.enter_context(Noting())
            if float(x.array.sum()) > 0:
                raise KeyError("far")
        return F.tanh(x)
    return compile(f), LOG


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_what_python_ends_is_ended_once(make):
    check(make, calls())


def test_a_capture_that_stops_ends_generators_without_effects():
    LOG.clear()

    def numbers(x):
        try:
            yield F.tanh(x)
            yield x
        finally:
            note("finally")

    def f(x):
        found = numbers(x)
        h = next(found)
        LOG.append([0] * int(abs(x.array[0])))          # not compiled
        return h
    to_static(f)(variable(3, low=1, high=2))
    assert LOG == ["finally", [0]]


def test_blocks_of_a_file_that_has_changed_are_found(tmp_path, monkeypatch):
    """An exception in a ``try`` of the new text is caught, though no ``try`` was there before."""
    body = "    if float(x.array.sum()) > 0:\n        raise ValueError('far')\n    return F.tanh(x)\n"
    head = "import chainer.functions as F\ndef f(x):\n"
    caught = "    try:\n        return g(x)\n    except ValueError:\n        return x * 2\ndef g(x):\n"
    file = tmp_path / "changing_blocks.py"
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    results = []
    for text in (head + body, head + caught + body):
        file.write_text(text)
        linecache.checkcache(str(file))
        module = sys.modules.get("changing_blocks")
        module = importlib.import_module("changing_blocks") if module is None else importlib.reload(module)
        compiled = to_static(module.f)
        compiled(variable(3, low=-2, high=-1))
        try:
            results.append(compiled(variable(3, low=1, high=2)).shape)
        except ValueError as error:
            results.append(str(error))
    monkeypatch.delitem(sys.modules, "changing_blocks")
    assert results == ["far", (3,)]
