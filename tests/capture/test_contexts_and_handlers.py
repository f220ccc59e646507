"""Contexts, handlers and raised errors in compiled functions."""
import contextlib
import io

import chainer
import chainer.functions as F
import pytest
from against_eager import check, programs, signs

LOG, TABLE, COUNT = [], {"n": 0}, 0


# --- with, try, raise -------------------------------------------------------------------------------------------------------------


class Noted:
    """A context manager of the user's."""

    def __init__(self, name, swallow=None):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        LOG.append(("enter", self.name))
        return self

    def __exit__(self, kind, error, traceback):
        LOG.append(("exit", self.name, kind and kind.__name__, str(error)))
        return self.swallow is not None and kind is not None and issubclass(kind, self.swallow)


@contextlib.contextmanager
def noted(name):
    LOG.append(("enter", name))
    try:
        yield name.upper()
    except KeyError as error:
        LOG.append(("error", str(error)))
    finally:
        LOG.append(("exit", name))


def fresh_log():
    LOG.clear()
    return LOG


def chainer_contexts(compile):
    def f(x):
        with chainer.using_config("train", False):
            a = F.dropout(x, 0.5)
            with chainer.using_config("train", True), chainer.no_backprop_mode():
                b = F.dropout(F.exp(x), 0.5)
                with chainer.force_backprop_mode():
                    c = F.sin(x)
        with chainer.using_config("enable_backprop", False):
            d = x * 2
        return a, b, c, d, F.dropout(x, 0.5), chainer.config.train
    return compile(f)


def contexts_in_branches(compile):
    def f(x):
        if x.array.sum() > 0:
            with chainer.no_backprop_mode():
                h = F.exp(x)
        else:
            with chainer.using_config("train", False):
                h = F.dropout(x, 0.5)
        with chainer.using_config("train", False):
            if x.array.max() > 0.5:
                h = F.dropout(h * 2, 0.5)
            while float(abs(h.array).sum()) > 1:
                h = F.dropout(h, 0.5) * 0.5
        return h * x
    return compile(f)


def user_contexts(compile):
    def f(x):
        with Noted("a") as a, noted("b") as b:
            x = x * len(a.name + b)
            with Noted("c", KeyError):
                raise KeyError("inside")
            LOG.append("after")
            with noted("d"):
                raise KeyError("caught")
        return x
    return compile(f), fresh_log()


def user_contexts_around_decisions(compile):
    def f(x):
        with Noted("a"):
            if x.array.sum() > 0:
                x = x * 2
                LOG.append("positive")
        with noted("b"):
            if x.array.sum() > 0:
                return x * 3
        return x
    return compile(f), fresh_log()


def errors_through_contexts(compile):
    def f(x):
        with Noted("outer"):
            with noted("inner"):
                raise ValueError("through")
    return compile(f), fresh_log()


def other_contexts(compile):
    def f(x):
        with contextlib.suppress(KeyError):
            x = x * {"a": 2}["b"]
        with contextlib.ExitStack() as stack:
            stack.callback(LOG.append, "callback")
            stack.enter_context(noted("stacked"))
            x = x * 2
        with contextlib.nullcontext(x) as y:
            x = x + y
        return x
    return compile(f), fresh_log()


def redirected(compile):
    def f(x):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            print("hidden")
        return x, out.getvalue()
    return compile(f)


def tries(compile):
    def f(x):
        found = []
        for key in ("a", "b", 3):
            try:
                value = {"a": 1.0, 3: None}[key]
                x = x * value
            except KeyError as error:
                found.append(("key", error.args))
            except (TypeError, ValueError) as error:
                found.append(type(error).__name__)
            else:
                found.append("else")
            finally:
                found.append("finally")
        return x, found
    return compile(f)


def try_with_decisions(compile):
    def f(x):
        try:
            if x.array.sum() > 0:
                raise ValueError("positive")
            y = x * 2
        except ValueError as error:
            y = x * len(str(error))
        finally:
            LOG.append("done")
        return y
    return compile(f), fresh_log()


def returns_in_finally(compile):
    def f(x):
        for k in range(3):
            try:
                if k == 1:
                    continue
                if k == 2:
                    return x * k
            finally:
                LOG.append(k)
    return compile(f), fresh_log()


class Failed(Exception):
    """An error of the user's."""

    def __init__(self, message, value):
        super().__init__(message)
        self.value = value


def raises(compile):
    def f(x):
        LOG.append("before")
        if x.array.sum() > 0:
            raise Failed(f"sum is {float(x.array.sum()):.3f}", 3)
        return x * 2
    return compile(f), fresh_log()


def raises_from(compile):
    def f(x):
        try:
            x = TABLE["missing"]
        except KeyError as error:
            raise ValueError("wrapped") from error
    made = compile(f)

    def call(x):
        try:
            made(x)
        except ValueError as error:
            return str(error), repr(error.__cause__), error.__suppress_context__
    return call


def raises_in_a_decision_from(compile):
    def f(x):
        try:
            if float(x.array.sum()) > 0:
                raise KeyError("k")
        except KeyError as error:
            raise ValueError("wrapped") from error
        return x
    made = compile(f)

    def call(x):
        try:
            return made(x)
        except ValueError as error:
            return str(error), repr(error.__cause__), error.__suppress_context__
    return call


def user_error_caught(compile):
    def f(x):
        try:
            raise Failed("m", x * 2)
        except Failed as error:
            return error.value, str(error)
    return compile(f)


#: What stops a capture today: the call runs eagerly.
EAGER = {"other_contexts", "redirected"}
FAILS = {"errors_through_contexts", "raises", "raises_from"}


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_contexts_and_handlers(make):
    check(make, signs(), compiled=None if make.__name__ in FAILS else make.__name__ not in EAGER)
