"""Whole training steps on a GPU: the updates of Chainer's optimizers and their hooks are in the graph."""
import re
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizer_hooks, optimizers
from cupy_double import on_device, on_double
from numpy_on_double import array

from dy2static import FallbackWarning, to_static
from dy2static.backends.registry import OF_LIBRARY
from dy2static.native import nvrtc
from dy2static.native.emulated import missing

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


def trained(function, rule, hook, dtype=np.float32, wide=False):
    np.random.seed(0)
    with chainer.using_config("dtype", dtype):
        model = L.Linear(5, 3)
    model.to_device("@cupy:0")
    optimizer = RULES[rule]()
    if wide:
        optimizer.use_fp32_update()
    optimizer.setup(model)
    if hook is not None:
        optimizer.add_hook(HOOKS[hook]())
    x, t = array(6, 5, dtype=dtype), chainer.get_device("@cupy:0").send(np.array([0, 1, 2, 0, 1, 2], np.int32))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        losses = [float(function(model, optimizer, x, t).array) for _ in range(4)]
    state = [value for p in model.params() for _, value in sorted(p.update_rule.state.items()) if not np.isscalar(value)]
    arrays = [p.array.get() for p in model.params()] + [value.get() for value in state]
    return losses, arrays, optimizer.t, [str(w.message) for w in found if issubclass(w.category, FallbackWarning)]


def compare(rule, hook, training=(), rtol=1e-3, atol=1e-6, **options):
    """training: further arguments of `trained`."""
    static = to_static(step, **options)
    (losses, arrays, t, _), (found, made, count, warned) = [trained(one, rule, hook, *training) for one in (step, static)]
    np.testing.assert_allclose(found, losses, rtol=max(1e-4, rtol / 2))
    assert len(made) == len(arrays) and count == t == 4
    for one, other in zip(made, arrays):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
    return static, warned


@pytest.mark.parametrize("rule", [name for name in RULES if name not in ("SMORMS3", "MSVAG")])
@on_double
def test_whole_steps(rule):
    static, warned = compare(rule, None)
    assert not warned and static.stats()["fallbacks"] == 0


@pytest.mark.parametrize("rule", ["SMORMS3", "MSVAG"])
@on_double
def test_rules_whose_kernels_are_not_known_update_as_in_eager_mode(rule):
    _, warned = compare(rule, None, rtol=1e-2)              # MSVAG divides by variances that are nearly zero
    assert any("CUDA kernel" in text for text in warned)


@pytest.mark.parametrize("hook", HOOKS)
@on_double
def test_hooks(hook):
    _, warned = compare("SGD", hook)
    assert not warned


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("rule", [name for name in RULES if name not in ("SMORMS3", "MSVAG")])
@on_double
def test_kernels_update_all_arrays(rule):
    """One launch for all parameters: the last program has no update as calls of CuPy."""
    static, warned = compare(rule, "WeightDecay", backend="c")
    assert not warned and static.stats()["fallbacks"] == 0
    program = static.dispatcher.programs[-1]
    text = program.native_code
    assert "def update" not in program.source and len(re.findall(r" update_\w+\(", text)) == 1
    if nvrtc.available():
        assert "spill" not in re.sub("0 bytes spill", "", nvrtc.machine_code(text, "sm_90", ["--ptxas-options=-v"]).log)


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("rule", [name for name in RULES if name not in ("SMORMS3", "MSVAG", "RMSprop")])
@on_double
def test_kernels_update_float16(rule):
    """As the kernels of eager mode do, within some units in the last place: they compute in float32, and round what they assign."""
    static, warned = compare(rule, None, (np.float16,), rtol=4e-3, atol=2e-4, backend="c")
    assert not warned and static.stats()["fallbacks"] == 0
    program = static.dispatcher.programs[-1]
    assert "def update" not in program.source and "dy_half *const p" in program.native_code


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
@on_double
def test_updates_of_float32_copies_of_float16(rule):
    """They are updated between compiled parts: Chainer assigns the gradient of the copy."""
    static, warned = compare(rule, None, (np.float16, True), rtol=4e-3, atol=2e-4, backend="c")
    assert static.stats()["fallbacks"] == 0 and all("`.grad` of a Variable is assigned" in text for text in warned)


def launched(device):
    """How many kernels an emulated device has launched."""
    return 0 if on_device() else device.launched


@pytest.mark.skipif(bool(missing()), reason=missing())
@on_double
def test_one_launch_for_arrays_of_all_sizes_and_strides():
    """More elements than a block has, none at all, and one that is not contiguous."""
    def function(a, b, c, d):
        for x in (a, b, c, d):
            x *= 0.5
            x += 2
    def arrays():
        return [array(3000), array(4, 6).T, array(0, 3), array(5, 7, 11)]
    static, device = to_static(function, backend="c", strict=True), OF_LIBRARY["cupy", True].device(0)
    static(*arrays())
    before, (compiled, eager) = launched(device), (arrays(), arrays())
    static(*compiled)
    assert on_device() or launched(device) == before + 1
    function(*eager)
    for one, other in zip(compiled, eager):
        np.testing.assert_array_equal(one.get(), other.get())


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("number", [3, 2 ** 53 + 1, True, -0.1, float("inf")], ids=str)
@on_double
def test_numbers_that_differ_from_call_to_call(number):
    def function(x, n):
        x *= n
    static = to_static(function, backend="c")
    for n in (2, 5, 1.5, number):
        one, other = array(4, 3), array(4, 3)
        static(one, n)
        function(other, n)
        np.testing.assert_array_equal(one.get(), other.get())
