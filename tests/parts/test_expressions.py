"""Calls inside expressions that cannot be compiled: what is evaluated before and behind them is; all is as in eager mode."""
import sys
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import pytest
from against_eager import array, check, programs, variable
from breaks import refuse

from dy2static import to_static

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python does not tell where in a line an expression stands")


def calls(n=3):
    """Calls with two Variables of other contents each time."""
    return [lambda k=k: (variable(3, 4, seed=k), variable(3, 4, seed=k + 10)) for k in range(n)]


def seen(log, name, value):
    """A value that says when it is evaluated."""
    log.append(name)
    return value


def a_callee_in_a_sum(compile):
    def block(h, w):
        h = F.tanh(h) * w
        refuse(h)
        return F.sin(h) * 2

    def f(x, w):
        x = x + F.relu(block(x * 2, w))
        x += F.exp(block(x, w)) * x
        return F.sum(F.tanh(x * refuse(2.0)) + x.reshape(refuse((3, 4)))), x
    return compile(f), []


def operands_in_order(compile):
    log = []

    def f(x, w):
        y = seen(log, "a", F.tanh(x) * w) + seen(log, "b", F.sin(x)) * refuse(seen(log, "c", w)) - seen(log, "d", F.exp(x) * 2)
        named = dict(a=seen(log, "e", y * 2 + 1), b=refuse(len(log)), c=seen(log, "f", F.relu(y) * 3))
        items = [seen(log, "g", F.sin(y) + 1), refuse(seen(log, "h", 1)), *[F.cos(y) * 2], seen(log, "i", y)]
        pairs = {seen(log, "j", 1): F.exp(y) * 2, refuse(2): seen(log, "k", F.tanh(y)), **{3: y}}
        total = named["a"] * named["b"] + named["c"] + items[0] + items[2] + pairs[1] * pairs[2] + pairs[3]
        return F.sum(total), len(log)
    return compile(f), [log]


def conditional_operands(compile):
    log = []

    def f(x, w):
        n = len(log)
        y = F.tanh(x) * 2 + (refuse(w) if n % 2 else seen(log, "else", w)) * F.sin(x)
        ok = (seen(log, 1, n) or refuse(2)) + (n and refuse(3))
        between = 0 <= n < refuse(100) < 1000
        either = F.sum(F.exp(y) * ok * between + (x if refuse(n) else w) + (refuse(n) or 2) + (refuse(1) < 2 < len(log)))
        return either, ok
    return compile(f), [log]


def starred_and_keywords(compile):
    def scaled(x, *more, by=1, **names):
        return sum(more, x) * by * len(names)

    def f(x, w):
        many = [F.tanh(x) * 2, w]
        y = F.sin(scaled(x * 2, *many, refuse(w), by=refuse(3), **{"a": F.exp(w)}, b=2)) + 1
        return F.sum(F.cos(scaled(F.tanh(y), *refuse(many), a=1))) * 2
    return compile(f), []


def inner_scopes(compile):
    def f(x, w):
        ys = F.concat([F.tanh(y) * 2 for y in refuse([x, w])], axis=0) * 2
        zs = F.sum(F.stack([refuse(y) * 2 for y in (x, w)]) + x)
        text = f"{len(ys)} {refuse(3)}" + str(refuse(4))
        return F.sum(ys * 2) * zs, text, F.sum((lambda y: refuse(y) * 2)(x) * 2 + 1)
    return compile(f), []


def targets_and_names(compile):
    def f(x, w):
        h = [F.tanh(x) * 2, 0]
        h[refuse(1)] = F.sin(h[0]) + refuse(w) * 2
        h[0] += F.exp(refuse(w)) * x
        k = (n := F.tanh(x) * 2) + refuse(n) * (n := F.sin(n) + 1) + n
        h[0], (a, b) = F.cos(refuse(k)) * 2, (refuse(h[1]) * 2 + k, F.exp(k) * 2)
        a -= F.sum(refuse(b)) * a
        return F.sum(h[0] * a + b), h[1]
    return compile(f), []


def changed_by_the_call(compile):
    class Counter:
        scale = 1.0

        def step(self, y):
            self.scale = self.scale + 1
            return refuse(y)

    counter = Counter()

    def f(x, w):
        total = 1.0

        def step(y):
            nonlocal total
            total = total + 1
            return refuse(y)

        y = counter.scale * counter.step(F.tanh(x) * 2) * counter.scale + F.sin(w) * 2
        z = total * step(F.exp(y) * 0.1) + total * F.tanh(y)
        return F.sum(y * z) * total
    return compile(f), [counter]


def in_tests_and_returns(compile):
    def f(x, w):
        h = F.tanh(x) * w
        if F.sum(F.sin(refuse(h)) * 2).array > 0:
            h = h * 2 + 1
        elif F.sum(refuse(h) * 3 + w).array > -1:
            h = F.sin(h) * 3
        else:
            h = F.exp(h) + 2
        while F.sum(F.tanh(refuse(h)) * 2).array > 3:
            h = h * 0.5 - 0.1
        for y in [F.sin(refuse(h)) * 2, w]:
            h = h + y
        return F.sum(h * refuse(w) * F.cos(h))
    return compile(f), []


class Scaled(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=array(4, 4, seed=1))
        self.__scale = 2.0

    def forward(self, x):
        return self.l(F.tanh(x) * self.__scale) + refuse(self.__scale) * self.l(x)


class Twice(Scaled):
    def forward(self, x):
        return F.relu(super().forward(x)) + F.sin(super().forward(x * 2)) * 2


def in_links(compile):
    model = Twice()

    def f(x, w):
        return F.sum(F.tanh(model(x)) * model(w) + 1)
    return compile(f), [model]


def in_a_generator(compile):
    def steps(x):
        y = F.sin(x) * refuse((yield F.tanh(x) * 2)) + F.exp(x)
        yield F.sum(y * 2)

    def f(x, w):
        made = steps(x)
        return next(made) * 2 + F.tanh(made.send(w)) * 3
    return compile(f), []


@pytest.mark.parametrize("backend, make", [("c", operands_in_order), *[("numpy", make) for make in programs(globals())]])
def test_everything_is_as_in_eager_mode(make, backend):
    check(make, calls(), strict="parts", backend=backend)


def test_only_the_call_is_taken_out():
    def block(h):
        return refuse(h)

    @to_static
    def f(x):
        h = F.tanh(x) * 2
        h = h + F.relu(block(F.sin(h) * 2)) * F.exp(h)
        return F.sum(h * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            f(variable(3))
    before, call, *_ = [line.strip() for line in f.code.splitlines() if "_dy.part_0" in line or "_dy.call" in line or "_dy.part_1" in line]
    assert "_dy.part_0(x)" in before and "_dy.call(_dy_" in call and "F.sin" not in call
    assert f.stats()["parts"] == 2 and f.stats()["cuts"] == 1


class Shaped(chainer.Chain):
    def forward(self, h, shape):
        h = F.reshape(F.tanh(h) * 2, refuse(shape))
        return F.sin(h) * 2


class Around(chainer.Chain):
    def __init__(self, looks):
        super().__init__()
        self.looks = looks
        with self.init_scope():
            self.inner = Shaped()

    def forward(self, x, shape):
        h = F.sin(x) * 2
        return (F.exp(h) * 2 + F.tanh(
            self.inner(h, shape))) * F.reshape(
                h * refuse(2), shape)


@pytest.mark.parametrize("shape", [(3,), (2, 5)])
def test_tracebacks_and_exceptions(shape):
    frames = []
    for compile in (lambda f: f, to_static):
        model = Around(True)
        forward = compile(model.forward)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(3):
                forward(variable(4), (4,))
                with pytest.raises(chainer.utils.type_check.InvalidType) as caught:
                    forward(variable(4), shape)
        frames.append([(entry.name, entry.lineno) for entry in caught.traceback if entry.path.name == "test_expressions.py"][1:])
    assert frames[0] == frames[1]


def test_what_raises_before_the_call():
    log = []

    def f(x, n):
        h = F.tanh(x) * 2
        return F.sin(h) * 2 + F.reshape(h, (n, 2)) + seen(log, "called", refuse(h)) + missing  # noqa: F821
    outcomes = []
    for compile in (lambda f: f, to_static):
        function = compile(f)
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for n in (2, 3, 2, 3):
                try:
                    function(variable(4), n)
                except Exception as error:
                    found.append((type(error), str(error)))
        outcomes.append((found, list(log)))
        log.clear()
    assert outcomes[0] == outcomes[1] and len(outcomes[0][0]) == 4


def test_values_of_expressions_do_not_stay():
    import gc
    import weakref
    dead = []

    def f(x):
        h = F.tanh(x) * 2
        y = F.sin(keep(F.exp(h) * 2)) * 2
        dead.append(kept() is None or kept().array is None)
        return F.sum(y * 2)

    def keep(y):
        nonlocal kept
        made = refuse(y) * 1
        kept = weakref.ref(made)
        return made
    kept = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        static = to_static(f)
        with chainer.no_backprop_mode():
            for _ in range(3):
                static(variable(3))
                gc.collect()
    assert all(dead[1:])


CALM = [True]


def test_a_cut_behind_the_first_line_of_an_operand_of_a_part():
    """One that shows only after another cut has made parts of the statement."""
    def f(x):
        pair = dict(
            a=F.stack(
                [x * 2 if CALM[0] else refuse(x)
                 for _ in range(3)]),
            b=F.sum(F.tanh(x)) * refuse(2.0),
            c=F.exp(x) * F.sin(x))
        return F.sum(pair["a"]) * pair["b"] + F.sum(pair["c"])
    static = to_static(f, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(12):
            CALM[0] = k < 6
            x = array(40, seed=k)
            assert abs(float(static(x).array) - float(f(x).array)) < 1e-3
    CALM[0] = True
    assert {cut.at.line - f.__code__.co_firstlineno for cut in static.dispatcher.in_parts.cuts} == {3, 5}
