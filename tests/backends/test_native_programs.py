"""Programs with native code against eager: values, gradients of two orders, decisions, loops, what raises and warns."""
import gc
import sys
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import config, to_static
from dy2static.backends.c.executor import Region
from dy2static.native import compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")


@pytest.fixture(scope="module", autouse=True)
def no_name_hides_another():
    """A variable of the C text that has the name of one outside of its block is an error here."""
    usual = compiler.FLAGS
    compiler.FLAGS = (*[flag for flag in usual if flag != "-w"], "-Werror=shadow")
    yield
    compiler.FLAGS = usual


def array(*shape, seed=0, dtype="f"):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(dtype)


def variable(*shape, seed=0, dtype="f"):
    return chainer.Variable(array(*shape, seed=seed, dtype=dtype))


def elementwise(x, y):
    return F.tanh(x) * y + F.exp(-x * x) / (1 + F.sigmoid(y))


def reductions(x, y):
    h = F.softmax(x) + F.sum(y, axis=0)
    return F.sum(h * h, axis=1) / F.max(abs(y) + 1)


def views(x, y):
    h = F.transpose(F.reshape(F.concat([x, y], axis=1), (2, -1)))
    return F.stack([h[1:4, 0], h[2:5, 1] * 2], axis=1), F.broadcast_to(h[0], (3, 2))


def products(x, y):
    return F.matmul(x, y, transb=True) + F.matmul(F.tanh(y), x, transb=True)


def normalised(x, y):
    return F.sum(F.normalize(F.linear(x, y, y[0, :4])))


def decides(x, y):
    if float(F.sum(x).array) > 0:
        h = F.tanh(x) * y
    else:
        h = x - y
    return h * 2


def repeats(x, y):
    total, k = x * 0, 0
    while float(F.sum(F.absolute(x)).array) > 0.5:
        x = x * 0.7 - y * 0.01
        total = total + F.sin(x) * x
        k += 1
    return total * k


def walks(x, y):
    h = y[0] * 0
    n = int(abs(x.array).sum())
    for t in range(n % 3):
        h = F.tanh(h + x[t]) * y[t]
    return F.sum(h) + F.sum(x)


def numbers(x, y):
    scale = float(abs(x.array).max())
    count = int(y.array.sum() * 10) // 3 % 4
    return x * scale + y * count if scale > count else x / (1 + scale)


PROGRAMS = (elementwise, reductions, views, products, normalised, decides, repeats, walks, numbers)


def outcome(function, seed, dtype):
    """Results, and gradients of both orders with their flags."""
    x, y = variable(4, 5, seed=seed, dtype=dtype), variable(4, 5, seed=seed + 1, dtype=dtype)
    results = function(x, y)
    results = results if isinstance(results, tuple) else (results,)
    loss = sum(F.sum(F.square(r)) for r in results)
    first = chainer.grad([loss], [x, y], enable_double_backprop=True)
    second = chainer.grad([sum(F.sum(g * g) for g in first if g is not None)], [x, y])
    return ([r.array for r in results] + [None if g is None else g.array for g in (*first, *second)],
            [None if g is None else g.requires_grad for g in first])


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function, dtype):
    compiled = to_static(function, strict=True, backend="c")
    for seed in range(0, 6, 2):
        wanted, flags = outcome(function, seed, dtype)
        found, found_flags = outcome(compiled, seed, dtype)
        assert flags == found_flags
        for a, b in zip(wanted, found):
            if a is None or b is None:
                assert a is b
            else:
                assert a.dtype == b.dtype
                np.testing.assert_allclose(b, a, rtol=2e-4 if dtype == "f" else 1e-9, atol=2e-5 if dtype == "f" else 1e-10)
    assert compiled.stats()["native"] > 0


def test_nothing_runs_in_between():
    """Loops and decisions on array values, forward and backward, are one call each."""
    compiled = to_static(repeats, strict=True, backend="c")
    y = compiled(variable(4, 5), variable(4, 5, seed=1))
    F.sum(y).backward()
    program = compiled.program(variable(4, 5), variable(4, 5, seed=1))
    (backward,) = program.segments[0].backward.values()
    for text in (program.source, backward.source):
        assert text.count("native(") == 1 and "while" not in text and "for " not in text


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a, self.b = L.Linear(5, 16), L.Linear(16, 3)

    def forward(self, x, t):
        return F.softmax_cross_entropy(self.b(F.relu(self.a(x))), t)


def train(backend, steps):
    np.random.seed(0)
    net = Net()
    forward = net.forward if backend is None else to_static(net.forward, strict=True, backend=backend)
    optimizer = chainer.optimizers.Adam().setup(net)
    x, t = array(8, 5), np.arange(8, dtype="i") % 3
    losses = []
    for _ in range(steps):
        net.cleargrads()
        loss = forward(x, t)
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    return losses, forward


@pytest.mark.parametrize("backend", ["auto", "c"])
def test_training(backend):
    """With ``auto`` a program becomes native code on its way, without another capture."""
    wanted, _ = train(None, 60)
    found, forward = train(backend, 60)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    stats = forward.stats()
    assert stats["captures"] == stats["programs"] == 1 and stats["native"] > 0


def test_texts_come_again():
    """What is compiled does not depend on addresses: a later process finds it on disk."""
    arguments = array(8, 5), np.arange(8, dtype="i") % 3
    kept = [to_static(Net().forward, strict=True, backend="c").program(*arguments) for _ in range(8)]
    assert len({program.native_code for program in kept}) == 1


def test_native_after():
    """NumPy computes the first calls of a program bit by bit as before."""
    compiled = to_static(elementwise, strict=True, backend="auto")
    x, y = variable(4, 5), variable(4, 5, seed=1)
    with config.NATIVE_AFTER.set(3):
        for k in range(6):
            np.testing.assert_allclose(compiled(x, y).array, elementwise(x, y).array, rtol=1e-5)
            assert (compiled.stats()["native"] > 0) == (k >= 3)


def divides(x, y):
    return x / (y * 0) + F.log(x)


def test_warnings():
    """What NumPy warns of is left to NumPy, with its values."""
    compiled = to_static(divides, strict=True, backend="c")
    x, y = variable(3), variable(3, seed=1)

    def seen(function):
        with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
            warnings.simplefilter("always")
            result = function(x, y)
        return result.array, sorted({str(w.message) for w in caught if w.category is RuntimeWarning})

    compiled(x, y)
    (wanted, said), (found, repeated) = seen(divides), seen(compiled)
    np.testing.assert_array_equal(found, wanted)
    assert said == repeated != []
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(x, y)


def item_of(x, n):
    return F.tanh(x)[int(n.array)] * 2


def test_an_index_that_is_out_of_bounds():
    compiled = to_static(item_of, strict=True, backend="c")
    x = variable(3, 2)
    np.testing.assert_allclose(compiled(x, chainer.Variable(np.array(-1))).array, item_of(x, chainer.Variable(np.array(-1))).array,
                               rtol=1e-6)
    with pytest.raises(IndexError) as wanted:
        item_of(x, chainer.Variable(np.array(3)))
    with pytest.raises(IndexError) as found:
        compiled(x, chainer.Variable(np.array(3)))
    assert str(found.value) == str(wanted.value)


def test_many_steps_are_calls_of_few_functions():
    """Where the steps of a loop are written out, equal look-ups are one function, which few lines call."""
    def steps(w, chosen, targets):
        h, loss = F.tanh(w[0]), 0
        for k in range(40):
            h = F.tanh(F.embed_id(chosen[k], w) + h)
            loss += F.sum(F.select_item(h, targets[k]))
        return loss, h

    compiled, w = to_static(steps, backend="c"), variable(7, 5)
    chosen, targets = np.random.RandomState(1).randint(0, 5, (2, 40, 3)).astype("i")
    results = []
    for function in (steps, compiled):
        w.cleargrad()
        loss, h = function(w, chosen, targets)
        loss.backward()
        results.append((loss.array, h.array, w.grad))
    for eager, native in zip(*results):
        np.testing.assert_allclose(native, eager, 2e-5, 1e-5)
    text = compiled.program(w, chosen, targets).native_code
    assert text.count("if ((uint64_t)") < 8 and "= (float *)p[" not in text and text.count("part_") > 4 * text.count("case ")
    outside = targets.copy()
    outside[30, 1] = 5
    with pytest.raises(IndexError) as eager:
        steps(w, chosen, outside)
    with pytest.raises(IndexError) as native:
        compiled(w, chosen, outside)
    assert str(native.value) == str(eager.value)


@pytest.mark.parametrize("change", [lambda a: a[::2], lambda a: np.asfortranarray(a[:2])], ids=["strided", "fortran"])
def test_other_layouts(change):
    compiled = to_static(products, strict=True, backend="c")
    x, y = (chainer.Variable(change(array(4, 5, seed=k))) for k in range(2))
    np.testing.assert_allclose(compiled(x, y).array, products(x, y).array, rtol=1e-5)


def test_without_a_compiler(monkeypatch):
    """NumPy takes over, and says so once."""
    from dy2static.native import announce
    announce.forget()
    with config.CC.set("no-such-compiler"), pytest.warns(UserWarning, match="there is no C compiler"):
        compiled = to_static(elementwise, strict=True, backend="c")
        x, y = variable(2, 3), variable(2, 3, seed=1)
        np.testing.assert_array_equal(compiled(x, y).array, elementwise(x, y).array)
    assert compiled.stats()["native"] == 0


def test_memory():
    """What a program needs stays the same, and goes with it."""
    compiled = to_static(repeats, strict=True, backend="c")
    x, y = variable(4, 5), variable(4, 5, seed=1)
    for _ in range(50):
        F.sum(compiled(x, y)).backward()
    gc.collect()                    # what tests before have left
    before = sum(type(o) is Region for o in gc.get_objects())
    for _ in range(50):
        F.sum(compiled(x, y)).backward()
    gc.collect()
    assert sum(type(o) is Region for o in gc.get_objects()) == before


def gradient_of_a_loop(x):
    h = x
    while float(F.sum(h * h).array) > 1e-3:
        h = F.sin(h) * 0.6
    return chainer.grad([F.sum(h * h) + F.sum(x * x) * 0.5], [x])[0]


def gradients_of_loops_in_a_loop(x):
    n = 0
    while float(F.sum(x * x).array) > 1e-2 and n < 6:
        x = x - gradient_of_a_loop(x) * 0.3
        n = n + 1
    return x


def test_what_a_loop_saves_begins_anew():
    """The inner loop runs several times: each time its gradient reads what that time has saved."""
    static = to_static(gradients_of_loops_in_a_loop, backend="c", strict=True)
    for seed in range(3):
        x = chainer.Variable(np.random.RandomState(seed).uniform(0, 2, (5, 3)).astype("f"))
        np.testing.assert_allclose(static(x).array, gradients_of_loops_in_a_loop(x).array, rtol=1e-5)


def test_what_a_loop_saves_is_freed():
    resource = pytest.importorskip("resource", reason="only Unix tells how much memory a process has taken")

    def megabytes():
        unit = 2 ** 20 if sys.platform == "darwin" else 2 ** 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    static = to_static(gradient_of_a_loop, backend="c", strict=True)
    x = chainer.Variable(np.ones((300, 300), "f"))
    static(x)
    before = megabytes()
    for _ in range(40):                         # each saves about 5 MB
        static(x)
    assert megabytes() - before < 60


def test_what_raises_keeps_its_place_between_draws():
    """One draw before a failure has happened then, one behind it has not, wherever native code begins and ends."""
    def function(x):
        before = F.dropout(x, 0.2)
        place = (F.inv(x).array[0] > 99).astype("i") + 7        # LAPACK is not C's
        row = F.get_item(before, (place,))
        return F.sum(row) + F.sum(F.dropout(x, 0.3))

    compiled = to_static(function, strict=True, backend="c")
    x = chainer.Variable(np.eye(5, dtype="f") + array(5, 5) * 0.1)
    states = []
    for one in (function, compiled, compiled):
        np.random.seed(3)
        with pytest.raises(IndexError):
            one(x)
        states.append(np.random.get_state()[2])
    assert len(set(states)) == 1 and compiled.stats()["native"] > 0


@pytest.mark.parametrize("rows", [1, 3, 4, 6, 9])
def test_sums_over_leading_axes_add_rows_in_their_order(rows):
    @to_static(backend="c", strict=True)
    def f(x, y, n):
        h = x * y
        return h.sum(axis=0), h, (x + 1).prod(axis=0), y.reshape(2, rows, 5).sum(axis=1), n.sum(axis=0)

    x, y = 1e4 * array(2 * rows, 5), array(2 * rows, 5, seed=1)
    n = np.arange(10 * rows).reshape(2 * rows, 5)
    expected = (x * y).sum(axis=0), x * y, (x + 1).prod(axis=0), y.reshape(2, rows, 5).sum(axis=1), n.sum(axis=0)
    for got, wanted in zip(f(x, y, n), expected):
        np.testing.assert_array_equal(got, wanted)      # NumPy adds them in the same order
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize("function, times", [(np.exp, 1), (np.square, 4)])
def test_a_dear_body_is_written_once(function, times):
    """Functions like exp are long texts, beside which the memory of a sum does not matter."""
    @to_static(backend="c", strict=True)
    def f(x):
        return function(x).sum(axis=0)

    x = array(8, 5)
    np.testing.assert_allclose(f(x), function(x).sum(axis=0), rtol=1e-6)
    assert f.program(x).native_code.count(" += ") == times + (times > 1)    # with the step of the loop over four rows


@pytest.mark.parametrize("dtype", ["f", "d", "i", "?"])
def test_indices_of_many_rows_are_looked_at_once(dtype):
    def columns(x, j):
        return x[:, j], np.take(x, j.reshape(4, 5), 1)[1:]

    compiled = to_static(columns, backend="c", strict=True)
    x, j = (array(5, 30) * 9).astype(dtype), np.random.RandomState(0).randint(-30, 30, 20)
    for got, wanted in zip(compiled(x, j), columns(x, j)):
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == wanted.dtype
    text = compiled.program(x, j).native_code
    assert text.count("< 0) at_ +=") == 2 and "at0_" not in text
    with pytest.raises(IndexError, match="30"):
        compiled(x, np.where(j == j[3], 30, j))
