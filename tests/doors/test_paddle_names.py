"""Paddle's names for what a compiled function is and for the switches: `ignore_module`, `ProgramTranslator`, …"""
import copy
import pickle
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

import dy2static
from dy2static import InputSpec, ProgramTranslator, StaticFunction, config, ignore_module, to_static
from dy2static.runtime.staticness import IGNORED


def x_(*shape):
    return np.arange(1, 1 + np.prod(shape or (2, 3)), dtype=np.float32).reshape(shape or (2, 3))


# --- ignore_module ---

OTHERS = {
    "others": "",
    "others.inner": """
        seen = []

        def look(h):
            seen.append(float(h.array.sum()))
            if seen[-1] > 1e9:
                seen.clear()

        def total(h):
            seen.append("total")
            return float(h.array.sum())

        def double(h):
            seen.append("double")
            return h * 2

        class Keeper:
            def __init__(self):
                self.kept = []
                seen.append("made")

            def keep(self, h):
                self.kept.append(float(h.array.sum()))

            @property
            def length(self):
                seen.append("length")
                return len(self.kept)
        """,
    "others_too": """
        def look(h):
            return None
        """,
}


@pytest.fixture
def others(tmp_path, monkeypatch):
    """The module ``others.inner``; afterwards no module is ignored."""
    import importlib
    import textwrap
    (tmp_path / "others").mkdir()
    for name, text in OTHERS.items():
        path = tmp_path / "others" / ("__init__.py" if name == "others" else "inner.py")
        path = tmp_path / "others_too.py" if name == "others_too" else path
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("others.inner")
    for name in OTHERS:
        sys.modules.pop(name, None)
    IGNORED.clear()


def of_others(function, x):
    """What the explanation says of the lines."""
    return str(function.explain(x))


@pytest.mark.parametrize("given", [
    "others", "others.inner", ["others"], ("others", "others_too"), lambda inner: inner, lambda inner: [sys.modules["others"]]],
    ids=["name", "name of an inner one", "list", "tuple", "module", "list of modules"])
def test_ignored_functions_run_on_the_host(others, given):
    @to_static(strict=True)
    def f(x):
        others.look(x)
        return F.sum(x * 2)

    x = chainer.Variable(x_())
    f(x)
    assert "host, at every call: look" not in of_others(f, x)
    del others.seen[:]
    ignore_module(given(others) if callable(given) else given)
    assert f.cache_info().programs == 0
    for _ in range(3):
        y = f(x)
        x.cleargrad()
        y.backward()
        assert float(y.array) == 42 and (x.grad == 2).all()
    assert others.seen == [21.0] * 3 and f.cache_info().programs == 1
    assert "host, at every call: look (ignore_module has others.inner)" in of_others(f, x)


def test_only_whole_names_are_meant(others):
    import others_too

    @to_static(strict=True)
    def f(x):
        return others_too.look(x), x * 2

    ignore_module("others")
    f(chainer.Variable(x_()))
    assert f.stats()["host_call"] == 0


def uses_total(inner, x):
    return F.sum(x) * inner.total(x)


def uses_double(inner, x):
    return F.sum(inner.double(x))


def makes_an_object(inner, x):
    keeper = inner.Keeper()
    keeper.keep(x)
    return F.sum(x)


def uses_an_object(inner, x):
    inner.keeper.keep(x)
    return F.sum(x * 2) * len(inner.keeper.kept)


def uses_a_property(inner, x):
    inner.keeper.keep(x)
    return F.sum(x) * inner.keeper.length


@pytest.mark.parametrize("user", [uses_total, uses_double, makes_an_object, uses_an_object, uses_a_property])
@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_ignored_code_does_what_it_does(others, user):
    """Compiled or not: values, gradients and effects are those of eager."""
    ignore_module([others])
    compiled, found = to_static(user), []
    for function in (user, compiled):
        others.seen.clear()
        others.keeper = others.Keeper()
        results = []
        for k in range(4):
            x = chainer.Variable(x_() + k)
            y = function(others, x)
            y.backward()
            results += [float(y.array), x.grad.tolist()]
        found.append((results, list(others.seen), others.keeper.kept))
    assert found[0] == found[1]


def test_decorated_functions_of_ignored_modules_are_compiled(others):
    ignore_module([others])
    outer = to_static(lambda x: F.sum(x) + others.total(x))
    for name, calls in (("double", 1), ("total", 2)):
        setattr(others, name, to_static(getattr(others, name), strict=True))
        others.seen.clear()
        x = chainer.Variable(x_())
        results = [getattr(others, name)(x) for _ in range(2)]
        assert getattr(others, name).stats()["host_call"] == 0
        assert getattr(others, name).cache_info()[:4] == (1, 32, 1, 0), results
        assert others.seen == [name] * 2
    for _ in range(4):
        assert float(outer(x).array) == 42


def test_what_libraries_have_is_treated_as_ever():
    ignored = [np, chainer.functions, "math"]
    try:
        ignore_module(ignored)
        f = to_static(lambda x: F.relu(x) + np.ones((2, 3), np.float32), strict=True)
        f(chainer.Variable(x_()))
        assert f.stats()["host_call"] == 0
    finally:
        IGNORED.clear()
    with pytest.raises(dy2static.Dy2StaticError, match="takes modules"):
        ignore_module(3)


# --- what a compiled function tells ---

class Net(chainer.Chain):
    """Of a method with arrays in places of all kinds."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(3, 4)
            self.l2 = L.Linear(4, 2)

    def forward(self, x, xs=(), k=2, d=None):
        h = self.l1(x) * k
        for y in xs:
            h = h + y
        if d is not None:
            h = h + d["a"]
        return {"y": self.l2(h), "n": [h, x.shape[0], x]}


def static_net(**options):
    return to_static(type("StaticNet", (Net,), {"forward": Net.forward}), strict=True, **options)()


def test_concrete_program():
    net = static_net()
    d = {"a": chainer.Variable(x_(2, 4))}
    net(x_(), [x_(2, 4), x_(2, 4)], d=d)
    concrete = net.forward.concrete_program
    assert [(s.name, s.shape, s.dtype, s.stop_gradient) for s in concrete.inputs] == [
        ("x", (2, 3), "f", True), ("xs[0]", (2, 4), "f", True), ("xs[1]", (2, 4), "f", True), ("d['a']", (2, 4), "f", False)]
    assert [(t.name, t.shape, t.dtype, t.path) for t in concrete.outputs] == [
        ("y", (2, 2), "f", ("y",)), ("n", (2, 4), "f", ("n", 0)), ("n_1", (2, 3), "f", ("n", 2))]
    assert {id(p) for p in concrete.parameters} == {id(p) for p in net.params()}
    assert type(net).forward.concrete_program.parameters == [], "of which object is not known"
    assert repr(concrete.main_program) == "<program: x, xs, d -> y, n, n_1>"
    assert concrete.main_program.code == net.forward.program(x_(), [x_(2, 4), x_(2, 4)], d=d).code
    assert "relu" not in str(concrete.main_program) and "matmul" in str(concrete.main_program)
    forward = net.forward
    assert (forward.inputs, forward.outputs) == (concrete.inputs, concrete.outputs)
    assert forward.dygraph_function.__func__ is type(net).forward.dygraph_function


def kinds(x, *rest, scale, bias=None, **more):
    total = x * scale + sum(rest)
    return total, (total + more["last"] if bias is None else total + bias)


def test_arguments_of_all_kinds():
    f = to_static(kinds, strict=True)
    args, kwargs = [x_(), x_() + 1, x_() + 2], dict(scale=x_() + 3, last=x_() + 4)
    f(*args, **kwargs)
    program = f.main_program
    assert program.feed_names == ["x", "rest[0]", "rest[1]", "scale", "last"]
    assert [s.name for s in f.inputs] == program.feed_names
    found = program.run({"x": args[0], "rest[0]": args[1], "rest[1]": args[2], **kwargs})
    for mine, eager in zip(found, kinds(*args, **kwargs)):
        np.testing.assert_array_equal(mine, eager)
    with_bias = program.run({"x": args[0], "rest[0]": args[1], "rest[1]": args[2], "bias": 7, **kwargs})
    np.testing.assert_array_equal(with_bias[1], found[0] + 7)


def test_names_and_free_sizes_of_input_specs():
    f = to_static(lambda x, pair: x + pair[0] * pair[1], strict=True,
                  input_spec=[InputSpec([None, 3], "float32", "image"), [InputSpec([None, 3], name="a"), InputSpec([3])]])
    f(x_(), [x_(), x_(3)])
    assert [(s.name, s.shape) for s in f.inputs] == [("image", (None, 3)), ("a", (None, 3)), ("pair[1]", (3,))]
    assert f.main_program.feed_names == ["image", "pair"] and f.outputs[0].shape == (None, 3)
    y, = f.main_program.run({"image": [[1, 2, 3]] * 5, "pair": [x_(5, 3), x_(3)]}, f.outputs)
    np.testing.assert_array_equal(y, [[1, 2, 3]] + x_(5, 3) * x_(3))


SPECIFIED = {
    "one free axis": (lambda x: x * 2, [InputSpec([None, 3])], [(None, 3)]),
    "none free": (lambda x: x * 2, [InputSpec([2, 3])], [(2, 3)]),
    "one batch": (lambda x, y: F.relu(x) + y, [InputSpec([None, 3]), InputSpec([None, 3])], [(None, 3), (None, 3)]),
    "two batches": (lambda x, y: F.matmul(x, y.T), [InputSpec([None, 3]), InputSpec([None, 3])], [(None, 3), (None, 3)]),
    "lists and numbers": (lambda xs, n: xs[0] * n, [[InputSpec([None, None])], 3], [(None, None)]),
    "not free after all": (lambda x: x * np.hanning(x.shape[0]).astype("f")[:, None], [InputSpec([None, 3])], [(2, 3)]),
}


@pytest.mark.parametrize("case", SPECIFIED)
def test_a_spec_has_a_program_before_there_is_a_call(case):
    function, specs, shapes = SPECIFIED[case]
    f = to_static(function, input_spec=specs, strict=True)
    assert [s.shape for s in f.inputs] == shapes == [s.shape for s in f.concrete_program_specify_input_spec(specs).inputs]
    with pytest.raises(dy2static.Dy2StaticError, match="another input_spec"):
        f.concrete_program_specify_input_spec([InputSpec([7])])
    if case == "one batch":
        captures = f.cache_info().captures
        np.testing.assert_array_equal(f(x_(7, 3), x_(7, 3)).array, x_(7, 3) * 2)
        assert f.cache_info().captures == captures


def test_a_spec_that_no_call_can_have():
    net = to_static(Net(), input_spec=[InputSpec([None, 5])])
    with pytest.raises(chainer.utils.type_check.InvalidType):
        net.forward.main_program


WRONG_CALLS = {
    "x is ndarray, where input_spec has 2": ([2], x_()),
    "x is 3, where input_spec has 2": ([2], 3),
    "x is float32 (2, 3), where input_spec has float32 (4,)": ([x_(4)], x_()),
    "hint: give an array or a Variable": ([InputSpec([2])], [1.0, 2.0]),
}


@pytest.mark.parametrize("said", WRONG_CALLS)
def test_calls_that_are_not_as_a_spec_says(said):
    specs, given = WRONG_CALLS[said]
    with pytest.raises(dy2static.errors.SignatureError) as caught:
        to_static(lambda x: x * 2, input_spec=specs)(given)
    assert said in str(caught.value)


def test_specs_of_plain_values_and_of_anything():
    f = to_static(lambda x, n, m: x * n, input_spec=[x_(), 2, None], strict=True)
    assert f(x_(), 2, "m")[0, 1] == 4
    with pytest.raises(TypeError, match="holds InputSpecs, arrays, Variables and plain values, not object"):
        to_static(lambda x: x, input_spec=[[object()]])


def test_program_cache():
    f = to_static(lambda x: F.sum(x * 2), strict=True)
    assert len(f.program_cache) == f.get_traced_count() == 0
    with pytest.raises(dy2static.CaptureError, match="has no program yet"):
        f.concrete_program
    with pytest.raises(dy2static.CaptureError, match="has no program yet"):
        f.program_cache.last()
    for shape in ((2, 3), (3,), (2, 3), (1, 2, 3)):
        f(chainer.Variable(x_(*shape)))
    assert len(f.program_cache) == f.get_traced_count() == 3
    assert sorted(c.inputs[0].shape for c in f.program_cache.concrete_programs()) == [(1, 2, 3), (2, 3), (3,)]
    assert f.program_cache.last().inputs[0].shape == (1, 2, 3) == f.inputs[0].shape
    f(chainer.Variable(x_()))
    assert f.inputs[0].shape == (2, 3)
    assert [c.program for c in f.program_cache] == f.dispatcher.programs


FED_WRONG = {
    "nothing": ({}, None, "'x' and 'scale' are not fed"),
    "one missing": ({"x": x_()}, None, "'scale' is not fed"),
    "unknown": ({"x": x_(), "scale": x_(), "z": 1}, None, "no input 'z'"),
    "unknown result": ({"x": x_(), "scale": x_()}, ["z"], "no result 'z'"),
}


@pytest.mark.parametrize("case", FED_WRONG)
def test_fed_wrong(case):
    feed, fetch, message = FED_WRONG[case]
    f = to_static(lambda x, scale: {"y": x * scale}, strict=True)
    f(x_(), x_())
    with pytest.raises(dy2static.Dy2StaticError, match=message):
        f.main_program.run(feed, fetch)


# --- rollback ---

def doubled(x):
    return x * 2


doubled_statically = to_static(doubled)


class Places:
    """Functions in places of all kinds."""

    @to_static
    def method(self, x):
        return x * 2

    @staticmethod
    @to_static
    def static(x):
        return x * 2

    @classmethod
    @to_static
    def of_class(cls, x):
        return x * 2


@pytest.mark.parametrize("name", ["method", "static", "of_class"])
def test_rollback_of_a_class(name, monkeypatch):
    for attribute in ("method", "static", "of_class"):
        monkeypatch.setattr(Places, attribute, vars(Places)[attribute])
    before = getattr(Places(), name)
    assert (before(x_()) == x_() * 2).all()
    original = before.rollback()
    after = getattr(Places(), name)
    assert not isinstance(after, (StaticFunction, dy2static.BoundStaticFunction))
    assert getattr(original, "__func__", original) is getattr(after, "__func__", after)
    assert (after(x_()) == x_() * 2).all()


def test_rollback_of_a_global(monkeypatch):
    module = sys.modules[__name__]
    monkeypatch.setattr(module, "doubled", doubled_statically)
    caller = to_static(lambda x: doubled(x) + 1)
    assert (caller(x_()) == x_() * 2 + 1).all()
    assert doubled.rollback() is module.doubled and not isinstance(doubled, StaticFunction)
    assert (caller(x_()) == x_() * 2 + 1).all()
    monkeypatch.undo()
    assert doubled_statically.rollback() is doubled, "it was in no place"


def local_class():
    class Local(chainer.Chain):
        @to_static
        def forward(self, x):
            return F.relu(x)
    return Local


def a_class():
    return to_static(local_class().forward.rollback() and type("Local", (Net,), {}))


@pytest.mark.parametrize("make", [local_class, a_class])
def test_rollback_of_classes_that_nobody_can_name(make):
    cls = make()
    link = cls()
    assert isinstance(cls.forward, StaticFunction)
    original = link.forward.rollback()
    assert original == link.forward and original.__func__ is cls.forward and not isinstance(cls.forward, StaticFunction)
    assert cls.forward is Net.forward if make is a_class else True
    link(x_())


def test_rollback_of_a_link():
    """Others that were compiled, and other things that were done to it, stay."""
    one, other = to_static(Net()), to_static(Net())
    x = x_()
    expected = one(x)["y"].array
    caller = to_static(lambda link, x: link(x)["y"], strict=True)
    caller(one, x)
    assert one.forward.rollback() == one.forward
    assert type(one) is Net and isinstance(type(other).forward, StaticFunction)
    np.testing.assert_array_equal(one(x)["y"].array, expected)
    np.testing.assert_allclose(caller(one, x).array, expected, rtol=1e-6)
    assert type(pickle.loads(pickle.dumps(one))) is Net
    assert to_static(one) is one and isinstance(type(one).forward, StaticFunction), "it can be compiled again"


def test_rollback_of_an_attribute():
    one, other = Net(), Net()
    one.forward, other.forward = to_static(one.forward), to_static(other.forward)
    copied = copy.deepcopy(other)
    assert one.forward.rollback() == one.forward and "forward" not in vars(one)
    assert "forward" in vars(other) and isinstance(other.forward, dy2static.BoundStaticFunction)
    assert copied.forward.__self__ is copied


# --- copies ---

def test_deepcopy_of_what_is_decorated():
    x = x_()
    function = to_static(doubled)
    assert copy.deepcopy(function) is function and copy.deepcopy([function]) == [function]
    for net in (static_net(), to_static(Net())):
        expected = net(x)["y"].array
        copied = copy.deepcopy(net)
        method = copy.deepcopy(net.forward)
        assert method.__self__ is not net and method.static is net.forward.static
        net.l1.W.array[...] = 0
        for call in (copied, copied.forward, method):
            np.testing.assert_allclose(call(x)["y"].array, expected, rtol=1e-6)
        assert copied.forward.concrete_program.parameters[0] is not net.l1.W


# --- arguments of to_static ---

@pytest.mark.parametrize("options, found", [
    ({"full_graph": True}, {"strict": True}), ({"full_graph": False}, {"strict": False}), ({"backend": "CINN"}, {"backend": "c"}),
    ({"build_strategy": object()}, {}), ({"input_spec": None}, {"input_spec": ()})],
    ids=["full_graph", "not full_graph", "CINN", "build_strategy", "no input_spec"])
def test_options_of_paddle(options, found):
    asked = to_static(doubled, **options).dispatcher.options
    assert {name: getattr(asked, name) for name in found} == found


# --- ProgramTranslator ---

def test_there_is_one_translator():
    assert ProgramTranslator() is ProgramTranslator() is ProgramTranslator.get_instance()


def test_translator_turns_compilation_off():
    f = to_static(doubled, strict=True)
    f(x_())
    translator = ProgramTranslator()
    try:
        translator.enable(False)
        assert not translator.enable_to_static and not config.ENABLED.value
        assert (f(x_(3)) == x_(3) * 2).all() and f.cache_info().captures == 1
    finally:
        translator.enable(True)
    assert translator.enable_to_static and config.ENABLED.value
    f(x_(3))
    assert f.cache_info().captures == 2


@pytest.mark.parametrize("make", [
    lambda: (doubled, x_()), lambda: (to_static(doubled), x_()), lambda: (Net().forward, x_()), lambda: (Net(), x_()),
    lambda: (static_net(), x_()), lambda: (L.Linear(3, 2), x_())],
    ids=["function", "static function", "method", "link", "static link", "chainer's link"])
def test_translator_of(make):
    function, x = make()
    translator = ProgramTranslator()
    expected = function(x)
    expected = (expected["y"] if isinstance(expected, dict) else expected)
    got = translator.get_output(function, x)
    np.testing.assert_allclose(F.identity(got["y"] if isinstance(got, dict) else got).array, F.identity(expected).array, 1e-6)
    assert "def " in translator.get_code(function)
    compiled = translator.get_func(function)
    captures = compiled.cache_info().captures
    assert captures and not compiled.cache_info().fallbacks
    program, startup, inputs, outputs = translator.get_program(function, x)
    assert compiled.cache_info().captures == captures, "it is the one that was there"
    assert startup.run() == [] and [s.name for s in inputs] == program.feed_names == ["x"]
    y = program.run({"x": x}, outputs[:1])[0]
    np.testing.assert_allclose(F.identity(y).array, F.identity(expected).array, 1e-6)
