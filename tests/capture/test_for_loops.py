"""Long ``for`` loops over a range that end where array values say so: loops of the graph, however long."""
import against_eager
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import to_static


def steps_and_else(compile):
    def f(x):
        for i in range(2, 40, 3):
            x = F.tanh(x) * 0.9 + i * 0.01
            if x.array.max() < 0.5:
                break
        else:
            x = x * 10
        return x, i
    return compile(f), None


def returns_and_continues(compile):
    def f(x):
        for i in range(30):
            if x.array.sum() < 0.1:
                return x, i
            if x.array[0] < 0.2:
                x = x - 0.05
                continue
            x = x * 0.8
        return x
    return compile(f), None


def list_grows(compile):
    def f(x):
        hs = []
        for i in range(20):
            x = x * 0.8
            hs.append(x)
            if x.array.max() < 0.2:
                break
        return F.stack(hs), len(hs), i
    return compile(f), None


def list_of_variables_is_indexed(compile):
    def f(x):
        ws = [x * k for k in range(12)]
        for i in range(12):
            x = x * 0.8 + ws[i] * 0.01
            if x.array.max() < 0.2:
                break
        return x, i
    return compile(f), None


def prints_and_writes(compile):
    log = []

    def f(x):
        for i in range(10, 0, -1):
            print("number", i)
            x = x * 0.7
            if x.array.max() < 0.2:
                break
        log.append(i)
        return x
    return compile(f), [log]


def none_before(compile):
    def f(x):
        y = None
        for i in range(10):
            if x.array.max() < 0.2:
                break
            y = x * 2
            x = x * 0.6
        return y if y is not None else x
    return compile(f), None


def reads_its_iterators_once(compile):
    """As functions do that are called with ``model.params()``."""
    def is_large(parts):
        for part in parts:
            if part.array.sum() > 1:
                return True
        return False

    def f(x):
        pairs = zip((x, -x), (1, 2))
        for part, n in pairs:
            if part.array.max() > 0.9:
                break
        return x * n if is_large(iter((x * 2, x * 3))) else x
    return compile(f), None


@pytest.mark.parametrize("case", [steps_and_else, returns_and_continues, list_grows, list_of_variables_is_indexed,
                                  prints_and_writes, none_before, reads_its_iterators_once], ids=lambda case: case.__name__)
def test_compiled(case):
    """What is seen of a call is what the eager call shows, and it is compiled."""
    calls = [lambda low=low, high=high, k=k: (variable(3, seed=k, low=low, high=high),)
             for k, (low, high) in enumerate(((0.1, 1), (-1, -0.1), (-1, 1), (-0.2, 1.2)))]
    against_eager.check(case, calls, compiled=True)


@pytest.mark.parametrize("count", (0, 1, 7, 8, 9, 50, 2000))
def test_length(count):
    """The code of a long loop is as short as that of a short one."""
    def f(x):
        for i in range(count):
            if abs(x).max() < 1e-3:
                break
            x = x * 0.5
        return x
    compiled = to_static(f, strict=True)
    x = np.array([1.0, 2.0, 3.0])
    np.testing.assert_array_equal(compiled(x), f(x))
    assert len(compiled.program(x).code.splitlines()) < 100


@pytest.mark.parametrize("make", [lambda: iter([1, 2, 3, 4]), lambda: zip([1, 2, 3, 4]), lambda: (n for n in (1, 2, 3, 4)),
                                  lambda: enumerate(np.arange(4.0))])
def test_what_an_iterator_has_left(make):
    """After a ``break`` that array values decide."""
    def run(a):
        items, total = make(), 0.0
        for item in items:
            total = total + float(a[0])
            if total > 4:
                break
        return total, list(items)
    against_eager.check(lambda compile: compile(run), [lambda k=k: (np.full(2, k, "f"),) for k in (3, 1, 5)])


def test_an_iterator_that_a_loop_reads_again():
    def run(a):
        items, found = iter((1, 2, 3, 4)), []
        for _ in range(2):
            for item in items:
                if a[0] * item > 1:
                    break
            found.append(item)
        return found
    against_eager.check(lambda compile: compile(run), [lambda k=k: (np.full(2, k, "f"),) for k in (0.4, 0.7, 3)])
