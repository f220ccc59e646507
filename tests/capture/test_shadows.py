"""A capture leaves no trace: whatever it reached is what it was, wherever and however it ended."""
import functools
import gc
import random
import types
import weakref

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, variable

from dy2static import api, pipeline
from dy2static.capture.capture import Capture
from dy2static.heap.aborts import CaptureAborted
from dy2static.heap.dict_shadows import ShadowDict
from dy2static.heap.global_state_guard import untouched_globals
from dy2static.heap.list_shadows import ShadowList, Unread
from dy2static.heap.object_shadows import ShadowBase, ShadowModule
from dy2static.heap.objects import ShadowMeta
from dy2static.heap.set_shadows import ShadowSet
from dy2static.symbolic import host_objects, values

SETTINGS = {"scale": 2.0, "log": []}
COUNT = 0
SYMBOLIC = (values.SymbolicArray, values.SymbolicScalar, values.SymbolicVariable, host_objects.SymbolicObject, values.ArrayMethod,
            host_objects.BoundHostMethod, ShadowBase, ShadowDict, ShadowList, ShadowSet, ShadowModule, ShadowMeta, Unread)


class Helper:
    """A user's class with everything that a class may have."""

    level = 1.0
    made = []

    def __init__(self, n):
        self.n, self.history, self.table, self.members = n, [1, 2], {"a": 1.0}, {1, 2}

    @property
    def twice(self):
        return self.n * 2

    @twice.setter
    def twice(self, value):
        self.n = value / 2

    def __len__(self):
        return len(self.history)

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, 4, initialW=array(4, 3, seed=1))
            self.bn = L.BatchNormalization(4)
            self.b = L.Linear(4, 3, initialW=array(3, 4, seed=2))
        self.helper, self.calls, self.outputs, self.array = Helper(2.0), 0, [], array(3, seed=4)
        self.add_persistent("seen", 0)


def helper_function(x, seen=[]):
    seen.append(1)
    return x * len(seen) * helper_function.factor


helper_function.factor = 2.0


def make_program():
    """A function that reads, writes and calls everything, and what it can reach."""
    model, total = Model(), 0

    def program(self, x, factor, *rest, **options):
        nonlocal total
        global COUNT
        COUNT += 1
        total += factor
        self.calls += 1
        h = F.dropout(F.relu(self.bn(self.a(x))), 0.3)
        self.outputs.append(h)
        helper = self.helper
        helper.history.append(3)
        helper.history[0] = 5
        helper.table["b"] = helper.table.pop("a") + factor
        helper.members.add(factor)
        helper.twice = helper.twice + 1
        helper.fresh = Helper(factor)
        helper.last = h
        SETTINGS["log"].append(factor)
        SETTINGS["scale"] = 3.0
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            k = F.dropout(h) * SETTINGS["scale"]
        noise = np.random.rand(4).astype("f")
        picked = random.random()
        y = self.b(h * noise + k) * self.array + np.maximum(x.array, 0).mean()
        print("loss", y)
        del self.seen
        self.seen = len(helper) + picked
        rest[0]["out"] = y
        options["items"][:] = [y, h]
        return y, F.selu(y), helper_function(y), helper, rest, [F.log_softmax(y)]
    return model, program, lambda: total


def reachable(roots):
    """Everything that can be reached from some objects, by what the garbage collector sees; modules end the walk."""
    found, waiting = {}, list(roots)
    while waiting:
        item = waiting.pop()
        if id(item) in found or isinstance(item, (types.ModuleType, types.FrameType, types.TracebackType)):
            continue
        module = getattr(item, "__module__", None)
        if isinstance(item, type) and (item.__module__ or "").partition(".")[0] != __name__:
            continue
        if isinstance(item, types.FunctionType) and module != __name__:
            continue
        if isinstance(item, set) and any(isinstance(part, weakref.ref) for part in item):
            continue                                    # what abstract classes remember of ``isinstance``
        if type(item).__module__.startswith(("_pytest", "pluggy", "xdist", "execnet", "__channelexec__")):
            continue                                    # what runs the tests: another thread changes it
        if type(item).__module__.startswith("dy2static"):
            assert not isinstance(item, SYMBOLIC), type(item)
            continue
        found[id(item)] = item
        waiting += gc.get_referents(item)
    return found


def content(item):
    """What an object consists of, by identity; arrays by their bytes."""
    if isinstance(item, np.ndarray):
        return item.shape, item.dtype, item.tobytes()
    if isinstance(item, dict):
        return tuple((id(k), id(v)) for k, v in item.items())
    if isinstance(item, (list, tuple)):
        return tuple(map(id, item))
    if isinstance(item, (set, frozenset)):
        return frozenset(map(id, item))
    if isinstance(item, types.CellType):
        try:
            return id(item.cell_contents)
        except ValueError:
            return None
    if isinstance(item, type):
        return tuple((k, id(v)) for k, v in vars(item).items()), tuple(item.__subclasses__())
    return tuple((id(k), id(v)) for k, v in vars(item).items()) if hasattr(item, "__dict__") else None


class World:
    """A picture of everything reachable, and of the process-wide state a capture could touch."""

    def __init__(self, roots):
        self.objects = reachable([*roots, vars(__import__("sys").modules[__name__])])
        self.contents = {key: content(item) for key, item in self.objects.items()}
        self.state = self.globals_state()

    @staticmethod
    def globals_state():
        return (np.random.get_state()[1].tobytes(), np.random.get_state()[2:], random.getstate(), dict(vars(chainer.config._local)),
                dict(vars(chainer.global_config)), dict(chainer.get_function_hooks()), np.geterr(), chainer.FunctionNode.apply,
                chainer.Variable._init_impl, tuple(chainer.Chain.__subclasses__()), tuple(L.Linear.__subclasses__()),
                tuple(chainer.Link.__subclasses__()), tuple(Helper.__subclasses__()), tuple(Model.__subclasses__()))

    def check(self):
        for key, item in self.objects.items():
            if item is not self.__dict__ and item is not vars(__import__("sys").modules[__name__]):
                assert content(item) == self.contents[key], (type(item), item if not isinstance(item, dict) else list(item))
        assert all(a == b for a, b in zip(self.state, self.globals_state()))
        for item in reachable(self.objects.values()).values():
            assert not isinstance(item, SYMBOLIC) and not isinstance(type(item), ShadowMeta), type(item)


def call_of(program, model):
    return (model, variable(2, 3), 1.5, {}), {"items": [1]}


def compile_once(program, args, kwargs):
    with untouched_globals():
        return pipeline.compile_call(program, args, kwargs)


def symbolic_objects():
    """The symbolic values that something holds."""
    gc.collect()
    return [item for item in gc.get_objects() if isinstance(type(item), type) and issubclass(type(item), SYMBOLIC[:6])]


def test_after_success():
    model, program, total = make_program()
    args, kwargs = call_of(program, model)
    world = World([model, program, args, kwargs])
    before = {id(item): item for item in symbolic_objects()}        # what other tests keep, in tracebacks for example
    made = compile_once(program, args, kwargs)
    world.check()
    leaked = [item for item in symbolic_objects() if id(item) not in before]
    assert not leaked, leaked[:3]
    assert made.counts["nodes"] > 10 and total() == 0


def test_what_a_capture_leaves_can_be_asked_for_its_class():
    """A search through all objects that there are must not stop at them."""
    def used(*_, **__):
        raise CaptureAborted("used")
    heap = types.SimpleNamespace(is_disposed=False, capture=types.SimpleNamespace(abort=used))
    item = Unread(heap)
    with pytest.raises(CaptureAborted):
        isinstance(item, dict)
    heap.is_disposed = True
    assert not isinstance(item, dict) and isinstance(item, Unread)


def event_count():
    model, program, _ = make_program()
    args, kwargs = call_of(program, model)
    count = [0]
    original = Capture.event

    def event(self, kind, text, why=""):
        count[0] += 1
        return original(self, kind, text, why)
    Capture.event = event
    try:
        compile_once(program, args, kwargs)
    finally:
        Capture.event = original
    return count[0]


class Stop(Exception):
    """A mistake of the user's in the middle of a capture."""


@pytest.mark.parametrize("kind", ["abort", "error"])
def test_after_stopping_anywhere(kind):
    """Stopped at the n-th operation, for every n."""
    events = event_count()
    assert events > 20
    model, program, total = make_program()
    args, kwargs = call_of(program, model)
    world = World([model, program, args, kwargs])
    original = Capture.event
    for n in range(events):
        count = [0]

        def event(self, kind_, text, why=""):
            count[0] += 1
            if count[0] > n:
                if kind == "abort":
                    self.abort("stopped by the test")
                raise Stop
            return original(self, kind_, text, why)
        Capture.event = event
        try:
            with pytest.raises((CaptureAborted, Stop)):
                compile_once(program, args, kwargs)
        finally:
            Capture.event = original
        if n % 5 == 0 or n == events - 1:
            world.check()
    world.check()
    assert total() == 0


def test_user_code_cannot_swallow_the_end_of_a_capture():
    def program(x):
        for _ in range(3):
            try:
                x.array[0, 0] = 1
            except BaseException:
                SETTINGS["log"].append("swallowed")
        return x * 2
    args = (variable(2, 3),)
    world = World([program, args])
    with pytest.raises(CaptureAborted):
        compile_once(program, args, {})
    world.check()


def test_eager_state_is_untouched_when_a_call_falls_back():
    """Between an aborted capture and the eager run nothing has happened: effects are there once."""
    box = types.SimpleNamespace(items=[], n=0)
    helper = Helper(1.0)

    def program(x):
        helper.n += 1
        helper.history.append(9)
        x.array[0, 0] = 5
        return x * helper.n
    with pytest.warns(Warning):
        result = api.to_static(program)(variable(2, 3))
    assert helper.n == 2.0 and helper.history == [1, 2, 9] and float(result.array[0, 0]) == 10.0 and box.n == 0


def test_programs_hold_nothing_of_their_first_call():
    """A program outlives the objects it was captured with."""
    model, program, _ = make_program()
    args, kwargs = call_of(program, model)
    made = compile_once(program, args, kwargs)
    gone = [weakref.ref(item) for item in (model, args[1], model.a, model.helper)]
    del model, args, kwargs, program
    gc.collect()
    alive = [ref() for ref in gone if ref() is not None]
    assert made is not None and not alive, [type(item) for item in alive]


def test_partial_of_a_capture_survives_errors_in_every_function():
    """User errors inside a capture come out as they are and leave nothing."""
    def program(x, n):
        SETTINGS["log"].append(n)
        return functools.reduce(lambda a, b: a / b, [x, n])
    args = (1, 0)
    world = World([program, args])
    with pytest.raises(ZeroDivisionError):
        compile_once(program, args, {})
    world.check()
