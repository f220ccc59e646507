"""Conditional expressions, `and` and `or` on array values whose sides change what was made before them."""
import chainer
import numpy as np
import pytest
from against_eager import check


def appended(x):
    found = []
    found.append(1) if x.array.sum() > 0 else None
    return len(found), found


def appended_by_and(x):
    found = [0]
    known = x.array.sum() > 0 and found.append(1) is None
    if x.array.sum() > -5 and found.append(2) is None:
        x = x * 2
    if x.array.sum() > 5 or not found.append(3):
        x = x * 3
    return 1 if known else 2, found, x


def set_by_default(x):
    found = {}
    value = found.setdefault("k", 2.0) if x.array.sum() > 0 else 1.0
    return value, found


def counted_in_a_closure(x):
    total = [0.0]

    def add(value):
        total[0] += value
        return value
    value = add(1.0) if x.array.sum() > 0 else add(2.0)
    more = add(float(x.array[0])) if x.array.sum() > 2 else 0.0
    return value + more, total


class Counter:
    n = 0

    def up(self):
        self.n += 1
        return 1.0


def counted_by_an_object(x):
    counter = Counter()
    value = counter.up() if x.array.sum() > 0 else 0.0
    value = value or counter.up()
    return x * value, counter


@pytest.mark.parametrize("program", [appended, appended_by_and, set_by_default, counted_in_a_closure, counted_by_an_object])
def test_what_a_side_changes_is_changed_where_it_runs(program):
    calls = [lambda numbers=numbers: (chainer.Variable(np.array(numbers, "f")),) for numbers in ((1, 2), (-0.1, -0.2), (-4, -3))]
    check(lambda compile: compile(program), calls, compiled=True)
