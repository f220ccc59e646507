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
