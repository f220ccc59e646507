"""Every lowered function through `to_static`, against eager: values and gradients."""
import chainer
import numpy as np
import pytest
from lowering_cases import CASES
from test_lowering import close

from dy2static import to_static

#: a captured array decides how many results there are
DYNAMIC = {"split_axis [1 4]"}


def results_of(function, case):
    """The values and the gradients of one call, and which of them require a gradient."""
    xs = [chainer.Variable(np.array(a), requires_grad=np.asarray(a).dtype.kind == "f") for a in case.arrays("f")]
    np.random.seed(3)
    ys = function(*xs)
    ys = ys if isinstance(ys, (tuple, list)) else (ys,)
    ends = [y for y in ys if y.requires_grad and y.dtype.kind == "f"]
    rng = np.random.RandomState(5)
    given = [chainer.Variable(rng.uniform(-1, 1, y.shape).astype(y.dtype), requires_grad=False) for y in ends]
    gradients = chainer.grad(ends, xs, given, enable_double_backprop=True) if ends else []
    required = [y.requires_grad for y in ys] + [None if gx is None else gx.requires_grad for gx in gradients]
    return [y.array for y in ys] + [None if gx is None else gx.array for gx in gradients], required


@pytest.mark.parametrize("case", [case for case in CASES if str(case) not in DYNAMIC], ids=str)
def test_compiled(case):
    with np.errstate(all="ignore"):
        (eager, required), (compiled, requires) = (
            results_of(f, case) for f in (case.function, to_static(case.function, strict=True)))
    assert requires == required
    assert len(compiled) == len(eager)
    for actual, expected in zip(compiled, eager):
        assert (actual is None) == (expected is None)
        if expected is not None:
            assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
            close(actual, expected, "f")


ONCE = [case for case in CASES if str(case) in (
    "softmax_cross_entropy (5, 3) {}", "decov no", "tree_lstm 2", "batch_renormalization (5, 3) (1, 0)",
    "local_response_normalization (2, 3) 5")]


@pytest.mark.parametrize("case", ONCE, ids=str)
def test_second_gradient_raises(case):
    """A gradient that cannot be differentiated says so when that is tried, with Chainer's words."""
    errors = []
    for function in (case.function, to_static(case.function, strict=True)):
        xs = [chainer.Variable(a) for a in case.arrays("f")]
        y = function(*xs)
        gradients = chainer.grad([y[0] if isinstance(y, tuple) else y], xs[:1], enable_double_backprop=True)
        assert all(gx.requires_grad for gx in gradients)
        with pytest.raises((RuntimeError, NotImplementedError)) as error:
            chainer.grad([sum(gx * gx for gx in gradients)], xs)
        errors.append((type(error.value), str(error.value).split("\n")[0]))
    assert errors[0] == errors[1]
