"""How often whole training steps are captured, and what their programs keep."""
import gc
import itertools

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizers

from dy2static import to_static
from dy2static.ir.graph import Node

BATCHES = [[np.linspace(-1, k, 3 * n, dtype=np.float32).reshape(n, 3) for n in range(1, k + 2)] for k in range(3)]


def _step(optimizer):
    model = L.Linear(3, 2, initialW=np.linspace(-1, 1, 6).reshape(2, 3), initial_bias=np.array([0.5, -0.5]))
    optimizer.setup(model)

    def step(xs):
        loss = sum(F.sum(F.tanh(model(x)) ** 2) for x in xs)
        model.cleargrads()
        loss.backward()
        optimizer.update()
        return loss
    return model, step


@pytest.mark.parametrize("rule", [optimizers.Adam, optimizers.MomentumSGD, optimizers.SGD])
def test_batches_of_other_lengths_take_the_steps_of_the_optimizer_as_inputs(rule):
    """Each is captured once, also the first one, which makes states and counts from 0."""
    (eager, plainly), (model, step) = _step(rule()), _step(rule())
    static = to_static(step, backend="numpy")
    for xs in itertools.islice(itertools.cycle(BATCHES), 12):
        assert plainly(xs).array == static(xs).array
    for expected, found in zip(eager.params(), model.params()):
        np.testing.assert_array_equal(expected.array, found.array)
        assert expected.update_rule.t == found.update_rule.t == 12
    info = static.cache_info()
    assert (info.captures, info.fallbacks) == (len(BATCHES), 0)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_gradients_are_checked_and_clipped_one_by_one(backend):
    """Of more parameters than ways through a step are captured; what is clipped stays the same array."""
    def make():
        model = chainer.Sequential(*[L.Linear(3, 3, initialW=np.linspace(-k, 1, 9).reshape(3, 3)) for k in range(1, 6)])
        optimizer = optimizers.Adam(0.1).setup(model)

        def step(x, limit):
            loss = F.sum(model(x) ** 2)
            model.cleargrads()
            loss.backward()
            if not all(np.isfinite(p.grad).all() for p in model.params() if p.grad is not None):
                return loss, None
            for p in model.params():
                norm = np.linalg.norm(p.grad)
                if norm > limit:
                    p.grad *= limit / norm
            norm = np.sqrt(np.sum([np.sum(np.square(p.grad)) for p in model.params()]))
            if norm > 2 * limit:
                for p in model.params():
                    p.grad /= norm
            optimizer.update()
            return loss, norm
        return model, step
    (eager, plainly), (model, step) = make(), make()
    static = to_static(step, backend=backend)
    for factor, limit in ((1.0, 0.5), (0.1, 0.5), (np.inf, 0.5), (0.01, 0.5), (1.0, 5.0)):
        x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(4, 3) * np.float32(factor)
        with np.errstate(all="ignore"):
            wanted, found = plainly(x, limit), static(x, limit)
        np.testing.assert_allclose(found[0].array, wanted[0].array, rtol=1e-4)
        assert (found[1] is None) == (wanted[1] is None)
        for expected, other in zip(eager.params(), model.params()):
            np.testing.assert_allclose(other.array, expected.array, rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(other.grad, expected.grad, rtol=1e-3, atol=1e-5)
    assert static.cache_info().captures and not static.stats()["cuts"]


def test_a_gradient_that_is_clipped_in_some_calls_is_another_variable_then():
    """So it is in Chainer: who has read `grad_var` before can tell."""
    def make():
        model = L.Linear(3, 2, initialW=1)

        def step(x):
            loss = F.sum(model(x))
            model.cleargrads()
            loss.backward()
            before = model.W.grad_var
            if np.linalg.norm(model.W.grad) > 5:
                model.W.grad *= 2
            return before is model.W.grad_var, before.array
        return step
    eager, static = make(), to_static(make(), backend="numpy")
    for factor in (0.1, 3.0, 0.2, 4.0):
        x = np.full((2, 3), factor, "f")
        (wanted, array), (found, other) = eager(x), static(x)
        assert wanted is found
        np.testing.assert_array_equal(array, other)


def test_a_loss_without_gradient_for_some_batches():
    """Labels decide whether the loss depends on the model: that is a way through the step, and no capture for each contents."""
    def make():
        model = L.Linear(3, 2, initialW=np.linspace(-1, 1, 6).reshape(2, 3), initial_bias=np.array([0.5, -0.5]))
        optimizer = optimizers.SGD(0.1).setup(model)

        def loss_of(y, t):
            count = (t > 0).sum()
            if count == 0:
                return chainer.Variable(np.zeros((), np.float32))
            return F.sum(F.softmax_cross_entropy(y, t, reduce="no")) / count

        def step(x, t):
            loss = loss_of(model(x), t) * 2
            model.cleargrads()
            loss.backward()
            optimizer.update()
            return loss.array
        return model, step
    (eager, plainly), (model, step) = make(), make()
    static, x = to_static(step, backend="numpy", strict=True), BATCHES[2][2]
    for labels in ([1, 0, 1], [0, 0, 1], [0, 0, 0], [1, 1, 1]):
        np.testing.assert_array_equal(static(x, np.array(labels, np.int32)), plainly(x, np.array(labels, np.int32)))
        np.testing.assert_array_equal(model.W.array, eager.W.array)
    assert static.cache_info().captures == 1


def test_a_program_that_has_updated_keeps_no_graph_of_its_gradients():
    """They are in its forward; the function cannot be differentiated afterwards."""
    static = to_static(_step(optimizers.SGD())[1], backend="numpy")
    static(BATCHES[2])
    program, = static.dispatcher.programs
    recipe, plans = program.recipe, [segment.plan for segment in program.segments]
    graphs = [recipe.outcome.graph, recipe.parts.graph, recipe.in_place.graph, *[plan.graph for plan in plans]]
    used = {node for graph in graphs for node in graph.walk()}
    assert plans and all(plan.spent is not None for plan in plans)
    assert {node for plan in plans for node in _nodes_below(plan)} <= used


def _nodes_below(root):
    """The nodes that are reached from an object through the fields of tuples, lists, dicts and objects of the package."""
    seen, waiting = set(), [root]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, Node):
            yield found
        if isinstance(found, (tuple, list, dict)) or type(found).__module__.startswith("dy2static"):
            waiting += [o for o in gc.get_referents(found) if not isinstance(o, type)]
