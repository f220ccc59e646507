"""Decisions whose sides differ in kind, before loops and inside of branches and loops."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import Box, check, programs, signs


def param(*values):
    return chainer.Parameter(np.array(values, "f"))


# --- loops -------------------------------------------------------------------------------------------------------------


def none_before_the_loop(compile):
    def f(x):
        total, n = None, 0
        while float(F.sum(x * x).array) > 0.1:
            total = x if total is None else total + x
            x, n = x * 0.5, n + 1
        return (x, n) if total is None else (total, n)
    return compile(f), None


def int_before_the_loop(compile):
    def f(x):
        total = 0
        while float(F.sum(x * x).array) > 0.1:
            total = total + x
            x = x * 0.5
        return total
    return compile(f), None


def other_shape_before_the_loop(compile):
    def f(x):
        h = np.zeros((1, 3), "f")
        y = F.expand_dims(x, 0)
        while float(abs(h).sum()) < 3 and float(y.array.sum()) > 0.1:
            h = y.array + np.zeros((2, 3), "f")
            y = y * 0.7
        return y, h
    return compile(f), None


def ends_in_python_loop(compile):
    def f(x):
        outs = []
        for k in range(3):
            x = x * 0.8
            outs.append(x)
            if x.array.max() < 0.4:
                return outs, k
        return outs, "all"
    return compile(f), None


# --- forks inside of blocks --------------------------------------------------------------------------------------------


def none_in_a_branch(compile):
    def f(x):
        if x.array[0] > 0:
            y = x * 2 if x.array[1] > 0 else None
            z = F.sum(x) if y is None else F.sum(y * y)
        else:
            z = F.max(x)
        return z * 2
    return compile(f), None


def kinds_in_a_body(compile):
    def f(x):
        n, s = 0, 0.0
        while x.array.sum() > 0.2 and n < 4:
            kind = "a" if x.array[0] > 0.5 else "b"
            x = (F.tanh if kind == "a" else F.sin)(x) * 0.7
            if kind == "b" and x.array[1] > 0.1:
                y = [x, x]
            else:
                y = [x]
            s, n = s + float(sum(float(v.array[0]) for v in y)), n + 1
        return x, n, s
    return compile(f), None


def effects_in_a_body(compile):
    box = Box(n=0, log=[0])

    def f(x):
        n = 0
        while x.array.sum() > 0.2 and n < 4:
            found = None
            if x.array[0] > 0.5:
                print("big", n)
                box.n += 1
                found = x
            if found is None:
                x = x - 0.1
                print("small", n)
                box.log[0] = n
            else:
                x = found * 0.5
            n += 1
        return x
    return compile(f), [box]


def raises_in_a_body(compile):
    box = Box(n=0)

    def f(x):
        while x.array.sum() > 0.2:
            name = None
            if x.array.max() > 0.95:
                name = "top"
            box.n += 1
            if name is not None:
                raise ValueError(f"{name} after {box.n}")
            x = x * 0.8
        return x
    return compile(f), [box]


def caught_in_a_body(compile):
    def f(x):
        n = 0
        while x.array.sum() > 0.2:
            try:
                if x.array.max() > 0.5:
                    raise KeyError("large")
                x = x * 0.5
            except KeyError:
                x, n = x - 0.2, n + 1
        return x, n
    return compile(f), None


def branch_of_a_branch_in_a_loop(compile):
    w = param(0.5, 0.6, 0.7)

    def f(x):
        n = 0
        while x.array.sum() > 0.2 and n < 5:
            n += 1
            if x.array[0] > 0.3:
                pair = (x * w, "w") if x.array[1] > 0.3 else (x * 0.5,)
                x = pair[0] if len(pair) == 1 else pair[0] * 0.9
            else:
                x = x * 0.7
        return x, n
    return compile(f), [w]


def loop_that_only_raises(compile):
    box = Box(n=0)

    def f(x):
        if x.array[0] > -2:
            while x.array.sum() > 0.5:
                box.n += 1
                r += x          # noqa: F821  unbound, if the loop runs
        return x * 2
    return compile(f), [box]


def accepted_steps(compile):
    """Whether what the loop leaves requires a gradient is known at its end only."""
    w = param(0.5, -0.3, 0.9)

    def f(x):
        y, n = F.reshape(x.array, (3, 1)), 0
        while n < 4 and float(F.max(y).array) < 3:
            new = F.tanh(F.reshape(w, (3, 1)) * y) + y * 1.5
            if float(F.sum(new).array) > 0.2 * n:
                y = new
            z = y * 2
            n += 1
        return y, F.sin(z) * y, n
    return compile(f), w


def losses_of_rows_that_there_are(compile):
    """Whether a Parameter gets a gradient depends on whether a list has items of one kind, which follows from a decision."""
    links = [L.Linear(1, 2, initialW=np.array([[k + 1], [k - 1]], "f")) for k in range(2)]

    def f(x):
        losses, loss = [], F.sum(x)
        for k, link in enumerate(links):
            rows = np.nonzero((x.array > 0) == k)[0]
            if len(rows) > 0:
                losses.append(F.sum(F.square(link(F.reshape(x, (3, 1))[rows])), axis=1))
        for found in losses:
            loss += F.sum(found)
        for link in links:
            link.cleargrads()
        loss.backward()
        return loss.array, [None if link.W.grad is None else link.W.grad.copy() for link in links]
    return compile(f, strict=True), links


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_compiled(make):
    check(make, signs(), compiled=True)
