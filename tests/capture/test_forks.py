"""Decisions whose sides cannot be joined: the rest of the function is compiled once for each side, and is one program."""
import random

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import Box, check, programs, signs, variable

from dy2static import FallbackWarning, to_static


def param(*values):
    return chainer.Parameter(np.array(values, "f"))


# --- what is returned -------------------------------------------------------------------------------------------------


def shapes(compile):
    def f(x):
        if float(x.array.sum()) > 0:
            return F.relu(x)
        return F.sum(x * x)
    return compile(f), None


def dtypes(compile):
    def f(x):
        y = x if x.array[0] > 0 else F.cast(x, "float64")
        return F.sum(y * y)
    return compile(f), None


def structures(compile):
    def f(x):
        if x.array[0] > 0:
            return {"h": x * 2, "n": 1}
        if x.array[1] > 0:
            return [x, None, "second"]
        return F.exp(x), (x * 3, x.array.sum())
    return compile(f), None


def nothing_or_something(compile):
    def f(x):
        best = None
        if x.array.max() > 0.5:
            best = F.max(x)
        if best is None:
            return x * 0.5
        return best * x
    return compile(f), None


def texts(compile):
    def f(x):
        kind = "positive" if x.array.sum() > 0 else "negative"
        return {kind: x * 2}, f"it is {kind}", len(kind)
    return compile(f), None


def functions(compile):
    def f(x):
        act = F.relu if x.array.sum() > 0 else (lambda v: v * 0.1)
        return act(x) + act(x * 2)
    return compile(f), None


def classes_of_numbers(compile):
    def f(x):
        k = 2 if x.array[0] > 0 else 2.5
        return x * k, k, type(k).__name__
    return compile(f), None


def lists_that_grow(compile):
    def f(x):
        hs = [x]
        if x.array[0] > 0:
            hs.append(x * 2)
        if x.array[1] > 0:
            hs.extend([F.tanh(x), x])
        return F.concat(hs, axis=0), len(hs)
    return compile(f), None


def sets_and_deleted_keys(compile):
    def f(x):
        seen, kept = {"a"}, {"u": 1, "v": 2}
        if x.array[0] > 0:
            seen.add("b")
            del kept["u"]
        return x * len(seen), sorted(seen), kept
    return compile(f), None


def deleted_after_a_write(compile):
    table, box = {"a": 1, "b": 2}, Box(u=1, v=2)

    def f(x):
        table["a"] = box.u = 5
        if x.array.sum() > 0:
            del box.u
            table.pop("a")
        else:
            table["a"], table["c"], box.w = 1, 7, 7
        box.u = table["a"] = 1
        return x * len(table)
    return compile(f), [table, box]


def asked_by_python(compile):
    def f(x):
        rows = sorted([x[0], x[1]], key=lambda v: float(v.array))
        kept = [v for v in (x, x - 0.5) if float(v.array.sum()) > 0]
        return rows, len(kept)
    return compile(f), None


def decided_in_with(compile):
    def f(x):
        with chainer.using_config("train", False):
            if x.array.sum() > 0:
                y = F.dropout(x)
            else:
                y = None
        return x * 2 if y is None else y
    return compile(f), None


def greatest_number(compile):
    def f(x):
        values = [float(v.array) for v in x]
        return x * max(values) - min(values[0], values[1])
    return compile(f), None


def an_iterator_goes_on(compile):
    def f(x):
        numbers = iter([1.0, 2.0, 3.0])
        y = x * next(numbers)
        if y.array.sum() > 0:
            y = y * next(numbers)
        return y * next(numbers)
    return compile(f), None


# --- Variables and the graph ----------------------------------------------------------------------------------------


def depends_on_each_other(compile):
    def f(x):
        if x.array.sum() > 0:
            h = F.tanh(x)
            loss = F.sum(h * h)
            return h, loss, loss * 2
        h = F.exp(x)
        return {"h": h, "y": h * x}
    return compile(f), None


def leaf_made_behind(compile):
    def f(x):
        if x.array.sum() > 0:
            v = chainer.Variable(x.array * 2)
            return v, F.sum(v * x)
        return F.sum(x)
    return compile(f), None


def leaf_or_not(compile):
    def f(x):
        y = x * 2
        if x.array.sum() > 0:
            y = chainer.Variable(y.array)
        return y
    return compile(f), None


def with_or_without_gradient(compile):
    w = param(1, 2, 3)

    def f(x):
        if x.array[0] > 0:
            with chainer.no_backprop_mode():
                y = x * w
        else:
            y = x * w
        return F.sum(y * y)
    return compile(f), [w]


def uses_one_parameter(compile):
    w, v = param(1, 2, 3), param(4, 5, 6)

    def f(x):
        h = F.sigmoid(x * w)
        if h.array.sum() > 1.5:
            return F.sum(h * v)
        return h
    return compile(f), [w, v]


def one_object_or_another(compile):
    def f(x):
        a, b = x * 2, x * 3
        c = a if x.array.sum() > 0 else b
        return a, b, c
    return compile(f), None


def compared_by_identity(compile):
    def f(x):
        a, b = x * 2, x * 3
        c = a if x.array.sum() > 0 else b
        return c * 2 if c is a else c * 5
    return compile(f), None


# --- effects -----------------------------------------------------------------------------------------------------------


def printed_on_each_side(compile):
    def f(x):
        print("begin")
        if x.array.sum() > 0:
            print("positive", x.shape)
            result = x * 2
        else:
            result = [x]
        print("end", type(result).__name__)
        return result
    return compile(f), None


def state_of_two_kinds(compile):
    box = Box(last=None, n=0)

    def f(x):
        box.n += 1
        if x.array.sum() > 0:
            box.last = x * 2
        else:
            box.last = "none"
            box.extra = box.n
        return x * box.n
    return compile(f), [box]


def list_of_the_user(compile):
    log = []

    def f(x):
        if x.array.sum() > 0:
            log.append("up")
            log.append(float(x.array[0]))
        return x * len(log)
    return compile(f), [log]


def random_after_the_decision(compile):
    def f(x):
        y = x * random.random()
        if y.array.sum() > 0:
            return F.dropout(y, 0.5), np.random.rand()
        return y * random.random()
    return compile(f), None


def raises_on_one_side(compile):
    box = Box(n=0)

    def f(x):
        box.n += 1
        kind = None
        if x.array.sum() > 0:
            kind = "positive"
        if kind is None:
            box.failed = True
            raise ValueError("not " + str(kind))
        box.n += 10
        return x
    return compile(f), [box]


def raises_where_a_chosen_list_is_as_it_was(compile):
    """What is appended to the list of a number that only the run knows, as of a class, decides which list is empty."""
    def f(x):
        rows = {k: [] for k in range(2)}
        rows[int(x.array[0] > 0)].append(x.array)
        return np.stack(rows[1]) * x
    return compile(f), None


def caught_inside(compile):
    def f(x):
        try:
            if x.array.sum() > 0:
                raise KeyError("big")
            y = x * 2
        except KeyError as error:
            return x, str(error)
        finally:
            print("done")
        return y
    return compile(f), None


def required_by_one_side(compile):
    """Functions of what requires a gradient on one side only, of several of these, and of both kinds."""
    w = param(0.5, -0.3, 0.9)

    def f(x):
        h = w * 2 if x.array[0] > 0 else chainer.Variable(x.array)
        g = chainer.Variable(x.array + 1)
        if x.array[1] > 0:
            g = F.exp(w)
        a, b = F.split_axis(h * g, [1], 0)
        return h * 3, a, F.sum(b) + g[0], h * x, F.cumsum(h + g)
    return compile(f), w


def and_gives_another_type(compile):
    """What ``and`` and ``or`` give is computed with, tested for its type and printed, not only decided by."""
    def f(x):
        n = (float(x.array[0]) > 0) and 3.5
        m = (x.array[1] > 0) or 0
        return x * (n * 2.0), isinstance(n, float), n == 3.5, x * (m + 1)
    return compile(f), None


def truth_of_operands(compile):
    """Where only the truth counts, operands may be of any type."""
    def f(x, names=("a",)):
        found, name = [], None
        for k in range(3):
            if x.array[k] > 0 and found:
                found.append(found[-1] * 2)
            elif found or x.array[k] > 0.2:
                found += [x]
            else:
                found.append(x * x)
        if not (x.array[0] > 0 and names) or x.array[1] > 0 and name:
            x = x + 1
        while float(x.array.sum()) < 9 and (names or x.array[0] > 3):
            x = x * x + 1
        return x, len(found), [n for n in (1, 2) if x.array[0] < 0 or names]
    return compile(f), None


def reported_behind(compile):
    """What may fail before the decision is the same when the second side is captured, after the first one has reported."""
    seen = {}

    def f(x):
        m = x.array.copy()
        m[np.argsort(x.array)] = 3
        h = x * m
        y = h if h.array.sum() > 0.3 else None
        chainer.report({"loss": F.sum(h)})
        return h, y
    compiled = compile(f, strict=True)

    def reported(x):
        with chainer.Reporter().scope(seen):
            return compiled(x)
    return reported, seen


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_compiled(make):
    """Values, gradients, identity, state, output and exceptions are those of the eager program."""
    check(make, signs(), compiled=True)


def gradients(function, first, second):
    """The results of a call, gradients between them, and gradients of these gradients, as far as there are any."""
    x = variable(3, seed=1, low=first, high=second)
    h, y = function(x)
    y = F.sum(y * y)
    between, = chainer.grad([y], [h], enable_double_backprop=True)
    whole, = chainer.grad([y], [x], enable_double_backprop=True)
    twice, = chainer.grad([F.sum(whole * whole)], [x])
    h.unchain()
    y.backward()
    return [None if v is None else v.array for v in (h, y, between, whole, twice, x.grad_var, h.grad_var)]


@pytest.mark.parametrize("low, high", [(0.1, 1), (-1, -0.1)])
def test_cuts_behind_a_fork(low, high):
    """A Variable that leaves from behind a fork can be asked for its gradient, and cut off."""
    def f(x):
        if x.array.sum() > 0:
            h = F.tanh(x * x)
            return h, F.exp(h) * x
        h = x * 2
        return [h, F.sum(h * h * h)]
    compiled = to_static(f, strict=True)
    for _ in range(2):
        for a, b in zip(gradients(f, low, high), gradients(compiled, low, high)):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-5)
    assert compiled.stats()["programs"] == 1


def test_written_before_a_failure():
    """What was stored before a name turned out to be unbound keeps its graph, also where other ways store more."""
    def make(compile):
        box = Box(h=variable(3, seed=4), items=[None, variable(3, seed=5)], n=0)

        def touch(v):
            box.n += 1
            if v.array[0] > 0.1:
                box.h = F.sin(v)
                box.last = v
            return box.h

        def f(x, y):
            u = touch(x * 0.25)
            n = 0
            while box.n % 2 == 0:
                n += 1
                if n > 2:
                    break
                if u.array[0] < 0.05:
                    w = y * box.items[1]
                else:
                    box.items[0] = F.tanh(u)
            return F.tanh(y), w
        return compile(f), box
    function, box = make(lambda f: to_static(f, strict=True))
    for low, high in ((-1, 0), (0.6, 1), (-1, 0), (0.3, 0.4)):
        with pytest.raises(UnboundLocalError):
            function(variable(3, low=low, high=high), variable(3))
    assert box.items[0].creator is not None
    grad, = chainer.grad([F.sum(box.items[0])], [box.h])
    np.testing.assert_allclose(grad.array, 1 - box.items[0].array ** 2, rtol=1e-5)


def test_one_program_for_all_sides():
    """Whatever the data decide later, nothing is captured again."""
    compiled = to_static(structures(lambda f: f)[0], strict=True)
    for k in range(50):
        compiled(variable(3, seed=k))
    assert compiled.stats()["captures"] == 1


def test_too_many_ends():
    """With more ends than one function may have, the call runs eagerly, and says why."""
    def f(x):
        found = []
        for k in range(6):
            if x.array[k] > 0:
                found.append(str(k))
        return x * len(found), "".join(found)
    compiled = to_static(f)
    x = variable(6, seed=3)
    with pytest.warns(FallbackWarning, match="a list grows or shrinks"):
        y, text = compiled(x)
    assert text == f(x)[1]
    np.testing.assert_array_equal(y.array, f(x)[0].array)


def test_the_code_shows_the_decision():
    """The generated function has one ``if`` with the rest of the function on each side."""
    compiled = to_static(shapes(lambda f: f)[0], strict=True)
    code = compiled.program(variable(3)).code
    assert code.count("if ") == 1 and code.count("else:") == 1
    assert "relu" in code or "maximum" in code
