"""One dict, object or number that is reached in several ways: what one of them writes, the others read."""
import collections
import decimal
import sys
import types
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest

from dy2static import FallbackWarning, to_static

SCALE = 1.0
NAMES = globals()
THIS = sys.modules[__name__]


class Plain:
    pass


class Borg:
    kept = {}

    def __init__(self):
        self.__dict__ = Borg.kept


def holder(**attributes):
    made = Plain()
    made.__dict__.update(attributes)
    return made


def vars_of_an_object():
    o = holder(k=1.0)
    held = vars(o)

    def step(x, i):
        held["k"] = i * 1.0
        y = x * o.k
        o.k = 2.0
        return y, held["k"], held is vars(o), list(held)
    return step


def vars_that_are_read_first():
    o = holder(k=1.0)
    at = types.SimpleNamespace(held=vars(o))

    def step(x, i):
        y = x * at.held["k"]
        o.k = i + y.shape[0]
        at.o = o
        return y, at.held["k"], at.o is o
    return step


def globals_of_a_function():
    def step(x, i):
        global SCALE
        SCALE = i * 0.5
        y = x * NAMES["SCALE"]
        NAMES["SCALE"] = 7.0
        return y, SCALE, THIS.SCALE
    return step


def names_of_a_module():
    def step(x, i):
        THIS.SCALE = i + 2.0
        y = x * SCALE
        return y, NAMES["SCALE"]
    return step


def objects_with_one_dict():
    a, b = Borg(), Borg()
    a.k = 1.0

    def step(x, i):
        y = x * a.k
        b.k = b.k + i
        return y * a.k, a.k, b.k
    return step


def objects_that_come_to_have_one_dict():
    a, b = holder(k=1.0), holder(k=5.0)

    def step(x, i):
        a.k = i * 1.0
        return x * b.k, a.k

    def before(i):
        b.__dict__ = a.__dict__ if i in (3, 4, 5) else {"k": 5.0}
    return step, before


def a_view_of_a_dict():
    held = {"k": 1.0}
    view = types.MappingProxyType(held)

    def step(x, i):
        held["k"] = i * 0.5
        return x * view["k"], len(view), list(view)
    return step


def defaults_that_are_read():
    def scaled(x, acc=[1.0], *, more={"k": 1.0}):
        acc.append(len(acc))
        return x * acc[-1] * more["k"]

    def step(x, i):
        return scaled(x) * scaled.__defaults__[0][-1], getattr(scaled, "__kwdefaults__")["more"]["k"]

    def before(i):
        scaled.__kwdefaults__["more"]["k"] = i * 0.5
    return step, before


def cells_that_are_read():
    held = [1.0]

    def scaled(x):
        return x * held[0]

    def step(x, i):
        return scaled(x) * scaled.__closure__[0].cell_contents[0] * scaled.__globals__["SCALE"]

    def before(i):
        global SCALE
        held[0], SCALE = i * 1.0, i + 0.5
    return step, before


def the_class_of_a_method():
    class Base:
        k = 2.0

        def scaled(self, x):
            return x * __class__.k

    class Derived(Base):
        k = 3.0

        def scaled(self, x):
            return super().scaled(x) * __class__.k, __class__.__name__, type(self) is __class__

    o = Derived()

    def step(x, i):
        return o.scaled(x)

    def before(i):
        Base.k, Derived.k = i * 0.5, 1.0 + i % 2
    return step, before


def which_of_two_nans():
    first, second = float("nan"), float("nan")
    at = types.SimpleNamespace(one=first, other=first, all=[first, 1.0])

    def step(x, i):
        return x * 2, at.one is at.other, at.other in at.all, [at.one] == [at.other]

    def before(i):
        at.other = (first, second)[i // 2 % 2]
    return step, before


def numbers_among_which_are_nans():
    nan = float("nan")
    at = types.SimpleNamespace(one=nan, all=[nan, 1.0])

    def step(x, i):
        return x * at.one, at.one in at.all, [at.one] == at.all[:1]

    def before(i):
        at.one = (nan, 1.0, float("nan"), 2.0)[i % 4]
    return step, before


def decimals():
    at = types.SimpleNamespace(k=decimal.Decimal("1.23456789"))

    def step(x, i):
        third = decimal.Decimal(1) / decimal.Decimal(3)
        return x * float(at.k * at.k), str(third)

    def before(i):
        decimal.getcontext().prec = 4 + i // 2 % 2
    return step, before


def equal_strings_and_numbers():
    at = types.SimpleNamespace(one="".join(["a", "b"]), other="".join(["a", "b"]), n=1000.5, m=1000.5)
    first, second = at.one, at.n

    def step(x, i):
        return x * 2, at.one is at.other, at.n is at.m, at.one == at.other, at.p is at.q

    def before(i):
        at.other = first if i // 2 % 2 else "".join(["a", "b"])
        at.m = second if i // 2 % 2 else float("1000.5")
        at.p = int("100%d" % i)
        at.q = at.p if i // 2 % 2 else int("100%d" % i)
    return step, before


def keys_that_a_dict_adds(kind=collections.defaultdict):
    held = kind(float)

    def step(x, i):
        return x * (held[i] + 1), len(held), sorted(held)

    def before(i):
        if i % 3 == 2:
            held.clear()
    return step, before


class Growing(dict):
    def __init__(self, kind):
        pass

    def __missing__(self, key):
        self[key] = key * 2.0
        return self[key]


def keys_that_an_own_dict_adds():
    return keys_that_a_dict_adds(Growing)


class Own(dict):
    pass


def keys_of_an_own_dict():
    held = Own()

    def step(x, i):
        held[i] = i * 2.0
        held["k%d" % i] = i
        return x * held[i], list(held), [type(key).__name__ for key in held]

    def before(i):
        if i % 3 == 2:
            held.clear()
    return step, before


def counts_of_what_is_missing():
    held = collections.Counter(a=1)

    def step(x, i):
        return x * (held["a"] + held["b"]), "a" in held, sorted(held)

    def before(i):
        held.clear()
        if i % 2:
            held["a"] = 0
    return step, before


def a_factory_that_is_assigned():
    held = collections.defaultdict(float)

    def step(x, i):
        held.default_factory = [int, float][i % 2]
        return x * (held[i] + 1), str(held[i])
    return step, lambda i: held.clear()


def warnings_that_are_taken_down():
    def step(x, i):
        y = x * 2
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            warnings.warn("here")
            count = len(found)
        return y, count
    return step


CASES = [equal_strings_and_numbers, keys_that_a_dict_adds, keys_that_an_own_dict_adds, keys_of_an_own_dict, counts_of_what_is_missing,
         a_factory_that_is_assigned, warnings_that_are_taken_down, vars_of_an_object, vars_that_are_read_first, globals_of_a_function, names_of_a_module, objects_with_one_dict,
         objects_that_come_to_have_one_dict, a_view_of_a_dict, defaults_that_are_read, cells_that_are_read, the_class_of_a_method,
         which_of_two_nans, numbers_among_which_are_nans, decimals]


def seen(make, compiled):
    made = make()
    step, before = made if isinstance(made, tuple) else (made, lambda i: None)
    step = compiled(step)
    found = []
    for i in range(8):
        before(i)
        y, *rest = step(chainer.Variable(np.ones(3, np.float32)), i % 4)
        found.append((F.tanh(y).array.tolist(), rest))
    return found


#: Those whose numbers are constants of native code.  Guards and what is written are code of the program around it, with any backend.
NUMBERS = [vars_of_an_object, defaults_that_are_read, which_of_two_nans, numbers_among_which_are_nans, decimals]


@pytest.mark.parametrize("make, backend", [*[(make, "numpy") for make in CASES], *[(make, "c") for make in NUMBERS]],
                         ids=lambda given: getattr(given, "__name__", given))
def test_what_one_way_writes_the_others_read(make, backend, monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    with decimal.localcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        Borg.kept.clear()
        expected = seen(make, lambda step: step)
        Borg.kept.clear()
        assert repr(seen(make, to_static(backend=backend))) == repr(expected)


@pytest.mark.parametrize("make", [vars_of_an_object, names_of_a_module, a_view_of_a_dict, the_class_of_a_method],
                         ids=lambda make: make.__name__)
def test_these_are_compiled(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        seen(make, to_static(backend="numpy"))
