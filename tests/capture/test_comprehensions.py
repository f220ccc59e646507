"""List comprehensions whose conditions array values decide, and what ``all`` and ``any`` ask of each item."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check


def numbers(x):
    big = [k for k in (1.0, 2.0, 3.0, 4.0, 5.0) if x.array.sum() > k]
    return big, len(big), sum(big), len([i for i in range(4) if x.array.ravel()[i] > 0])


def variables(x):
    parts = [x[0], x[1], x[0] * 2, x[1] * 3, x[0] - x[1]]
    kept = [F.sin(y) for y in parts if y.array.sum() > 0]
    return F.stack(kept) if kept else x, sum([F.sum(y) for y in parts if y.array.sum() > 2 and y.array[0] > 1])


def of_pairs(x):
    return sum([y * i for i, y in enumerate(x, 1) if float(y.array.sum()) > 0])


def of_a_list_that_grew(x):
    items, h = [], x
    while F.sum(h * h).array < 200:
        h = h * 2
        items.append(F.sum(h))
    return F.sum(x), len([y for y in items if y.array > 5]), sum([y * 2 for y in items if y.array > 5])


def with_effects(x):
    seen = []

    def noted(y):
        seen.append(float(y.array[0]))
        return y
    found = [noted(y) * 2 for y in x if y.array.sum() > 0]
    return sum(found), seen


def of_texts(x):
    return [name for name, y in (("a", x[0]), ("b", x[1])) if y.array.sum() > 0]


def that_fails(x):
    return [a for a, b in [(1, 2), (3,)] if x.array.sum() > a]


@pytest.mark.parametrize("program", [numbers, variables, of_pairs, of_a_list_that_grew, with_effects, of_texts, that_fails])
def test_what_is_kept_is_what_eager_keeps(program):
    calls = [lambda rows=rows: (chainer.Variable(np.array(rows, "f")),)
             for rows in ([[1, 2], [3, -4]], [[10, 2], [-1, 5]], [[-1, -2], [-3, -0.5]])]
    check(lambda compile: compile(program), calls, compiled=True if program is not that_fails else None)


ROWS = 12


def asks_all(x):
    return all(y.array.sum() < 9 for y in x), not any(np.isnan(y.array).any() for y in x)


def leaves_some_out(x):
    return all(y.array[0] > -1 for y in x if y.array[1] > 0), any(y.array.sum() > 9 for i, y in enumerate(list(x)) if i > 2)


def counts_what_it_asks(x):
    asked = []

    def above(y):
        asked.append(1.0)
        return y.array.sum() > 2
    count = 0

    def counted(y):
        nonlocal count
        count += 1
        return y.array.sum() > 2
    return any(counted(y) for y in x), count, all(above(y) for y in [x[0]]), asked


def asks_only_what_it_may(x):
    parts = [y.array[i:] for i, y in enumerate(x)]
    return all(len(p) > 0 and p[0] < 9 for p in parts), any(p is None or len(p) and p[0] > 5 for p in parts)


def asks_a_dict(x):
    named = {str(i): y.array for i, y in enumerate(x)}
    return any(named[name].max() > 4 for name in named), all(a.min() > -3 for a in named.values())


def reads_the_rest_of_a_generator(x):
    rows = (y.array.sum() for y in x)
    return any(a > 1 for a in rows), list(rows)


def has_an_all_of_its_own(x):
    all = sum  # noqa: A001
    return all(y.array.sum() for y in x)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("program", [asks_all, leaves_some_out, counts_what_it_asks, asks_only_what_it_may, asks_a_dict,
                                     reads_the_rest_of_a_generator, has_an_all_of_its_own])
def test_all_and_any_ask_item_by_item(program, backend):
    """Of more items than ways through a function are captured."""
    seeds = range(4)
    calls = [lambda seed=seed: (chainer.Variable(np.random.RandomState(seed).randn(ROWS, 2).astype("f") * (1 + seed)),)
             for seed in seeds]
    check(lambda compile: compile(program), calls, compiled=program is not reads_the_rest_of_a_generator or None, backend=backend)
