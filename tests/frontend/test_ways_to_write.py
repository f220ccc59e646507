"""Every way in which Python and Chainer change objects, containers, names and the world: seen as often and in order."""
import collections
import functools
import random
import types
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, variable

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
