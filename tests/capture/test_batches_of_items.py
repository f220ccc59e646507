"""Batches that are lists of items (transitions of a replay memory): what differs from call to call becomes an input."""
import collections
import copy
import itertools
import random
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import Picture, array, check, differences

from dy2static import FallbackWarning, to_static
from dy2static.runtime import budget

Transition = collections.namedtuple("Transition", "state action reward following done")

STATES = [array(4, seed=k) for k in range(6)]


def transitions(make, count=5):
    """Some of a few transitions, drawn with replacement: the next state of one is the state of another."""
    memory = [make(STATES[k], k % 3, float(k), STATES[k + 1], k == 2) for k in range(5)]
    return [memory[k] for k in np.random.randint(0, 5, count)]


def loss(states, actions, rewards, following, done):
    values = F.tanh(states)
    best = np.where(done, 0, np.max(following, axis=1))
    return F.mean_squared_error(F.select_item(values, actions), (rewards + best).astype("f"))


def of_tuples(batch):
    return loss(np.stack([t[0] for t in batch]), np.array([t[1] for t in batch], "i"), np.array([t[2] for t in batch], "f"),
                np.stack([t[3] for t in batch]), np.array([t[4] for t in batch]))


def of_named(batch):
    batch = Transition(*zip(*batch))
    return loss(np.array(batch.state), np.array(batch.action, "i"), np.array(batch.reward, "f"), np.array(batch.following),
                np.array(batch.done, "f"))


def of_dicts(batch):
    return loss(np.stack([t["state"] for t in batch]), np.array([t["action"] for t in batch], "i"),
                np.array([t["reward"] for t in batch], "f"), np.stack([t["following"] for t in batch]),
                np.array([1 - t["done"] for t in batch], "f"))


def of_examples(batch):
    return loss(*chainer.dataset.concat_examples(batch))


MAKE = {
    of_tuples: lambda *parts: parts,
    of_named: Transition,
    of_dicts: lambda *parts: dict(zip(Transition._fields, parts)),
    of_examples: lambda s, a, r, f, d: (s, np.int32(a), np.float32(r), f, np.bool_(d)),
}


@pytest.mark.parametrize("function", MAKE, ids=lambda f: f.__name__)
def test_a_few_captures_serve_all_batches(function):
    calls = [lambda: (transitions(MAKE[function]),)] * 12
    static = check(lambda compile: (compile(function), None), calls, rounds=1, compiled=True)
    captures = static.cache_info().captures
    for _ in range(6):
        static(transitions(MAKE[function]))
    most = 7 if function is of_dicts else 5             # of dicts, which may be written, it is relied on which of them are one
    assert static.cache_info().captures == captures <= most, static.explain_misses()


def total(batch):
    return sum([F.sum(F.tanh(item["state"] if isinstance(item, dict) else item)) for item in batch])


def writes_into_one(batch):
    y = total(batch)
    batch[0] += 1
    return y, batch[1] * 2, batch


def compares(batch):
    return total(batch), batch[0] is batch[1], [item is batch[2] for item in batch]


def copies(batch):
    return total(batch), copy.deepcopy(batch)


def changes_one(batch):
    batch[0]["count"] = batch[1].get("count", 0) + 1
    return total(batch), batch[2]


@pytest.mark.parametrize("function", [total, writes_into_one, compares, copies, changes_one], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", [array, dict], ids=lambda kind: kind.__name__)
def test_items_that_are_one(kind, function):
    if (function, kind) in [(writes_into_one, dict), (changes_one, array)]:
        pytest.skip("these do not fit")

    def batch():
        items = [STATES[k].copy() if kind is array else {"state": STATES[k]} for k in range(3)]
        return [items[k] for k in np.random.randint(0, 3, 3)],
    check(lambda compile: (compile(function), None), [batch] * 14, rounds=1)


MODEL = L.Linear(4, 3, initialW=0.1)


def without_some(batch):
    batch = Transition(*zip(*batch))
    there = np.array([s is not None for s in batch.following])
    following = np.stack([s for s in batch.following if s is not None] + [STATES[0]])
    best = np.zeros(len(there), "f")
    best[there] = F.max(MODEL(following), axis=1).array[:-1]
    return F.mean_squared_error(F.select_item(MODEL(np.stack(batch.state)), np.array(batch.action, "i")), best)


def item_by_item(batch):
    found = []
    for state, action, reward, following, done in batch:
        target = reward if done else reward + 0.9 * float(F.max(MODEL(following[None])).array)
        found.append((MODEL(state[None])[0, action] - target) ** 2)
    return F.sum(F.stack(found))


PRIORITIES, MEMORY = [1.0] * 6, [(state, k) for k, state in enumerate(STATES)]


def with_priorities(places):
    batch = random.sample(MEMORY, 5)
    error = F.sum(MODEL(np.stack([t[0] for t in batch])), axis=1)
    for place, one in zip(places, error.array):
        PRIORITIES[place] = float(one)
    return F.mean(error ** 2), list(PRIORITIES)


TABLE, SEEN = {f"image{k}": state for k, state in enumerate(STATES)}, {}


def by_names(names):
    return F.sum(MODEL(np.stack([TABLE[name] for name in names])) ** 2)


def by_numbers(batch):
    y = F.sum(MODEL(np.stack([x for _, x in batch])), axis=1)
    for (number, _), value in zip(batch, y.array):
        SEEN[number] = float(value)
    return y, [SEEN.pop(number) for number, _ in batch]


LONG, NUMBERS = [(state * k, k) for k in range(7) for state in STATES], [1.0] * 42


def from_a_long_list(x):
    places = np.random.choice(len(LONG), 5, p=np.array(NUMBERS) / sum(NUMBERS))
    error = F.sum(MODEL(np.stack([LONG[k][0] for k in places]) * x), axis=1)
    for place, one in zip(places, error.array):
        NUMBERS[place] = float(one) ** 2 + 1
    return error, NUMBERS[:]


class Tree:
    def __init__(self, word, left=None, right=None):
        self.word, self.left, self.right = word, left, right


def grown(count):
    left = np.random.randint(1, count) if count > 1 else 0
    return Tree(np.random.randint(6)) if count == 1 else Tree(None, grown(left), grown(count - left))


def of_tree(tree):
    if tree.word is not None:
        return F.tanh(MODEL(STATES[tree.word][None]))
    return F.tanh(of_tree(tree.left) - 0.5 * of_tree(tree.right))


COUNTER = itertools.count()


def missing():
    return [Transition(s, a, r, None if k == 1 else f, d) for k, (s, a, r, f, d) in
            zip(np.random.randint(0, 3, 12), transitions(lambda *parts: parts, 12))],


@pytest.mark.parametrize("function, call, cuts", [
    (without_some, missing, 3),
    (item_by_item, lambda: (transitions(lambda *parts: parts),), 0),
    (with_priorities, lambda: (np.random.permutation(6)[:5],), 2),
    (by_names, lambda: ([f"image{k}" for k in np.random.permutation(6)],), 1),
    (by_numbers, lambda: ([(next(COUNTER), x) for x in STATES],), 1),
    (from_a_long_list, lambda: (np.random.rand(),), 2),
    (of_tree, lambda: (grown(np.random.randint(2, 8)),), 4)],
    ids=lambda item: getattr(item, "__name__", ""))
def test_what_differs_in_each_call_runs_as_python(function, call, cuts):
    np.random.seed(3)
    static, captures = to_static(function), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for k in range(70):
            args = call()
            PRIORITIES[:], NUMBERS[:] = [1.0] * 6, [1.0] * 42
            random.seed(k)
            np.random.seed(k)
            eager = {"result": Picture(with_graph=False).of(function(*args))}
            PRIORITIES[:], NUMBERS[:] = [1.0] * 6, [1.0] * 42
            random.seed(k)
            np.random.seed(k)
            assert not differences(eager, {"result": Picture(with_graph=False).of(static(*args))}), k
            captures.append(static.stats()["captures"])
    found = static.stats()["cuts"]                        # from Python 3.12 on, comprehensions are no functions
    assert captures[-1] == captures[45] <= 42 and min(cuts, 1) <= found <= cuts, static.explain_misses()


def test_a_memory_from_which_is_drawn():
    class Agent:
        def __init__(self):
            self.memory, self.model = collections.deque(maxlen=30), L.Linear(4, 3, initialW=0.1)
            self.optimizer = chainer.optimizers.Adam().setup(self.model)

        def learn(self):
            value = loss_of(self.model, random.sample(self.memory, 5))
            self.model.cleargrads()
            value.backward()
            self.optimizer.update()
            return float(value.array)

    def loss_of(model, batch):
        return F.mean_squared_error(model(np.stack([t[0] for t in batch])), np.stack([t[3][:3] for t in batch]))

    def run(learn):
        random.seed(0)
        agent, losses = Agent(), []
        for k in range(60):
            agent.memory.extend((STATES[j], j, 0.5, STATES[j + 1]) for j in range(k % 3 + 1))
            if k > 4:
                losses.append(learn(agent))
        return losses, random.getstate()

    static = to_static(Agent.learn)
    eager = run(Agent.learn)
    with pytest.warns(match="`random.sample` draws from items that are not numbers of one type"):
        found = run(static)
    np.testing.assert_allclose(eager[0], found[0], rtol=1e-4)
    assert eager[1] == found[1] and static.stats()["captures"] <= 3


def of_places(memory, new):
    for item in new:
        memory.append(item)
    batch = [memory[k] for k in np.random.randint(0, len(memory), 4)]
    return F.mean_squared_error(F.tanh(np.stack([t[0] for t in batch])), np.stack([t[3] for t in batch]))


def of_places_in_numbers(memory, new):
    for item in new:
        memory.append(item[2])
    return F.sum(F.tanh(np.array([memory[k] for k in np.random.randint(0, len(memory), 4)], "f")))


@pytest.mark.parametrize("function, memory, lengths, captures", [
    (of_places, [], [2] * 12, 6), (of_places, collections.deque(), [2] * 12, 6), (of_places, [], [4, 3, 5, 2, 6, 1, 4, 3, 5], 9),
    (of_places, [], [6] + [0] * 6, 2), (of_places_in_numbers, [0.1, 0.2], [2] * 12, 8)],
    ids=["list", "deque", "other lengths", "two lengths", "numbers"])
def test_places_in_a_memory_that_grows(function, memory, lengths, captures):
    """The third length is not captured again: the line that reads the items runs as Python."""
    static, memories, items = to_static(function), (memory, copy.deepcopy(memory)), itertools.count()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for length in lengths:
            new = [(STATES[k % 6], k % 3, 0.5 + k, STATES[(k + 1) % 6]) for k in itertools.islice(items, length)]
            results = []
            for call, own in zip((function, static), memories):
                np.random.seed(length)
                results.append((float(call(own, list(new)).array), np.random.rand(), len(own)))
            assert results[0] == pytest.approx(results[1], rel=1e-6, abs=1e-5)
    assert static.stats()["captures"] <= captures and bool(static.stats()["cuts"]) == (lengths[-1] > 0)


@pytest.mark.parametrize("key", [2, 3], ids=["list", "dict"])
def test_items_share_what_is_written(key):
    """Which of them do differs from call to call."""
    def append(batch):
        batch[0][2].append(1)
        return F.sum(batch[0][0]), [len(item[2]) for item in batch]

    def count(batch):
        counts = batch[0][3]
        counts["n"] = counts.get("n", 0) + 1
        return F.sum(batch[0][0]), [item[3].get("n", 0) for item in batch]

    function = append if key == 2 else count
    static = to_static(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for k in range(30):
            random.seed(k)
            picked = [(random.randrange(3), random.randrange(3)) for _ in range(4)]
            results = []
            for call in (function, static):
                arrays, lists, dicts = STATES[:3], [[j] for j in range(3)], [{"j": j} for j in range(3)]
                total, found = call([(arrays[a], 0, lists[b], dicts[b]) for a, b in picked])
                results.append((float(total.array), found, lists, dicts))
            assert results[0] == results[1], k


class Buffer:
    """A memory with a length of its own; ``wrong``: what that is if it is no length."""

    def __init__(self, size, wrong=None):
        self.items, self.wrong, self.asked = collections.deque(maxlen=size), wrong, 0

    def __len__(self):
        self.asked += 1
        return len(self.items) if self.wrong is None else self.wrong

    def add(self, *item):
        self.items.append(item)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_the_length_of_a_memory_is_asked_without_its_items(backend):
    """Each call appends: a program that had read the items would serve no other call."""
    def step(memory, x, k):
        memory.add(x, k)
        before = len(memory), len(memory.items)
        memory.items.append((x, k))
        full = len(memory) >= memory.items.maxlen
        return F.sum(x) * len(memory), before, full

    static, found = to_static(step, strict=True, backend=backend), []
    for function in (step, static):
        memory = Buffer(15)
        found.append([(float(total.array), *rest, [k for _, k in memory.items])
                      for total, *rest in (function(memory, array(4, seed=k), k) for k in range(24))])
    assert found[0] == found[1] and static.cache_info().captures <= 4, static.explain_misses()


@pytest.mark.parametrize("wrong", [-1, 2.5, True, np.int64(3), 1 << 70])
def test_a_length_that_is_none(wrong):
    def step(memory, x):
        return F.sum(x), len(memory)

    static, found = to_static(step, backend="numpy"), []
    for function in (step, static):
        try:
            memory = Buffer(3, wrong)
            found.append((function(memory, STATES[0])[1], memory.asked))
        except Exception as error:
            found.append((type(error), *error.args))
    assert found[0] == found[1] and type(found[0][0]) is type(found[1][0])


def padded(sequences):
    longest = max(map(len, sequences))
    return np.array([list(s) + [-1] * (longest - len(s)) for s in sequences], "i")


def test_lists_that_differ_beside_arrays_of_several_shapes(monkeypatch):
    """What is made of items is a list of other lengths in each call, and an array of a few shapes.  Captures stop at the lists."""
    monkeypatch.setattr(budget, "_NODES", 20)           # as if the programs were large
    drawn, embedding = np.random.RandomState(0), L.EmbedID(15, 4)
    sentences = [(drawn.randint(3, 15, drawn.randint(3, 7)),) for _ in range(60)]

    def step():
        batch = [sentences[k][0] for k in np.random.randint(0, 60, 8)]
        x = padded(batch)
        y = padded([[1] + list(s[::-1]) + [2] for s in batch])
        states, loss = [], 0
        for k in range(x.shape[1]):
            states.append(F.tanh(embedding(abs(x[:, k]))) + (states[-1] if states else 1))
        for k in range(y.shape[1]):
            loss += F.sum(F.sigmoid(embedding(abs(y[:, k]))) * states[-1])
        return loss

    f = to_static(step, backend="numpy")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(60):
            np.random.seed(k)
            expected = step()
            np.random.seed(k)
            np.testing.assert_allclose(f().array, expected.array, rtol=1e-5)
    assert not [w for w in caught if "again and again" in str(w.message)]
