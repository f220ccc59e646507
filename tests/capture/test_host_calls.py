"""Calls of what is not compiled: they see what was written before, and what they write is seen after."""
import collections
import types
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import Box, check, variable

from dy2static import FallbackWarning, not_to_static, to_static

LEVEL = 0


def x23(roots=None):
    return (variable(2, 3),)


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


@not_to_static
def doubled_outside(v):
    return F.tanh(v) * 2


def test_gradients_through_what_is_not_compiled():
    """A Variable that the host uses before it has its creator must stand below its results in the graph."""
    def make(compile):
        def function(x):
            h = F.exp(x) * 2
            y = doubled_outside(h)
            return y, h * h + 1
        compiled = compile(function)

        def twice(x):
            y, z = compiled(x)
            return F.sum(z) + F.sum(y), compiled(compiled(y)[1] * 0.1)
        return twice, None
    check(make, [lambda: (variable(3, 4),)], compiled=True)


def first_of(found):
    return found if type(found) is dict else found[0]


@pytest.mark.parametrize("made", [lambda h: {"h": h}, lambda h: [{"h": h}], lambda h: ({"h": h}, 1)])
@pytest.mark.parametrize("late", [False, True])
def test_what_is_stored_in_several_places_before_a_call_stays_one_object(made, late):
    """`numpy.round` may fail, so what was written is stored before it: one dict in all places, also one that items hold."""
    log, state = [], {}

    def step(x):
        kept = made(x * 2)
        log.append(kept)
        if late:
            size = (x * 3).sum().round(1)
        state["kept"] = [kept]
        return (x * 2).sum().round(1) if not late else size.round(0)

    f = to_static(step, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(3):
            f(np.ones(3, "f"))
            assert first_of(log[-1]) is first_of(state["kept"][0])
    assert late or f.stats()["cuts"] == f.cache_info().fallbacks == 0
