"""Arrays of the caller's that a program changes in their own memory: the same contents as eagerly, whatever else reads them."""
import re
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static  # before Chainer

BACKENDS = ("numpy", "c")


def filled(*shape, dtype=np.float32, seed=0):
    return np.random.RandomState(seed).uniform(0.5, 1.5, shape).astype(dtype)


def both(function, arrays, backend, calls=4):
    """The arrays after some calls, eager and compiled; what is compiled changes the same objects."""
    eager, ours = [x.copy(order="K") for x in arrays], [x.copy(order="K") for x in arrays]
    compiled = dy2static.to_static(function, backend=backend, strict=True)
    for _ in range(calls):
        function(*eager)
        compiled(*ours)
    return eager, ours, compiled


def assert_same(eager, ours, backend):
    for a, b in zip(eager, ours):
        np.testing.assert_allclose(b, a, rtol=0 if backend == "numpy" else 1e-6)


def plain(a, b):
    a *= 0.9
    a -= 0.1 * b


def crossed(a, b):
    old = a.copy()
    a[...] = a - 0.1 * b
    b[...] = b + 0.2 * old


def turned(a, b):
    a[...] = a + 0.1 * a.T
    b += a


def reads_a_view(a, b):
    a[1:] += 0.5
    b[...] = b[::-1] * 0.9 + a


def copied_before(a, b):
    b[...] = a
    a *= 1.1


def rows(a, b):
    a += b[0]
    b[...] = b * a.sum()


def ints(a, b):
    a[...] = np.where(a > b, 1, 2).astype(a.dtype)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", [plain, crossed, turned, reads_a_view, copied_before, rows, ints])
def test_what_reads_them(function, backend):
    eager, ours, _ = both(function, [filled(5, 5), filled(5, 5, seed=1)], backend)
    assert_same(eager, ours, backend)


def nearly_the_same(a, b):
    a *= 0.1234567890123
    b *= 0.1234567890124


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_that_differ_in_their_last_digits(backend):
    """Updates of one form share a function: their constants are the same to the last bit."""
    eager, ours, _ = both(nearly_the_same, [filled(5, dtype=np.float64), filled(5, dtype=np.float64)], backend)
    np.testing.assert_array_equal(ours[0], eager[0])
    np.testing.assert_array_equal(ours[1], eager[1])
    assert not np.array_equal(ours[0], ours[1])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_dtypes(dtype, backend):
    def function(a, b):
        a += b
    eager, ours, _ = both(function, [np.arange(3000).astype(dtype), np.arange(3000).astype(dtype)[::-1].copy()], backend)
    assert_same(eager, ours, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_in_another_order(backend):
    arrays = [np.asfortranarray(filled(40, 60)), filled(40, 120)[:, ::2]]

    def function(a, b):
        a -= 0.1 * b
        b *= 0.9
    eager = [arrays[0].copy("F"), filled(40, 120)[:, ::2]]
    compiled = dy2static.to_static(function, backend=backend, strict=True)
    for _ in range(3):
        function(*eager)
        compiled(*arrays)
    assert_same(eager, arrays, backend)


class Many(chainer.Chain):
    def __init__(self, count, dtype):
        super().__init__()
        random = np.random.RandomState(0)
        with self.init_scope():
            for k in range(count):
                setattr(self, f"l{k}", L.Linear(4, 4, initialW=random.rand(4, 4).astype(dtype), initial_bias=np.ones(4, dtype)))

    def forward(self, x):
        for child in self.children():
            x = F.tanh(child(x))
        return F.sum(x)


def step_of(model, optimizer, x):
    def step():
        model.cleargrads()
        loss = model(x)
        loss.backward()
        optimizer.update()
        return loss
    return step


def trained(backend, optimizer, hooks=(), steps=5, dtype=np.float32, **options):
    model = Many(3, dtype)
    optimizer = optimizer()
    optimizer.setup(model)
    for hook in hooks:
        optimizer.add_hook(hook)
    step = step_of(model, optimizer, filled(2, 4, dtype=dtype))
    run = step if backend is None else dy2static.to_static(step, backend=backend, strict=True, **options)
    for _ in range(steps):
        run()
    return model, run


def state(model):
    return [array for p in model.params() for array in (p.array, p.grad, *map(p.update_rule.state.get, sorted(p.update_rule.state)))]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("optimizer", [chainer.optimizers.Adam, chainer.optimizers.MomentumSGD])
def test_parameters_of_one_rule_are_one_call(optimizer, backend):
    eager, _ = trained(None, optimizer)
    ours, run = trained(backend, optimizer)
    for a, b in zip(state(eager), state(ours)):
        np.testing.assert_allclose(b, a, rtol=0 if backend == "numpy" else 1e-5, atol=0 if backend == "numpy" else 1e-7)
    program = run.program()
    assert "write_arrays" not in program.entry
    # NumPy has one for each shape
    assert len(re.findall(r"\n    update\d+\(", program.entry)) == (1 if backend == "c" else 2)
    assert program.memory.results < sum(array.nbytes for array in state(ours)) / 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropped_gradients_need_no_arrays(backend):
    eager, _ = trained(None, chainer.optimizers.Adam)
    ours, run = trained(backend, chainer.optimizers.Adam, grads="drop")
    for p, q in zip(eager.params(), ours.params()):
        np.testing.assert_allclose(q.array, p.array, rtol=1e-5)
        assert q.grad is None
    assert run.program().memory.results < 100


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("threshold", [1e-3, 1e3])
def test_clipped_gradients_need_no_second_end(threshold, backend):
    eager, _ = trained(None, chainer.optimizers.Adam, [chainer.optimizer_hooks.GradientClipping(threshold)])
    ours, run = trained(backend, chainer.optimizers.Adam, [chainer.optimizer_hooks.GradientClipping(threshold)])
    for a, b in zip(state(eager), state(ours)):
        np.testing.assert_allclose(b, a, rtol=0 if backend == "numpy" else 1e-4, atol=0 if backend == "numpy" else 1e-6)
    program = run.program()
    assert len(program.recipe.outcome.ends) == 1
    assert "write_arrays" not in program.entry


@pytest.mark.parametrize("hook", [chainer.optimizer_hooks.GradientClipping(1e-3), chainer.optimizer_hooks.WeightDecay(0.1)])
def test_gradients_of_parameters_without_a_part_in_the_loss_are_changed_in_place(hook):
    """The optimizer makes them arrays of zeros, and hooks write into these."""
    def trained_in_part(**options):
        model = Many(2, np.float32)
        optimizer = chainer.optimizers.Adam().setup(model)
        optimizer.add_hook(hook)

        def step():
            loss = F.sum(model.l0(filled(2, 4)))
            model.cleargrads()
            loss.backward()
            optimizer.update()
        run = dy2static.to_static(step, **options) if options else step
        for _ in range(3):
            run()
        return state(model)
    for a, b in zip(trained_in_part(), trained_in_part(backend="numpy", strict=True)):
        np.testing.assert_array_equal(b, a)


def overflowing(a, b):
    a += 1
    a *= b


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("at", [0, 2500])
def test_what_numpy_says_of_them(at, backend):
    b = filled(3000)
    b[at] = 3e38
    a = filled(3000) + 1
    with warnings.catch_warnings(record=True) as expected:
        warnings.simplefilter("always")
        eager = a.copy()
        overflowing(eager, b)
    compiled = dy2static.to_static(overflowing, backend=backend, strict=True)
    compiled(a.copy(), filled(3000))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        compiled(a, b)
    assert [str(w.message) for w in found] == [str(w.message) for w in expected]
    np.testing.assert_allclose(a, eager, rtol=1e-6)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        compiled(filled(3000) + 1, b)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_before_them_leaves_all_as_it_was(backend):
    def function(a, b, index):
        a *= 2
        b[index] = 0
        a += b

    compiled = dy2static.to_static(function, backend=backend, strict=True)
    a, b = filled(4, 4), filled(4, 4)
    compiled(a, b, np.array([1]))
    eager = [a.copy(), b.copy()]
    with pytest.raises(IndexError):
        function(*eager, np.array([7]))
    with pytest.raises(IndexError):
        compiled(a, b, np.array([7]))
    assert_same(eager, [a, b], "c")


@pytest.mark.parametrize("backend", BACKENDS)
def test_views_of_them_and_shared_memory(backend):
    def function(a, b):
        a *= 0.9
        b += 0.1 * a

    compiled = dy2static.to_static(function, backend=backend)
    whole, eager = filled(10, 4), filled(10, 4)
    seen = whole[:3]
    for begin in (0, 0, 2, 4, 4):
        function(eager[begin:begin + 4], eager[4:8])
        compiled(whole[begin:begin + 4], whole[4:8])
        assert_same([eager], [whole], "c")
    assert seen.base is whole
