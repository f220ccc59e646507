"""Lists whose length array values decide, and the arrays of unknown size that come of them."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from grown_lists import NONE_TOO, TRIPS, orders, param, rows

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


# --- gradients of gradients --------------------------------------------------------------------------------------------


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
