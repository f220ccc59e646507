"""Arrays of several sizes by decisions in loops of Python: one array whose size the run knows, not a way each."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest


def cut_at_the_end(x):
    outs = []
    for y in x:
        found = np.argwhere(y == 1)
        if len(found) > 0:
            y = y[:found[0, 0]]
        outs.append(y)
        outs.append(y)
    return outs


def before_the_first(y):
    found = np.where(y == 1)[0]
    return y[:found[0]] if found.size else y


def by_a_function(x):
    found = dict(enumerate(map(before_the_first, x)))
    return found, max(len(y) for y in found.values()), np.concatenate(list(found.values()))


def by_several_decisions(x):
    outs = []
    for y in x:
        if y[0] > 2:
            if y[1] > 2:
                y = y[y > 2]
            y = y + 1
        z = y
        if y.sum() > 4:
            y = y[::-1]
            z = y
        outs.append((y, {"z": z}))
    return outs


def of_two_axes(x):
    return [y[y > 2][:, None] * np.ones((1, 2)) if y[0] > 2 else y[:, None] * np.ones((1, 3)) for y in x]


def views(x):
    return x, [y[1:int(y[0])] if y[0] > 2 else y for y in x]


def differentiated(x):
    h = F.tanh(chainer.Variable(x.astype("f")))
    outs = []
    for i in range(4):
        y = h.array[i]
        if y[0] > 0.98:
            y = y[y > 0.98]
        outs.append(F.sum(chainer.Variable(y) * h[i, 0]))
    return outs


def elements_and_sizes(x):
    outs, n = [], 0
    for y in x:
        if y[0] > 2:
            y = y[y > 1]
            n = n + len(y)
        outs.append(y[-1] if y.size else np.int32(-1))
    return outs, n, len(y)


@pytest.mark.parametrize("program, backend", (
    (cut_at_the_end, "numpy"), (by_a_function, "numpy"), (by_several_decisions, "numpy"), (of_two_axes, "numpy"), (views, "numpy"),
    (differentiated, "numpy"), (elements_and_sizes, "numpy"), (by_several_decisions, "c")), ids=lambda item: getattr(item, "__name__", item))
def test_joined(program, backend):
    calls = [lambda seed=seed: (np.random.RandomState(seed).randint(0, 5, (4, 6)).astype("i"),) for seed in range(4)]
    calls += [lambda: (np.full((4, 6), 2, "i"),), lambda: (np.eye(4, 6, dtype="i"),)]
    function = against_eager.check(lambda compile: compile(program), calls, rounds=1, strict=True, compiled=True, backend=backend)
    assert function.stats()["captures"] == 1


def written(x):
    outs = []
    for y in x:
        if y[0] > 2:
            y = y[1:int(y[0])]
        outs.append(y)
    outs[1][...] = 7
    return outs


def test_what_is_written_is_refused():
    calls = [lambda: (np.full((3, 4), 3, "i"),)]
    against_eager.check(lambda compile: compile(written), calls, compiled=False, backend="numpy")
