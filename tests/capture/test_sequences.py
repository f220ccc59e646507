"""Lists of sequences of fresh lengths in every call: one program with free sizes, also for the networks that go through them."""
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler

LINKS = ["NStepLSTM", "NStepBiLSTM", "NStepGRU", "NStepBiGRU", "NStepRNNTanh", "NStepBiRNNTanh", "NStepRNNReLU", "NStepBiRNNReLU"]

#: Of four sequences, call by call.
LENGTHS = [(3, 5, 2, 5), (4, 2, 7, 3), (2, 2, 9, 4), (6, 3, 3, 2)]


def sequences(lengths, width=3, dtype="f", seed=0):
    random = np.random.RandomState(seed)
    return [random.randn(n, width).astype(dtype) for n in lengths]


def compared(make, calls, backend="numpy", **options):
    """Make a function and its parameters twice, call one eagerly and one compiled, and compare all they give; gives the compiled one.

    A function gives a tuple of Variables, the first of which is differentiated; Variables among the arguments keep their gradients.
    """
    def pictures(function, model):
        for args in calls:
            args = [[chainer.Variable(x) if x.dtype.kind == "f" else x for x in arg] if isinstance(arg, list) else arg for arg in args]
            np.random.seed(1)
            model.cleargrads()
            results = function(*args)
            results[0].backward()
            variables = [x for arg in args if isinstance(arg, list) for x in arg if isinstance(x, chainer.Variable)]
            yield [y.array for y in results], [p.grad for p in (*model.params(), *variables)], np.random.rand()

    eager, model = make()
    function, own = make()
    compiled = to_static(function, backend=backend, strict=True, **options)
    for before, after in zip(pictures(eager, model), pictures(compiled, own)):
        for one, other in zip(before[:2], after[:2]):
            assert [type(x) for x in one] == [type(x) for x in other]
            for x, y in zip(one, other):
                np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)
        assert not sharing(before[1]) and not sharing(after[1]), "hooks change gradients in place"
        assert before[2] == after[2], "draws"
    return compiled


def sharing(arrays):
    """The pairs of arrays of which one is changed with the other."""
    return [(i, j) for i, a in enumerate(arrays) for j, b in enumerate(arrays[:i]) if np.shares_memory(a, b)]


def network(name, layers=1, given=False):
    """A network whose results and last states are weighted and added; given: its first states are arguments."""
    def make():
        np.random.seed(0)
        model = getattr(L, name)(layers, 3, 4, 0.3)

        def run(xs, *states):
            *last, ys = model(*(states if given else (None,) * model.n_cells), xs)
            loss = F.sum(F.concat(ys, axis=0) ** 2) + sum(F.sum(F.sin(h)) for h in last)
            return (loss, *last, *ys)
        return run, model
    return make


@pytest.mark.parametrize("name", LINKS)
def test_networks(name):
    function = compared(network(name), [(sequences(lengths),) for lengths in LENGTHS])
    assert function.stats()["captures"] == 1


@pytest.mark.parametrize("name", ["NStepBiLSTM", "NStepGRU"])
def test_layers_draw_as_chainer_does(name):
    function = compared(network(name, layers=2), [(sequences(lengths),) for lengths in LENGTHS])
    assert function.stats()["captures"] == 1
    with chainer.using_config("train", False):
        compared(network(name, layers=2), [(sequences(lengths),) for lengths in LENGTHS[:2]])


def field(xs_of, reduce="mean"):
    """A conditional random field whose loss, best labels and their scores are given; some transitions are forbidden."""
    def make():
        np.random.seed(0)
        model = L.CRF1d(3, initial_cost=chainer.initializers.Normal())
        model.cost.array[1, 2] = -1e10

        def run(xs, ts):
            loss = model(xs_of(xs), ts, reduce=reduce, transpose=True)
            scores, labels = model.argmax(xs_of(xs), transpose=True)
            return (F.sum(loss * np.arange(1, 1 + loss.size, dtype="f").reshape(loss.shape)) + F.sum(scores ** 2), loss, scores,
                    *map(chainer.Variable, labels))
        return run, model
    return make


@pytest.mark.parametrize("reduce, backend", [("mean", "numpy"), ("no", "numpy"), ("mean", "c")])
def test_conditional_random_fields(reduce, backend):
    calls = [(sequences(lengths), [np.arange(n, dtype="i") % 3 for n in lengths]) for lengths in LENGTHS]
    function = compared(field(lambda xs: [F.sin(x) for x in xs], reduce), calls, backend if compiler.available() else "numpy")
    assert function.stats()["captures"] == 1


def test_conditional_random_fields_with_labels_that_do_not_fit():
    _, model = field(list)()
    loss = to_static(lambda xs, ts: model(xs, ts, transpose=True), backend="numpy")
    xs = [chainer.Variable(x) for x in sequences(LENGTHS[0])]
    for ts in ([np.zeros(n + 1, "i") for n in LENGTHS[0]], [np.zeros(n, "f") for n in LENGTHS[0]]):
        with pytest.raises(Exception) as expected:
            model(xs, ts, transpose=True)
        with pytest.raises(type(expected.value)):
            loss(xs, ts)


@pytest.mark.skipif(not compiler.available(), reason="no C compiler")
def test_native_code():
    function = compared(network("NStepBiLSTM"), [(sequences(lengths),) for lengths in LENGTHS], backend="c")
    assert function.stats()["captures"] == 1 and function.stats()["native"] > 0


def test_states_that_are_given():
    random = np.random.RandomState(0)
    states = [chainer.Variable(random.randn(2, 4, 4).astype("f")) for _ in range(2)]
    function = compared(network("NStepBiLSTM", given=True), [(sequences(lengths), *states) for lengths in LENGTHS])
    assert function.stats()["captures"] == 1


def test_sequences_of_one_row_need_one_more_program():
    calls = [(sequences(lengths),) for lengths in (*LENGTHS[:2], (1, 4, 3, 2), (5, 1, 1, 2), (1, 1, 1, 1), (2, 1, 6, 1))]
    assert compared(network("NStepLSTM"), calls).stats()["captures"] == 2


def test_gradients_of_gradients():
    model = L.NStepLSTM(1, 3, 4, 0.0)

    def joined(xs):
        return F.concat(model(None, None, xs)[-1], axis=0)

    compiled = to_static(joined, strict=True)
    for lengths in LENGTHS[:2]:
        found = []
        for run in (joined, compiled):
            xs = list(map(chainer.Variable, sequences(lengths)))
            model.cleargrads()
            y = run(xs)
            gradients = chainer.grad([F.sum(y * y)], xs, enable_double_backprop=True)
            sum(F.sum(g * g) for g in gradients).backward()
            found.append([x.grad for x in xs] + [p.grad for p in model.params()])
        for x, y in zip(*found):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def tagger():
    np.random.seed(0)
    model = chainer.Chain(embed=L.EmbedID(9, 3), lstm=L.NStepBiLSTM(1, 3, 4, 0.0), out=L.Linear(8, 5))

    def run(xs, ts):
        ys = model.lstm(None, None, [model.embed(x) for x in xs])[-1]
        y = model.out(F.concat(ys, axis=0))
        return F.softmax_cross_entropy(y, F.concat(ts, axis=0)), y
    return run, model


def labelled(lengths):
    random = np.random.RandomState(0)
    return tuple([random.randint(0, n, k).astype("i") for k in lengths] for n in (9, 5))


def test_a_tagger():
    assert compared(tagger, [labelled(lengths) for lengths in LENGTHS]).stats()["captures"] == 1


def test_pairs_of_sequences():
    def make():
        run, model = tagger()
        return (lambda batch: run([x for x, t in batch], [t for x, t in batch])), model
    calls = [(tuple(zip(*labelled(lengths))),) for lengths in LENGTHS]
    assert compared(make, calls).stats()["captures"] == 1


def padded():
    model = chainer.Chain(query=L.Linear(3, 1))

    def attend(xs):
        rows = F.pad_sequence(xs, padding=-1)
        scores = F.pad_sequence([F.reshape(model.query(x), (-1,)) for x in xs], padding=-100.0)
        weights = F.softmax(scores, axis=1)
        return F.sum(F.matmul(F.expand_dims(weights, 1), rows) ** 2), rows, weights
    return attend, model


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C"))])
def test_attention_over_padded_sequences(backend):
    function = compared(lambda: (np.random.seed(0), padded())[1], [(sequences(lengths),) for lengths in LENGTHS], backend)
    assert function.stats()["captures"] == 1


def converted():
    """As Chainer's example of text classification: sections are sums of lengths, and a converter pads."""
    model = chainer.Chain(embed=L.EmbedID(9, 3, ignore_label=-1), gru=L.NStepGRU(1, 3, 4, 0.0))

    def run(xs, ts):
        lengths = [len(x) for x in xs]
        sums = np.cumsum(np.array(lengths))
        parts = F.split_axis(model.embed(F.concat(xs, axis=0)), np.cumsum(lengths[:-1]), 0)
        again = F.split_axis(F.concat(parts, axis=0), axis=0, indices_or_sections=sums[:-1])
        last, _ = model.gru(None, list(again))
        block, marks = chainer.dataset.concat_examples(list(zip(xs, [np.sqrt(t).astype("f") for t in ts])), padding=(-1, -np.inf))
        block[:, 0] = 2
        counts = np.array(lengths, "i")[:, None]
        means = F.sum(model.embed(block), axis=1) / counts
        return F.sum(last[-1] ** 2) + F.sum(means ** 2), last, means, chainer.Variable(marks)
    return run, model


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=pytest.mark.skipif(not compiler.available(), reason="no C"))])
def test_sections_at_sums_of_lengths_and_converters_that_pad(backend):
    function = compared(lambda: (np.random.seed(0), converted())[1], [labelled(lengths) for lengths in LENGTHS], backend)
    assert function.stats()["captures"] == 1


def by_rows(model, ys, h, ts):
    return F.softmax_cross_entropy(model.out(F.concat(ys, axis=0)), F.concat(ts, axis=0))


def one_by_one(model, ys, h, ts):
    return sum(F.softmax_cross_entropy(model.out(y), t) for y, t in zip(ys, ts))


def by_last_states(model, ys, h, ts):
    return F.softmax_cross_entropy(model.out(F.concat([h[k] for k in range(model.rnn.direction)])), np.arange(4, dtype="i"))


def by_attention(model, ys, h, ts):
    rows = F.pad_sequence(ys)
    weights = F.softmax(F.sum(rows, axis=2), axis=1)
    return F.softmax_cross_entropy(model.out(F.sum(rows * weights[:, :, None], axis=1)), np.arange(4, dtype="i"))


def whole_step(link, loss_of, hooks=()):
    def make():
        np.random.seed(0)
        model = chainer.Chain(embed=L.EmbedID(9, 3), rnn=getattr(L, link)(1, 3, 4, 0.0), out=L.Linear(8 if "Bi" in link else 4, 5))
        optimizer = chainer.optimizers.Adam().setup(model)
        for hook in hooks:
            optimizer.add_hook(hook)

        def run(xs, ts):
            h, *_, ys = model.rnn(*(None,) * model.rnn.n_cells, [model.embed(x) for x in xs])
            loss = loss_of(model, ys, h, ts)
            model.cleargrads()
            loss.backward()
            optimizer.update()
            return loss
        return run, model
    return make


HOOKS = chainer.optimizer_hooks


@pytest.mark.parametrize("link, loss_of, hooks", [
    ("NStepBiLSTM", by_rows, ()), ("NStepRNNTanh", one_by_one, ()), ("NStepBiGRU", by_last_states, (HOOKS.WeightDecay(1e-2),)),
    ("NStepLSTM", by_attention, (HOOKS.GradientClipping(0.1),))])
def test_whole_steps(link, loss_of, hooks):
    """Each moment is computed for all sequences at once, and each length is at least one: every parameter has a gradient."""
    eager, own = whole_step(link, loss_of, hooks)()
    step, model = whole_step(link, loss_of, hooks)()
    compiled = to_static(step, backend="numpy", strict=True)
    for lengths in LENGTHS:
        np.testing.assert_allclose(eager(*labelled(lengths)).array, compiled(*labelled(lengths)).array, rtol=1e-5)
    for x, y in zip(own.params(), model.params()):
        np.testing.assert_allclose(x.array, y.array, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(x.grad, y.grad, rtol=1e-3, atol=1e-6)
    assert compiled.stats()["captures"] == 1                # also of the first step, which makes the states of the optimizer


def test_gradients_that_the_function_takes_and_uses():
    """The sums of gradients that a loop makes are read by the update only."""
    def make():
        run, model = tagger()

        def step(xs, ts):
            loss = run(xs, ts)[0]
            parameters = list(model.params())
            for parameter, gradient in zip(parameters, chainer.grad([loss], parameters)):
                parameter.array -= 0.1 * gradient.array
            return loss.array
        return step, model
    (eager, own), (step, model) = make(), make()
    compiled = to_static(step, backend="numpy", strict=True)
    for lengths in LENGTHS:
        np.testing.assert_allclose(eager(*labelled(lengths)), compiled(*labelled(lengths)), rtol=1e-5)
    for x, y in zip(own.params(), model.params()):
        np.testing.assert_allclose(x.array, y.array, rtol=1e-3, atol=1e-5)
    assert compiled.stats()["captures"] == 1


def test_what_does_not_fit_raises_as_eagerly():
    model = L.NStepLSTM(1, 3, 4, 0.0)
    compiled = to_static(lambda xs, h: model(h, None, xs)[-1][0])
    wrong = chainer.Variable(np.zeros((1, 3, 4), "f"))
    for xs, h in ((sequences((3, 5, 2), width=2), None), (sequences((3, 5, 2, 4)), wrong)):
        with pytest.raises(Exception) as eager:
            model(h, None, xs)
        with pytest.raises(type(eager.value)):
            compiled(xs, h)


def test_a_function_of_chainers_that_is_replaced(monkeypatch):
    """Between two calls: the links call what the name stands for then."""
    module = sys.modules["chainer.functions.rnn.n_step_lstm"]
    original = module.n_step_lstm
    model = L.NStepLSTM(1, 3, 4, 0.0)
    static = to_static(lambda xs: F.concat(model(None, None, xs)[2], axis=0))
    for lengths in LENGTHS[:2]:
        static(sequences(lengths))
    monkeypatch.setattr(module, "n_step_lstm", lambda *args: (*original(*args)[:2], [y * 2 for y in original(*args)[2]]))
    expected = F.concat(model(None, None, sequences(LENGTHS[2]))[2], axis=0)
    np.testing.assert_allclose(static(sequences(LENGTHS[2])).array, expected.array, rtol=1e-5)


def of_graphs(together):
    """A network of graphs, of which each is a square matrix of neighbors and a row of features for each node."""
    def make():
        np.random.seed(0)
        model = chainer.Chain(first=L.Linear(3, 4), out=L.Linear(4, 2))

        def one_by_one(neighbors, features):
            hs = [F.sum(F.relu(F.matmul(a.astype("f"), model.first(x))), axis=0) / len(a) for a, x in zip(neighbors, features)]
            return F.sum(model.out(F.stack(hs)) ** 2), hs[0]

        def in_one_matrix(neighbors, features):
            sizes = [len(a) for a in neighbors]
            whole, start = np.zeros((sum(sizes), sum(sizes)), "f"), 0
            for a in neighbors:
                whole[start:start + len(a), start:start + len(a)] = a
                start += len(a)
            h = F.relu(F.matmul(whole, model.first(F.concat(features, axis=0))))
            parts = F.split_axis(h, np.cumsum(sizes)[:-1], axis=0)
            return F.sum(model.out(F.stack([F.sum(part, axis=0) for part in parts])) ** 2), parts[-1]
        return (in_one_matrix if together else one_by_one), model
    return make


@pytest.mark.parametrize("together", [False, True])
def test_graphs_of_fresh_sizes(together):
    """Two axes of a matrix are as long as its list of features: one size from the first call on."""
    random = np.random.RandomState(0)
    calls = [([random.randint(0, 2, (n, n)) for n in lengths], sequences(lengths)) for lengths in LENGTHS]
    static = compared(of_graphs(together), calls)
    assert static.stats()["captures"] == 1
    with pytest.raises(chainer.utils.type_check.InvalidType):
        static([random.randint(0, 2, (n, n)) for n in LENGTHS[0]], sequences(LENGTHS[1]))
