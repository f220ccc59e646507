"""Steps over many small parameters: one native function, and no object made for each that somebody could miss."""
import gc
import weakref

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static
from dy2static.native import compiler, library
from dy2static.program import hotpath

pytestmark = pytest.mark.skipif(not compiler.available() or bool(library._problem()), reason="there is no C compiler")
X, T = (np.random.RandomState(seed).uniform(-1, 1, (4, 5)).astype(np.float32) for seed in (1, 2))


class Residual(chainer.ChainList):
    def __init__(self):
        super().__init__(*[L.Linear(5, 5, initialW=np.eye(5, dtype=np.float32) * 0.3 * k) for k in range(1, 6)])

    def forward(self, h):
        for layer in self:
            h = h + F.tanh(layer(h))
        return h


def made(threshold, look=lambda model: None):
    """A model and its step."""
    hotpath.start()
    model = Residual()
    optimizer = chainer.optimizers.Adam(0.01).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(threshold))

    def step(x, t):
        loss = F.mean_squared_error(model(x), t)
        model.cleargrads()
        loss.backward()
        seen = look(model)
        optimizer.update()
        return loss, seen
    return model, step


@pytest.mark.parametrize("threshold", [0.01, 1e6])
def test_clipping_by_the_norm_of_all(threshold):
    model, step = made(threshold)
    compiled_model, compiled = made(threshold)
    compiled = to_static(compiled, backend="c", strict=True)
    for _ in range(5):
        assert np.isclose(step(X, T)[0].array, compiled(X, T)[0].array, rtol=1e-5)
        for p, q in zip(model.params(), compiled_model.params()):
            np.testing.assert_allclose(p.grad, q.grad, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(p.array, q.array, rtol=1e-4, atol=1e-6)
    assert compiled.cache_info().captures == 1
    assert compiled.program(X, T).source.count("native") == 1


@pytest.mark.parametrize("threshold", [0.01, 1e6])
def test_a_gradient_that_is_looked_at_is_the_one_that_is_clipped(threshold):
    model, step = made(threshold, lambda model: model[0].W.grad)
    compiled = to_static(step, backend="c")
    for _ in range(4):
        assert compiled(X, T)[1] is model[0].W.grad


KEPT = {"variable": lambda p: p.grad_var, "array": lambda p: p.grad, "node": lambda p: p.grad_var.node,
        "attributes": lambda p: p.grad_var.__dict__, "data": lambda p: p.grad_var._data,
        "weak": lambda p: weakref.ref(p.grad_var, lambda _: None), "plain weak": lambda p: weakref.ref(p.grad_var),
        "named": lambda p: setattr(p.grad_var, "note", 1)}


@pytest.mark.parametrize("kind", KEPT)
def test_what_is_kept_of_a_gradient_stays(kind):
    model, step = made(0.01)
    compiled = to_static(step, backend="c")
    for _ in range(4):
        compiled(X, T)
    p = model[0].W
    kept, before, contents = KEPT[kind](p), id(p.grad_var), p.grad.copy()
    for _ in range(3):
        compiled(X, T)
        assert all(type(q.grad_var) is chainer.Variable and q.grad_var.array is q.grad and q.grad_var.shape == q.shape
                   and q.grad_var.node.get_variable_or_none() is q.grad_var for q in model.params())
    assert not hasattr(p.grad_var, "note")
    if kind == "variable":
        assert id(kept) == before and kept is not p.grad_var and np.array_equal(kept.array, contents)
    elif kind == "array":
        assert np.array_equal(kept, contents)
    elif kind == "node":
        assert kept is not p.grad_var.node and kept.get_variable_or_none() is None
    elif kind in ("attributes", "data"):
        assert np.array_equal((kept["_data"] if kind == "attributes" else kept)[0], contents)
    elif kind != "named":
        assert kept() is None


def test_a_step_leaves_nothing_for_the_garbage_collector():
    """Gradients are Variables that no one has any more."""
    model, step = made(0.01)
    compiled = to_static(step, backend="c")
    for _ in range(4):
        compiled(X, T)
    gc.collect()
    gc.disable()
    try:
        before = gc.get_count()[0]
        for _ in range(20):
            compiled(X, T)
        assert gc.get_count()[0] - before < 20
    finally:
        gc.enable()
