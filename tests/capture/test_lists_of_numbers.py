"""Lists and deques of numbers that grow from call to call: histories of losses, and means over the last of them."""
import collections
import math

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest

import dy2static


class Log:
    def __init__(self, items=()):
        self.items, self.other, self.last, self.count = items, None, None, 0

    def tail(self, v):
        self.items.append(v)
        self.items = self.items[-3:]

    def joined(self, v):
        self.items = (self.items + [v])[-4:]

    def mean(self, v):
        self.items.append(v)
        self.last = float(np.mean(self.items)), float(np.mean(self.items[-2:])), np.array(self.items).max()

    def whole(self, v):
        self.items.append(v)
        self.last = sum(self.items) / len(self.items), min(self.items), max(self.items), sorted(self.items)[0]

    def loop(self, v):
        total = 0.0
        for i, item in enumerate(self.items):
            total += item * i
        self.items.append(v)
        for item in self.items:
            total += item
        self.last = total, list(self.items), self.items.copy()

    def copied(self, v):
        self.items.append(v)
        self.last = list(self.items), self.items.copy()

    def ends(self, v):
        self.items.append(v)
        if len(self.items) > 2 and self.items[-1] > self.items[-2]:
            self.count += 1
        self.last = self.items[0], self.items[:2], self.items[1:]

    def shared(self, v):
        if self.other is None:
            self.other = self.items
        self.other.append(v)
        self.last = self.items[-1], sum(self.items), self.items is self.other

    def shortened(self, v):
        self.items.append(v)
        self.last = np.mean(self.items)
        if len(self.items) > 3:
            self.items.pop(0)

    def emptied(self, v):
        self.items.append(v)
        if len(self.items) == 3:
            self.last = sum(self.items)
            self.items.clear()

    def ordered(self, v):
        self.items.append(-v)
        self.items.sort()
        self.last = self.items[len(self.items) // 2]

    def written(self, v):
        self.items.append(v)
        self.last = sum(self.items)
        self.items[0] = self.last

    def asked(self, v):
        self.last = bool(self.items), v in self.items, self.items == [v], 7.0 in self.items
        if self.items:
            self.count += 1
        self.items.append(v)

    def mixed(self, v):
        self.items.append(v if self.count % 3 else int(v))
        self.count += 1
        self.last = sum(self.items), self.items[-1]

    def printed(self, v):
        self.items.append(v)
        print(self.items, sum(self.items))
        self.last = self.items

    def listed(self, v):
        self.items.append(v)
        self.last = [item * 2 for item in self.items], [item for item in self.items if item > 3]

    def decided(self, v):
        if v > 9:
            self.items.append(v)
        self.last = sum(self.items, 0.5)

    def missing(self, v):
        self.items.append(v)
        self.last = self.items[5] if len(self.items) > 9 else self.items[3]

    def exact(self, v):
        self.items += [1e16 * (v + 1), 1.0, -1e16 * (v + 1)]
        self.last = sum(self.items), math.fsum(self.items), sum([v, 1e16 + v, -1e16]), sum((0.1, v), 0.2)


DEQUES = ["mean", "whole", "copied", "asked", "mixed", "shared", "printed"]


def program(name, make):
    def build(compile):
        log = Log(make())

        def step(x):
            y = F.sum(x)
            v = float(y.array)
            getattr(log, name)(v)
            return y * 2, log.last
        return compile(step), [log]
    return build


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name, make", [*[(name, list) for name in vars(Log) if not name.startswith("_")],
                                        *[(name, lambda: collections.deque(maxlen=4)) for name in DEQUES]])
def test_histories(name, make, backend):
    calls = [lambda i=i: (chainer.Variable(np.full(3, i + 1, "f")),) for i in (0, 3, 1, 4, 0, 2, 5, 6, 3, 1, 7)]
    against_eager.check(program(name, make), calls, backend=backend)


@pytest.mark.parametrize("name, make, captures", [("tail", list, 2), ("mean", list, 2), ("joined", list, 2), ("loop", list, 2),
                                                  ("whole", lambda: collections.deque(maxlen=4), 2)])
def test_one_program_for_all_lengths(name, make, captures):
    step, _ = program(name, make)(dy2static.to_static(strict=True))
    for i in range(9):
        step(np.full(3, i + 1, "f"))
    assert step.cache_info().captures == captures
