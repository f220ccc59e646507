"""Checks that raise, warn or log by what arrays hold, as models have them around losses and attributes: they compile.

PYTEST_DONT_REWRITE: what ``assert`` says is compared here.
"""
import logging
import traceback
import warnings

import against_eager
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import FallbackWarning, to_static

log = logging.getLogger("checks")


class Diverged(RuntimeError):
    """An exception of the user's."""


class Box:
    """A plain object with state."""


class Model(chainer.Chain):
    """A classifier; each case has a way of its own to compute the loss."""

    def __init__(self, forward):
        super().__init__()
        self.way = forward
        with self.init_scope():
            self.l = L.Linear(3, 4, initialW=np.linspace(-1, 1, 12, dtype="f").reshape(4, 3))


def raise_between_stores(self, x, t):
    self.y = self.l(x)
    loss = F.softmax_cross_entropy(self.y, t)
    if np.isnan(float(loss.data)):
        raise ValueError("loss is nan")
    self.score = F.mean(self.y)
    chainer.report({"loss": loss, "score": self.score}, self)
    return loss + self.score


def assert_between_reports(self, x, t):
    self.y = self.l(x)
    self.loss = F.softmax_cross_entropy(self.y, t)
    chainer.report({"loss": self.loss}, self)
    assert not np.isnan(self.loss.array), f"loss {self.loss.array} of {x.array[0]}"
    self.accuracy = F.accuracy(self.y, t)
    chainer.report({"accuracy": self.accuracy}, self)
    return self.loss


def message_with_values(self, x, t):
    self.loss = F.softmax_cross_entropy(self.l(x), t)
    if not np.isfinite(self.loss.array).all():
        raise Diverged(f"loss {self.loss.array}", float(self.loss.array), "%s" % self.loss.array)
    return self.loss


def warned_and_logged(self, x, t):
    xp = self.xp
    self.loss = F.softmax_cross_entropy(self.l(x), t)
    if xp.isnan(self.loss.array):
        warnings.warn("loss is %s" % self.loss.array)
        log.warning("loss %s", self.loss.array)
        print("nan", self.loss)
    chainer.report({"loss": self.loss}, self)
    return self.loss


def two_checks(self, x, t):
    self.y = self.l(x)
    if np.isnan(self.y.array).any():
        print("in", self.y.array.shape)
        raise Diverged("nan in y")
    self.loss = F.softmax_cross_entropy(self.y, t)
    if np.isnan(self.loss.array) or self.loss.array > 1.2:
        raise ValueError("loss is too large: {:.2f}".format(float(self.loss.array)))
    chainer.report({"loss": self.loss}, self)
    return self.loss


def list_in_a_loop(self, x, t):
    self.losses, self.parts = [], {}
    for i in range(3):
        loss = F.softmax_cross_entropy(self.l(x) * (i + 1), t)
        if np.isnan(float(loss.array)):
            raise ValueError("nan at step {}".format(i))
        assert loss.array < 1.8, i
        self.losses.append(loss)
        self.parts[i] = loss.array
    self.loss = sum(self.losses)
    chainer.report({"loss": self.loss}, self)
    return self.loss


def overwritten_in_a_loop(self, x, t):
    for i in range(3):
        self.h = self.l(x) * i
        if np.isnan(self.h.array).any():
            raise Diverged(i)
    return F.softmax_cross_entropy(self.h, t)


def caught_and_told(self, x, t):
    try:
        self.loss = F.softmax_cross_entropy(self.l(x), t)
        if np.isnan(self.loss.array):
            raise FloatingPointError(f"nan: {self.loss.array}")
    except FloatingPointError as error:
        log.warning("skipped: %s", error)
        print(f"skipped: {error}", str(error), "again %s" % error, repr(error))
        return None
    return self.loss


def ways_that_show_the_same(self, x, t):
    loss = F.softmax_cross_entropy(self.l(x), t)
    if loss.array > 1.2:
        chainer.report({"large": loss}, self)
        return loss
    chainer.report({"small": loss}, self)
    print(loss)
    if np.isnan(loss.array):
        raise Diverged("nan")
    return loss, loss * 2


def raise_before_the_forward(self, x, t):
    if np.isnan(x.array).any():
        raise ValueError(f"bad input {x.array[0, 0]}")
    self.y = self.l(x)
    return F.softmax_cross_entropy(self.y, t)


CASES = [raise_between_stores, assert_between_reports, message_with_values, warned_and_logged, two_checks, list_in_a_loop,
         overwritten_in_a_loop, caught_and_told, ways_that_show_the_same, raise_before_the_forward]


def batches():
    """Batches with usual losses, a large one, and one that is NaN; the first has neither."""
    for scale, bad in ((0.1, False), (3, False), (0.1, True), (0.2, False), (3, True), (0.3, False)):
        x = np.cos(np.arange(6, dtype="f")).reshape(2, 3) * np.float32(scale)
        if bad:
            x[1, 1] = np.nan
        yield lambda x=x: (chainer.Variable(x.copy()), np.array([1, 2], "i"))


@pytest.mark.parametrize("backend", ("numpy", "c"))
@pytest.mark.parametrize("way", CASES)
def test_a_check_that_raises_compiles(way, backend):
    said, reported = [], {"eager": [], "compiled": []}

    class Told(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())

    def make(compile):
        model = Model(way)
        run = compile(way)
        reporter = chainer.Reporter()
        reporter.add_observer("main", model)
        seen = reported["compiled" if run is not way else "eager"]

        def call(x, t):
            observation = {}
            with reporter.scope(observation):
                try:
                    return run(model, x, t)
                finally:
                    seen.append({key: f"{float(getattr(value, 'array', value)):.4f}" for key, value in observation.items()})
        return call, [model]
    handler = Told()
    log.addHandler(handler)
    log.propagate = False
    try:
        against_eager.check(make, list(batches()), rounds=1, compiled=True, backend=backend)
    finally:
        log.removeHandler(handler)
    half = len(said) // 2
    assert said[:half] == said[half:] and reported["eager"] == reported["compiled"]


def test_the_message_of_an_assert_is_made_where_it_fails_only():
    made = []

    def told(x):
        made.append(1)
        return f"{x.array.sum()}"

    def f(x):
        assert x.array.sum() > 0, told(x)
        return x * 2
    for function in (f, to_static(f)):
        made.clear()
        for sign in (1, 1, -1, 1, -1):
            try:
                function(chainer.Variable(np.full(2, sign, "f")))
            except AssertionError as error:
                assert str(error) == "-2.0"
        assert len(made) == 2


@pytest.mark.parametrize("backend", ("numpy", "c"))
def test_the_graph_of_what_was_stored_before_an_exception(backend):
    """Attributes have their creators and gradients after the exception, as eagerly, and are one object with what was shown."""
    box = Box()

    def f(w, x):
        box.h = w * x
        box.loss = F.sum(box.h * box.h)
        if box.loss.array > 10:
            print(box.loss)
            raise Diverged(box.loss)
        return box.loss * 2
    for function in (f, to_static(f, strict=True, backend=backend)):
        for scale in (1, 5, 1, 6):
            w, x = chainer.Parameter(np.array([1, 2], "f")), np.full(2, scale, "f")
            try:
                function(w, x)
            except Diverged as error:
                assert error.args[0] is box.loss and scale > 1
            else:
                assert scale == 1
            w.cleargrad()
            box.loss.backward(retain_grad=True)
            np.testing.assert_allclose(w.grad, 2 * w.array * x * x)
            np.testing.assert_allclose(box.h.grad, 2 * w.array * x)


def looked_up(x):
    try:
        if x.array.sum() > 2:
            raise ValueError("large")
    except ValueError:
        log.exception("too large")
    return x * 2


def printed(x):
    try:
        if x.array.sum() > 2:
            raise ValueError("large")
    except ValueError:
        print(traceback.format_exc().splitlines()[-1])
    return x * 2


def given_on(x):
    try:
        if x.array.sum() > 2:
            raise ValueError("large")
    except ValueError as error:
        log.error("too large", exc_info=error)
    return x * 2


@pytest.mark.parametrize("program", (looked_up, printed, given_on))
def test_what_looks_at_the_exception_that_is_handled_is_not_compiled(program):
    def inputs():
        for scale in (1, 2, 3):
            yield lambda scale=scale: (chainer.Variable(np.full(2, scale, "f")),)
    shown = []

    class Told(logging.Handler):
        def emit(self, record):
            shown.append(record.exc_info[0])
    handler = Told()
    log.addHandler(handler)
    log.propagate = False
    try:
        with pytest.warns(FallbackWarning, match="while an exception is handled"):
            to_static(program)(next(inputs())()[0])
        against_eager.check(lambda compile: (compile(program), None), inputs(), compiled=False)
    finally:
        log.removeHandler(handler)
    assert set(shown) <= {ValueError}


def test_an_object_in_two_places_when_an_exception_is_raised_is_one_object():
    box = Box()

    def f(x):
        kept = [x]
        box.a, box.b = kept, kept
        if x.array.sum() > 2:
            raise Diverged("large")
        return x * 2
    function = to_static(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scale in (1, 2, 1, 3):
            try:
                function(chainer.Variable(np.full(2, scale, "f")))
            except Diverged:
                pass
            assert box.a is box.b


def _formatted(x):
    return f"{x:d}"


def _by_percent(x):
    return "%d" % x.array


def _with_format(x):
    return format(float(x.array[0]), "d")


def _printed(x):
    return print("%d %d" % float(x.array[0]))


def _of_one_element(x):
    return "%.1f" % x.array[:1].sum()


def _transposed(x):
    return F.transpose(x, (1, 0))


def _classified(x):
    return F.softmax_cross_entropy(x, np.zeros(3, "i"))


@pytest.mark.parametrize("inner", [_formatted, _by_percent, _with_format, _printed, _of_one_element, _transposed, _classified])
def test_what_is_caught(inner):
    """A `try` catches in a compiled call what it catches eagerly."""
    def f(x):
        try:
            found = inner(x)
        except Exception as error:
            found = type(error).__name__, str(error)
        return F.tanh(x) * 2, found
    compiled = to_static(f, strict=True, backend="numpy")
    for _ in range(2):
        x = chainer.Variable(np.arange(3, dtype="f"))
        assert compiled(x)[1] == f(x)[1]


def test_a_function_of_numpy_is_replaced(monkeypatch):
    """By one that does not take what the generated text gives it."""
    original = np.tanh
    monkeypatch.setattr(np, "tanh", lambda x: original(x))
    y = to_static(lambda x: np.tanh(x.array) + F.tanh(x), backend="numpy")(chainer.Variable(np.ones(3, "f")))
    np.testing.assert_allclose(y.array, 2 * original(np.ones(3, "f")))


@pytest.mark.parametrize("join", [F.stack, F.hstack, lambda x: F.concat(x, axis=0)])
def test_a_variable_in_place_of_a_list(join):
    """Chainer asks for the truth of what it joins."""
    against_eager.check(lambda compile: compile(join), [lambda: (against_eager.variable(3),)])
