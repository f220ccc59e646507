"""Loops that go over an axis in steps, where its size differs from call to call: the last step may be a part of one."""
import functools

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.ir.dims import Dim, less
from dy2static.ir.size_bounds import bounds_of, minimum

STEP = 4
SIZES = (11, 9, 14, 7, 18, 13, 12, 8, 20, 16, 3, 4, 2)


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        np.random.seed(0)
        with self.init_scope():
            self.l1, self.l2 = L.Linear(3, 5), L.Linear(5, 2)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


class Normalized(Model):
    """A batch of one sample makes a warning in it."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.norm = L.BatchNormalization(5)

    def forward(self, x):
        return self.l2(self.norm(self.l1(x)))


def joined_arrays(model, x, t):
    found = []
    with chainer.no_backprop_mode():
        for i in range(0, len(x), STEP):
            found.append(model(x[i:i + STEP]).array)
    return np.concatenate(found), len(found), found[-1], found[0]


def joined_variables(model, x, t):
    v = chainer.Variable(x)
    ys = [model(v[i:min(i + STEP, len(x))]) for i in range(0, len(v), STEP)]
    return F.concat(ys, axis=0), F.vstack(ys)


def sums(model, x, t):
    total, right = 0.0, 0
    for k, i in enumerate(range(0, len(x), STEP)):
        y, part = model(x[i:i + STEP]), t[i:i + STEP]
        total += float(F.softmax_cross_entropy(y, part).array) * len(part) * (k + 1)
        right += int((y.array.argmax(1) == part).sum())
    return total / len(x), right


def numbered(model, x, t):
    found = []
    for k in range((len(x) + STEP - 1) // STEP):
        found.append(model(x[k * STEP:(k + 1) * STEP]).array.argmax(1))
    return (np.concatenate(found) == t).mean()


def left(model, x, t):
    total = 0.0
    for i in range(0, len(x), STEP):
        total += float(F.sum(abs(model(x[i:i + STEP]))).array)
        if total > 12:
            break
    return total, i


def shuffled(model, x, t):
    places, total = np.random.permutation(len(x)), 0.0
    for i in range(0, len(x), STEP):
        batch = places[i:i + STEP]
        total += float(F.softmax_cross_entropy(model(x[batch]), t[batch]).array)
    return total


def gradients(model, x, t):
    model.cleargrads()
    for i in range(0, len(x), STEP):
        part = x[i:i + STEP]
        loss = F.softmax_cross_entropy(model(part), t[i:i + STEP]) * (len(part) / len(x))
        loss.backward()
    return [p.grad.copy() for p in model.params()]


def compared(function, model, count, sizes=SIZES):
    """Eager and compiled calls for all sizes; at most so many captures."""
    eager, compiled = model(), model()
    static = to_static(lambda x, t: function(compiled, x, t), backend="numpy")
    for n in sizes:
        x, t = np.random.RandomState(n).uniform(-1, 1, (n, 3)).astype("f"), np.arange(n, dtype="i") % 2
        np.random.seed(n)
        expected = function(eager, x, t)
        np.random.seed(n)
        found = static(x, t)
        for a, b in zip(*[r if isinstance(r, (tuple, list)) else (r,) for r in (expected, found)]):
            a, b = (getattr(r, "array", r) for r in (a, b))
            assert type(a) is type(b)
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    for a, b in zip(eager.params(), compiled.params()):
        np.testing.assert_allclose(b.array, a.array, rtol=1e-4, atol=1e-5)
    assert static.stats()["captures"] <= count and not static.stats()["fallbacks"]


@pytest.mark.parametrize("function", [joined_arrays, joined_variables, sums, numbered, left, shuffled, gradients])
def test_one_program_for_rests_one_without_and_one_for_few(function):
    compared(function, Model, 5)


def test_parts_that_leave_as_a_list():
    def parts(model, x):
        ys, model.arrays = [], []
        for i in range(0, len(x), STEP):
            ys.append(model(x[i:i + STEP]))
            model.arrays.append(ys[-1].array)
        total = 0.0
        for y in ys:
            total += F.sum(y)
            if float(total.array) > 6:
                break
        return [F.tanh(y) for y in ys], F.sum(ys[-1]) + total

    def seen(function, model, x):
        model.cleargrads()
        ys, last = function(model, x)
        (last + sum(F.sum(y ** 2) * (k + 1) for k, y in enumerate(ys))).backward()
        return [type(ys), *[y.array for y in ys], last.array, *[p.grad for p in model.params()], *model.arrays]
    model, static = Model(), to_static(parts, backend="numpy")
    for n in SIZES:
        x = np.random.RandomState(n).uniform(-1, 1, (n, 3)).astype("f")
        expected, found = seen(parts, model, x), seen(static, model, x)
        assert len(found) == len(expected) and found[0] is list
        for a, b in zip(expected[1:], found[1:]):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)
    assert static.stats()["captures"] <= 5 and not static.stats()["fallbacks"]


@pytest.mark.filterwarnings("ignore:A batch with no more than one sample")
def test_rests_of_one_are_told_from_others_where_that_matters():
    compared(joined_arrays, Normalized, 6)


class Trained(Model):
    def __init__(self):
        super().__init__()
        self.optimizer = chainer.optimizers.MomentumSGD(0.1).setup(self)


def test_epochs_of_any_size_are_loops_of_the_graph():
    def epoch(model, x, t):
        total, places = 0.0, np.random.permutation(len(x))
        for i in range(0, len(x), STEP):
            batch = places[i:i + STEP]
            model.cleargrads()
            loss = F.softmax_cross_entropy(model(chainer.Variable(x[batch])), t[batch])
            loss.backward()
            model.optimizer.update()
            total += float(loss.array)
        return total
    compared(epoch, Trained, 4, (43, 33, 50, 61, 37, 48, 45, 64, 35))


class Adaptive(Model):
    """Its rules count their updates, and compute with the count."""

    def __init__(self):
        super().__init__()
        self.optimizer = chainer.optimizers.Adam(0.01).setup(self)


def test_two_epochs_in_one_call():
    """In the second loop, the count is not below what the first one began with: a power by it cannot fail."""
    def epochs(model, x, t):
        losses = []
        for _ in range(2):
            for i in range(0, len(x), 16):
                loss = F.softmax_cross_entropy(model(x[i:i + 16]), t[i:i + 16])
                model.cleargrads()
                loss.backward()
                model.optimizer.update()
                losses.append(float(loss.array))
        return np.mean(losses)
    compared(epochs, Adaptive, 4, (43, 35, 50, 61, 37))


def test_the_last_report_of_an_epoch_stays():
    def observed(run):
        reporter = chainer.Reporter()
        reporter.add_observer("main", run.link)
        reporter.add_observers("main", run.link.namedlinks(skipself=True))
        with reporter.scope({}):
            run()
            return {key: float(getattr(value, "array", value)) for key, value in reporter.observation.items()}

    def epochs(deco):
        link = L.Classifier(Model())
        optimizer = chainer.optimizers.SGD(0.1).setup(link)

        @deco
        def epoch(x, t):
            for i in range(0, len(x), STEP):
                optimizer.update(link, x[i:i + STEP], t[i:i + STEP])

        for n in (43, 33, 50, 61, 37):
            x, t = np.random.RandomState(n).uniform(-1, 1, (n, 3)).astype("f"), np.arange(n, dtype="i") % 2
            run = functools.partial(epoch, x, t)
            run.link = link
            yield observed(run)
    for expected, found in zip(epochs(lambda f: f), epochs(to_static(backend="numpy"))):
        assert list(found) == list(expected)
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-4)


def together(x, y):
    parts, others = [x[i:i + STEP] for i in range(0, len(x), STEP)], [y[i:i + STEP] for i in range(0, len(y), STEP)]
    total = 0.0
    for k, (a, b) in enumerate(zip(parts, others), 1):
        if float(a.sum()) > 40:
            continue
        total = total + float((a * b).sum()) * k
    for k, a in enumerate(parts):
        total = total * 0.5 + float(a.max()) - k
    return total, [len(part) for part in (parts[0], parts[-1])]


def grown_meanwhile(x, y):
    parts = [x[i:i + STEP] for i in range(0, len(x), STEP)]
    others, total = list(parts), 0.0
    for a, _ in zip(parts, others):
        total = total + float(a.sum())
        if len(parts) < 9:
            parts.append(y[:1])
            others.append(y[:1])
    return total, len(parts)


def backwards(x, y):
    parts, total = [x[i:i + STEP] for i in range(0, len(x), STEP)], 0.0
    for k, a in enumerate(reversed(parts)):
        total = total * 0.5 + float(a.sum()) * k
        if total > 9:
            break
    parts.append(y[:1])
    for a in reversed(parts):
        total = total * 0.5 - float(a.max())
        if total < -1:
            break
    return total, len(parts)


def grown_meanwhile_backwards(x, y):
    parts, total = [x[i:i + STEP] for i in range(0, len(x), STEP)], 0.0
    for a in reversed(parts):
        total = total + float(a.sum())
        if len(parts) < 9:
            parts.append(y[:1])
    return total, len(parts)


@pytest.mark.parametrize("function, count", [(together, 5), (backwards, 5), (grown_meanwhile, None), (grown_meanwhile_backwards, None)])
def test_parts_beside_others_and_numbers(function, count):
    static = to_static(function, backend="numpy")
    for n in SIZES:
        x, y = np.random.RandomState(n).rand(2, n, 2)
        expected, found = function(x, y), static(x, y)
        assert found[1:] == expected[1:]
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    assert count is None or static.cache_info().captures <= count


def test_two_steps_over_one_axis_have_programs_for_each_size():
    @to_static(backend="numpy")
    def function(x):
        return np.concatenate([x[i:i + 4] for i in range(0, len(x), 4)] + [x[i:i + 3] * 2 for i in range(0, len(x), 3)])
    for n in SIZES[:5]:
        x = np.arange(n * 2.0).reshape(n, 2)
        np.testing.assert_array_equal(function(x), np.concatenate([x, x * 2]))


def test_what_a_size_leaves_is_known():
    n = Dim("length_n0_from33_rest2of32")
    rest = n - n // 32 * 32
    assert bounds_of(rest) == (2, 31) and bounds_of(n // 32) == (1, None)
    assert (n + 31) // 32 == n // 32 + 1 == -(-n // 32)
    assert minimum(n // 32 * 32 + 32, n) == n and less(1, rest)
    assert bounds_of(n - n // 16 * 16) == (0, 15)
