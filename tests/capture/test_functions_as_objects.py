"""Functions of the user's that compiled code asks about, keeps and compares, as any other object; and those that Python's functions call."""
import asyncio
import collections
import copy
import functools
import inspect
import itertools
import operator
import types

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from dy2static import to_static


def tripled(x):
    return x * 3


def other(x):
    return x


tripled.scale = 2


def yielding():
    yield 1


async def waiting():
    return 1


class Holder:
    def method(self, x):
        return x * 5
    method.scale = 4


Pair = collections.namedtuple("Pair", "function number")
HOLDER = Holder()


def kept_by(make):
    """Doubles where what ``make`` gives is the very function."""
    return lambda x: x * 2 if make() is tripled else x


def set_attribute():
    holder = Holder()
    setattr(holder, "callback", tripled)
    return holder.callback


def configured():
    with chainer.using_config("callback", tripled):
        return chainer.config.callback


def appended(container, add):
    getattr(container, add)(tripled)
    return container.pop()


def local_attribute(x):
    def local(a):
        return a
    setattr(local, "scale", 3)
    return local(x) * getattr(local, "scale", 1)


def wrapped(x):
    @functools.wraps(tripled)
    def wrapper(a):
        return tripled(a)
    return wrapper(x) * wrapper.scale


def found_by_identity(x):
    for function in (other, tripled):
        if function is tripled:
            x = function(x)
    return x


OBJECTS = {
    "getattr": lambda x: x * getattr(tripled, "scale", 1),
    "getattr of a method": lambda x: x * getattr(HOLDER.method, "scale", 1),
    "hasattr": lambda x: x * 2 if hasattr(tripled, "scale") and not hasattr(other, "scale") else x,
    "vars": lambda x: x * vars(tripled).get("scale", 1),
    "dir": lambda x: x * 2 if "scale" in dir(tripled) else x,
    "attrgetter": lambda x: x * operator.attrgetter("scale")(tripled),
    "default of getattr": kept_by(lambda: getattr(HOLDER, "absent", tripled)),
    "default of get": kept_by(lambda: {}.get("absent", tripled)),
    "default of pop": kept_by(lambda: {}.pop("absent", tripled)),
    "default of next": kept_by(lambda: next(iter([]), tripled)),
    "setattr": kept_by(set_attribute),
    "setdefault": kept_by(lambda: {}.setdefault("key", tripled)),
    "dict": kept_by(lambda: dict(key=tripled)["key"]),
    "OrderedDict": kept_by(lambda: collections.OrderedDict(key=tripled)["key"]),
    "list": kept_by(lambda: appended([], "append")),
    "set": kept_by(lambda: appended(set(), "add")),
    "deque": kept_by(lambda: appended(collections.deque(), "append")),
    "index": lambda x: x * [other, tripled].index(tripled),
    "fromkeys": kept_by(lambda: dict.fromkeys("ab", tripled)["b"]),
    "SimpleNamespace": kept_by(lambda: types.SimpleNamespace(function=tripled).function),
    "cycle": kept_by(lambda: next(itertools.cycle([tripled]))),
    "repeat": kept_by(lambda: list(itertools.repeat(tripled, 2))[1]),
    "zip_longest": kept_by(lambda: list(itertools.zip_longest([1, 2], [3], fillvalue=tripled))[1][1]),
    "using_config": kept_by(configured),
    "namedtuple": kept_by(lambda: Pair(tripled, 1).function),
    "_replace": kept_by(lambda: Pair(other, 1)._replace(function=tripled).function),
    "exception": kept_by(lambda: ValueError(tripled).args[0]),
    "copy": kept_by(lambda: copy.deepcopy(copy.copy(tripled))),
    "eq": lambda x: x * 2 if operator.eq(tripled, tripled) and not operator.eq(tripled, other) else x,
    "isfunction": lambda x: x * (inspect.isfunction(tripled) + 2 * inspect.isfunction(HOLDER.method) + 4 * inspect.isfunction(len)),
    "ismethod": lambda x: x * (inspect.ismethod(HOLDER.method) + 2 * inspect.ismethod(tripled)),
    "isclass": lambda x: x * (inspect.isclass(Holder) + 2 * inspect.isclass(HOLDER)),
    "isgeneratorfunction": lambda x: x * (inspect.isgeneratorfunction(yielding) + 2 * inspect.isgeneratorfunction(tripled)),
    "iscoroutinefunction": lambda x: x * (asyncio.iscoroutinefunction(waiting) + 2 * asyncio.iscoroutinefunction(tripled)),
    "local attribute": local_attribute, "wraps": wrapped, "identity": found_by_identity,
    "partial in a dict": lambda x: dict(key=functools.partial(tripled))["key"](x),
}
CALLED = {
    "map": lambda x: sum(map(tripled, [x, x])),
    "reduce": lambda x: functools.reduce(lambda a, b: a + tripled(b), [x, x, x]),
    "accumulate": lambda x: list(itertools.accumulate([x, x], lambda a, b: a * b + 1))[-1],
    "sort": lambda x: x * sorted([3, 1, 2], key=lambda v: (v - 2) ** 2)[0] * max([1, 2], key=lambda v: -v),
    "defaultdict": lambda x: x * collections.defaultdict(lambda: 2)["key"],
}


@pytest.mark.parametrize("name", [*OBJECTS, *CALLED])
def test_functions_are_what_they_are_in_eager_mode(name):
    function = {**OBJECTS, **CALLED}[name]
    x = np.arange(3, dtype=np.float32) + 1
    compiled = to_static(function, backend="numpy")
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x), function(x))
    assert compiled.stats()["fallbacks"] == 0


def counted(function):
    @functools.wraps(function)
    def wrapper(*args):
        wrapper.calls += 1
        return function(*args)
    wrapper.calls = 0
    return wrapper


def test_a_decorator_that_counts_is_one_line_of_python():
    activation = counted(lambda x: F.tanh(x) * 2)
    compiled = to_static(lambda x: F.sum(activation(x) + activation(x * 2)), backend="numpy")
    with pytest.warns(match="an attribute of the function .* is set"):
        for k in range(5):
            x = chainer.Variable(np.full(3, k, np.float32))
            np.testing.assert_allclose(compiled(x).array, 6 * np.tanh(k) + 6 * np.tanh(2 * k), rtol=1e-5)
    assert activation.calls == 10
    stats = compiled.stats()
    assert stats["fallbacks"] == 0 and stats["captures"] < 6


def halved(rule, parameter):
    parameter.grad *= 0.5


halved.call_for_each_param = True
halved.timing = "pre"


@pytest.mark.parametrize("compiled", [False, True])
def test_hooks_that_are_functions_are_called_for_each_parameter(compiled):
    model = L.Linear(3, 2, initialW=0.5)
    optimizer = chainer.optimizers.SGD(0.1).setup(model)
    optimizer.add_hook(halved, "halved")

    def step(x):
        model.cleargrads()
        loss = F.sum(model(x) ** 2)
        loss.backward()
        optimizer.update()
        return loss
    run = to_static(step, backend="numpy") if compiled else step
    losses = [float(run(np.ones((2, 3), np.float32)).array) for _ in range(3)]
    np.testing.assert_allclose(losses, [9, 0.36, 0.0144], rtol=1e-5)
    assert not compiled or (run.stats()["captures"], run.stats()["fallbacks"]) == (1, 0)


class Marked:
    def method(self, x):
        return x
    method.scale = 3


class MarkedToo(Marked):
    pass


ASKED = {
    "function": lambda x: x * getattr(tripled, "scale", 1),
    "method": lambda x: x * MARKED.method.scale,
    "getattr": lambda x: x * getattr(Marked.method, "scale", 1),
    "hasattr": lambda x: x * 2 if hasattr(MARKED.method, "later") or hasattr(tripled, "later") else x,
    "dir": lambda x: x * len([name for name in dir(MARKED) if not name.startswith("__")])}
MARKED = MarkedToo()


@pytest.mark.parametrize("name", ASKED)
def test_what_was_asked_is_guarded(name, monkeypatch):
    x, compiled = np.ones(2, np.float32), to_static(ASKED[name], backend="numpy")

    def check():
        np.testing.assert_array_equal(compiled(x), ASKED[name](x))
    check()
    for owner, attribute, item in ((tripled, "scale", 5), (Marked.method, "scale", 7), (Marked.method, "later", 1), (Marked, "later", 1),
                                   (MarkedToo, "last", 1), (MARKED, "own", 1)):
        monkeypatch.setattr(owner, attribute, item, raising=False)
        check()
    monkeypatch.undo()
    check()
    assert compiled.stats()["fallbacks"] == 0


def test_a_method_that_counts_its_calls():
    class Counts:
        def forward(self, x):
            Counts.forward.calls += 1
            return F.tanh(x)
        forward.calls = 0

    model = Counts()
    compiled = to_static(lambda x: F.sum(model.forward(x) * 2), backend="numpy")
    with pytest.warns(match="an attribute of the function .* is set"):
        for _ in range(4):
            compiled(chainer.Variable(np.ones(3, np.float32)))
    assert Counts.forward.calls == 4 and compiled.stats()["fallbacks"] == 0


def test_attributes_of_methods_that_may_change_in_place_are_refused():
    class Optioned:
        def forward(self, x):
            return x * self.forward.options["scale"]
        forward.options = {"scale": 2}

    model, x = Optioned(), np.ones(2, np.float32)
    compiled = to_static(lambda x: model.forward(x) + 1, backend="numpy")
    with pytest.warns(match="the function forward has an attribute 'options' of type dict"):
        np.testing.assert_array_equal(compiled(x), [3, 3])
    Optioned.forward.options["scale"] = 5
    np.testing.assert_array_equal(compiled(x), [6, 6])


LOG = {"losses": [3.0, 1.0, 2.0]}
RECENT, BY_NAME = collections.deque([1.0, 2.0]), collections.OrderedDict(a=1, b=2)


def methods_of_containers(x):
    return x * 2, LOG["losses"].index, LOG.get, RECENT.index, BY_NAME.get, LOG["losses"].count


def best_so_far(x):
    LOG["losses"].append(float(F.sum(x).array))
    best = min(LOG["losses"])
    return f"{best:.1f} at {LOG['losses'].index(best)}"


def test_methods_of_containers_that_leave():
    """They are Python's, of the caller's containers; also where a line runs as Python and one part gives a method to the next."""
    expected, found = methods_of_containers(np.ones(3, "f")), to_static(methods_of_containers, backend="numpy")(np.ones(3, "f"))
    assert found[1:] == expected[1:]
    assert [type(method) for method in found[1:]] == [types.BuiltinMethodType] * 5
    assert found[1](2.0) == 2 and found[2]("losses") is LOG["losses"]
    static = to_static(best_so_far, backend="numpy")
    for start in (4.0, 0.5, 2.0):
        kept = list(LOG["losses"])
        expected, LOG["losses"][:] = best_so_far(np.full(2, start, "f")), kept
        assert static(np.full(2, start, "f")) == expected
