"""How lists grow in loops on array values, and what becomes of their sizes."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable
from grown_lists import TRIPS, Box, orders, param, rows

from dy2static import to_static

# --- how lists grow --------------------------------------------------------------------------------------------------


def under_a_decision(x, w, n):
    """Only some iterations append."""
    out, h, i = [], x, 0
    while i < n:
        h = F.tanh(h * w) - 0.1
        if h.array.sum() > 0.9:
            out.append(h)
        i += 1
    return len(out), F.sum(h)


def one_list_or_the_other(x, w, n):
    high, low, h, i = [x * 1], [w * x], x, 0
    while i < n:
        h = F.sin(h * 3)
        if h.array.sum() > 0:
            high.append(h)
        else:
            low.append(h * w)
        i += 1
    return F.stack(high), F.stack(low), len(high) - len(low)


def both_sides(x, w, n):
    out, h, i = [], x, 0
    while i < n:
        if h.array.sum() > 1:
            out.append(h * 2)
        else:
            out.append(h - w)
            out.append(h)
        h = F.sin(h * 3 + w)
        i += 1
    return F.concat(out, axis=0)


def begun_before(x, w, n):
    out = [x * 2, F.exp(x)]
    same = out
    for _ in range(int(n)):
        out.append(same[-1] * w)
    return F.stack(out), same is out, len(same)


def read_inside(x, w, n):
    hs = [x * w]
    while len(hs) < int(n) + 1:
        hs.append(F.tanh(hs[-1] + hs[len(hs) - 1] * w + hs[0]))
    return F.stack(hs)


def last_as_state(x, w, n):
    hs, i = [x * w], 0
    while i < n:
        h = hs[-1]
        hs.append(h * w)
        i += 1
    return hs[-1]


def through_a_helper(x, w, n):
    def note(where, what):
        where.append(what)
        return what * w
    log, h, i = [], x, 0
    while i < n:
        h = note(log, h + 1)
        i += 1
    return F.stack(log) * F.sum(h)


def in_an_object(x, w, n):
    box = Box(out=[], h=x)
    i = 0
    while i < n:
        box.h = F.tanh(box.h * w)
        box.out.append(box.h)
        i += 1
    return F.sum(F.stack(box.out)), box.h


def in_a_dict(x, w, n):
    out = []
    state, i = {"out": out, "h": x}, 0
    while i < n:
        state["h"] = state["h"] * w
        state["out"].append(state["h"])
        i += 1
    return F.stack(out)


def arrays(x, w, n):
    out, a, i = [], x.array, 0
    while i < n:
        a = a * 0.5
        out.append(a)
        i += 1
    return out, F.stack(out) * x


def numbers(x, w, n):
    out, seen, i = [], [0.5], 0
    while i < n:
        out.append(i)
        seen.append(float(x.array[0, 0]) * i)
        i += 1
    return out, seen, len(out), F.sum(x)


def used_as_numbers(x, w, n):
    out, i = [], 0
    while i < n:
        out.append(i * 2)
        i += 1
    y = F.sum(x)
    for k in out:
        y = y * w[0] + k
    return y


def two_lists(x, w, n):
    hs, cs, h, c, i = [], [], x, F.sum(x), 0
    while i < n:
        h, c = F.tanh(h * c), c * 0.5 + F.sum(h)
        hs.append(h)
        cs.append(c)
        i += 1
    return F.stack(hs), F.stack(cs)


def nested_loops(x, w, n):
    out, h, i = [], x, 0
    while i < n:
        j = 0
        while j < i:
            h = F.tanh(h * w + j)
            out.append(h)
            j += 1
        out.append(h * 2)
        i += 1
    return F.stack(out)


def list_in_each_trip(x, w, n):
    y, i = F.sum(x), 0
    while i < n:
        parts = [x * i]
        parts.append(w * x)
        y = y + F.sum(F.stack(parts) ** 2)
        i += 1
    return y


def emptied(x, w, n):
    out, i = [], 0
    while i < n:
        if i == 2:
            out.clear()
        out.append(x * (w + i))
        i += 1
    return F.stack(out)


def broken_out_of(x, w, n):
    out, h = [], x
    while True:
        h = F.tanh(h * w + 0.1)
        out.append(h)
        if len(out) >= int(n):
            break
    return F.stack(out)


def range_over_a_value(x, w, n):
    for i in range(int(n)):
        x = x * w + i
    return x


def range_with_bounds(x, w, n):
    y = F.sum(w)
    for i in range(1, int(n) + 1):
        y = y * i + F.sum(x)
    for i in range(int(n), 0, -1):
        y = y * 0.5 + i
    for i in range(0, int(n), 2):
        y = y + F.sum(x * w) * i
    return y


def range_left(x, w, n):
    y = F.sum(w)
    for i in range(int(n)):
        y = y + F.sum(x * w) * i
        if y.array > 2.5:
            break
    else:
        y = y * 10
    return y


def fixed_loop_with_decisions(x, w, n):
    out = []
    for i in range(6):
        if i < n:
            out.append(x * (w + i))
    return F.stack(out), len(out)


def one_begins_as_another(x, w, n):
    """Two lists that begin with the same items go their own ways."""
    h, i = x, 0
    a = [x * w, x]
    b = [a[0], a[1]]
    while i < n:
        h = F.tanh(h * w)
        a.append(h)
        if h.array[0, 0] > 0.3:
            b.append(h)
            b.append(h * 2)
        i += 1
    return F.stack(a), F.sum(F.stack(b)), len(b)


def grown_by_side(x, w, n):
    """Both sides of a decision append, one of them twice."""
    out, h, i = [], x, 0
    while i < n:
        h = F.sin(h * w + 1)
        if h.array[0, 0] > 0.8:
            out.append(h)
            size = len(out)
            out.append(h * size)
        else:
            out.append(h - 1)
        i += 1
    return F.stack(out) if len(out) > 0 else None


GROWN = [one_begins_as_another, grown_by_side, under_a_decision, one_list_or_the_other, both_sides, begun_before, read_inside, last_as_state, through_a_helper,
         in_an_object, in_a_dict, arrays, numbers, used_as_numbers, two_lists, nested_loops, list_in_each_trip, emptied,
         broken_out_of, range_over_a_value, range_with_bounds, range_left, fixed_loop_with_decisions]


@pytest.mark.parametrize("grown", GROWN, ids=lambda grown: grown.__name__)
def test_grown(grown):
    def make(compile):
        w = param(3)

        def f(x, n):
            return grown(x, w, n)
        return compile(f), [w]
    against_eager.check(make, TRIPS, compiled=True)


def test_appends_change_the_list():
    """A list that nobody reads as it was is made longer in place, in the generated code too."""
    compiled = to_static(lambda x, w, n: grown_by_side(x, w, n), strict=True)
    code = compiled.program(variable(2, 3), param(3), np.array(3)).code
    assert " + [" not in code and code.count(".append(") >= 3


# --- gradients of gradients --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grown", [one_list_or_the_other, both_sides, begun_before, read_inside, last_as_state, nested_loops,
                                   two_lists, list_in_each_trip, emptied, fixed_loop_with_decisions],
                         ids=lambda grown: grown.__name__)
def test_higher_orders_of_grown(grown):
    w = chainer.Parameter(np.random.RandomState(3).uniform(0.3, 0.9, 3))

    def f(x, n):
        return grown(x, w, n)
    compiled = to_static(f, strict=True)
    for trips in (2, 1, 3):
        pair = [orders(function, chainer.Variable(np.random.RandomState(trips).uniform(-1, 1, (2, 3))), np.array(trips), w)
                for function in (f, compiled)]
        assert len(pair[0]) == len(pair[1])
        for eager, found in zip(*pair):
            assert (eager is None) == (found is None)
            if eager is not None:
                np.testing.assert_allclose(found, eager, rtol=1e-7, atol=1e-10)


# --- sizes that leave or are used ----------------------------------------------------------------------------------------


def size_alone(x, w, n):
    y = F.stack(rows(x, w, n))
    return y.shape[0], F.sum(y)


def shape_and_arithmetic(x, w, n):
    y = F.stack(rows(x, w, n))
    return y.shape, y.size, y.shape[0] * 2 - 1, y.shape[0] / 2, y.shape[0] > 2, y.shape[1], F.sum(y)


def printed(x, w, n):
    y = F.stack(rows(x, w, n))
    print(y.shape, y.shape[0], len(y))
    return F.sum(y)


def range_over_a_size(x, w, n):
    y = F.stack(rows(x, w, n))
    total = F.sum(w)
    for i in range(y.shape[0]):
        total = total + F.sum(y[0]) * i
    return total


def list_and_its_last(x, w, n):
    out, a, i = [], x.array, 0
    while i < n:
        a = a * 0.5
        out.append(a)
        i += 1
    return out, a, F.sum(x)


def array_of_the_stack(x, w, n):
    y = F.stack(rows(x, w, n))
    return y.array.sum(axis=0), (y.array > 0.5).mean(), y.array[:, 0].max(axis=1), F.sum(y)


SIZES = [size_alone, shape_and_arithmetic, printed, range_over_a_size, list_and_its_last, array_of_the_stack]


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case.__name__)
def test_sizes(case):
    def make(compile):
        w = param(3)

        def f(x, n):
            return case(x, w, n)
        return compile(f), [w]
    against_eager.check(make, TRIPS, compiled=True)


def text_of_a_size(x, w, n):
    y = F.stack(rows(x, w, n))
    return f"{y.shape[0]} {y.shape}", str(y.shape), "%s" % (y.shape[0],), F.sum(y)


def made_with_a_size(x, w, n):
    y = F.stack(rows(x, w, n))
    return y * np.ones(y.shape, "f") * np.zeros_like(y.array), np.zeros(y.shape[0])


def flattened_in_numpy(x, w, n):
    y = F.stack(rows(x, w, n))
    return np.outer(y.array[:, 0, 0], y.array[:, 0, 0]), y.array.reshape(-1), F.sum(y)


@pytest.mark.parametrize("case", [text_of_a_size, made_with_a_size, flattened_in_numpy], ids=lambda case: case.__name__)
def test_sizes_compiled_or_not(case):
    def make(compile):
        w = param(3)

        def f(x, n):
            return case(x, w, n)
        return compile(f), [w]
    against_eager.check(make, TRIPS, compiled=None)
