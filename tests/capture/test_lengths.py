"""Lengths that NumPy works out from numbers and small arrays of the caller's: they decide sizes, slices and what Python does."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable

from dy2static import FallbackWarning, not_to_static, to_static


def sequences(*lengths, width=2, seed=0):
    return [variable(n, width, seed=seed + i) for i, n in enumerate(lengths)]


def padded_again(xs, lens):
    return F.pad_sequence([x[:l] for x, l in zip(xs, lens)])


def halved(xs, lens):
    lens = np.array([int(np.ceil(l / 2)) for l in lens])
    h = F.concat([x[:l] for x, l in zip(xs, np.ceil(lens / 2).astype(np.int64))], axis=0)
    return h, max(lens), lens


def masked(xs, lens):
    lens = np.ceil(np.array(lens) / 2).astype(np.int64)
    longest = max(lens)
    mask = np.zeros((len(xs), longest), "f")
    for i, l in enumerate(lens):
        mask[i, l:] = -1e9
    return F.stack([x[:longest] for x in xs]) + mask[:, :, None], mask


def split(xs, lens):
    h = F.concat([x[:int(l)] for x, l in zip(xs, lens)], axis=0)
    return F.split_axis(h, np.cumsum(lens[:-1]), axis=0), F.split_axis(h, np.cumsum(lens)[:-1].tolist(), axis=0)


def counted(xs, lens):
    out = []
    for x, n in zip(xs, lens):
        for i in range(int(n)):
            out.append(x[i])
    total = int(np.sum(lens))
    return F.stack(out), [0] * total, np.arange(max(lens)), F.reshape(F.concat(xs, 0), (int(lens[0]), -1))[:, :1]


def in_order(xs, lens):
    xs = [x[:l] for x, l in zip(xs, lens)]
    order = np.argsort(-np.array([x.shape[0] for x in xs]), kind="stable")
    by_key = sorted(range(len(xs)), key=lambda i: -lens[i])
    return F.transpose_sequence([xs[i] for i in order]), by_key, F.permutate(F.stack([x[0] for x in xs]), order.astype("i"))


def grouped(xs, lens):
    found = {}
    for x, n in zip(xs, lens):
        found.setdefault(int(n), []).append(x)
    return [F.concat(found[n], axis=0) for n in sorted(found)], sorted(found, reverse=True)


def without_padding(xs, lens):
    labels = [np.array([3, 1, 2, -1, -1]), np.array([1, -1, -1, -1, 7]), np.arange(5)]
    labels = [np.where(label > n, -1, label) for label, n in zip(labels, lens)]
    labels = [label[label != -1] for label in labels]
    ends = [F.concat([label, np.array([9])], axis=0) for label in labels]
    return F.pad_sequence(labels, padding=-1), ends, [x[np.flatnonzero(label)] for x, label in zip(xs, labels)]


PROGRAMS = [padded_again, halved, masked, split, counted, in_order, grouped, without_padding]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", [np.array, list])
def test_lengths(function, kind):
    calls = [lambda lens=lens, seed=seed: (sequences(4, 4, 4, seed=seed), kind(lens))
             for lens, seed in (([4, 3, 1], 0), ([4, 3, 1], 7), ([4, 2, 2], 0), ([1, 1, 4], 0))]
    static = check(lambda compile: compile(function), calls, strict=True, compiled=True)
    assert static.stats()["captures"] <= 3


@pytest.mark.parametrize("function", [padded_again, masked, split], ids=lambda f: f.__name__)
def test_native(function):
    calls = [lambda: (sequences(4, 4, 4), np.array([4, 3, 1]))]
    check(lambda compile: compile(function), calls, strict=True, backend="c", compiled=True)


def test_lengths_in_attributes_and_lists_of_arrays():
    class Holder:
        lens = (3, 2)

        def __init__(self):
            self.lens = np.array([4, 2])

    def of_attribute(holder, xs):
        return F.pad_sequence([x[:l] for x, l in zip(xs, holder.lens)])

    def of_labels(xs, ys):
        ys = [y[y != -1] for y in ys]
        return F.pad_sequence(ys), F.concat([x[:len(y)] for x, y in zip(xs, ys)], axis=0)
    check(lambda compile: compile(of_attribute), [lambda: (Holder(), sequences(4, 4))], strict=True, compiled=True)
    calls = [lambda ys=ys: (sequences(3, 3), [np.array(y) for y in ys])
             for ys in ([[1, 2, -1], [3, -1, -1]], [[1, 2, 3], [3, -1, -1]])]
    check(lambda compile: compile(of_labels), calls, strict=True, compiled=True)


def test_lengths_without_axes_and_of_variables():
    def zero_dimensional(x, n):
        return F.pad_sequence([x[:n], x[:2]]), [0] * int(n), x[n - 1], np.zeros((n, 2)), [1, 2, 3][n:], np.arange(n)

    def of_variable(xs, lens):
        return padded_again(xs, lens.array), lens.shape
    check(lambda compile: compile(zero_dimensional), [lambda n=n: (variable(4, 2), np.array(n)) for n in (3, 2)], strict=True,
          compiled=True)
    check(lambda compile: compile(of_variable), [lambda: (sequences(4, 4), chainer.Variable(np.array([4, 2])))], strict=True,
          compiled=True)


def test_numbers_of_the_run_beside_lengths():
    def steps(x, lens):
        n = 0
        while float(x.array[0, 0]) + n < lens[0] and n != lens[1]:
            n += 1
        return n, [0] * int(lens[1]), lens[0] - float(x.array[0, 0]), float(x.array[0, 1]) * lens[1]
    check(lambda compile: compile(steps), [lambda: (variable(2, 2), np.array([3, 5]))], strict=True, compiled=True)


# --- what must not be taken for known ----------------------------------------------------------------------------------

@not_to_static
def shorten(lens):
    lens -= 1


def shortened_between(xs, lens):
    first = [0] * int(lens[0])
    shorten(lens)
    return first, lens[0] + 0, xs[0] * lens[1]


def shortened_view(xs, lens):
    view = lens[:2]
    first = view[0] + 0, xs[0][:view[1]]
    shorten(lens)
    return first, view[0] + 0, xs[0][:view[1]]


def shortened_new(xs, lens):
    made = np.zeros(2, int)
    shorten(made)
    return xs[0] * 2 if made[0] == 0 else xs[0] * 3


def shortened_in_a_loop(xs, lens):
    before, n, made, found = lens[0] + 0, 0.0, np.array([5, 5]), 0
    limit = 3 - float(xs[0].array[0, 0])
    while n < limit:
        found = found + lens[0] + made[1]
        if made[0] < 5:
            found = found + 100
        shorten(lens)
        shorten(made)
        n += 1
    return before, n, found, made


def changed_here(xs, lens):
    first = [0] * int(lens[0])
    lens[0] -= 1
    rest = lens[1:]
    rest[0] += 1
    return first, [0] * int(lens[0]), [0] * int(lens[1])


def one_memory(xs, lens):
    other = xs[2]
    lens[0] -= 1
    return [0] * int(other[0]), [0] * int(lens[0])


WRITING = [shortened_between, shortened_view, shortened_new, shortened_in_a_loop, changed_here, one_memory]


@pytest.mark.parametrize("function", WRITING, ids=lambda f: f.__name__)
def test_arrays_that_change(function):
    def same():
        lens = np.array([4, 3])
        return [*sequences(4, 4), lens], lens

    def apart():
        return [*sequences(4, 4), np.array([4, 3])], np.array([4, 3])
    check(lambda compile: compile(function), [apart, same, apart])


def test_indices_are_not_guarded():
    def batches(x, order):
        total = 0
        for i in range(0, 10, 5):
            total = total + F.sum(F.relu(chainer.Variable(x[order[i:i + 5]])))
        return total
    calls = [lambda i=i: (array(10, 3), np.random.RandomState(i).permutation(10)) for i in range(3)]
    assert check(lambda compile: compile(batches), calls, strict=True, compiled=True).stats()["captures"] == 1


def by_label(xs, labels):
    found = {}
    for x, k in zip(xs, labels):
        found.setdefault(int(k), []).append(x)
    return F.concat([F.stack(found[k]) for k in sorted(found)], axis=0)


def calls_by_label(all_labels):
    """The captures after each call with these labels, the compiled function, and its warnings."""
    static, captures = to_static(by_label), []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FallbackWarning)
        for labels in all_labels:
            given = sequences(*[2] * len(labels))
            np.testing.assert_array_equal(static(given, np.array(labels)).array, by_label(given, labels).array)
            captures.append(static.stats()["captures"])
    return captures, static, [str(w.message) for w in warned if w.category is FallbackWarning]


def test_contents_that_never_come_back():
    captures, static, told = calls_by_label([(i, i % 7, i % 5, 1) for i in range(60)])
    assert captures[15] == 16 and captures[-20] == captures[-1] < 40        # the line that needs them runs as Python
    assert len(told) == 2 and "found.setdefault" in told[0] and static.cache_info().paused == 0


def test_contents_in_another_order_do_not_come_back():
    random = np.random.RandomState(0)
    captures, static, told = calls_by_label([random.permutation([0, 0, 0, 1, 1, 1, 2, 2, 2]) for _ in range(40)])
    assert captures[5] == 6 and captures[-10] == captures[-1] < 24
    assert len(told) == 1 and "found.setdefault" in told[0]


def test_contents_some_of_which_come_back():
    usual = (0, 0, 1, 1)
    captures, static, told = calls_by_label([usual if i % 2 else (i, i % 3, i % 5, 1) for i in range(120)])
    assert captures[-10] == captures[-1] < 50 and len(told) == 2 and static.cache_info().paused == 0
    assert static.cache_info().programs == 1                # that of the usual ones


def test_large_arrays_and_values_of_the_run_are_not_known():
    def of_large(x, lens):
        return [0] * int(lens[0])

    def of_run(x, lens):
        return [0] * int(F.relu(x).array.sum() + lens[0])
    check(lambda compile: compile(of_large), [lambda: (variable(2), np.arange(2000))], compiled=False)
    check(lambda compile: compile(of_run), [lambda: (variable(2), np.arange(2))], compiled=False)


# --- speech recognition ---------------------------------------------------------------------------------------------------

class Front(chainer.Chain):
    """Convolutions over padded sequences, which are cut to their lengths again."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first, self.second = L.Convolution2D(1, 2, 3, pad=1), L.Convolution2D(2, 3, 3, pad=1)

    def forward(self, xs, lens):
        h = F.pad_sequence(xs)
        h = F.expand_dims(h, 1)
        h = F.max_pooling_2d(F.relu(self.first(h)), 2, stride=2)
        h = F.max_pooling_2d(F.relu(self.second(h)), 2, stride=2)
        lens = np.array(np.ceil(np.array(lens, dtype=np.float32) / 2), dtype=np.int32)
        lens = np.ceil(lens / 2).astype(np.int64)
        h = F.swapaxes(h, 1, 2)
        h = F.reshape(h, (h.shape[0], h.shape[1], h.shape[2] * h.shape[3]))
        return [h[i, :lens[i], :] for i in range(len(lens))], lens


class Recurrent(chainer.Chain):
    """Layers of LSTMs, every second step of which goes on, with projections of all sequences at once."""

    def __init__(self, width, size):
        super().__init__()
        with self.init_scope():
            self.rnn0, self.rnn1 = L.NStepBiLSTM(1, width, size, 0), L.NStepLSTM(1, size, size, 0)
            self.proj0, self.proj1 = L.Linear(2 * size, size), L.Linear(size, size)

    def forward(self, xs, lens):
        for layer, step in enumerate((2, 1)):
            _, _, ys = self[f"rnn{layer}"](None, None, xs)
            ys = [y[::step] for y in ys]
            lens = np.array([(int(n) + step - 1) // step for n in lens])
            h = F.tanh(self[f"proj{layer}"](F.vstack(ys)))
            xs = F.split_axis(h, np.cumsum(lens[:-1]), axis=0, force_tuple=True)
        return xs, lens


class Decoder(chainer.Chain):
    """Attention over what was heard, step by step up to the length of the longest answer."""

    def __init__(self, size, words):
        super().__init__()
        with self.init_scope():
            self.embed, self.cell = L.EmbedID(words, size), L.StatelessLSTM(2 * size, size)
            self.query, self.out = L.Linear(size, size), L.Linear(size, words)
        self.end = words - 1

    def attend(self, heard, mask, state):
        scores = F.sum(heard * F.broadcast_to(F.expand_dims(self.query(state), 1), heard.shape), axis=2) + mask
        return F.sum(heard * F.broadcast_to(F.expand_dims(F.softmax(scores), 2), heard.shape), axis=1)

    def forward(self, xs, lens, ys):
        heard = F.pad_sequence([x[:n] for x, n in zip(xs, lens)])
        mask = np.zeros(heard.shape[:2], "f")
        for i, n in enumerate(lens):
            mask[i, n:] = -1e9
        end = np.array([self.end], "i")
        given = self.embed(F.pad_sequence([F.concat([end, y], axis=0) for y in ys], padding=self.end))
        wanted = F.pad_sequence([F.concat([y, end], axis=0) for y in ys], padding=-1)
        cell, state, steps = None, np.zeros((len(ys), heard.shape[2]), "f"), []
        for i in range(max([y.shape[0] for y in ys]) + 1):
            cell, state = self.cell(cell, None if cell is None else state, F.concat([given[:, i], self.attend(heard, mask, state)]))
            steps.append(state)
        scores = self.out(F.reshape(F.stack(steps, axis=1), (-1, heard.shape[2])))
        return F.softmax_cross_entropy(scores, F.flatten(wanted), ignore_label=-1, enable_double_backprop=True)


def heard(lens, seed, kind, answers=(2, 1)):
    random = np.random.RandomState(seed)
    return sequences(*lens, width=4, seed=seed), kind(lens), [random.randint(0, 4, n).astype("i") for n in answers]


MODELS = {
    "front": (Front, lambda *batch: batch[:2]),
    "recurrent": (lambda: Recurrent(4, 3), lambda *batch: batch[:2]),
    "decoder": (lambda: Decoder(4, 5), lambda *batch: batch),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", [np.array, list])
def test_speech(name, kind):
    make, given = MODELS[name]

    def program(compile):
        model = make()
        return compile(model.forward), model
    calls = [lambda lens=lens, seed=seed: given(*heard(lens, seed, kind))
             for lens, seed in (((6, 4), 0), ((6, 4), 9), ((5, 2), 1))]
    static = check(program, calls, rounds=1, strict=True, compiled=True)
    assert static.stats()["captures"] == 2              # none when only the contents of sequences change


def test_second_gradients():
    model = Decoder(4, 5)
    static = to_static(model.forward, strict=True)
    xs, lens, ys = heard((6, 4), 0, np.array)
    found = []
    for function in (model.forward, static):
        gradients = chainer.grad([function(xs, lens, ys)], xs, enable_double_backprop=True)
        found.append(chainer.grad([sum(F.sum(g * g) for g in gradients)], [*xs, model.cell.upward.W]))
    for eager, compiled in zip(*found):
        np.testing.assert_allclose(eager.array, compiled.array, rtol=1e-3, atol=1e-6)
