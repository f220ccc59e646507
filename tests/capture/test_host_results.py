"""Results of calls that run on the host: what they are is seen once, and checked in every run."""
import functools
import sys
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable

from dy2static import not_to_static, to_static
from dy2static.errors import FallbackWarning, RunError

LOG, BUFFER = [], np.zeros((3, 4), "f")


@not_to_static
def ordered(x):
    return np.sort(x.array, axis=1)


@not_to_static
def is_big(x):
    return bool(np.abs(x.array).max() > 0.9)


@not_to_static
def moments(a):
    return a.mean(), float(a.std()), int(a.argmax()), None, "text"


@not_to_static
def table(a):
    return {"mean": a.mean(axis=0), "rows": [row.sum() for row in a]}


@not_to_static
def logged(x):
    LOG.append(float(x.array.sum()))
    return x.array * 2


@not_to_static
def nothing(x):
    return None


@not_to_static
def itself(x):
    return x.array


@not_to_static
def band(n, width=1):
    return np.tri(n, dtype="f") * width


@functools.lru_cache(maxsize=None)
def mask(n):
    return np.tri(n, dtype="f")


@not_to_static
def kept(x):
    BUFFER[...] = x.array * 2
    return BUFFER


@not_to_static
def first_row(x):
    return x.array[:1]


@not_to_static
def rebound(x):
    x.array = x.array * 2
    return 1.0


@not_to_static
def in_place(x):
    x.array[...] += 1
    return x.array.sum()


@not_to_static
def unchained(x):
    x.unchain_backward()
    return x.array


def one_buffer(x):
    h = F.exp(x)
    a = kept(h)
    y = h * a
    b = kept(y)
    return y, b, h * a


def views(x):
    h = F.exp(x)
    g, = chainer.grad([F.sum(h * first_row(h))], [x], enable_double_backprop=True)
    return g * 2, [x * row for row in map(first_row, [x, h])]


def until_it_says(x):
    steps = 0
    while is_big(x) and steps < 3:
        x, steps = x * first_row(x), steps + 1
    return x if is_big(x) else (x, steps)


def uses(helper):
    def function(x):
        h = F.tanh(x)
        return h * helper(h) + x
    return function


def decides(x):
    return F.relu(x) if is_big(x) else x * 2


def several(x):
    mean, deviation, place, none, text = moments(x.array)
    if none is None and place > 3:
        x = x * 2
    return (x - mean) / deviation, place, text


def parts(x):
    found = table(x.array)
    return x + found["mean"], found["rows"], len(found)


def in_a_loop(x):
    steps = 0
    while is_big(x) and steps < 5:
        x, steps = x * 0.8 * (1 + 0 * ordered(x)), steps + 1
    return x, steps


def in_branches(x):
    if x.array.sum() > 0:
        y = x * ordered(x)
    else:
        y = x - ordered(x * 2)
    return y


def written_later(x):
    a = x.array * 1
    b = itself(chainer.Variable(a))
    a[0] = 5
    return b, x * a


def written_argument(a):
    b = itself(chainer.Variable(a))
    a[0] = 5
    return b * 1


def with_library(x):
    weights = np.vectorize(lambda v: v * 2)(x.array)
    return x * weights


def text_decides(x):
    return x * 2 if moments(x.array)[4] == "text" else x


def twice(x):
    return x * ordered(x) + F.sum(x) * ordered(F.exp(x))


def seeds():
    return [lambda seed=seed: (variable(3, 4, seed=seed),) for seed in range(4)]


def shapes():
    return [lambda n=n: (variable(n, 4),) for n in (2, 3, 5)]


def counters():
    return [lambda k=k: (variable(3, 4), k) for k in range(8)]


def arrays():
    return [lambda seed=seed: (array(3, 4, seed=seed),) for seed in range(2)]


PROGRAMS = {
    "array": (uses(ordered), seeds, True),
    "of an effect": (uses(logged), seeds, None),
    "the argument": (uses(itself), seeds, True),
    "decides": (decides, seeds, True),
    "tuple": (several, seeds, True),
    "dict and list": (parts, seeds, True),
    "in a loop": (in_a_loop, seeds, None),
    "in branches": (in_branches, seeds, None),
    "written later": (written_later, seeds, None),
    "written argument": (written_argument, arrays, False),
    "of a library": (with_library, seeds, None),
    "text": (text_decides, seeds, False),
    "two calls": (twice, seeds, True),
    "of a number": (lambda x: F.matmul(band(x.shape[0]), x) + band(4, width=2).sum(), shapes, True),
    "of a counter": (lambda x, k: x * band(4, width=k)[:3], counters, True),
    "cached": (lambda x: F.matmul(mask(x.shape[0]), x), shapes, True),
    "partial": (lambda x: x * functools.partial(band, width=2)(4)[:3] + functools.partial(ordered, x)(), seeds, True),
    "one buffer": (one_buffer, seeds, True),
    "views": (views, seeds, True),
    "until it says": (until_it_says, seeds, True),
    "rebinds": (uses(rebound), seeds, False),
    "in place": (uses(in_place), seeds, False),
    "unchains": (uses(unchained), seeds, False),
    "None": (lambda x: x * 2 if nothing(x) is None else x, seeds, True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results(name):
    function, calls, compiled = PROGRAMS[name]

    def make(compile):
        LOG.clear()
        BUFFER[...] = 0
        mask.cache_clear()
        return compile(function), [LOG, BUFFER]
    check(make, calls(), rounds=3, compiled=compiled)


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        self.scale, self.count = 2.0, 0
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=array(4, 4))

    @not_to_static
    def scaled(self, h):
        return h.array * self.scale

    @not_to_static
    def counted(self, h):
        self.count += 1
        return h.array * self.count

    @not_to_static
    def hooked(self, h):
        return self.hook(h)

    @staticmethod
    def hook(h):
        return h.array + 1

    @not_to_static
    def variable(self, h):
        return F.relu(h)


METHODS = {"scaled": True, "counted": False, "hooked": None, "variable": False}


@pytest.mark.parametrize("name", METHODS)
def test_methods(name):
    def make(compile):
        model = Model()

        def forward(x):
            h = model.l(x)
            return model.l(h + getattr(model, name)(h)) * model.count
        return compile(forward), model
    check(make, seeds(), rounds=2, compiled=METHODS[name])


def positive():
    @not_to_static
    def positive(x):
        return x.array[x.array > 0]
    return positive


def positive_and_logged():
    @not_to_static
    def positive(x):
        LOG.append(x.array.sum())
        return x.array[x.array > 0]
    return positive


def test_other_shapes_run_eagerly():
    """The call that gives another shape is started again if nothing else has happened; so are all later ones."""
    def make(compile):
        helper = positive()
        return compile(lambda x: F.sum(x * helper(x).sum()) + helper(x).shape[0]), None
    function = check(make, seeds(), rounds=2)
    assert 1 <= function.stats()["captures"] <= 2 and function.stats()["fallbacks"]


def test_other_shapes_after_effects():
    """They raise once, and run eagerly from then on."""
    helper = positive_and_logged()
    function = to_static(lambda x: F.sum(x * helper(x).shape[0]))
    x = variable(3, 4)
    for _ in range(3):
        function(x)
    assert function.stats()["captures"] == 1
    with pytest.raises(RunError, match="positive gives a result of another type, shape or dtype"):
        function(variable(3, 4, seed=1))
    LOG.clear()
    with pytest.warns(UserWarning, match="host"):
        function(variable(3, 4, seed=1))
    assert len(LOG) == 1


def test_a_profiler_keeps_its_events():
    """Nothing is observed while another profile function is set."""
    events, function = [], to_static(uses(ordered))
    sys.setprofile(lambda *event: events.append(event[1]))
    try:
        function(variable(3, 4))
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert events and not function.stats()["captures"]
    for seed in range(2):
        function(variable(3, 4, seed=seed))
    assert function.stats()["captures"] == 1


@functools.lru_cache(maxsize=None)
def upper(n, scale=1.0):
    return np.triu(np.ones((n, n), "f")) * scale


def test_functions_of_chainer_compute_with_results():
    """Neither these nor what follows are host calls; the types of the results are learned from an eager call."""
    def make(compile):
        return compile(lambda x: F.tanh(F.matmul(x, band(4)) * 2) * np.asarray(band(4))[0]), None
    function = check(make, seeds(), rounds=2)
    assert function.stats()["host_call"] == 2 and not function.stats()["cuts"]


def test_a_function_with_a_cache_is_typed_before_its_first_call():
    """The capture calls the function without its cache, which counts the calls of each run as in eager mode."""
    def make(compile):
        return compile(lambda x: F.matmul(x, upper(4)) + F.sigmoid(x) * upper(4, scale=2.0)[0]), None
    function = check(make, seeds(), rounds=2)
    assert function.stats()["captures"] == 1 and not function.stats()["fallbacks"] and function.stats()["host_call"] == 2
    upper.cache_clear()
    for seed in range(3):
        function(variable(3, 4, seed=seed))
    assert upper.cache_info()[:2] == (4, 2)


def test_a_variable_of_a_host_call_ends_a_part():
    """Only the function that gets it runs as Python; what follows is compiled, and has gradients."""
    @not_to_static
    def squashed(x):
        return F.sigmoid(x) * 2

    weights = np.random.RandomState(1).rand(4, 4).astype("f")

    def forward(x):
        h = F.relu(squashed(x * 2))
        for _ in range(9):
            h = F.tanh(F.matmul(h, weights)) + h
        return F.sum(h)
    function, x = to_static(forward), variable(3, 4)
    with pytest.warns(FallbackWarning, match="`F.relu` computes with the result of a call that is not compiled"):
        for _ in range(2):                              # the first one is observed
            function(x)
    for _ in range(2):
        found = []
        for call in (forward, function):
            x.cleargrad()
            loss = call(x)
            loss.backward()
            found.append((loss.array, x.grad))
        np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5)
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-4)


def same(x, a, b):
    return F.relu(x), a is b, a is not b


@pytest.mark.parametrize("make", [lambda: np.random.RandomState(0), lambda: functools.partial(int, 1), lambda: bytearray(b"a")],
                         ids=["object", "partial", "bytes"])
def test_whether_two_are_one_is_guarded(make):
    f, one, other = to_static(same, strict=True), make(), make()
    for a, b in ((one, other), (other, other), (one, one), (other, one)):
        assert f(variable(3), a, b)[1:] == (a is b, a is not b)


def losses_of(model, x):
    return [F.sum(model.l(x) ** 2) * k for k in (1, 2)]


@not_to_static
def differentiate(loss):
    loss.backward()


def weights(model):
    return [p.array * 1 for p in model.params()]


def summed(model, losses):
    total = sum(losses)
    model.cleargrads()
    total.backward()
    model.optimizer.update()
    return weights(model)


def of_an_iterator(model, losses):
    model.cleargrads()
    next(losses).backward()
    model.optimizer.update()
    return weights(model)


def by_a_function(model, losses):
    loss = F.sum(model.l(array(3, 4)) ** 2)
    model.cleargrads()
    differentiate(loss)
    model.optimizer.update()
    return weights(model)


def counted_by_a_generator(model, losses):
    before = model.count
    return sum(losses), before, model.count


def counting(model, x):
    for k in range(3):
        model.count += k
        yield F.sum(model.l(x))


@pytest.mark.parametrize("function, losses", [
    (summed, lambda model, x: (y for y in losses_of(model, x))), (of_an_iterator, lambda model, x: iter(losses_of(model, x))),
    (by_a_function, lambda model, x: None), (counted_by_a_generator, counting)], ids=lambda item: item.__name__)
def test_code_that_runs_on_the_host_takes_gradients(function, losses):
    """It may be a method of what another call has given, a generator of the user's, or a function."""
    results = []
    for call in (function, to_static(function)):
        model = Model()
        model.optimizer = chainer.optimizers.Adam(0.1).setup(model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            results.append([call(model, losses(model, array(3, 4, seed=k))) for k in range(3)])
    assert all(map(equal, *results)), results


def equal(first, second):
    return len(first) == len(second) and all(
        [np.allclose(chainer.as_array(a), chainer.as_array(b), rtol=1e-4) for a, b in zip(first, second)])


def test_a_graph_that_is_not_there_yet():
    """Code that hides what it does with a Variable is told."""
    differentiate = not_to_static(lambda loss: getattr(loss, "back" + "ward")())
    function = to_static(lambda x: differentiate(F.sum(x * 2)))
    with pytest.raises(RunError, match="code that is not compiled calls `backward`"):
        function(variable(3, 4))
