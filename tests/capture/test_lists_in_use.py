"""Lists whose length array values decide, where they leave the function or are used as lists of Python are."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from grown_lists import NONE_TOO, TRIPS, Box, param, rows


def variables_leave(x, w, n):
    return rows(x, w, n)


def stored_on_an_object(x, w, n):
    return Box(rows=rows(x, w, n))


def holds_the_input(x, w, n):
    out, h, i = [], x, 0
    while i < n:
        out.append(h)
        h = h * w
        i += 1
    return out[0], F.stack(out), h


def item_and_state(x, w, n):
    out, h, i = [], x, 0
    while i < n:
        h = h * w
        out.append(h)
        i += 1
    return out[-1], h


def two_items(x, w, n):
    out = rows(x, w, n)
    return out[-1], out[0]


def of_two_kinds(x, w, n):
    out, i = [], 0
    while i < n:
        out.append(x * w if i % 2 else F.sum(x))
        out.append(i)
        i += 1
    return out[0]


def of_two_shapes(x, w, n):
    out, i = [F.sum(x)], 0
    while i < n:
        out.append(x * w)
        i += 1
    return F.sum(out[-1])


def of_tuples(x, w, n):
    out, i = [], 0
    while i < n:
        out.append((x * i, i))
        i += 1
    return len(out)


def sliced(x, w, n):
    return F.stack(rows(x, w, n)[1:])


def unpacked(x, w, n):
    return F.concat([*rows(x, w, n)], axis=0)


def given_to_zip(x, w, n):
    y = F.sum(x)
    for h, k in zip(rows(x, w, n), range(3)):
        y = y + F.sum(h) * k
    return y


def summed(x, w, n):
    return sum(rows(x, w, n))


def assigned(x, w, n):
    out = rows(x, w, n)
    out[0] = x
    return F.stack(out)


def out_of_range(x, w, n):
    out = rows(x, w, n)
    return out[4] * 2


def popped_empty(x, w, n):
    out = rows(x, w, n)
    for _ in range(4):
        h = out.pop()
    return h * 2


def sizes_that_do_not_fit(x, w, n):
    return F.stack(rows(x, w, n)) + F.broadcast_to(x, (3, 2, 3))


def compared_size(x, w, n):
    y = F.stack(rows(x, w, n))
    if y.shape[0] == 3:
        return y * 2
    return F.sum(y)


def shape_returned(x, w, n):
    y = F.stack(rows(x, w, n))
    return y.shape, y.size, y.ndim, len(y), F.sum(y)


def written_after(x, w, n):
    out, a, i = [], np.zeros(3, "f"), 0
    while i < n:
        out.append(a)
        a = a + 1
        i += 1
    a += 5
    out[0][...] = 7
    return F.stack(out) * w, a


def stacked_inside(x, w, n):
    out, y, i = [x * w], F.sum(x), 0
    while i < n:
        out.append(x * i)
        y = y + F.sum(F.stack(out) ** 2)
        i += 1
    return y


def made_of_numpy(x, w, n):
    out, i = [], 0
    while i < n:
        out.append(x.array * i)
        i += 1
    return np.stack(out), np.array(out).sum()


def grows_an_argument(x, w, n, given=None):
    given = [x] if given is None else given
    i = 0
    while i < n:
        given.append(x * w)
        i += 1
    return F.stack(given)


def shape_of_a_value(x, w, n):
    k = int(n)
    return x * F.sum(np.zeros(k, "f") + 1.0), np.ones((k, 2)).sum(axis=1), np.arange(k)


EITHER = [variables_leave, stored_on_an_object, holds_the_input, item_and_state, two_items, of_two_kinds, of_two_shapes,
          of_tuples, sliced, unpacked, given_to_zip, summed, assigned, out_of_range, popped_empty, sizes_that_do_not_fit,
          compared_size, shape_returned, written_after, stacked_inside, made_of_numpy, grows_an_argument, shape_of_a_value]


@pytest.mark.parametrize("case", EITHER, ids=lambda case: case.__name__)
@pytest.mark.parametrize("calls", [TRIPS, NONE_TOO], ids=["trips", "none_too"])
def test_compiled_or_not(case, calls):
    """Whether or not these are compiled: what is seen is what the eager call shows, errors too."""
    def make(compile):
        w = param(3)

        def f(x, n):
            return case(x, w, n)
        return compile(f), [w]
    against_eager.check(make, calls, compiled=None)


def grows_in_its_loop(x, w):
    out, h = [1, 2, 3], x
    for k in out:
        h = h * w + k
        if float(x.array.sum()) > 0 and len(out) < 6:
            out.append(k + 3)
    return h, out


def grows_under_enumerate(x, w):
    out, h = [x, x * 2], w
    for i, row in enumerate(out):
        h = h + row * i
        if float(row.array[0]) > 0 and i < 3:
            out.append(row * 0.5)
    return h, len(out)


def grows_beside_another(x, w):
    out, h = [x, x * 2, x * 3], w
    for row, k in zip(out, (1, 2, 3, 4)):
        h = h + row * k
        if x.array[0] > 0 and k < 2:
            out.append(row)
    return h, len(out)


def shrinks_in_its_loop(x, w):
    out, total = [1.0, 2.0, 3.0], 0.0
    for number in out:
        total += number
        if x.array[0] > 0 and out:
            out.pop()
    return w * total, out


def shrinks_from_its_end(x, w):
    out, total = [1.0, 2.0, 3.0, 4.0], 0.0
    for number in reversed(out):
        total += number
        if x.array[0] > 0 and number > 2:
            out.pop()
            out.append(number * 2)
    return w * total, out


def grows_while_an_iterator_is_used(x, w):
    out = [1.0, 2.0]
    items = iter(out)
    first = next(items)
    if x.array[0] > 0:
        out.append(3.0)
    return w * (first + sum(items)), next(items, None)


def assigned_in_its_loop(x, w):
    rows = [x * 1, x * 2, x * 3]
    h = w
    for row in rows:
        rows[int(x.array.argmax())] = x * 5
        h = h + row
    return h


CHANGED = [grows_in_its_loop, grows_under_enumerate, grows_beside_another, shrinks_in_its_loop, shrinks_from_its_end,
           grows_while_an_iterator_is_used, assigned_in_its_loop]


@pytest.mark.parametrize("case", CHANGED, ids=lambda case: case.__name__)
def test_changed_while_a_loop_goes_over_it(case):
    """A loop over a list sees the items that it has by then, also where array values decide which these are."""
    def make(compile):
        w = param(3)
        return compile(lambda x: case(x, w)), [w]
    calls = [lambda values=values: (chainer.Variable(np.array(values, "f")),) for values in ([1, 0.5, 0.2], [-1, -0.5, 0.1], [0.1, 0.3, -0.2])]
    against_eager.check(make, calls, compiled=None)
