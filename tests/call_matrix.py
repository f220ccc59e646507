"""One call of Chainer functions, eagerly and compiled: what of it is compared, and which entries it reaches."""
import os
import sys

import chainer
import chainer.functions as F
import function_cases
import lowering_cases
import numpy as np
from shared_results import once

from dy2static import to_static

ROWS = [*lowering_cases.CASES, *lowering_cases.DECLINED, *function_cases.CASES]
ENTRIES = tuple(name for name in dir(F) if not name.startswith("_") and callable(getattr(F, name)))
TOLERANCE = {"float16": 2e-2, "float32": 5e-5, "float64": 1e-9}

#: Rows whose calls run eagerly, and why.
EAGER = {
    "no labels": "Chainer's own backward fails",
    "no sample": "Chainer's own backward fails",
    "tensordot from behind": "Chainer's own backward fails",
    "unpooling_2d of padded blocks": "Chainer's own backward fails",
    "einsum that Chainer differentiates wrongly": "Chainer's own backward fails",
    **dict.fromkeys(("rrelu()", "rrelu of other bounds()", "rrelu in a test()"), "it draws a single number, not an array, and reads it from the node"),
}

ORDERS = ("values", "first gradients", "second gradients")


class Call:
    """The observations of one call: per order, arrays (None where there is no gradient); or the exception that ends them.

    after: the contents of the operands, and the state of the generators.
    """

    def __init__(self, function, case, dtype, seed=0, strided=False, orders=3):
        self.found, self.requires, self.error, self.after = [], [], None, None
        self.xs = [chainer.Variable(self.sent(_strided(a) if strided else np.array(a)), requires_grad=np.asarray(a).dtype.kind == "f")
                   for a in case.arrays(dtype, seed)]
        self.seed()
        try:
            with np.errstate(all="ignore"), chainer.using_config("train", case.train):
                self._orders(function, (5, 6)[:min(orders - 1, 1 + case.twice)])
        except Exception as raised:
            self.error = type(raised), str(raised)

    def sent(self, array):
        """An operand or gradient, where calls get it."""
        return array

    def seed(self):
        """Let draws begin anew."""
        np.random.seed(3)

    def drawn(self):
        """Arrays that say what has been drawn."""
        kind, keys, *rest = np.random.get_state()
        return [keys, np.array([float(r) for r in rest])]

    def _orders(self, function, seeds):
        ys = list(variables(function(*self.xs)))
        self.after = [x.array for x in self.xs] + self.drawn()
        self.found.append([y.array if isinstance(y, chainer.Variable) else y for y in ys])
        sources = [x for x in self.xs if x.requires_grad]
        ends = [y for y in ys if isinstance(y, chainer.Variable) and y.requires_grad and y.dtype.kind == "f"]
        for seed in seeds:
            if not ends or not sources:
                return
            given = [chainer.Variable(self.sent(np.asarray(np.random.RandomState(seed + k).uniform(-1, 1, y.shape), y.dtype)))
                     for k, y in enumerate(ends)]
            gradients = chainer.grad(ends, sources, given, enable_double_backprop=seed != seeds[-1])
            self.found.append([None if gx is None else gx.array for gx in gradients])
            self.requires.append([gx is not None and gx.requires_grad for gx in gradients])
            ends = [F.identity(gx) for gx in gradients if gx is not None and gx.requires_grad]    # which may be one twice
            sources = sources + given


def _strided(a):
    """The same contents at every other place of an array."""
    a = np.asarray(a)
    return np.repeat(a, 2, -1)[..., ::2] if a.ndim else a.copy()


def variables(results):
    """The Variables and arrays in nested results."""
    if isinstance(results, (tuple, list)):
        for result in results:
            yield from variables(result)
    else:
        yield results


def compare(eager, compiled, tolerance):
    """Assert that two calls cannot be told apart."""
    assert compiled.error == eager.error, f"it raises {compiled.error}, in eager mode {eager.error}"
    assert compiled.requires == eager.requires
    assert len(compiled.found) == len(eager.found)
    for order, actual, expected in zip(ORDERS, compiled.found, eager.found):
        assert len(actual) == len(expected), order
        for a, e in zip(actual, expected):
            same(a, e, tolerance, order)
    for a, e in zip(compiled.after or (), eager.after or ()):
        same(a, e, tolerance, "operands and random state after the call")


def same(actual, expected, tolerance, what):
    assert (actual is None) == (expected is None), what
    if expected is not None:
        assert (np.shape(actual), np.asarray(actual).dtype) == (np.shape(expected), np.asarray(expected).dtype), what
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, err_msg=what)


@once(ROWS)
def matrix_row(case):
    """Compare one row in all its dtypes; what was compared, and what stayed whole.

    Single precision is called twice, the second time with other contents at strided addresses, which must be a cached call.
    """
    compared = {}
    static = to_static(case.function, strict=str(case) not in EAGER)
    for dtype in case.dtypes:
        for seed, strided in ((0, False), (1, True)) if dtype == "f" else ((0, True),):
            eager = Call(case.function, case, dtype, seed, strided)
            compare(eager, Call(static, case, dtype, seed, strided), TOLERANCE[np.dtype(dtype).name])
        if eager.error is None or eager.found:
            compared[dtype] = len(eager.found)
    info = static.cache_info()
    assert compared, "eager raises for every dtype"
    assert (info.captures == 0 < info.fallbacks) if str(case) in EAGER else (info.fallbacks == 0 and info.captures <= len(case.dtypes))
    return Row(compared, *applied(static))


class Row:
    """What one row of the matrix was found to be."""

    def __init__(self, compared, opaque, hosted):
        self.compared, self.opaque, self.hosted = compared, opaque, hosted


def applied(static):
    """The FunctionNode classes that stayed whole in a compiled function, and the NumPy and host calls."""
    opaque, hosted = set(), []
    for program in static.dispatcher.programs:
        for node in program.graph.walk():
            if node.op.name == "opaque":
                cls = type(node.attrs["call"].node)
                opaque.add(type(node.attrs["call"].node.function) if cls.__name__ == "FunctionAdapter" else cls)
            elif node.op.kind == "opaque" and node.op.name != "tape_vjp":
                hosted.append(repr(node.attrs["call"]))
    return opaque, hosted


@once(ROWS)
def entries_of(case):
    """The entries of ``chainer.functions`` that a row itself calls, and the FunctionNode classes that it applies."""
    names = {}                                  # of one function there may be several
    for name in ENTRIES:
        names.setdefault(getattr(F, name).__code__, set()).add(name)
    called, applied, here = set(), set(), os.path.dirname(__file__)

    def look(frame, event, argument):
        if event == "call" and frame.f_code in names and frame.f_back.f_code.co_filename.startswith(here):
            called.update(names[frame.f_code])
    apply = chainer.FunctionNode.apply
    chainer.FunctionNode.apply = lambda node, inputs: applied.add(type(getattr(node, "function", node))) or apply(node, inputs)
    sys.setprofile(look)
    try:
        Call(case.function, case, "f", orders=1)
    finally:
        sys.setprofile(None)
        chainer.FunctionNode.apply = apply
    return called, applied
