"""Tuples that loops on array values carry, and dicts, lists and objects that they make anew in every iteration."""
import collections
import dataclasses
import typing

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import variable

from dy2static import to_static

State = collections.namedtuple("State", "h c steps")


@dataclasses.dataclass
class Memory:
    h: typing.Any
    steps: int = 0
    label: str = "memory"

    def step(self, w):
        return Memory(F.tanh(self.h * w) + 0.7, self.steps + 1, self.label)


def pair(x, w):
    s = x, x * w
    while float(F.sum(s[0]).array) < 9:
        s = s[0] + abs(s[1]) + 0.1, F.tanh(s[1])
    return s


def unpacked(x, w):
    s = x, x * w
    while True:
        h, c = s
        if float(F.sum(h).array) > 6:
            break
        s = h + 0.5, c * h
    return F.sum(h * c), s[1]


def nested_tuples(x, w):
    s = ((x, 1), w * 2)
    while float(F.sum(s[0][0]).array) < 9:
        (h, n), c = s
        s = ((h + c + 1, n + 1), F.tanh(c))
    return s[0][0], s[0][1], s[1]


def named(x, w):
    s = State(x, x * 0, 0)
    while s.steps < 3 or float(F.sum(s.h).array) < 5:
        s = State(F.tanh(s.h * w) + 1, s.c + s.h, s.steps + 1)
    return s.h, s.c, s.steps


def replaced_parts(x, w):
    s = State(x, w * 1, 0)
    while float(F.sum(s.h).array) < 6:
        s = s._replace(h=s.h + s.c * s.c + 0.1)
    return s.h, s.steps


def some_parts_stay(x, w):
    s = "tanh", w, x, None, 0.5
    while float(F.sum(s[2]).array) < 6:
        name, scale, h, nothing, rate = s
        s = name, scale, getattr(F, name)(h * scale) + h + rate, nothing, rate
    return s[0], s[2], s[3], s[4]


def a_part_begins_to_change(x, w):
    s, n = (x, 0, x * 2), 0
    while n < 4:
        s = s[0] + 1, n // 2, s[2]
        n += 1 + int(float(F.sum(s[0]).array) > 1e9)
    return s


def decided_inside(x, w):
    s, best = (x, 0), (x * 0, -1)
    while s[1] < 4:
        if float(F.sum(s[0]).array) > 1:
            best = s
            s = s[0] * w - 0.5, s[1] + 1
        else:
            s = s[0] + w, s[1] + 1
    return s[0], s[1], F.sum(best[0]), best[1]


def in_an_attribute(x, w):
    class Cell:
        pass
    cell = Cell()
    cell.state = x, w * 1
    while float(F.sum(cell.state[0]).array) < 6:
        h, c = cell.state
        cell.state = h + abs(c) + 0.1, c * 0.5
    return cell.state[0] * 1, F.sum(cell.state[1])


def until_the_end(x, w):
    s = x, 1.0
    for k in range(12):
        s = s[0] * w + 0.5, s[1] * 0.5
        if float(F.sum(s[0]).array) > 4:
            break
    return s[0] * s[1], k


def objects(x, w):
    memory = Memory(x)
    while memory.steps < 2 or float(F.sum(memory.h).array) < 3:
        memory = memory.step(w)
    return memory.h, memory.steps, memory.label


def replaced_objects(x, w):
    memory = Memory(x)
    while float(F.sum(memory.h).array) < 5:
        new = dataclasses.replace(memory, h=memory.h + abs(w))
        new.steps += 2
        memory = new
    return memory


def dicts(x, w):
    s = {"h": x, "c": w * 2, "n": 0}
    while float(F.sum(s["h"]).array) < 6:
        s = {**s, "h": s["h"] + s["c"] * s["c"] + 0.1, "n": s["n"] + 1}
    return s


def lists(x, w):
    s = [x, w * 1]
    while float(F.sum(s[0]).array) < 6:
        s = [s[0] + abs(s[1]) + 0.1, F.sin(s[1])]
    return s, s[0] * s[1]


def dict_in_a_tuple(x, w):
    s = {"h": x}, 1.5
    while float(F.sum(s[0]["h"]).array) < 6:
        s = {"h": s[0]["h"] + s[1] * abs(w)}, s[1] * 0.9
    return s[0]["h"], s[1]


CASES = [objects, replaced_objects, dicts, lists, dict_in_a_tuple, pair, unpacked, nested_tuples, named, replaced_parts, some_parts_stay, a_part_begins_to_change, decided_inside,
         in_an_attribute, until_the_end]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_carried(case):
    def make(compile):
        w = chainer.Parameter(np.array([0.5, 1.5, 0.9], "f"))

        def f(x):
            return case(x, w)
        return compile(f), [w]
    against_eager.check(make, [lambda k=k: (variable(3, seed=k, low=0.0, high=1 + k),) for k in range(4)], compiled=True)


def _halved(n, x, limit):
    """A loop that is reached again and again, with what it carries in changing roles."""
    length, count, kept = 1.0, n, x
    while float((x * np.float32(length)).sum()) > limit and count < 9:
        length *= 0.5
        count += 1
        kept = x * np.float32(length)
    return length, count, kept


def steps(x, w):
    found = []
    for n in (0, 3, 5):
        length, count, kept = _halved(n, x, 0.3 + n)
        found += [length, count]
        x = kept + abs(w)
    return x, found


def one_array_in_two_names(x, w):
    found = []
    for other in (x * 2, x * 3, x):
        y = x
        while y.sum() < 5 and other.sum() < 40:
            y, other = other, other + y * y + 1
        found += [y * 1, other * 1]
    return found


def replaced_by_the_same(x, w):
    found = []
    for k in range(4):
        y, z, count = x + k, x * k, 0
        same = z if k > 1 else y
        while y.sum() < 9:
            y, z, count = y + 1, same, count + 1
        found += [y, z * 1, count]
    return found


def replaced_once(x, w):
    found = []
    for k in range(3):
        y, z = x + k, x * k
        while y.sum() < 9:
            y, z = y + 1, (z + y if k == 0 else z)
        found += [y, z]
    return found


def up_and_down(x, w):
    found = []
    for change in (1, 2, -1, 1):
        total, count = x, 0 if change > 0 else 8
        while total.sum() < 12 and -9 < count:
            total, count = total + abs(w), count + change
        found += [total, count]
    return found


def other_kinds(x, w):
    found = []
    for first in (1.0, 2.0, 3, x, 1.5):
        y, scale = x, first
        while y.sum() < 8:
            y, scale = y + 1, scale * 1.5
        found += [y, scale]
    return found


def nested(x, w):
    found = 0
    while x.sum() < 20:
        n, y = 0, x
        while y.sum() < 9 + n:
            n, y = n + 1, y + abs(w)
        found, x = found + n, y + 1
    return x, found


def written_inside(x, w):
    found, seen = [], np.zeros(3, "f")
    for k in range(3):
        y = x + k
        while y.sum() < 9:
            y = y + 1
            if k == 1:
                seen += y
        found += [y, seen.copy()]
    return found


REACHED_AGAIN = [steps, one_array_in_two_names, replaced_by_the_same, replaced_once, up_and_down, other_kinds, nested, written_inside]


@pytest.mark.parametrize("case", REACHED_AGAIN, ids=lambda case: case.__name__)
def test_loops_that_are_reached_again(case):
    """What a loop carried before is the first guess at what it carries now; where that is wrong, it is found anew."""
    w = np.array([0.5, 1.5, 0.9], "f")

    def make(compile):
        return compile(lambda x: case(x, w)), []
    against_eager.check(make, [lambda k=k: (variable(3, seed=k, low=0.1, high=1 + k).array,) for k in range(3)])


def another_name(x, w):
    s = other = {"h": x, "n": 0}
    while float(F.sum(s["h"]).array) < 4:
        s = {"h": s["h"] + 1, "n": s["n"] + 1}
    other["n"] = 7
    return s["h"], s["n"]


def changed_after(x, w):
    s = {"h": x, "n": 0}
    other = s
    while float(F.sum(s["h"]).array) < 4:
        s = {"h": s["h"] + 1, "n": s["n"] + 1}
    s["n"] += 10
    return s["h"], s["n"], other["n"]


def both_leave(x, w):
    s = other = [x, w * 1]
    while float(F.sum(s[0]).array) < 4:
        s = [s[0] + 1, s[1]]
    return s, other


def compared(x, w):
    s = other = Memory(x)
    while float(F.sum(s.h).array) < 4:
        s = Memory(s.h + 1)
    return s.h, s is other, s is None


def changed_inside(x, w):
    s = other = {"h": x, "n": 0}
    while float(F.sum(s["h"]).array) < 4:
        s["n"] += 1
        if s["n"] > 1:
            s = {"h": s["h"] + 2, "n": s["n"] + 5}
        else:
            s = {"h": s["h"] + 1, "n": s["n"]}
    return s["h"], s["n"], other["n"]


def two_names(x, w):
    s = best = Memory(x)
    while float(F.sum(s.h).array) < 4:
        s = best = Memory(s.h + 1, s.steps + 1)
        best.label += "!"
    best.steps += 3
    return s.h, s.steps, best.label


def kept_in_a_list(x, w):
    s, kept = Memory(x), []
    while float(F.sum(s.h).array) < 4:
        s = Memory(s.h + 1, s.steps + 1)
        kept.append(s)
    return s.h, len(kept), [m.steps for m in kept]


def of_the_caller(x, w, given={}):
    s = given
    s.setdefault("h", 1.0)
    while float(F.sum(x * s["h"]).array) < 4 and s["h"] < 50:
        s = {"h": s["h"] * 2}
    s["seen"] = True
    return x * s["h"], "seen" in given


ALIASED = [another_name, changed_after, both_leave, compared, changed_inside, two_names, kept_in_a_list, of_the_caller]


@pytest.mark.parametrize("case", ALIASED, ids=lambda case: case.__name__)
def test_aliases(case):
    """Where it could be seen that a container is another object, or the same one, the call runs eagerly."""
    def make(compile):
        given = {}

        def f(x):
            return case(x, np.float32(2)) if case is not of_the_caller else case(x, None, given)
        return compile(f), [given]
    against_eager.check(make, [lambda k=k: (variable(3, seed=k, low=0.0, high=0.5 + k),) for k in range(4)])


@pytest.mark.parametrize("loops", [False, True])
def test_the_array_of_a_chosen_variable(loops):
    """Where a decision leaves the caller's Variable, its array is the caller's array."""
    def f(x):
        y = x
        while loops and float(F.sum(y).array) < 3:
            y = y * 2
        if not loops and float(F.sum(x).array) < 3:
            y = x * 2
        return y, y.array, y.array
    compiled = to_static(f, strict=True)
    for start in (0.2, 5.0, 0.2, 5.0):
        x = chainer.Variable(np.full(3, start, "f"))
        y, first, second = compiled(x)
        assert first is second is y.array
        assert (first is x.array) == (y is x) == (start == 5.0)
