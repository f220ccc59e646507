"""Lists whose length array values decide, and the arrays of unknown size that come of them."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable
from grown_lists import NONE_TOO, TRIPS, Box, param, rows

from dy2static import to_static

# --- what becomes of a list after the loop -------------------------------------------------------------------------


def stack(out, w):
    return F.stack(out)


def stack_last(out, w):
    return F.stack(out, axis=-1)


def stack_middle(out, w):
    return F.stack(out, axis=1) * 2


def concat(out, w):
    return F.concat(out, axis=0)


def concat_columns(out, w):
    return F.concat(out)


def total(out, w):
    return F.sum(F.stack(out) ** 2)


def sums(out, w):
    y = F.stack(out)
    return F.sum(y, axis=0), F.sum(y, axis=(1, 2)), F.sum(y, axis=1, keepdims=True)


def means(out, w):
    return F.mean(F.stack(out)) + F.sum(F.mean(F.stack(out), axis=0))


def average_by_length(out, w):
    y = F.stack(out)
    return F.sum(y) / len(out) + F.sum(y) / y.shape[0] + F.sum(y) * (1.0 / len(y))


def elementwise(out, w):
    y = F.stack(out)
    return F.exp(y) * y - F.sigmoid(y) / 2 + F.relu(y - 0.3)


def two_stacks(out, w):
    return F.stack(out) + F.stack(out) * 2


def transposed(out, w):
    y = F.stack(out)
    return F.transpose(y, (1, 0, 2)), F.swapaxes(y, 0, 2)


def reshaped(out, w):
    y = F.stack(out)
    return F.reshape(y, (-1, 3)), F.reshape(y, (y.shape[0], 6)), F.flatten(y)


def broadcast(out, w):
    y = F.stack(out)
    return y * F.broadcast_to(w, y.shape) + w, F.broadcast_to(F.sum(w), y.shape)


def multiplied(out, w):
    y = F.reshape(F.stack(out), (-1, 3))
    return F.linear(y, F.stack([w, w * 2, w + 1, w])), F.matmul(y, F.stack([w, w, w]), transb=True)


def batch_matmul(out, w):
    y = F.stack(out)
    return F.matmul(y, y, transb=True)


def attention(out, w):
    y = F.reshape(F.stack(out), (-1, 6))
    scores = F.softmax(F.matmul(y, y, transb=True), axis=1)
    return F.matmul(scores, y)


def chosen(out, w):
    y = F.stack(out)
    return F.where(y.array > 0.2, y, y * 0.1)


def first_axis(out, w):
    y = F.stack(out)
    return y[0], y[-1], y[:1], y[:, 0], y[..., 1:]


def concat_with_more(out, w):
    return F.concat([F.concat(out, axis=0), F.broadcast_to(w, (2, 3))], axis=0)


def cross_entropy(out, w):
    y = F.concat(out, axis=0)
    return F.softmax_cross_entropy(y, F.argmax(y, axis=1).array)


def maximum(out, w):
    y = F.stack(out)
    return F.max(y, axis=0), F.max(y), F.min(y, axis=2)


def log_softmax(out, w):
    return F.log_softmax(F.stack(out), axis=2), F.logsumexp(F.stack(out), axis=2)


def length(out, w):
    return len(out), len(out) * 2 + 1, F.sum(w) * len(out)


def truth(out, w):
    return (F.sum(w), True) if out else (F.sum(w * 2), False)


def not_truth(out, w):
    y = F.sum(w)
    if not out:
        y = y * 3
    return y, len(out) > 2


def last(out, w):
    return out[-1] * 2


def last_itself(out, w):
    return out[-1]


def first_and_last(out, w):
    return out[0] * out[-1]


def at_half(out, w):
    return out[len(out) // 2] + w


def iterated(out, w):
    y = 0.0
    for h in out:
        y = y + F.sum(h * h) * 0.5
    return y


def iterated_to_a_list(out, w):
    again = []
    for h in out:
        again.append(h * w)
    return F.stack(again), len(again)


def enumerated_by_range(out, w):
    y = F.sum(w)
    for i in range(len(out)):
        y = y + F.sum(out[i]) * i
    return y


def iterated_until(out, w):
    y = F.sum(w)
    for h in out:
        y = y * 1.5 + F.sum(h)
        if y.array > 3:
            break
    return y


def popped(out, w):
    h = out.pop()
    return h * w, len(out)


def appended_after(out, w):
    out.append(F.broadcast_to(w, (2, 3)))
    out += [out[0] * 2]
    out.extend((out[-1] * w,))
    return F.stack(out), len(out)


def sum_of_stack_alone(out, w):
    return F.sum(F.stack(out))


AFTER = [stack, stack_last, stack_middle, concat, concat_columns, total, sums, means, average_by_length, elementwise,
         two_stacks, transposed, reshaped, broadcast, multiplied, batch_matmul, attention, chosen, first_axis,
         concat_with_more, cross_entropy, maximum, log_softmax, length, truth, not_truth, last, last_itself, first_and_last,
         at_half, iterated, iterated_to_a_list, enumerated_by_range, iterated_until, popped, appended_after,
         sum_of_stack_alone]


@pytest.mark.parametrize("after", AFTER, ids=lambda after: after.__name__)
def test_after_a_loop(after):
    def make(compile):
        w = param(3)

        def f(x, n):
            return after(rows(x, w, n), w)
        return compile(f), [w]
    against_eager.check(make, TRIPS, compiled=True)


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


@pytest.mark.parametrize("after", AFTER, ids=lambda after: after.__name__)
def test_no_trips(after):
    """The same functions where the list may be empty; what an empty list raises is raised."""
    def make(compile):
        w = param(3)

        def f(x, n):
            return after(rows(x, w, n), w)
        return compile(f), [w]
    against_eager.check(make, NONE_TOO, compiled=None)


ON_EMPTY = [length, truth, not_truth, iterated, enumerated_by_range, iterated_until]


@pytest.mark.parametrize("after", ON_EMPTY, ids=lambda after: after.__name__)
def test_no_trips_compiled(after):
    def make(compile):
        w = param(3)

        def f(x, n):
            return after(rows(x, w, n), w)
        return compile(f), [w]
    against_eager.check(make, NONE_TOO, compiled=True)


def test_appends_change_the_list():
    """A list that nobody reads as it was is made longer in place, in the generated code too."""
    compiled = to_static(lambda x, w, n: grown_by_side(x, w, n), strict=True)
    code = compiled.program(variable(2, 3), param(3), np.array(3)).code
    assert " + [" not in code and code.count(".append(") >= 3


# --- what stays eager, or raises ---------------------------------------------------------------------------------------


# --- gradients of gradients --------------------------------------------------------------------------------------------


def orders(function, x, n, w):
    """Gradients of three orders of a weighted sum of the results."""
    result = function(x, n)
    results = result if isinstance(result, tuple) else (result,)
    total = sum(F.sum(y * y * (k + 1)) for k, y in enumerate(results) if isinstance(y, chainer.Variable))
    found = [y.array for y in results if isinstance(y, chainer.Variable)]
    for _ in range(3):
        gx, gw = chainer.grad([total], [x, w], enable_double_backprop=True)
        found += [None if g is None else g.array for g in (gx, gw)]
        if gx is None or gw is None:
            break
        total = F.sum(gx * gx) + F.sum(gw * gw * gw)
    return found


@pytest.mark.parametrize("after", [stack, stack_middle, concat, total, sums, elementwise, reshaped, broadcast, multiplied,
                                   attention, chosen, first_axis, last, first_and_last, at_half, iterated,
                                   iterated_to_a_list, popped, appended_after], ids=lambda after: after.__name__)
def test_higher_orders(after):
    w = chainer.Parameter(np.random.RandomState(3).uniform(0.3, 0.9, 3))

    def f(x, n):
        return after(rows(x, w, n), w)
    compiled = to_static(f, strict=True)
    for trips in (2, 1, 4):
        pair = []
        for function in (f, compiled):
            x = chainer.Variable(np.random.RandomState(trips).uniform(-1, 1, (2, 3)))
            pair.append(orders(function, x, np.array(trips), w))
        for eager, found in zip(*pair):
            assert (eager is None) == (found is None)
            if eager is not None:
                np.testing.assert_allclose(found, eager, rtol=1e-7, atol=1e-10)
        assert len(pair[0]) == len(pair[1])


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
