"""Decisions, loops and failures on array values inside ``with`` and ``try``.  PYTEST_DONT_REWRITE: asserts are tested."""
import contextlib

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, programs, variable

LIMIT = 0.4


class Scope:
    """A manager of the user's: it counts, and swallows what it is told to."""

    def __init__(self, swallows=()):
        self.entered = self.left = 0
        self.swallows = tuple(swallows)

    def __enter__(self):
        self.entered += 1
        return self

    def __exit__(self, kind, error, trace):
        self.left += 1
        return kind is not None and issubclass(kind, self.swallows)


def calls():
    return [lambda low=low, k=k: (variable(3, seed=k, low=low, high=low + 1),) for k, low in enumerate((-2, 0.4, -0.2, 1.5))]


def loop_in_with(compile):
    scope = Scope()

    def f(x):
        steps = 0
        with scope as entered:
            while float(F.sum(x * x).array) > LIMIT:
                x = x * 0.5
                steps += 1
        return x, steps, entered.left
    return compile(f), scope


def loop_in_a_manager_of_contextlib(compile):
    scope = Scope()

    @contextlib.contextmanager
    def counting(name):
        scope.entered += 1
        try:
            yield name
        finally:
            scope.left += 1

    def f(x):
        with counting("loop") as name, scope:
            while float(F.sum(x * x).array) > LIMIT:
                x = F.tanh(x) * 0.5
        return x, name
    return compile(f), scope


def loop_in_try_finally(compile):
    box = Scope()

    def f(x):
        total = 0.0
        try:
            while float(F.sum(x * x).array) > LIMIT:
                x = x * 0.5
                total += float(x.array[0])
        finally:
            box.entered += 1
            box.total = total
        return x, total
    return compile(f), box


def loops_in_each_other(compile):
    scope = Scope()

    def f(x):
        n = 0
        h = x
        while float(F.sum(h * h).array) > LIMIT:
            with scope:
                while float(F.max(h).array) > 0.2:
                    h = h * 0.5
                    n += 1
                h = h * 0.7
            n += 10
        return h, n
    return compile(f), scope


def decision_in_with(compile):
    scope = Scope()

    def f(x):
        h, n = x, 0
        with scope:
            if float(F.sum(x).array) > 0:
                h = F.relu(h)
                n += 1
                h = h * n
            elif x.array[0] > -1:
                n -= 1
        return h + n, n
    return compile(f), scope


def decision_in_try(compile):
    def f(x):
        h = x * 2
        try:
            if float(F.sum(x).array) > 0:
                h = h * x
                h = h + {"a": 1.0}["a"]
            key = {"b": 2.0}["a"]
        except KeyError:
            key = 3.0
        return h * key
    return compile(f)


def raises_in_the_loop(compile):
    def f(x):
        n = 0
        try:
            while float(F.sum(x * x).array) > LIMIT:
                x = x * 0.5
                n += 1
                if float(x.array[0]) < -0.3:
                    raise ValueError("low")
                n += 1
        except ValueError as error:
            return x * n, str(error)
        return x * n, "fine"
    return compile(f)


def swallowed_in_the_loop(compile):
    scope = Scope([KeyError])

    def f(x):
        n = 0
        with scope:
            while float(F.sum(x * x).array) > LIMIT:
                x = x * 0.5
                n += 1
                if n > 1:
                    {}["missing"]
        return x, n
    return compile(f), scope


def nothing_before(compile):
    scope = Scope()

    def f(x):
        with scope:
            for y in (x, x * 2):
                z = y * 2
                if z.array[0] > 0:
                    last = z
        return z, last
    return compile(f), scope


def setting_and_loop(compile):
    def f(x):
        with chainer.using_config("train", False), Scope():
            while float(F.sum(x * x).array) > LIMIT:
                x = F.dropout(x * 0.5)
        return x
    return compile(f)


def metric(compile):
    def ratio(a, b):
        try:
            return a / b
        except ZeroDivisionError as error:
            return len(str(error)) * 1.0

    def f(x):
        t = (x.array > 0.1).astype(np.int32)
        hits, found = int(t[:2].sum()), int(t.sum())
        precision = ratio(hits, found)
        recall = ratio(float(hits), float(t[2]))
        try:
            f1 = 2 * precision * recall / (precision + recall)
        except (ZeroDivisionError, KeyError):
            f1 = 0.0
        return x * f1, precision, recall
    return compile(f)


def divisions(compile):
    def f(x):
        found = []
        for divide in (lambda a, b: a // b, lambda a, b: a % b, lambda a, b: a / b):
            for number in (int(x.array[0]), float(x.array[1] > 0)):
                try:
                    found.append(divide(3, number))
                except ZeroDivisionError as error:
                    found.append(str(error))
        return x, found
    return compile(f)


def index_out_of_range(compile):
    scope = Scope()

    def f(x):
        weights = [0.5, 1.5]
        try:
            w = weights[int(x.array.max() * 2)]
        except IndexError as error:
            w, scope.left = 3.0, str(error)
        finally:
            scope.entered += 1
        return x * w
    return compile(f), scope


def not_a_number(compile):
    def f(x):
        h = F.log(x)
        try:
            n = int(h.array[0])
        except ValueError:
            n = -1
        except OverflowError as error:
            return x, str(error)
        return x * n
    return compile(f)


def asserted(compile):
    def f(x):
        try:
            assert x.array[0] > 0, f"low: {len(x)}"
            assert x.array[1] < 2
        except AssertionError as error:
            return x, str(error)
        return x * 2, None
    return compile(f)


def cleaned_up_after(compile):
    scope = Scope()

    def f(x):
        scope.left = int(x.array[0])
        try:
            y = x * (1 / scope.left)
        finally:
            scope.entered += 1
        scope.left += 10
        return y
    return compile(f), scope


def singular(compile):
    scope = Scope()

    def f(x):
        a = np.outer(x.array, x.array) * (x.array[0] < 0) + np.eye(3, dtype="f") * (x.array[1] < 0)
        try:
            b = np.linalg.inv(a)
            scope.entered += 1
        except np.linalg.LinAlgError as error:
            b, scope.left = np.zeros_like(a), str(error)
        try:
            c = np.linalg.cholesky(a)
        except ValueError:
            c = np.ones_like(a)
        finally:
            scope.entered += 10
        return x @ b + F.sum(x) * c[0]
    return compile(f), scope


#: What stops a capture, or raises: the call runs eagerly.
EAGER = {"raises_in_the_loop", "swallowed_in_the_loop", "nothing_before"}


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_protected(make):
    check(make, calls(), compiled=None if make.__name__ in EAGER else True)
