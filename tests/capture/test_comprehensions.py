"""List comprehensions whose conditions array values decide."""
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
