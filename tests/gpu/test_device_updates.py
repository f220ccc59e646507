"""Whole training steps on a GPU: the updates of Chainer's optimizers and their hooks are in the graph."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizer_hooks, optimizers
from cupy_double import on_double
from numpy_on_double import array

from dy2static import FallbackWarning, to_static

RULES = {
    "SGD": lambda: optimizers.SGD(0.1), "MomentumSGD": optimizers.MomentumSGD, "CorrectedMomentumSGD": optimizers.CorrectedMomentumSGD,
    "NesterovAG": optimizers.NesterovAG, "Adam": optimizers.Adam, "AdamW": optimizers.AdamW, "AMSGrad": optimizers.AMSGrad,
    "AdaBound": optimizers.AdaBound, "AdaGrad": optimizers.AdaGrad, "AdaDelta": optimizers.AdaDelta, "RMSprop": optimizers.RMSprop,
    "RMSpropGraves": optimizers.RMSpropGraves, "SMORMS3": optimizers.SMORMS3, "MSVAG": optimizers.MSVAG}
HOOKS = {"WeightDecay": lambda: optimizer_hooks.WeightDecay(0.1), "Lasso": lambda: optimizer_hooks.Lasso(0.01),
         "GradientClipping": lambda: optimizer_hooks.GradientClipping(0.1),
         "GradientHardClipping": lambda: optimizer_hooks.GradientHardClipping(-0.01, 0.01)}


def step(model, optimizer, x, t):
    loss = F.softmax_cross_entropy(F.tanh(model(x)), t)
    model.cleargrads()
    loss.backward()
    optimizer.update()
    return loss


def trained(function, rule, hook):
    np.random.seed(0)
    model = L.Linear(5, 3)
    model.to_device("@cupy:0")
    optimizer = RULES[rule]().setup(model)
    if hook is not None:
        optimizer.add_hook(HOOKS[hook]())
    x, t = array(6, 5), chainer.get_device("@cupy:0").send(np.array([0, 1, 2, 0, 1, 2], np.int32))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        losses = [float(function(model, optimizer, x, t).array) for _ in range(4)]
    state = [value for p in model.params() for _, value in sorted(p.update_rule.state.items()) if not np.isscalar(value)]
    arrays = [p.array.get() for p in model.params()] + [value.get() for value in state]
    return losses, arrays, optimizer.t, [str(w.message) for w in found if issubclass(w.category, FallbackWarning)]


def compare(rule, hook):
    static = to_static(step)
    (losses, arrays, t, _), (found, made, count, warned) = trained(step, rule, hook), trained(static, rule, hook)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    assert len(made) == len(arrays) and count == t == 4
    for one, other in zip(made, arrays):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)
    return static, warned


@pytest.mark.parametrize("rule", [name for name in RULES if name not in ("SMORMS3", "MSVAG")])
@on_double
def test_whole_steps(rule):
    static, warned = compare(rule, None)
    assert not warned and static.stats()["fallbacks"] == 0


@pytest.mark.parametrize("rule", ["SMORMS3", "MSVAG"])
@on_double
def test_rules_whose_kernels_are_not_known_update_as_in_eager_mode(rule):
    _, warned = compare(rule, None)
    assert any("CUDA kernel" in text for text in warned)


@pytest.mark.parametrize("hook", HOOKS)
@on_double
def test_hooks(hook):
    _, warned = compare("SGD", hook)
    assert not warned
