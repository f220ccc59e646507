"""Chainer's names for static graphs: what its own tests and documentation show, and what that lists as limits."""
import bdb
import copy
import io
import logging
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import FunctionNode, gradient_check, testing
from chainer import static_code as chainers_static_code

from dy2static import config, patch_chainer, static_code, static_graph, to_static
from dy2static.errors import SignatureError

RNG = np.random.RandomState(0)


def array(*shape, dtype=np.float32):
    return RNG.uniform(-1, 1, shape).astype(dtype)


def with_grads(function, roots, *args):
    """What a call gives, and the gradients of the sum of it with respect to Links and Variables."""
    for root in roots:
        root.cleargrads() if isinstance(root, chainer.Link) else root.cleargrad()
    results = function(*args)
    flat = results if isinstance(results, (list, tuple)) else [results]
    sum([F.sum(y * y) for y in flat]).backward()
    found = [y.array for y in flat]
    for root in roots:
        found += [p.grad for _, p in sorted(root.namedparams())] if isinstance(root, chainer.Link) else [root.grad]
    return found


def as_written(chain):
    """The chain's results with the decorator out of use."""
    def call(*args, **kwargs):
        with chainer.using_config("use_static_graph", False):
            return chain(*args, **kwargs)
    return call


def check(chain, make_args, times=3, extra=()):
    """Equal results and gradients, with and without static graphs, from equal random state; state of the chain included."""
    other = copy.deepcopy(chain)
    for i in range(times):
        args = make_args(i)
        seed = RNG.randint(1 << 30)
        np.random.seed(seed)
        expected = with_grads(as_written(other), [other, *extra], *args)
        np.random.seed(seed)
        got = with_grads(chain, [chain, *extra], *args)
        for mine, eager in zip(got, expected):
            testing.assert_allclose(mine, eager, atol=1e-5, rtol=1e-4)
    for (_, mine), (_, eager) in zip(sorted(chain.namedpersistent()) if hasattr(chain, "namedpersistent") else (),
                                     sorted(other.namedpersistent()) if hasattr(other, "namedpersistent") else ()):
        testing.assert_allclose(mine, eager)


class MLP(chainer.Chain):
    def __init__(self, n_in=5, n_out=6, w_dtype=np.float32, x_dtype=np.float32):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(n_in, n_out, initialW=chainer.initializers.Normal(1, w_dtype),
                               initial_bias=chainer.initializers.Normal(1, x_dtype))

    def dynamic_call(self, x):
        return F.relu(self.l1(x))

    @static_graph(verbosity_level=0)
    def static_call(self, x):
        return F.relu(self.l1(x))

    @static_graph(enable_double_backprop=True)
    def __call__(self, x):
        return F.tanh(self.l1(x))


# --- the cases of Chainer's own tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_forward_again_and_again(dtype):
    chain = MLP(x_dtype=dtype)
    x = array(4, 5, dtype=dtype)
    expected = chain.dynamic_call(x)
    with chainer.using_config("enable_backprop", False):
        for _ in range(3):
            testing.assert_allclose(chain.static_call(x).array, expected.array, atol=1e-3)
    assert chain.static_call(x).dtype == expected.dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_forward_after_a_backward_in_test_mode(dtype):
    chain = MLP(x_dtype=dtype)
    x = array(4, 5, dtype=dtype)
    expected = chain.dynamic_call(x)
    with chainer.using_config("train", False):
        first = chain.static_call(2 * x)
        first.grad = first.array.copy()
        first.backward()
        again = chain.static_call(x)
    testing.assert_allclose(again.array, expected.array, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_backward(dtype):
    chain = MLP(x_dtype=dtype)
    x, gy = array(4, 5, dtype=dtype), array(4, 6, dtype=dtype)
    with chainer.using_config("train", False):
        gradient_check.check_backward(chain, x, gy, (chain.l1.W, chain.l1.b), dtype="d", atol=1e-2, rtol=5e-2)


# --- what its documentation lists as limits -----------------------------------------------------------------------------


class Deep(chainer.Chain):
    """Dropout, batch normalisation, keyword arguments, dicts, a decision on values, side effects."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.bn, self.l2 = L.Linear(5, 8), L.BatchNormalization(8), L.Linear(8, 3)
        self.calls, self.log = 0, []

    @static_graph
    def forward(self, xs, scale=1.0, flip=False):
        h = F.dropout(F.relu(self.bn(self.l1(xs["a"]))), 0.3)
        h = h + self.l1(xs["b"][0]) * scale
        self.calls += 1
        self.log.append(float(F.sum(h).array))
        if float(F.sum(h).array) > 0:
            h = h * 2
        return self.l2(-h if flip else h)


def test_all_that_eager_does():
    chain = Deep()
    other = copy.deepcopy(chain)
    for i in range(4):
        batch = 4 + i % 2
        xs = {"a": array(batch, 5), "b": [array(batch, 5)]}
        for flip in (False, True):
            np.random.seed(i)
            with chainer.using_config("use_static_graph", False):
                expected = with_grads(lambda: other(xs, scale=0.5 + i, flip=flip), [other])
            np.random.seed(i)
            got = with_grads(lambda: chain(xs, scale=0.5 + i, flip=flip), [chain])
            for mine, eager in zip(got, expected):
                testing.assert_allclose(mine, eager, atol=1e-4, rtol=1e-4)
    assert chain.calls == other.calls == 8
    testing.assert_allclose(np.array(chain.log), np.array(other.log), rtol=1e-4)
    testing.assert_allclose(chain.bn.avg_mean, other.bn.avg_mean, rtol=1e-4)
    assert chain.bn.N == other.bn.N
    assert type(chain).forward.stats()["fallbacks"] == 0


class Stateful(chainer.Chain):
    def __init__(self, cell):
        super().__init__()
        with self.init_scope():
            self.cell = cell(4, 3)

    @static_graph
    def forward(self, xs):
        return [self.cell(x) for x in xs]


@pytest.mark.parametrize("cell", [L.LSTM, L.StatefulGRU], ids=lambda cell: cell.__name__)
def test_stateful_cells(cell):
    chain = Stateful(cell)
    other = copy.deepcopy(chain)
    for i in range(3):
        xs = [array(2, 4) for _ in range(3)]
        if i == 2:
            chain.cell.reset_state(), other.cell.reset_state()
        expected = with_grads(as_written(other), [other], xs)
        for mine, eager in zip(with_grads(chain, [chain], xs), expected):
            testing.assert_allclose(mine, eager, atol=1e-5)


def test_several_calls_before_one_backward():
    chain, xs = MLP(), [array(2, 5) for _ in range(5)]

    def total():
        return sum([F.sum(chain(x) ** 2) * (i + 1) for i, x in enumerate(xs)])

    def grads(loss):
        chain.cleargrads()
        loss.backward()
        return chain.l1.W.grad.copy()

    with chainer.using_config("use_static_graph", False):
        expected = grads(total())
    for _ in range(2):
        testing.assert_allclose(grads(total()), expected, atol=1e-5)
    first, second = total(), total()                    # no end_forward between them
    chain.schedule_manager.end_forward()
    testing.assert_allclose(grads(first), expected, atol=1e-5)
    testing.assert_allclose(grads(second), expected, atol=1e-5)


class Outer(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.inner = MLP()

    @static_graph
    def forward(self, x):
        return F.sum(self.inner(x), axis=1)


def test_static_chains_in_static_chains():
    check(Outer(), lambda i: (array(3 + i % 2, 5),))


def test_double_backward():
    chain = MLP()

    def second(x):
        v = chainer.Variable(x)
        y = F.sum(chain(v) ** 2)
        g, = chainer.grad([y], [v], enable_double_backprop=True)
        chain.cleargrads()
        F.sum(g * g).backward()
        return chain.l1.W.grad.copy()

    x = array(3, 5)
    with chainer.using_config("use_static_graph", False):
        expected = second(x)
    testing.assert_allclose(second(x), expected, atol=1e-4)


def test_lists_stay_lists_and_tuples_tuples():
    class Chain(chainer.Chain):
        @static_graph
        def forward(self, xs):
            a, (b, c) = xs
            return [a + b, (b * c,)]

    y = Chain()([array(2), (array(2), array(2))])
    assert type(y) is list and type(y[1]) is tuple


# --- the protocol of FunctionNodes --------------------------------------------------------------------------------------


class StaticMul(FunctionNode):
    """As its documentation asks: preallocated results, written in place by static code."""

    _supports_static_optimizations = True
    decorate = staticmethod(chainers_static_code)

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        x, w = inputs
        y = np.empty_like(x)
        self.multiply(inputs=[x, w], outputs=[y])
        return y,

    def backward(self, indexes, gys):
        x, w = self.get_retained_inputs()
        return gys[0] * w, gys[0] * x


class ByChainer(StaticMul):
    @chainers_static_code
    def multiply(self, inputs, outputs):
        np.multiply(inputs[0], inputs[1], out=outputs[0])


class ByUs(StaticMul):
    @static_code(func_name="multiply")
    def multiply(self, inputs, outputs):
        np.multiply(inputs[0], inputs[1], out=outputs[0])


@pytest.mark.parametrize("node", [ByChainer, ByUs])
def test_function_nodes_of_the_protocol(node):
    class Chain(MLP):
        @static_graph(strict=True)
        def forward(self, x, w):
            return self.l1(node().apply((x, w))[0])

    Chain.__call__ = chainer.Chain.__call__
    x, w = chainer.Parameter(array(3, 5)), chainer.Parameter(array(3, 5))
    check(Chain(), lambda i: (x, w), extra=[x, w])


SEEN = []


class SideEffect(MLP):
    def __init__(self):
        super().__init__()
        self.side_effect_counter = 0

    @static_code
    def side_effect(self):
        self.side_effect_counter += 1

    @static_code(func_name="scaled into y")
    def scale(self, inputs, outputs):
        np.multiply(inputs[0], 2, out=outputs[0])
        SEEN.append(float(outputs[0].sum()))

    @static_code
    def made(self, inputs):
        return inputs[0] + 1, np.sort(inputs[0])

    @static_graph(strict=True)
    def __call__(self, x):
        self.side_effect()
        h = self.l1(x)
        y = np.empty(h.shape, h.dtype)
        self.scale(inputs=[h.array], outputs=[y])
        a, b = self.made(inputs=[y])
        return h * y * a * b


def test_static_code_runs_in_every_call():
    chain = SideEffect()
    x = array(2, 5)
    with chainer.using_config("use_static_graph", False):
        expected = chain(x).array
    before = list(SEEN)
    for _ in range(3):
        testing.assert_allclose(chain(x).array, expected, atol=1e-5)
    assert chain.side_effect_counter == 4
    testing.assert_allclose(np.array(SEEN), np.array(before * 4), rtol=1e-5)


# --- the arguments and the schedules ------------------------------------------------------------------------------------


def count_of(chain):
    return type(chain).forward.stats()["captures"]


def chain_with(**options):
    class Chain(MLP):
        __call__ = chainer.Chain.__call__

        @static_graph(**options)
        def forward(self, x):
            return F.relu(self.l1(x))
    return Chain()


def test_use_static_graph():
    chain = chain_with()
    with chainer.using_config("use_static_graph", False):
        chain(array(2, 5))
    assert count_of(chain) == 0
    chain(array(2, 5))
    assert count_of(chain) == 1


def test_force_test_define_by_run():
    chain = chain_with(force_test_define_by_run=True)
    with chainer.using_config("train", False):
        chain(array(2, 5))
    assert count_of(chain) == 0
    chain(array(2, 5))
    assert count_of(chain) == 1


@pytest.mark.parametrize("minimize, left", [(True, 1), (False, 2)])
def test_minimize_cache_size(minimize, left):
    chain = chain_with(minimize_cache_size=minimize)
    chain(array(2, 5)), chain(array(3, 5))
    assert len(chain.schedule_manager.schedules) == 2
    with chainer.using_config("train", False):
        chain(array(2, 5))
    assert len(chain.schedule_manager.schedules) == left


def test_cache_memory_is_bounded():
    chain = chain_with(cache_limit=3)
    for n in range(2, 9):
        chain(array(n, 5))
    assert len(chain.schedule_manager.schedules) == 3


def test_verbosity(caplog, capsys):
    with caplog.at_level(logging.WARNING, "dy2static"):
        chain_with()(array(2, 5))
        assert not caplog.records
        chain_with(verbosity_level=1)(array(2, 5))
        assert "captured" in caplog.text
    assert capsys.readouterr().out == ""


def test_schedules_are_printed():
    chain = chain_with(backend="numpy")
    assert chain.static_schedule is None
    chain(array(2, 5))
    shown = repr(chain.schedule_manager)
    assert chain.static_schedule.code in shown and "def forward(" in shown
    assert [chain.static_schedule] in chain.schedule_manager.schedules.values()
    assert not chain.static_schedule.is_empty()
    assert chain.schedule_manager is type(chain).forward.manager


def test_schedules_are_stepped_through():
    chain = chain_with(backend="numpy")
    with config.FULL_TRACEBACK.set(1):                  # else generated code has the user's lines
        chain(array(2, 5))
    seen = []

    class Stepper(bdb.Bdb):
        def user_line(self, frame):
            if frame.f_code.co_filename.startswith("<dy2static forward"):
                seen.append(self.format_stack_entry((frame, frame.f_lineno)))
            self.set_step()

    tracer = sys.gettrace()
    try:
        Stepper().runcall(chain, array(2, 5))
    finally:
        sys.settrace(tracer)
    assert any("maximum(" in line for line in seen), seen


def test_decorated_after_the_class_is_made():
    class Chain(MLP):
        __call__ = chainer.Chain.__call__

        def forward(self, x):
            return self.l1(x)

    Chain.forward = static_graph(Chain.forward)
    chain = Chain()
    chain(array(2, 5))
    assert len(chain.schedule_manager.schedules) == 1


def test_chains_are_copied_and_saved():
    chain = chain_with()
    x = array(2, 5)
    expected = chain(x).array
    copied = copy.deepcopy(chain)
    testing.assert_allclose(copied(x).array, expected)
    target = io.BytesIO()
    chainer.serializers.save_npz(target, chain)
    target.seek(0)
    other = type(chain)()
    chainer.serializers.load_npz(target, other)
    testing.assert_allclose(other(x).array, expected)


def test_patch_chainer(monkeypatch):
    package = chainer.graph_optimizations
    for place, name in ((chainer, "static_graph"), (package.static_graph, "static_graph"), (chainer, "static_code"),
                        (package, "static_code"), (package.static_graph_utilities, "static_code")):
        monkeypatch.setattr(place, name, getattr(place, name))
    patch_chainer()
    assert chainer.static_graph is package.static_graph.static_graph is static_graph
    assert chainer.static_code is package.static_code is static_code


@pytest.mark.parametrize("wrong, message", [
    (lambda: static_graph(minimise_cache_size=True), 'static_graph has no argument \'minimise_cache_size\'\n  hint: "minimize_cache_size"?'),
    (lambda: static_graph(verbosity=1), 'static_graph has no argument \'verbosity\'\n  hint: "verbosity_level"?'),
    (lambda: to_static(strickt=True), 'to_static has no argument \'strickt\'\n  hint: "strict"?'),
    (lambda: static_graph(chainer.Chain), "a method of a chain, or a function, not the class Chain\n  hint: to_static"),
    (lambda: static_graph(True), "a method of a chain, or a function, not True"),
], ids=["name", "name of to_static", "to_static", "class", "not by name"])
def test_wrong_arguments(wrong, message):
    with pytest.raises(SignatureError) as error:
        wrong()
    assert message in str(error.value)
