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


class Words(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = chainer.links.EmbedID(50, 4, initialW=np.random.RandomState(0).rand(50, 4).astype("f"))

    def int32(self, words):
        return F.sum(F.tanh(self.embed(np.array(words, "i"))), axis=0) / len(words)

    def of_numpy(self, words):
        return F.sum(F.tanh(self.embed(np.asarray(words))), axis=0)

    def written(self, words):
        first = np.asarray(words, np.int32)
        first[first > 20] = 3
        second = np.asarray(words, dtype=np.int32)
        return F.sum(self.embed(first) * self.embed(second), axis=0), first, second

    def mean(self, words):
        return F.sum(self.embed.W) * np.array(words, np.float32).mean()

    def kept(self, words):
        self.words = words
        return F.sum(self.embed(np.array(self.words, "i")), axis=0)

    def appended(self, words):
        y = F.sum(self.embed(np.array(words, "i")), axis=0)
        words.append(1)
        return y + F.sum(self.embed(np.array(words, "i")), axis=0), words


def words_of(lengths):
    return [lambda n=n: ([k * 7 % 50 for k in range(n)],) for n in lengths]


def build_words(name):
    def build(compile):
        model = Words()
        return compile(getattr(model, name)), [model]
    return build


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", [name for name in vars(Words) if not name.startswith("_")])
def test_arrays_of_lists_of_any_length(name, backend):
    odd = [[2**70], [1.5, 2, 3], [float("nan"), 2.0], [1e300], [True, 2], [np.int64(3), 4, 5, 6], ["a", 2], [60, 1, 2, 3]]
    calls = [*words_of((3, 5, 8, 9, 2, 11)), *[lambda items=items: (list(items),) for items in odd], *words_of((12, 1))]
    against_eager.check(build_words(name), calls, backend=backend)


@pytest.mark.parametrize("name", ["int32", "of_numpy", "written", "mean"])
def test_one_program_for_arrays_of_all_lengths(name):
    step = dy2static.to_static(getattr(Words(), name), strict=True)
    for make in words_of(range(2, 30)):
        step(*make())
    assert step.cache_info().captures == 3 and step.cache_info().fallbacks == 0


def test_saved_program_makes_arrays_of_lists(tmp_path):
    model = Words()
    step = dy2static.to_static(model.int32)
    for make in words_of(range(2, 9)):
        step(*make())
    dy2static.save(step, tmp_path / "model")
    loaded, (words,) = dy2static.load(tmp_path / "model"), words_of((20,))[0]()
    np.testing.assert_allclose(loaded(words).array, model.int32(words).array, rtol=1e-5)
    with pytest.raises(dy2static.errors.SignatureError):
        loaded([2**40, 1, 2])


def test_gradients_that_need_nothing_of_a_loop_that_may_raise():
    def f(xs, y):
        h = y * 2
        for x in xs:
            h = h + np.sum(x)
        return F.sum(h)

    static = dy2static.to_static(f)
    for count in (4, 5, 0, 3):
        y = chainer.Variable(np.ones(3, "f"))
        loss = static([0.5] * count, y)
        loss.backward()
        assert (float(loss.array), y.grad.tolist()) == (6 + 1.5 * count, [2, 2, 2])
    assert static.cache_info().captures == 3


class Episodes(chainer.Chain):
    """What is made of lists of steps, as many as an episode has."""

    def __init__(self):
        super().__init__()
        self.buffer, self.last = np.zeros(3, "f"), None
        with self.init_scope():
            self.layer = chainer.links.Linear(3, 2, initialW=np.random.RandomState(0).rand(2, 3).astype("f"))

    def returns(self, states, actions, rewards):
        total, found = 0.0, []
        for reward in reversed(rewards):
            total = reward + 0.9 * total
            found.insert(0, total)
        chosen = F.select_item(F.log_softmax(self.layer(np.stack(states))), np.array(actions, "i"))
        return F.sum(chosen * np.array(found, np.float32))

    def pairs(self, states, actions, rewards):
        joined = F.stack(states[1:]) - np.asarray(states[:-1], dtype="f")
        return F.sum(self.layer(joined)) * np.array(actions[1:], "i").sum(), len(states), np.concatenate(states[::-1])

    def numbers(self, states, actions, rewards):
        total = F.sum(self.layer.W)
        for number, action in enumerate(actions):
            total = total * 0.9 + action * number
        return total, max(actions), np.mean(actions), [action + 1 for action in actions][-1], np.array(actions[2:4])

    def kept(self, states, actions, rewards):
        self.last = states[-1]
        return F.sum(self.layer(np.stack(states))), states[0], states[1] is self.buffer, list(states)

    def written(self, states, actions, rewards):
        first, some = np.stack(states), states[1:]
        self.buffer += 1
        return F.sum(self.layer(first)), np.stack(states), np.stack(some)


def episodes(name):
    def build(compile):
        model = Episodes()
        return compile(getattr(model, name)), [model]
    return build


def steps_of(model, length, seed):
    random = np.random.RandomState(seed)
    states = [random.rand(3).astype("f") for _ in range(length)]
    if seed % 2 and length > 1:
        states[1] = model.buffer
    return states, random.randint(0, 2, length).tolist(), random.rand(length).tolist()


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", ["returns", "pairs", "numbers", "kept", "written"])
def test_lists_of_any_length(name, backend):
    def build(compile):
        step, (model,) = episodes(name)(compile)
        return lambda length, seed: step(*steps_of(model, length, seed)), [model]
    against_eager.check(build, [lambda n=n, k=k: (n, k) for k, n in enumerate((4, 5, 7, 6, 1, 9, 2, 3))], backend=backend)


@pytest.mark.parametrize("name", ["returns", "pairs"])
def test_one_program_for_episodes_of_all_lengths(name):
    step, (model,) = episodes(name)(dy2static.to_static(strict=True))
    for length in range(4, 24):
        step(*steps_of(model, length, length))
    assert step.cache_info().captures == 3


def test_ints_that_an_array_has_as_floats():
    def f(xs, y):
        total = 0
        for x in xs:
            total = total + x
        return y * 2, total, xs[-1], max(xs)

    static, y = dy2static.to_static(f), chainer.Variable(np.ones(2, "f"))
    for xs in ([1, 2, 3], [1, 2], [4, 5, 6, 7], [1] * 5, [2 ** 63, 1, 1], [3, 4]):
        _, *numbers = static(xs, y)
        assert numbers == [sum(xs), xs[-1], max(xs)] and {*map(type, numbers)} == {int}
