"""Lists whose length array values decide: slices, sums, `zip`, arrays of them, and Variables in them that leave the function."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check

from dy2static import CaptureError, to_static


def grown(x, start=(), limit=50):
    items, h = list(start), x
    while F.sum(h * h).array < limit:
        h = h * 2
        items.append(F.sin(h))
    return items, h


def variables(x):
    return grown(x)[0]


def variables_in_other_containers(x):
    items, _ = grown(x)
    model.items = items
    return {"a": items, "b": [items, 1]}, F.sum(x)


def slices(x):
    items, h = grown(x, [x])
    n = len(items)
    return [F.stack(part + [x]) for part in (items[1:], items[:-1], items[::-1], items[-2:], items[::2], items[n // 2:], items[:n - 1])]


def followed(x):
    items, h = grown(x)
    others = [y * 2 for y in [x, h]] + items
    both = items + others
    items.extend(others)
    again = items.copy()
    again.reverse()
    again.insert(0, x)
    return F.stack(both), F.stack(items), F.stack(again), F.vstack(both), F.hstack(both)


def together(x):
    items, h = grown(x)
    total = x
    for y, z in zip(items, items[1:]):
        total = total + y * z
    for y, w in zip(items, (1.0, 2.0, 3.0)):
        total = total + y * w
    for i, y in enumerate(items, 2):
        total = total + y * i
    for y in reversed(items):
        total = total * 0.5 + y
    return total, sum(items), sum(items[1:], x)


def read_beside_an_argument(x):
    items, h = [x], x
    while F.sum(h * h).array < 50:
        h = items[-1] * 2
        items.append(h)
    return F.stack(items) + items[0] * items[-1]


def numbers(x):
    floats, whole, h = [], [], x.array
    while (h * h).sum() < 50:
        h = h * 2
        floats.append(float(h[0]))
        whole.append(int(h[1]))
    return sum(floats), sorted(floats), max(whole) if whole else None, sum(whole), any(y > 3 for y in [sum(whole)]), np.mean(floats)


def arrays(x):
    items, h = [x.array], x.array
    while (h * h).sum() < 50:
        h = h * 2
        items.append(h)
    return np.stack(items, axis=1), np.array(items), np.concatenate(items[1:] + [h]), np.max(items, axis=0)


def of_nothing(x):
    items, h = [], x.array
    while (h * h).sum() < 50:
        h = h * 2
        items.append(h)
    return np.stack(items)


model = chainer.Chain()
PROGRAMS = [variables, variables_in_other_containers, slices, followed, together, read_beside_an_argument, numbers, arrays, of_nothing]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_the_list_of_eager(program):
    def make(compile):
        model.items = None
        return compile(program), model

    def given(*numbers):
        return lambda: (chainer.Variable(np.array(numbers, "f")),)
    with np.errstate(all="ignore"):
        check(make, [given(1, 2), given(0.3, 0.1), given(100, 2)], strict=True, backend="numpy")


def second_gradient(function, x):
    results = [y for y in function(x) if isinstance(y, chainer.Variable)]
    gx, = chainer.grad([sum(F.sum(y * y) for y in results)], [x], enable_double_backprop=True)
    gx2, = chainer.grad([F.sum(gx * gx)], [x])
    return gx.array, gx2.array


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("program", [variables, followed, together])
def test_second_gradients(program, backend):
    x = chainer.Variable(np.array([1, 2], "f"))
    for mine, eager in zip(second_gradient(to_static(program, strict=True, backend=backend), x), second_gradient(program, x)):
        np.testing.assert_allclose(mine, eager, rtol=1e-4)


def leaves_beside_the_last(x):
    items, h = [], x
    while F.sum(h * h).array < 50:
        h = h * 2
        items.append(h)
    return items, h


def with_leaves(x):
    items, h = [], x.array
    while (h * h).sum() < 50:
        h = h * 2
        items.append(chainer.Variable(h))
    return items


def with_an_argument(x):
    return grown(x, [x])[0]


def changed_while_reversed(x):
    items, h = grown(x)
    for y in reversed(items):
        items.pop()
    return F.sum(x)


@pytest.mark.parametrize("program", [leaves_beside_the_last, with_leaves, with_an_argument, changed_while_reversed])
def test_what_could_be_told_apart_is_not_compiled_as_a_whole(program):
    with pytest.raises(CaptureError):
        to_static(program, strict=True)(chainer.Variable(np.array([1, 2], "f")))
    check(lambda compile: compile(program), [lambda: (chainer.Variable(np.array([1, 2], "f")),)])


def kept(order, scores, threshold):
    found, best = [], []
    for k in order:
        if scores[k] > threshold:
            found.append(k)
            best.append(scores[k])
    return np.array(found, np.int64), np.asarray(best, dtype="d"), len(np.array(best, "f")), order[np.array(found, "i")]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_arrays_of_numbers_of_numpy(backend):
    compiled = to_static(kept, strict=True, backend=backend)
    order, scores = np.array([2, 0, 3, 1]), np.array([0.5, 0.25, 1, 0], "f")
    for threshold in (0.3, 0.1, 0.7, 5.0, -1.0):
        for mine, eager in zip(compiled(order, scores, np.array(threshold)), kept(order, scores, np.array(threshold))):
            np.testing.assert_array_equal(mine, eager)
            assert np.asarray(mine).dtype == np.asarray(eager).dtype
    assert compiled.cache_info().captures == 1


class Sequence:
    """It has no `__iter__`: a `for` over it reads on until there is no item."""

    def __init__(self, items):
        self.items = items

    def __getitem__(self, place):
        return self.items[place]


@pytest.mark.parametrize("first, more", [([1.0, 2.0], 3.0), ([1, 2], 3)], ids=["floats", "ints"])
def test_an_object_that_has_no_iter_ends_where_its_list_does(first, more):
    def make(compile):
        sequence = Sequence(list(first))

        def f(x):
            for item in sequence:
                x = x * item
            return x, list(sequence)
        return compile(f), sequence
    check(make, [lambda sequence: sequence.items.append(more) or (np.array([1, 2], "f"),)] * 4, rounds=1)


def test_an_object_that_has_no_iter_and_holds_a_list_that_grows_is_not_compiled():
    def f(x):
        items, _ = grown(x)
        return [item * 2 for item in Sequence(items)]
    with pytest.raises(CaptureError, match="is read at place 1000"):
        to_static(f, strict=True)(chainer.Variable(np.array([1, 2], "f")))
    check(lambda compile: compile(f), [lambda: (chainer.Variable(np.array([1, 2], "f")),)])
