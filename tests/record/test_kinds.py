"""Steps of paths, guards, builds, writes and inputs: each class has its text, its words and its JSON."""
import ast
import collections
import functools
import types
from pathlib import Path

import chainer
import numpy as np
import pytest

import dy2static
from dy2static.errors import LoadError, SaveError
from dy2static.ir.graph import Value
from dy2static.ir.types import Dynamic, Tensor
from dy2static.record import builds, guards, inputs, paths, writes
from dy2static.record.guards import joint
from dy2static.record.variables import EscapingVariable
from dy2static.runtime import definitions
from dy2static.runtime.definitions import Definitions
from dy2static.runtime.guard_tests import exact

SOURCES = paths.Sources()
SELF = SOURCES.get(paths.Argument, None, 0)
LIST = SOURCES.get(paths.Item, SOURCES.get(paths.InstanceDict, SELF), "xs")
ARRAY = SOURCES.get(paths.Argument, None, 1)
VALUE = Value(Tensor((2, 3), np.dtype("f4")), "y")
RECORD = EscapingVariable(VALUE, True, True)
Point = collections.namedtuple("Point", ["a", "b"])


class Writer:
    """Generated code in which everything has a name already."""

    def __init__(self):
        self.lines, self.arrays, self.values, self.computed = [], {ARRAY: "x_array"}, {VALUE: "r0"}, {"n1 + 1": "number_0"}
        self.variable_names, self.made = {id(RECORD): "v0"}, {}

    def path(self, source):
        return source.describe().replace("argument ", "x").replace(".", "_")

    def constant(self, value, hint="k"):
        return repr(value) if type(value) in (type(None), bool, int, str) else hint

    def bound(self, value, hint="k"):
        return hint

    def fail(self):
        return "return MISS"

    def array_differs(self, name, shape, dtype, is_argument, device):
        return f"{name}.shape != {shape}{f' on {device}' if device else ''}"

    def expression(self, build):
        return build.text(self)


class File:
    """A file that holds whatever it is given, each thing under a number."""

    def __init__(self, given=True):
        self.given, self.kept, self.checked = given, [], []

    def _keep(self, item):
        self.kept.append(item)
        return len(self.kept) - 1

    path = expression = graph_value = variable = build = marker = _keep

    def value(self, value):
        return value if value is None or type(value) in (bool, int, str) else {"kept": self._keep(value)}

    def type_name(self, cls, source):
        return self._keep(cls)

    def array_type(self, shape, dtype):
        return [self._keep(shape), self._keep(dtype)]

    def builds(self, items):
        return [self._keep(item) for item in items]

    def identity(self, source):
        return self._keep(source)

    def is_given(self, source):
        return self.given

    def is_unchanging(self, source):
        return False

    def is_atom(self, value):
        return value is None or type(value) in (bool, int, str)

    def found(self, source):
        return 3

    def check(self, guard):
        self.checked.append(guard)

    def refuse(self, source, what):
        raise SaveError(f"{source.describe()} {what}")


class Loaded(File):
    """The same file, read."""

    def __init__(self, file):
        self.kept = file.kept

    def _kept(self, said):
        return self.kept[said]

    path = expression = graph_value = variable = build = marker = type_name = _kept

    def value(self, said):
        return self.kept[said["kept"]] if type(said) is dict else said

    def array_type(self, said):
        return self.kept[said[0]], self.kept[said[1]]

    def builds(self, said):
        return tuple([self.kept[k] for k in said])


def fields(item):
    return {name: found for name, found in vars(item).items()}


STEPS = {
    paths.Argument: (None, 2, "args[2]", "argument 2"),
    paths.Keyword: (None, "scale", "kwargs['scale']", "argument scale"),
    paths.Constant: (None, chainer, "real", "chainer"),
    paths.InstanceDict: (SELF, None, "x0.__dict__", "vars(argument 0)"),
    paths.Slots: (SELF, None, "slots(x0)", "slots of argument 0"),
    paths.ClassNamespace: (SELF, None, "class_view(x0)", "argument 0"),
    paths.Shown: (LIST, None, "shown_by(x0_xs)", "argument 0.xs"),
    paths.BareItems: (LIST, None, "bare_items(x0_xs)", "argument 0.xs"),
    paths.Item: (LIST, 1, "x0_xs[1]", "argument 0.xs[1]"),
    paths.Attribute: (SELF, "shape", "x0.shape", "argument 0.shape"),
    paths.CellContents: (SELF, None, "x0.cell_contents", "argument 0"),
    paths.Length: (LIST, None, "len(x0_xs)", "len(argument 0.xs)"),
    paths.ArrayOfList: (LIST, "<i4", "array_of_list(x0_xs, '<i4')", "array(argument 0.xs)"),
    paths.ArrayOfSize: (LIST, None, "array_of_size(x0_xs)", "argument 0.xs"),
    paths.RuleState: (SELF, None, "state_of(x0)", "argument 0.update_rule.state"),
    paths.Referent: (SELF, None, "x0()", "argument 0()"),
    paths.Implementation: (SELF, int, "x0(kind)", "the implementation for int"),
}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_steps(step):
    parent, key, text, words = STEPS[step]
    source = SOURCES.get(step, parent, key)
    assert SOURCES.get(step, parent, key) is source and step(parent, key, 99).path() == source.path()
    assert (source.text(Writer()), source.describe()) == (text, words)
    assert source.variable().isidentifier()
    if step.saved and parent is not None:
        assert paths.SAVED_STEPS[step.saved] is (paths.InstanceDict if step is paths.Slots else step)


def test_what_is_at_the_end_of_a_path():
    model = types.SimpleNamespace(xs=[3, 4])
    assert paths.follow(SOURCES.get(paths.Item, LIST, 1), lambda root: model) == 4
    assert paths.follow(SOURCES.get(paths.Length, LIST), lambda root: model) == 2
    assert paths.follow(SOURCES.get(paths.Constant, None, model), lambda root: None) is model


GUARDS = (
    (guards.TypeMatch(SELF, list), "type(x0) is not type", "argument 0 has type list"),
    (guards.IdentityMatch(SELF, None), "x0 is not None", "argument 0 is None"),
    (guards.EqualsMatch(SELF, 3), "type(x0) is not type or x0 != 3", "argument 0 == 3"),
    (guards.EqualsMatch(SELF, 0.0), "type(x0) is not type or exact(x0) != k", "argument 0 == 0.0"),
    (guards.LengthMatch(LIST, 2), "len(x0_xs) != 2", "argument 0.xs has length 2"),
    (guards.ItemTypesMatch(LIST, float), "{*map(type, x0_xs)} != {type}", "argument 0.xs has items of type float"),
    (guards.KeysMatch(SELF, ("a",)), "tuple(x0) != k", "argument 0 has keys ('a',)"),
    (guards.KeyAbsent(SELF, "a"), "'a' in x0", "argument 0 has no 'a'"),
    (guards.AttributeAbsent(SELF, "a"), "hasattr(x0, 'a')", "argument 0 lacks 'a'"),
    (guards.SameObject(SELF, LIST), "x0 is not x0_xs", "argument 0 is argument 0.xs"),
    (guards.CellEmpty(SELF), "not is_empty(x0)", "argument 0 is unbound"),
    (guards.LogOff(SELF, 10), "not is_off(x0, 10)", "argument 0 is off for messages of level 10"),
    (guards.ArrayMatch(ARRAY, (2, 3), np.dtype("f4")), "x1.shape != (2, 3)", "argument 1: ndarray (2, 3) float32"),
    (guards.VariableMatch(SELF, chainer.Parameter, True, (2,), np.dtype("f4")),
     "x0._requires_grad is not True or x0._layout is not None or x0_array.shape != (2,)",
     "argument 0: Parameter (2,) float32 requires_grad=True"),
    (guards.ArrayLayout(ARRAY, (12, 4), 1285), "x1.strides != (12, 4) or x1.flags.num != 1285",
     "argument 1: an array with strides (12, 4) and flags 1285"),
    (guards.IndicesInRange(ARRAY, -4, 4), "outside(x_array, -4, 4)", "argument 1: indices in range(-4, 4)"),
    (guards.ContentsMatch(ARRAY, b"\x05"), "x1.tobytes() != contents",
     "argument 1 with the same contents, which decide sizes or what is done"),
    (guards.ExpressionMatch("n1 > 2", True), "not n1 > 2", "n1 > 2 == True"),
    (guards.DistinctObjects((SELF, LIST)), "not distinct(x0, x0_xs)", "objects that were different are now one"),
    (guards.NoOverlap((ARRAY,), ()), "overlap((x1,), ())",
     "an array that is written shares memory with another one, or is read-only"),
    (guards.SameMemory(ARRAY, ARRAY, (4, (4,), (4,))), "relation(x1, x1) != (4, (4,), (4,))",
     "two arrays, one of which is written, lie to each other in memory in another way"),
    (guards.DecimalsMatch((5, "ROUND_UP")), "decimals() != (5, 'ROUND_UP')", "the context of `decimal` is as it was"),
    (guards.DefinitionsMatch(Definitions(())), "() and definitions.changed()", "a class or a function of a library was replaced"),
    (guards.PlainReports((SELF,)), "not reports(x0)",
     "the current reporter is one of the user's, or does not know an object that reports"),
    (guards.ErrorsNotRaised(), "raised()",
     "floating-point errors or warnings are raised (`np.seterr`, `warnings.simplefilter`), inside a `try` or `with`"),
)


def test_there_is_a_row_for_each_class():
    assert {type(guard) for guard, *_ in GUARDS} == set(guards.GUARDS)
    assert {type(build) for build, _ in BUILDS} == set(builds.BUILDS)
    assert {type(write) for write, _ in WRITES} == set(writes.WRITES.values())
    assert {type(item) for item, _ in INPUTS} == set(inputs.INPUTS.values())
    kinds = [kind for kind in vars(paths).values() if isinstance(kind, type) and issubclass(kind, paths.Source)]
    assert set(kinds) - {paths.Source, paths.Namespace} == set(STEPS)


@pytest.mark.parametrize("guard, text, words", GUARDS, ids=lambda item: type(item).__name__ if isinstance(item, guards.Guard) else "")
def test_guards(guard, text, words, monkeypatch):
    monkeypatch.setattr(definitions, "unchanged", joint._unchanged_in_python)       # other tests may have put native code there
    assert (guard.fails(Writer()), guard.describe()) == (text, words)
    file = File()
    said = guard.said(file)
    if type(guard).word not in guards.SAVED_GUARDS:
        assert said is None                             # no file has it
    else:
        loaded = guards.SAVED_GUARDS[said[0]].loaded(said[1], said[2], Loaded(file))
        assert type(loaded) is type(guard) and fields(loaded) == fields(guard)


class Bound(Writer):
    """Generated code whose names can be looked up."""

    def __init__(self):
        super().__init__()
        self.space = {"exact": exact}

    def constant(self, value, hint="k"):
        self.space[name := f"k{len(self.space)}"] = value
        return name

    bound = constant


@pytest.mark.parametrize("kind, expected, value", [
    (guards.EqualsMatch, 0.0, -0.0), (guards.EqualsMatch, 0.0, 0.0), (guards.EqualsMatch, float("nan"), float("nan")),
    (guards.EqualsMatch, 1, True), (guards.EqualsMatch, 1.0, 1),
    (guards.EqualsMatch, range(0), range(1, 1)), (guards.EqualsMatch, "a", "a"),
    (guards.KeysMatch, (1, 2), {1: 0, 2: 0}), (guards.KeysMatch, (1, 2), {True: 0, 2: 0}), (guards.KeysMatch, ("a",), {"a": 0}),
    (guards.KeysMatch, (0.0,), {-0.0: 0})], ids=str)
def test_what_a_guard_tells_is_what_its_code_tells(kind, expected, value):
    guard, writer = kind(SELF, expected), Bound()
    fails = eval(guard.fails(writer), {**writer.space, writer.path(SELF): value})
    assert guard.holds(lambda source: value) is not bool(fails)


def test_facts_of_a_model_are_checked_and_not_written():
    file = File(given=False)
    assert guards.LengthMatch(LIST, 2).said(file) is None and len(file.checked) == 1
    assert guards.EqualsMatch(LIST, 2).said(file) is not None and len(file.checked) == 1


def test_guards_go_with_what_they_are_about():
    def move(source):
        return ARRAY if source is SELF else None
    assert guards.TypeMatch(SELF, list).moved(move).source is ARRAY
    assert guards.TypeMatch(LIST, list).moved(move) is None
    assert guards.SameObject(SELF, LIST).moved(move) is None
    assert guards.DistinctObjects((SELF, LIST)).moved(move) is None
    assert guards.NoOverlap((SELF,), (LIST,)).moved(move).others == ()


MARKER = object()
ONE, KEY = builds.Const(1), builds.Const("a")
BUILDS = (
    (ONE, "1"),
    (builds.FromSource(SELF), "x0"),
    (builds.FromValue(VALUE), "r0"),
    (builds.FromVariable(RECORD), "v0"),
    (builds.Number("n1 + 1"), "number_0"),
    (builds.Choice(builds.FromValue(VALUE), ((0, ONE), (1, KEY))), "(1 if r0 == 0 else 'a')"),
    (builds.TupleOf(tuple, (ONE,)), "(1,)"),
    (builds.TupleOf(Point, (ONE, KEY)), "type._make((1, 'a'))"),
    (builds.ListOf((ONE, KEY)), "[1, 'a']"),
    (builds.DictOf(((KEY, ONE),)), "{'a': 1}"),
    (builds.SetOf((ONE,)), "{1}"),
    (builds.SetOf(()), "set()"),
    (builds.ObjectOf(types.SimpleNamespace, (("a", ONE),)), "make(type, {'a': 1})"),
    (builds.Method(KEY, ONE), "type('a', 1)"),
    (builds.Partial(KEY, (ONE,), (("k", ONE),)), "type('a', 1, k=1)"),
    (builds.Call(collections.OrderedDict, (builds.DictOf(()),)), "make({})"),
    (builds.Call(functools.partial(collections.deque, maxlen=2), (builds.ListOf(()),)), "make([])"),
    (builds.Cycle(MARKER, builds.ListOf((ONE, builds.Again(MARKER)))), "made0"),
    (builds.Again(MARKER), None),
)


@pytest.mark.parametrize("build, text", BUILDS, ids=lambda item: type(item).__name__ if isinstance(item, builds.Build) else "")
def test_builds(build, text):
    writer = Writer()
    if text is None:
        writer.made[id(MARKER)] = text = "made0"
    assert build.text(writer) == text and build.describe() and builds.walk(build)[-1] is build
    assert writer.lines == ([] if not isinstance(build, builds.Cycle) else ["made0 = []", "made0.extend([1, made0])"])
    same = build.mapped(lambda part: part)
    assert type(same) is type(build) and fields(same) == fields(build)
    file = File()
    if build.word not in builds.SAVED_BUILDS:
        with pytest.raises(SaveError, match="given back or stored, which cannot be saved"):
            build.said(file)
        return
    loaded = builds.SAVED_BUILDS[build.word].loaded(build.said(file), Loaded(file))
    assert type(loaded) is type(build)
    if isinstance(build, builds.TupleOf) and build.cls is Point:
        assert loaded.cls._fields == Point._fields and loaded.elements == build.elements
    elif isinstance(build, builds.Call) and isinstance(build.function, functools.partial):
        assert loaded.function.keywords == {"maxlen": 2} and loaded.arguments == build.arguments
    else:
        assert fields(loaded) == fields(build)


def test_only_containers_contain_themselves():
    file = File()
    said = [file.marker(MARKER), file.build(ONE)]
    with pytest.raises(LoadError, match="does not contain itself"):
        builds.Cycle.loaded(said, Loaded(file))


WRITES = tuple([(writes.WRITES[word](LIST, key, build), text) for word, key, build, text in (
    ("set", "a", ONE, "x0_xs['a'] = 1"), ("delete", "a", None, "if 'a' in x0_xs: del x0_xs['a']"),
    ("list set", 0, ONE, "x0_xs[0] = 1"), ("list extend", None, builds.ListOf((ONE,)), "x0_xs.extend([1])"),
    ("list assign", None, builds.ListOf(()), "x0_xs[:] = []"), ("deque extend", None, builds.ListOf(()), "x0_xs.extend([])"),
    ("deque assign", None, builds.ListOf(()), "x0_xs.clear(); x0_xs.extend([])"),
    ("set assign", None, builds.SetOf((ONE,)), "x0_xs.clear(); x0_xs.update({1})"),
    ("cell set", None, ONE, "x0_xs.cell_contents = 1"), ("cell delete", None, None, "del x0_xs.cell_contents"),
    ("array", None, builds.FromValue(VALUE), "x0_xs[...] = r0"),
    ("array set", None, builds.FromValue(VALUE), "x0_xs.array = r0"),
    ("gradient", (True, False), builds.FromVariable(RECORD), "store_gradient(x0_xs, k, v0)"),
    ("state", "_state", ONE, "x0_xs['_state'] = 1"))])


@pytest.mark.parametrize("write, text", WRITES, ids=lambda item: item.word if isinstance(item, writes.Write) else "")
def test_writes(write, text):
    assert write.text(Writer()) == text and "argument 0.xs" in write.describe()
    file = File()
    loaded = writes.write_of(write.said(file), Loaded(file))
    assert type(loaded) is type(write) and fields(loaded) == fields(write)


@pytest.mark.parametrize("write", [write for write, _ in WRITES if write.word not in ("array", "array set", "gradient", "cell set", "cell delete")],
                         ids=lambda write: write.word)
def test_statements_do_what_stores_in_a_graph_do(write):
    made = {"set": lambda: {"a": 0}, "state": dict, "delete": lambda: {"a": 0}, "list set": lambda: [0], "list extend": lambda: [0],
            "list assign": lambda: [0], "set assign": lambda: {0}}.get(write.word, lambda: collections.deque([0]))
    value = {"set assign": {1}}.get(write.word, [1])
    container, text = made(), write.statement.format(container="container", key=repr(write.key), value="value")
    write.perform(container, write.key, value)
    other = made()
    for line in text.split("; "):
        exec(line, {"container": other, "value": value})
    assert container == other != made() or write.word.endswith("extend")


INPUTS = (
    (inputs.VariableInput(VALUE, ARRAY, True), "x_array"), (inputs.ArrayInput(VALUE, ARRAY), "x1"), (inputs.ListInput(VALUE, LIST), "[*x0_xs]"),
    (inputs.ObjectInput(Value(Dynamic(), "o"), SELF), "x0"), (inputs.NumberInput(VALUE, "n1 + 1"), "number_0"))


@pytest.mark.parametrize("item, text", INPUTS, ids=lambda item: item.word if isinstance(item, inputs.Input) else "")
def test_inputs(item, text):
    assert item.text(Writer()) == text and item.describe()
    file = File()
    loaded = inputs.input_of(item.said(file), item.value, Loaded(file))
    assert type(loaded) is type(item) and fields(loaded) == fields(item)


def test_unknown_words_of_a_file_are_refused():
    for read in (lambda: writes.write_of({"kind": "pop"}, None), lambda: inputs.input_of({"kind": "file"}, VALUE, None)):
        with pytest.raises(LoadError, match="there are no"):
            read()


def test_nobody_else_interprets_the_words():
    """What a kind means is said by its class, not by those who meet its word."""
    package = Path(dy2static.__file__).parent
    kinds = (*guards.GUARDS, *builds.BUILDS, *writes.WRITES.values(), *inputs.INPUTS.values(), *STEPS)
    assert not [kind.__name__ for kind in kinds if hasattr(kind, "kind") or hasattr(kind, "test")]
    found = [f"{path.relative_to(package)}:{node.lineno}" for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "record"
             for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
             if isinstance(node, ast.Compare) and any(isinstance(side, ast.Attribute) and side.attr == "word"
                                                      for side in (node.left, *node.comparators))]
    assert not found, f"compare a word: {found}"
