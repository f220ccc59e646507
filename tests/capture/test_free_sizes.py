"""Sizes that differ from call to call: one program serves them all, where the function does not need their numbers."""
import copy
import math
import sys
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import testing
from sized_programs import FIXED, FREE, SIZES, TABLE, Net, compare, floats

from dy2static import InputSpec, pipeline, to_static
from dy2static.native import compiler
from dy2static.symbolic.size_trials import _bindings

needs_compiler = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


@pytest.mark.parametrize("name", FREE)
def test_one_program_serves_all(name):
    function, make_args = FREE[name]
    info = compare(to_static(function), function, make_args)
    assert info.captures <= 3 + (name == "state") and info.fallbacks == 0       # a counter takes one more


@needs_compiler
@pytest.mark.parametrize("name", ["images", "loss", "attention over steps", "neighbours", "turned round", "indices", "images of any size",
                                  "images back", "drawn", "lstm", "over steps", "places of extremes", "halved and doubled",
                                  "halved and resized"])
def test_native_code_of_any_size(name):
    function, make_args = FREE[name]
    static = to_static(function, backend="c")
    info = compare(static, function, make_args)
    assert info.captures == 3 and info.fallbacks == 0
    program = static.dispatcher.programs[-1]
    assert program.has_free_sizes and "int64_t dim_length_n0" in program.native_code


def first_of_many(net, x):
    hs, h, y = [], x[:, 0], 0
    for i in range(x.shape[1]):
        hs.append(net.l1(h))
        h = h + net.l3(x[:, i])
    for _ in range(x.shape[1]):
        y += F.sum(hs[0])
    net.cleargrads()
    y.backward()


def test_items_without_gradients():
    """An item of a list that nothing reads has no gradient, and what only it was computed from has none, in any size."""
    static = to_static(first_of_many)
    for n in (3, 4, 5, 6):
        net = Net()
        static(net, chainer.Variable(floats(2, n, 6)))
        assert net.l3.W.grad is None and net.l1.W.grad is not None


@pytest.mark.parametrize("name", FIXED)
def test_one_program_each(name):
    function, make_args = FIXED[name]
    info = compare(to_static(function), function, make_args)
    assert info.captures == len(SIZES) and info.fallbacks == 0


def test_off():
    function, make_args = FREE["loss"]
    assert compare(to_static(function, dynamic=False), function, make_args).captures == len(SIZES)


def test_fifty_sizes():
    function, make_args = FREE["loss"]
    assert compare(to_static(function), function, make_args, range(2, 52)).captures == 3


def test_programs_of_one_size_come_first():
    static = to_static(lambda x: F.sum(x * 2))
    for n in (8, 3, 5, 6):
        static(floats(n))
    assert static.graph.inputs[0].shape[0] != 6
    static(floats(8))
    assert static.graph.inputs[0].shape == (8,)


def test_one_and_none_have_programs_of_their_own():
    """Where there is one element, other things happen: `F.squeeze`, broadcasting, warnings."""
    static = to_static(lambda x: F.squeeze(x * 2))
    for n in (2, 3, 4, 5, 1, 0, 6):
        assert static(floats(n, 3)).shape == ((n, 3) if n != 1 else (3,))
    assert static.cache_info().captures == 5


INDEXED = {
    "from the front": lambda x: x[5] * 2, "from the end": lambda x: x[-5] * 2, "of the array": lambda x: x.array[5] * 2,
    "several": lambda x: x[[5, 1]] * 2, "slice": lambda x: x[2:5] * np.ones((3, 2), "f"), "split": lambda x: F.split_axis(x, [5], 0)[0],
    "item": lambda x: float(x.array[5, 0]) * x, "always there": lambda x: x[0] + x[-1] + x[1] + x[-2],
}


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=needs_compiler)])
@pytest.mark.parametrize("name", INDEXED)
def test_elements_that_are_not_there(name, backend):
    """An index that is inside of the arrays of one call may be outside of those of the next."""
    function = INDEXED[name]
    static = to_static(function, backend=backend)
    for n in (6, 7, 8, 10, 3, 9):
        x, found = chainer.Variable(floats(n, 2)), []
        for f in (function, static):
            try:
                y = f(x)
                found.append(getattr(y, "array", y))
            except (IndexError, ValueError, chainer.utils.type_check.InvalidType) as error:
                found.append(str(error))
        assert np.array_equal(*found) if isinstance(found[0], np.ndarray) else found[0] == found[1], n
    assert name != "always there" or static.cache_info().captures == 3


#: name: (what is done with an array, the captures for all sizes); None: that many are not promised.
PARTS = {
    "the first": (lambda x: x.array[:12] * 2, 3), "the last": (lambda x: x.array[-20:] * 2, 3),
    "the first of a Variable": (lambda x: (x[:12] * 2).array, 3), "all but the first": (lambda x: x.array[12:] + 1, 3),
    "every third of the last": (lambda x: x.array[-13::3] + 1, 3), "as many as there are": (lambda x: np.arange(300)[:len(x)], 3),
    "as many from behind": (lambda x: np.arange(300)[-len(x):], None), "range from": (lambda x: np.arange(12, len(x)), 3),
    "range in steps": (lambda x: np.arange(0, len(x), 20), 3), "zeros for some": (lambda x: np.zeros(len(x) // 20), 3),
    "zeros up to": (lambda x: np.zeros((min(len(x), 12), 2)), 3), "zeros on one side": (lambda x: np.zeros(12 if len(x) > 12 else len(x)), 3),
    "padded up to": (lambda x: np.pad(x.array, ((0, 20 - min(20, len(x))), (0, 0)), "constant"), None),
    "repeated and cut": (lambda x: np.repeat(x.array, 3, axis=0)[:40], 3), "squeezed": (lambda x: x.array[:len(x) // 8].squeeze(), None),
    "squeezed rest": (lambda x: np.squeeze(x.array[11:]), None), "sorted and cut": (lambda x: np.sort(x.array[:, 0])[:13], 3),
    "matrix": (lambda x: np.eye(len(x), 30)[:, :12], 3), "diagonal": (lambda x: np.eye(len(x), 30).diagonal() * 1, None),
    "diagonal by a function": (lambda x: np.diagonal(np.eye(len(x), 30)) * 1, None), "diagonal matrix": (lambda x: np.diag(x.array[:, 0], -2), 3),
    "some deleted": (lambda x: np.delete(x.array, [0, 3], axis=0), 4), "partitioned": (lambda x: np.sort(np.partition(x.array, 3, axis=0)[:3], axis=0), 4),
    "interpolated": (lambda x: np.interp(x.array[:, 0], [-1, 0, 1], [2, 3, 5]), 3), "classes": (lambda x: np.digitize(x.array[:, 0], [-0.5, 0.5]), 3),
    "chosen": (lambda x: np.select([x.array > 0.5, x.array < 0], [x.array, -x.array], 2), 3), "appended": (lambda x: np.append(x.array, x.array[:3], axis=0), 3),
    "slopes": (lambda x: np.gradient(x.array, axis=0), 3), "area": (lambda x: np.cov(x.array), 3),
    "splits": (lambda x: np.array_split(x.array, [12])[0], None), "resized": (lambda x: np.resize(x.array, 12), None),
    "same convolution": (lambda x: np.convolve(x.array[:, 0], np.ones(14), "same"), None),
    "deleted": (lambda x: np.delete(x.array, np.s_[:14], axis=0), None),
    "taken": (lambda x: x.array.take(np.arange(min(14, len(x)))), 3), "flattened": (lambda x: x.array.reshape(len(x), -1), 3),
    "all in one": (lambda x: x.array.reshape(len(x) * 2), 3), "outer": (lambda x: np.outer(x.array[:, 0], x.array[:, 1]).reshape(-1), 3),
}


@pytest.mark.parametrize("name", PARTS)
def test_sizes_of_what_numpy_gives(name):
    """They are right for all sizes, not only near those that a capture tries."""
    part, captures = PARTS[name]

    def function(x):
        found = part(x)
        return found, np.zeros(found.shape), found.shape[0]

    static = to_static(function)
    for n in (15, 16, 17, 30, 12, 11, 5, 250, 14, 13):
        x = chainer.Variable(floats(n, 2))
        for mine, eager in zip(static(x), function(x)):
            assert np.shape(mine) == np.shape(eager) and np.array_equal(mine, eager), n
    assert static.cache_info().captures == (captures or static.cache_info().captures)
    assert static.cache_info().fallbacks == 0


#: name: (what is made of an array with a size as a number, whether a program serves all).
NUMBERS = {
    "float": (lambda x: x / float(len(x)), True), "int": (lambda x: x / int(len(x)), True), "root": (lambda x: x / math.sqrt(len(x)), True),
    "root of NumPy's": (lambda x: x * float(np.sqrt(len(x))), True), "of NumPy's type": (lambda x: x / np.float32(len(x)), True),
    "power": (lambda x: x * len(x) ** 0.5, True), "quotient": (lambda x: x * (1 / len(x)), True), "negative": (lambda x: x * -len(x), True),
    "divmod": (lambda x: x * divmod(len(x), 4)[1], True), "distance": (lambda x: x * abs(len(x) - 5), True),
    "rounded": (lambda x: x * round(len(x) / 3), True), "of the whole": (lambda x: x / x.size + x.array.size, True),
    "product": (lambda x: x / float(np.prod(x.shape[1:]) * x.shape[0]), True), "sum": (lambda x: x * sum(x.shape), True),
    "compared": (lambda x: x if 3 < len(x) <= 7 else -x, True), "among": (lambda x: x * 2 if len(x) in (5, 7) else x, True),
    "odd": (lambda x: x * 2 if len(x) % 2 else x * 3, True), "shape": (lambda x: x if x.shape == (5, 2) else -x, True),
    "middle": (lambda x: x[len(x) // 2:] + x[len(x) - 1], True), "drawn up to": (lambda x: x[np.random.randint(0, len(x), 3)], True),
    "permutation": (lambda x: x[np.random.permutation(len(x))], True), "choice": (lambda x: x[np.random.choice(len(x), len(x))], True),
    "range of floats": (lambda x: x * np.arange(len(x), dtype="f")[:, None], True), "sorted": (lambda x: x * sorted(x.shape)[0], True),
    "in an array": (lambda x: x * float(np.array([len(x), 1]).sum()), True), "repeated": (lambda x: F.repeat(x, len(x), axis=0), True),
    "broadcast": (lambda x: F.broadcast_to(F.sum(x, axis=0), (len(x), 2)), True),
    "broadcast to more axes": (lambda x: F.sum(F.broadcast_to(np.eye(7, dtype="f"), (len(x), 7, 7)), axis=(1, 2))[:, None] * x, True), "filled up": (lambda x: F.pad(x, ((0, 300 - len(x)), (0, 0)), "constant"), False),
    "key": (lambda x: x * {5: 1, 3: 4}.get(len(x), 2), True), "key of a shape": (lambda x: x * {(5, 2): 3}.get(x.shape, 2), False),
    "in a set": (lambda x: x * len({len(x), 5}), False), "place in a list": (lambda x: x * [1, 2, 3, 4][min(len(x), 3)], True),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_sizes(name):
    function, serves_all = NUMBERS[name]
    static, sizes = to_static(function), (15, 16, 17, 5, 3, 2, 7, 250)
    for n in sizes:
        found = []
        for f in (function, static):
            x = chainer.Variable(np.random.RandomState(n).rand(n, 2).astype("f"))
            np.random.seed(n)
            y = f(x)
            F.sum(y * y).backward()
            found.append((y.array, x.grad, np.random.rand(1)))
        for eager, mine in zip(*found):
            testing.assert_allclose(mine, eager, rtol=1e-4, atol=1e-5)
    assert static.cache_info().captures == (3 if serves_all else len(sizes)) and static.cache_info().fallbacks == 0


def test_gradients_of_recurrent_states_inside():
    """The state of a Link and a local name are one array before and after each step: its gradient is there if the loop runs or not."""
    def step(net, x):
        net.cleargrads()
        net.lstm.reset_state()
        for i in range(x.shape[1]):
            h = net.lstm(x[:, i])
        loss = F.sum(h * h)
        loss.backward()
        return loss.array
    net = Net()
    other, static = copy.deepcopy(net), to_static(step)
    for n in SIZES:
        x = floats(2, n, 6)
        testing.assert_allclose(static(net, x), step(other, x))
        for mine, eager in zip(net.lstm.params(), other.lstm.params()):
            testing.assert_allclose(mine.grad, eager.grad, rtol=1e-4, atol=1e-6)
    assert static.cache_info().captures == 3


def test_tables_end():
    """Beyond the last row eager mode raises; one program serves all sizes up to there."""
    static = to_static(lambda x: F.tanh(x + TABLE[:len(x)]))
    for n in (*range(2, 8), 40):
        x = floats(n, 6)
        testing.assert_allclose(static(x).array, np.tanh(x + TABLE[:n]))
    assert static.cache_info().captures == 3 and "length_n0_upto40" in str(static.dispatcher.programs[-1].guards)
    with pytest.raises(ValueError, match="broadcast"):
        static(floats(41, 6))


@pytest.mark.parametrize("part", [lambda x, h, w: x[h - 8:, w - 8:], lambda x, h, w: x[:h - 5, :w - 5], lambda x, h, w: x[h - 8:]])
def test_ends_of_slices_that_count_from_behind(part):
    """A computed end may be below zero for small arrays: then it counts from behind."""
    def f(net, x):
        return part(F.tanh(x), *x.shape) * 2
    compare(to_static(f), f, lambda n: (floats(n, n + 1),), (12, 16, 20, 9, 6, 7, 3))


def test_ends_of_slices_that_count_from_behind_by_contents():
    def f(x, n):
        y = F.matmul(x[:int(n.array)], x[:int(n.array)], transb=True)
        return y[y.shape[0] - 5:, y.shape[0] - 5:] * 2
    static, x = to_static(f), floats(14, 3)
    for n in (12, 6, 4, 3):
        number = chainer.Variable(np.array(n))
        testing.assert_allclose(static(x, number).array, f(chainer.Variable(x), number).array)


def test_sizes_that_were_equal_and_are_not_any_more():
    """The program of equal sizes is left, and eager's error comes."""
    static = to_static(lambda x, y: F.sum(x * y))
    for n in (2, 3, 4, 5):
        static(chainer.Variable(floats(n, 3)), floats(n, 3))
    with pytest.raises(chainer.utils.type_check.InvalidType):
        static(chainer.Variable(floats(6, 3)), floats(7, 3))
    x, y = chainer.Variable(floats(6, 3)), floats(6, 3)
    testing.assert_allclose(static(x, y).array, (x.array * y).sum(), rtol=1e-4)
    assert static.cache_info().captures == 3


def test_sizes_of_the_model_stay_fixed():
    """Models of several sizes share a method; only the batch is free."""
    class Model(chainer.Chain):
        def __init__(self, units):
            super().__init__()
            with self.init_scope():
                self.l1 = L.Linear(units, 3)

        @to_static
        def forward(self, x):
            return F.sum(self.l1(x) ** 2)

    models = [(units, Model(units)) for units in (2, 4, 5, 7)]
    for n in (2, 3, 4, 5, 6, 7):
        for units, model in models:
            x = floats(n, units)
            testing.assert_allclose(model(x).array, (model.l1(x).array ** 2).sum(), rtol=1e-4)


def test_second_order():
    def function(x):
        return F.sum(F.tanh(x) ** 3)

    static = to_static(function)
    for n in (2, 3, 4, 5):
        x = floats(n, 3)
        found = []
        for f in (static, function):
            v = chainer.Variable(x)
            g, = chainer.grad([f(v)], [v], enable_double_backprop=True)
            gg, = chainer.grad([F.sum(g * g)], [v])
            found.append(gg.array)
        testing.assert_allclose(*found, rtol=1e-4, atol=1e-5)
    assert static.cache_info().captures == 3


def test_iteration_over_rows_ends():
    """A Variable is iterated by index until one is too large, which a free size never says."""
    @to_static
    def f(x):
        total = 0
        for row in x:
            total = total + F.sum(row) * 2
        return total

    for n in (3, 5, 2, 4):
        assert float(f(chainer.Variable(np.ones((n, 2), np.float32))).array) == 4 * n


def test_elements_are_no_arrays():
    def kinds(x):
        return isinstance(x[0], np.ndarray), np.isscalar(x[-1]), isinstance(x[0, ...], np.ndarray), x[1], x[..., 0]
    static = to_static(kinds, strict=True, backend="numpy")
    for n in range(3, 8):
        x = np.arange(n, dtype="f")
        assert static(x) == kinds(x) and type(static(x)[3]) is np.float32
    assert static.stats()["captures"] == 3


def test_what_no_bound_of_a_size_would_change_is_not_tried_with_another_one(monkeypatch):
    def function(x):
        y = F.sum(F.tanh(x) * 2)
        breakpoint()
        return y

    found, trace = [], pipeline.trace
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)
    monkeypatch.setattr(pipeline, "trace", lambda called, *rest: (found.append(called), trace(called, *rest))[1])
    static = to_static(function, input_spec=[InputSpec([None, 6])], backend="numpy")
    x = floats(8, 6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        testing.assert_allclose(static(x).array, function(x).array, rtol=1e-6)
    assert found.count(function) == 2                       # with a free size, and with this one


@pytest.mark.parametrize("backend", ["c", "numpy"])
def test_a_sum_of_sizes_is_no_multiple_of_one_of_them(backend):
    """The sizes that a result is tried with are not equally far from each other: `n0 + n1 + n2` would be `3 * n1` for each of them."""
    @to_static(backend=backend)
    def in_order(pieces, places):
        return np.concatenate(pieces)[np.argsort(np.concatenate(places))]

    for sizes in ([2, 3, 4], [1, 6, 5], [3, 2, 2], [4, 3, 6]):
        places = np.split(np.random.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
        pieces = [np.random.rand(len(place), 5).astype(np.float32) for place in places]
        np.testing.assert_array_equal(in_order(pieces, places), in_order.python_function(pieces, places))


def test_sizes_are_tried_with_numbers_that_differ():
    """Those that end at the rows of a table are told apart from each other, and from those that do not end."""
    for most in range(16, 64):
        names = [f"length_n{i}{f'_upto{most}' if i < 5 else ''}" for i in range(8)]
        tried = _bindings(set(names))
        rows = {tuple([numbers[name] for numbers in tried]) for name in names}
        assert len(rows) == len(names)


TABLE_OF_PLACES = np.random.RandomState(0).randn(30, 6).astype(np.float32)


def test_a_size_up_to_a_number_ends_in_a_table():
    """Whether the smaller of a size and a number is below the rows of a table is known."""
    def function(x):
        n = min(len(x), 12)
        return x[:n] * TABLE_OF_PLACES[:n]

    static = to_static(function, backend="numpy")
    for n in (4, 8, 14, 20, 40, 6):
        x = floats(n, 6)
        np.testing.assert_array_equal(static(x), function(x))
    assert static.stats()["captures"] == 3


def test_many_sequences_up_to_a_number():
    """A capture takes time in proportion to the number of sequences that are cut at some length."""
    def function(xs):
        xs = [x[:12] for x in xs]
        return F.split_axis(F.concat(xs, axis=0) * 2, np.cumsum([len(x) for x in xs])[:-1], 0)[-1]

    static = to_static(function, backend="numpy")
    for seed in range(2):
        lengths = np.random.RandomState(seed).randint(4, 20, 40)
        xs = [np.random.RandomState(n).randn(n, 3).astype(np.float32) for n in lengths]
        np.testing.assert_array_equal(static(xs).array, function(xs).array)
    assert static.stats()["captures"] == 1
