"""Effects: writes, prints, draws and host calls happen as often, in the same order and as far as eagerly."""
import collections
import contextlib
import functools
import logging
import random
import types
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, variable

from dy2static import not_to_static

LOG = []
COUNTS = {"n": 0}
LEVEL = 0


class Box:
    """An object with a ``__dict__`` and nothing else."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def x23(roots=None):
    return (variable(2, 3),)


def simple(function, roots=None):
    """A program that is one function over fixed roots."""
    return lambda compile: (compile(function), roots)


# --- what is written before a failure is committed, what comes after is not ------------------------------------------------

def singular():
    return (variable(2, 3), np.zeros((2, 2), "f"))


def regular():
    return (variable(2, 3), np.eye(2, dtype="f"))


def write_then_numpy(compile):
    box = Box(before=0, after=0, log=[])

    def f(x, m):
        box.before += 1
        box.log.append("in")
        inverse = np.linalg.solve(m, m)
        box.after += 1
        return x * float(box.after) + F.sum(F.matmul(inverse, inverse))
    return compile(f), box


class Picky(chainer.FunctionNode):
    """A function of the user's that looks at values."""

    def forward(self, inputs):
        if (inputs[0] > 5).any():
            raise ValueError("too large")
        return inputs[0] * 2,

    def backward(self, indexes, gys):
        return gys[0] * 2,


def write_then_opaque(compile):
    box = Box(before=0, after=0)

    def f(x, m):
        box.before += 1
        y, = Picky().apply((x,))
        box.after += 1
        return y
    return compile(f), box


def large():
    return (chainer.Variable(np.full((2, 3), 9, "f")), None)


def host_fails(compile):
    box = Box(before=0, after=0, items=iter([1, 2]))

    def f(x, m):
        box.before += 1
        next(box.items)
        box.after += 1
        return x * 2
    return compile(f), Box(before=box, after=0)


def caught_outside_of_a_host_call(compile):
    box = Box(items=iter([1, 2]), missed=0)

    def f(x, m):
        try:
            next(box.items)
        except StopIteration:
            box.missed += 1
        return x * 2
    return compile(f), box


def finally_after_a_host_call(compile):
    box = Box(depth=0, most=0)
    source = iter([1, 2])

    def f(x, m):
        box.depth += 1
        box.most += 1
        try:
            next(source)
        finally:
            box.depth -= 1
        return x * 2
    return compile(f), box


class Scope:
    def __init__(self, box):
        self.box = box

    def __enter__(self):
        self.box.depth += 1
        return self

    def __exit__(self, *error):
        self.box.depth -= 1


def with_around_a_host_call(compile):
    box = Box(depth=0)
    source = iter([1, 2])

    def f(x, m):
        with Scope(box):
            next(source)
            return x * 2
    return compile(f), box


def suppress_around_a_host_call(compile):
    box = Box(n=0)
    source = iter([1, 2])

    def f(x, m):
        with contextlib.suppress(StopIteration):
            next(source)
            box.n += 1
        return x * 2
    return compile(f), box


def except_around_opaque(compile):
    box = Box(n=0)

    def f(x, m):
        try:
            y, = Picky().apply((x,))
        except ValueError:
            box.n += 1
            y = x
        return y
    return compile(f), box


def except_around_numpy(compile):
    def f(x, m):
        try:
            return x * F.sum(chainer.Variable(np.linalg.solve(m, m)))
        except np.linalg.LinAlgError:
            return x
    return compile(f), None


def errstate_raise(compile):
    def f(x, m):
        with np.errstate(divide="raise"):
            return x * 2, np.float32(1) / m
    return compile(f), None


FAILING = [
    (write_then_numpy, [regular, singular, regular]),
    (write_then_opaque, [x23, x23, large, x23]),
    (host_fails, [x23] * 5),
    (caught_outside_of_a_host_call, [x23] * 5),
    (finally_after_a_host_call, [x23] * 5),
    (with_around_a_host_call, [x23] * 5),
    (suppress_around_a_host_call, [x23] * 5),
    (except_around_opaque, [x23, x23, large, x23]),
    (except_around_numpy, [regular, singular, regular]),
    (errstate_raise, [lambda: (variable(2, 3), np.ones(3, "f")), singular]),
]


def padded(call):
    """A call of (x,) as one of (x, None)."""
    def padded_call():
        args = call()
        return args if len(args) == 2 else (*args, None)
    return padded_call


@pytest.mark.parametrize("make, calls", FAILING, ids=lambda value: getattr(value, "__name__", ""))
def test_failing(make, calls):
    check(make, [padded(call) for call in calls])


# --- loggers and draws ----------------------------------------------------------------------------------------------------

class Printed(logging.Handler):
    """Prints what is logged, where the comparison sees it."""

    def emit(self, record):
        print(record.levelname, record.getMessage())


LOGGER = logging.getLogger("tests.effects")
LOGGER.propagate = False
LOGGER.addHandler(Printed())


def logs(compile):
    def f(x):
        LOGGER.warning("sum %.4f of %d", x.array.sum(), x.size)
        y = F.exp(x)
        if float(y.array.max()) > 2:
            LOGGER.error("large: %.3f", float(y.array.max()))
            y = y * 0.5
        LOGGER.log(logging.CRITICAL, f"then {y.shape}")
        return y
    return compile(f), None


def draws_an_action(compile):
    """What reinforcement learning does: a choice by the probabilities of a policy, whose logarithm is kept."""
    def f(x):
        kept, taken = 0.0, []
        for row in x:
            p = F.softmax(F.expand_dims(row, 0))
            shares = p.array[0].astype("d")
            action = np.random.choice(3, p=shares / shares.sum())
            kept = kept + F.log(p)[0, action] * float(np.random.rand())
            taken.append(int(action))
        return kept, taken, np.random.multinomial(4, [0.2, 0.8])
    return compile(f), None


@pytest.mark.parametrize("make", [logs, draws_an_action])
def test_compiled_effects(make):
    check(make, [lambda seed=seed: (variable(2, 3, seed=seed),) for seed in range(4)], compiled=True)


# --- host calls see what was written before, and what they write is seen after -------------------------------------------------

def host_sees_writes(compile):
    box = Box(n=0, seen=[])

    @not_to_static
    def look():
        box.seen.append(box.n)

    def f(x):
        box.n += 1
        look()
        box.n += 1
        return x * 2
    return compile(f), box


def host_changes_a_number(compile):
    box = Box(n=0)

    @not_to_static
    def bump(target):
        target.n += 1

    def f(x):
        bump(box)
        return x * box.n
    return compile(f), box


def host_changes_a_number_read_before(compile):
    box = Box(n=1)

    @not_to_static
    def bump(target):
        target.n += 1

    def f(x):
        a = box.n
        bump(box)
        return x * a, x * box.n
    return compile(f), box


def host_changes_a_list(compile):
    box = Box(items=[1.0, 2.0, 3.0])

    @not_to_static
    def rotate():
        box.items.append(box.items.pop(0))

    def f(x):
        first = box.items[0]
        rotate()
        return x * first, x * box.items[0]
    return compile(f), box


def host_changes_an_array(compile):
    box = Box(scale=np.ones(3, "f"))

    @not_to_static
    def grow():
        box.scale = box.scale * 2

    def f(x):
        y = x * box.scale
        grow()
        return y + x * box.scale
    return compile(f), box


def host_changes_a_parameter(compile):
    model = chainer.Chain()
    with model.init_scope():
        model.W = chainer.Parameter(np.ones((2, 3), "f"))

    @not_to_static
    def grow():
        model.W.array = model.W.array * 2

    def f(x):
        y = x * model.W
        grow()
        return y + x * model.W
    return compile(f), model


def host_replaces_a_link(compile):
    model = chainer.Chain(a=chainer.links.Scale(1, (3,)))
    other = chainer.links.Scale(1, (3,))
    other.W.array[...] = 5

    @not_to_static
    def replace():
        model.a = other

    def f(x):
        replace()
        return model.a(x)
    return compile(f), model


def host_changes_a_closure(compile):
    n = 1

    @not_to_static
    def grow():
        nonlocal n
        n += 1

    def f(x):
        grow()
        return x * n
    return compile(f), None


def host_changes_a_global(compile):
    global LEVEL
    LEVEL = 1

    @not_to_static
    def grow():
        global LEVEL
        LEVEL += 1

    def f(x):
        grow()
        return x * LEVEL
    return compile(f), None


def host_mutates_a_new_list(compile):
    @not_to_static
    def fill(items):
        items.append(2.0)

    def f(x):
        items = [1.0]
        fill(items)
        return x * sum(items)
    return compile(f), None


def host_keeps_a_new_list(compile):
    kept = []

    @not_to_static
    def keep(items):
        kept.append(items)

    def f(x):
        items = [1.0]
        keep(items)
        items.append(2.0)
        return x
    return compile(f), Box(kept=kept)


def host_keeps_a_new_dict_in_a_list(compile):
    kept = []

    @not_to_static
    def keep(items):
        kept.append(items)

    def f(x):
        inner = {}
        keep([inner])
        inner["k"] = 1
        return x
    return compile(f), Box(kept=kept)


def host_keeps_an_array(compile):
    kept = []

    @not_to_static
    def keep(y):
        kept.append(y)

    def f(x):
        h = F.relu(x * 2)
        keep(h.array)
        return F.sum(h * 3)
    return compile(f), Box(kept=kept)


def host_keeps_a_variable(compile):
    kept = []

    @not_to_static
    def keep(y):
        kept.append(y)

    def f(x):
        h = F.relu(x * 2)
        keep(h)
        return F.sum(h * 3), h
    return compile(f), Box(kept=kept)


def host_calls_the_same_function(compile):
    box = Box(depth=0, made=[])

    @not_to_static
    def again(x):
        if box.depth < 2:
            box.made.append(g(x))

    def f(x):
        box.depth += 1
        again(x)
        box.depth -= 1
        return x * 2
    g = compile(f)
    return g, box


def host_result_is_none(compile):
    found = collections.OrderedDict()
    box = Box(found=found)

    def f(x):
        v = box.found.get("k")
        if v is None:
            return x * 2
        return x * 3
    return compile(f), found


def host_result_isinstance(compile):
    found = collections.OrderedDict(k={})

    def f(x):
        return x * (2 if isinstance(found.get("k"), dict) else 3)
    return compile(f), found


def host_result_hasattr(compile):
    found = collections.OrderedDict(k={})

    def f(x):
        return x * (2 if hasattr(found.get("k"), "nothing") else 3)
    return compile(f), found


def host_result_callable(compile):
    found = collections.OrderedDict(k={})

    def f(x):
        return x * (2 if callable(found.get("k")) else 3)
    return compile(f), found


def host_result_type(compile):
    found = collections.OrderedDict(k={})

    def f(x):
        return x * (2 if type(found.get("k")) is dict else 3)
    return compile(f), found


def namespace_attributes(compile):
    options = types.SimpleNamespace(bias=None, name="a", flag=True, kind=int, items=[1], n=3)

    def f(x):
        y = x if options.bias is None else x + options.bias
        print(f"{options.name}", str(options.name), "%s" % options.name, "{}".format(options.name))
        if hasattr(options, "nothing") or not isinstance(options.name, str):
            y = y * 5
        return y * 2
    return compile(f), options


class Slotted:
    __slots__ = ("bias", "name")

    def __init__(self):
        self.bias, self.name = None, "s"


def slotted_attributes(compile):
    options = Slotted()

    def f(x):
        if options.bias is None:
            return x * 2
        return x
    return compile(f), options


SEEN = [host_sees_writes, host_changes_a_number, host_changes_a_number_read_before, host_changes_a_list,
        host_changes_an_array, host_changes_a_parameter, host_replaces_a_link, host_changes_a_closure,
        host_changes_a_global, host_mutates_a_new_list, host_keeps_a_new_list, host_keeps_a_new_dict_in_a_list,
        host_keeps_an_array, host_keeps_a_variable, host_calls_the_same_function, host_result_is_none,
        host_result_isinstance, host_result_hasattr, host_result_callable, host_result_type, namespace_attributes,
        slotted_attributes]


@pytest.mark.parametrize("make", SEEN, ids=lambda value: value.__name__)
def test_host_calls(make):
    check(make, [x23] * 3)


# --- every way to write -----------------------------------------------------------------------------------------------------

class Watched:
    """Writes go through ``__setattr__``."""

    def __init__(self):
        object.__setattr__(self, "writes", 0)

    def __setattr__(self, name, value):
        COUNTS["n"] += 1
        object.__setattr__(self, name, value)


def custom_setattr(compile):
    COUNTS["n"] = 0
    box = Watched()

    def f(x):
        box.n = 3
        return x * COUNTS["n"]
    return compile(f), [box, COUNTS]


class WithSetter:
    def __init__(self):
        self._n, self.log = 0, []

    @property
    def n(self):
        return self._n

    @n.setter
    def n(self, value):
        self._n = value
        LOG.append(value)

    @n.deleter
    def n(self):
        LOG.append("gone")
        self._n = 0


def property_setter(compile):
    del LOG[:]
    box = WithSetter()

    def f(x):
        box.n += 2
        return x * box.n
    return compile(f), [box, LOG]


def property_deleter(compile):
    del LOG[:]
    box = WithSetter()

    def f(x):
        del box.n
        return x * box.n
    return compile(f), [box, LOG]


class WithItems:
    def __init__(self):
        self.n = 0

    def __getitem__(self, key):
        self.n += 1
        return key * 2

    def __setitem__(self, key, value):
        LOG.append((key, value))

    def __contains__(self, key):
        LOG.append(key)
        return key == 1

    def __len__(self):
        LOG.append("len")
        return 3

    def __iter__(self):
        LOG.append("iter")
        return iter([1.0, 2.0])

    def __call__(self, x):
        LOG.append("call")
        return x * 2

    def __bool__(self):
        LOG.append("bool")
        return True

    def __eq__(self, other):
        LOG.append("eq")
        return True

    def __hash__(self):
        LOG.append("hash")
        return 3

    def __add__(self, other):
        LOG.append("add")
        return other + 1

    __radd__ = __add__

    def __format__(self, spec):
        LOG.append("format")
        return "text"

    def __index__(self):
        LOG.append("index")
        return 1


def special_methods(compile):
    del LOG[:]
    box = WithItems()

    def f(x):
        box[1] = 2
        n = box[2] + len(box) + (1 in box) + sum(box) + (1 if box else 0) + (box == 3) + [1, 2, 3][box]
        n = n + box
        print(f"{box}")
        return box(x) * n
    return compile(f), [box, LOG]


def hashed(compile):
    del LOG[:]
    box = WithItems()

    def f(x):
        d = {box: 2}
        return x * d[box]
    return compile(f), [box, LOG]


class Mortal:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        if LOG is not None:                             # None while the interpreter ends
            LOG.append(self.name)


def finalizer(compile):
    del LOG[:]

    def f(x):
        Mortal("a")
        return x * 2
    return compile(f), [LOG]


def finalizer_of_an_old_object(compile):
    del LOG[:]
    mortal = Mortal("old")

    def f(x):
        return x * len(mortal.name)
    return compile(f), [LOG, mortal]


def function_attribute_written(compile):
    def helper(x):
        helper.n = helper.n + 1
        return x * helper.n
    helper.n = 0

    def f(x):
        return helper(x)
    return compile(f), [helper.__dict__]


def function_attribute_list(compile):
    def helper(x):
        helper.log.append(1)
        return x * len(helper.log)
    helper.log = []

    def f(x):
        return helper(x)
    return compile(f), [helper.__dict__]


def function_attribute_array(compile):
    def helper(x):
        return x * helper.scale
    helper.scale = np.ones(3, "f")
    box = Box(helper=helper)

    def f(x):
        y = helper(x)
        return y

    return compile(f), box


class Counted:
    made = 0
    names = []

    def __init__(self):
        type(self).made += 1


def class_attribute_written(compile):
    Counted.made = 0

    def f(x):
        Counted.made += 1
        return x * Counted.made
    return compile(f), None


def class_attribute_of_new_object(compile):
    Counted.made = 0

    def f(x):
        Counted()
        return x * Counted.made
    return compile(f), None


def class_list_appended(compile):
    del Counted.names[:]

    def f(x):
        Counted.names.append("a")
        return x * len(Counted.names)
    return compile(f), Counted.names


def nonlocal_written(compile):
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return x * n

    def g():
        return n
    return compile(f), Box(read=0, cell=f.__closure__[0])


def global_written(compile):
    global LEVEL
    LEVEL = 0

    def f(x):
        global LEVEL
        LEVEL += 1
        return x * LEVEL
    return compile(f), globals()["COUNTS"]


def mutable_default(compile):
    def f(x, seen=[]):
        seen.append(len(seen))
        return x * len(seen)
    return compile(f), f.__defaults__[0]


def list_methods(compile):
    box = Box(items=[3, 1, 2])

    def f(x):
        box.items.append(4)
        box.items.insert(0, 9)
        box.items.sort()
        box.items.reverse()
        box.items[1] = 7
        del box.items[0]
        box.items += [5]
        box.items.extend([6])
        box.items.remove(5)
        n = box.items.pop()
        return x * n * len(box.items)
    return compile(f), box


def dict_methods(compile):
    box = Box(d={"b": 1, "a": 2})

    def f(x):
        d = box.d
        d["c"] = d.get("c", 0) + 1
        d.setdefault("e", 0)
        d["e"] += 1
        d.update(f=3)
        d.pop("b", None)
        d["b"] = 4
        n = sum(d.values())
        for k in list(d):
            if k == "f":
                del d[k]
        return x * n
    return compile(f), box


def set_methods(compile):
    box = Box(s={1, 2})

    def f(x):
        box.s.add(len(box.s))
        box.s.discard(1)
        return x * len(box.s)
    return compile(f), box


def aliased_containers(compile):
    shared = [1]
    box = Box(a=shared, b=shared, c={"k": shared})

    def f(x):
        box.a.append(2)
        box.c["k"].append(3)
        return x * len(box.b), box.a is box.b
    return compile(f), box


def list_is_replaced_by_itself(compile):
    box = Box(items=[1, 2])

    def f(x):
        box.items = box.items
        box.other = box.items
        return x * 2, box.items
    return compile(f), box


def list_holds_new_variables(compile):
    box = Box(items=[])

    def f(x):
        box.items.append(F.relu(x))
        if len(box.items) > 2:
            del box.items[0]
        return sum(box.items)
    return compile(f), box


def plain_list_plus_shadow(compile):
    box = Box(items=[1, 2])

    def f(x):
        everything = [0] + box.items
        other = [5]
        same = other
        other += box.items
        return x * sum(everything), everything, same
    return compile(f), box


def object_made_and_kept(compile):
    box = Box(last=None)

    def f(x):
        box.last = Box(value=F.relu(x), n=1, me=box)
        return box.last
    return compile(f), box


def attribute_deleted(compile):
    box = Box(a=1)

    def f(x):
        box.b = 2
        if hasattr(box, "a"):
            del box.a
        else:
            box.a = 3
        return x * len(vars(box))
    return compile(f), box


def vars_written(compile):
    box = Box(a=1)

    def f(x):
        vars(box)["b"] = 2
        box.__dict__.update(c=3)
        setattr(box, "d", 4)
        return x * len(box.__dict__)
    return compile(f), box


def prints(compile):
    box = Box(n=0)

    def f(x):
        box.n += 1
        print("start", box.n, end=" ")
        y = F.relu(x)
        print(y, y.array, y.shape, sep="|")
        print(f"{y.array.sum():.3f}")
        return y
    return compile(f), box


def report_and_warn(compile):
    def f(x):
        warnings.warn("careful")
        chainer.report({"x": F.sum(x)})
        return x * 2
    return compile(f), None


def numpy_settings(compile):
    def f(x):
        np.seterr(over="ignore")
        return x * 2
    return compile(f), None


def new_generator(compile):
    def f(x):
        rng = np.random.RandomState(0)
        return x * rng.uniform(size=3).astype("f"), rng.randint(5)
    return compile(f), None


def new_default_generator(compile):
    def f(x):
        return x * np.random.default_rng(0).random(3).astype("f")
    return compile(f), None


def new_python_generator(compile):
    def f(x):
        return x * 2, random.Random(3).random()
    return compile(f), None


def old_generator(compile):
    box = Box(rng=np.random.RandomState(0))

    def f(x):
        return x * 2, box.rng.uniform(size=3)
    return compile(f), box


def lru_cached(compile):
    @functools.lru_cache(None)
    def scale(n):
        LOG.append(n)
        return n * 2.0

    def f(x):
        return x * scale(3)
    del LOG[:]
    return compile(f), LOG


def closure_counter(compile):
    def counter():
        n = 0

        def step():
            nonlocal n
            n += 1
            return n
        return step
    step = counter()

    def f(x):
        return x * step()
    return compile(f), step.__closure__[0]


def generator_state(compile):
    def numbers():
        n = 1
        while True:
            yield n
            n += 1
    source = numbers()

    def f(x):
        return x * next(source)
    return compile(f), None


def generator_inside(compile):
    def numbers(n):
        for i in range(n):
            LOG.append(i)
            yield i
    del LOG[:]

    def f(x):
        return x * sum(numbers(3))
    return compile(f), LOG


def deque_kept(compile):
    box = Box(last=collections.deque(maxlen=2))

    def f(x):
        y = F.relu(x)
        box.last.append(y)
        return y
    return compile(f), box


def counter_and_defaultdict(compile):
    box = Box(c=collections.Counter(), d=collections.defaultdict(list))

    def f(x):
        box.c["a"] += 1
        box.d["k"].append(1)
        return x * box.c["a"]
    return compile(f), box


def global_config_written(compile):
    chainer.global_config.dy2static_test = 0

    def f(x):
        chainer.global_config.dy2static_test += 1
        return x * chainer.global_config.dy2static_test
    return compile(f), None


def module_attribute_written(compile):
    module = types.ModuleType("made_for_this")
    module.n = 0

    def f(x):
        module.n += 1
        return x * module.n
    return compile(f), module.__dict__


def exponential_numbers(compile):
    box = Box(n=1.0)

    def f(x):
        n = box.n
        for _ in range(30):
            n = n + n
        box.n = 1.0 / n + box.n
        return x * box.n
    return compile(f), box


WRITES = [custom_setattr, property_setter, property_deleter, special_methods, hashed, finalizer,
          finalizer_of_an_old_object, function_attribute_written, function_attribute_list, function_attribute_array,
          class_attribute_written, class_attribute_of_new_object, class_list_appended, nonlocal_written, global_written,
          mutable_default, list_methods, dict_methods, set_methods, aliased_containers, list_is_replaced_by_itself,
          list_holds_new_variables, plain_list_plus_shadow, object_made_and_kept, attribute_deleted, vars_written, prints,
          report_and_warn, numpy_settings, new_generator, new_default_generator, new_python_generator, old_generator,
          lru_cached, closure_counter, generator_state, generator_inside, deque_kept, counter_and_defaultdict,
          global_config_written, module_attribute_written, exponential_numbers]


@pytest.mark.parametrize("make", WRITES, ids=lambda value: value.__name__)
def test_writes(make):
    check(make, [x23] * 3)


def _decided(x, last):
    """A write that may fail, under a decision on array values."""
    if x.array[0, 1] > last:
        found = x.array
        found[found > 0] = 0.1


PENDING = {
    "list": lambda box, x: box.items.append(x),
    "list twice": lambda box, x: (box.items.append(x), _decided(x, -0.5), box.items.append(1)),
    "deque": lambda box, x: box.last.extend((x, 1, 2)),
    "set": lambda box, x: box.seen.add(len(box.items)),
    "key": lambda box, x: box.table.pop("a", None),
    "attribute": lambda box, x: delattr(box, "n"),
}


@pytest.mark.parametrize("change", PENDING.values(), ids=PENDING)
def test_changes_before_a_decision_happen_once(change):
    """On whichever way through it they are written back first."""
    def make(compile):
        box = Box(items=[], last=collections.deque(maxlen=5), seen={-1}, table={"a": 1, "b": 2}, n=1)

        def f(x):
            change(box, x)
            _decided(x, 0.0)
            box.n = 2
            return x
        return compile(f), box
    check(make, [lambda seed=seed: (variable(2, 3, seed=seed),) for seed in range(4)], backward=False)
