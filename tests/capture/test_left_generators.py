"""Generators and context managers that Python itself ends: what they do happens once, in the program."""
import contextlib
import gc
import importlib
import linecache
import sys

import chainer.functions as F
import pytest
from against_eager import check, programs, variable

from dy2static import to_static
from dy2static.heap import protection

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


class Far(Noting, contextlib.ContextDecorator):
    """A manager that may fail when it is made, entered or left, and swallows a ValueError."""

    def __init__(self, made=None, entered=None, left=None):
        self.entered, self.left = entered, left
        self.check(made)

    def check(self, x):
        if x is not None and float(x.array.sum()) > 0:
            raise ValueError("far")

    def __enter__(self):
        self.check(self.entered)
        return super().__enter__()

    def __exit__(self, kind, error, trace):
        super().__exit__(kind, error, trace)
        self.check(self.left)
        return kind is ValueError

    def __setattr__(self, name, value):
        if name == "target":
            self.check(value)
        object.__setattr__(self, name, value)


def second_manager_fails(compile):
    LOG.clear()

    def f(x):
        with Noting(), Far(made=x):
            note("made")
        return x
    return compile(f), LOG


def second_manager_is_not_entered(compile):
    LOG.clear()

    def f(x):
        with (Noting()), (
                Far(entered=x)) as found:
            note(found.entered is x)
        return x
    return compile(f), LOG


def second_manager_fails_at_its_end(compile):
    LOG.clear()

    def f(x):
        with Noting(), Far(left=x):
            note("inside")
        return x
    return compile(f), LOG


def target_of_a_manager_fails(compile):
    LOG.clear()
    place = Far()

    def f(x):
        with Valued(x) as place.target:
            note("inside")
        return x * 2
    return compile(f), LOG


class Valued(Noting):
    """A manager that gives a value."""

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        super().__enter__()
        return self.value


def decorated_by_a_manager(compile):
    LOG.clear()

    @Far()
    def swallowed(x):
        if float(x.array.sum()) > 0:
            raise ValueError("far")
        return F.tanh(x)

    def f(x):
        return swallowed(x)
    return compile(f), LOG


def decorated_by_a_generator(compile):
    LOG.clear()

    @contextlib.contextmanager
    def scope():
        note("enter")
        try:
            yield
        finally:
            note("exit")

    @scope()
    def inner(x):
        if float(x.array.sum()) > 0:
            raise KeyError("far")
        return F.tanh(x)

    def f(x):
        return inner(x)
    return compile(f), LOG


def raised_while_a_generator_waits(compile):
    LOG.clear()

    def numbers(x):
        with Noting():
            for k in range(3):
                yield x * k

    def f(x):
        for h, k in zip(numbers(x), range(3)):
            note(k)
            if float(h.array.sum()) > 1:
                raise KeyError("far")
        return h
    return compile(f), LOG


def raised_while_a_generator_of_a_generator_waits(compile):
    LOG.clear()

    def numbers(x):
        try:
            yield F.tanh(x)
            yield x
        finally:
            note("finally")

    def all_numbers(x):
        yield from numbers(x)

    def f(x):
        for h in all_numbers(x):
            if float(h.array.sum()) > 0:
                raise KeyError("far")
        return h
    return compile(f), LOG


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_what_python_ends_is_ended_once(make):
    check(make, calls())


def test_a_generator_that_an_exception_holds_ends_when_it_is_forgotten():
    def numbers(x):
        try:
            yield F.tanh(x)
            yield x
        finally:
            note("finally")

    def f(x):
        found = numbers(x)
        h = next(found)
        if float(h.array.sum()) > 0:
            raise KeyError("far")
        return h
    compiled = to_static(f)
    for function in (f, compiled, compiled):
        LOG.clear()
        with contextlib.suppress(KeyError):
            function(variable(3, low=1, high=2))
        gc.collect()
        assert LOG == ["finally"]


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


def test_names_that_somebody_asked_for_stay():
    """Libraries may hold the dict of their own names while the user's code that they call fails."""
    def library():
        generator = (k for k in range(3))
        names = locals()
        return names, protection._generators_of(sys._getframe()), generator
    names, found, generator = library()
    assert names["generator"] is generator and found == [generator]
