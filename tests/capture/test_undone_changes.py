"""What a block under a decision on array values changes is undone for the other one, whatever kind of object it is."""
import collections
import itertools
import types

import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, variable

CALLS = [lambda s=s: (variable(2, 3, seed=s, low=-0.2 - s, high=1.2 - s),) for s in range(2)]
TABLE, ORDERED = {"a": 1, "b": 2, "c": 3}, collections.OrderedDict(a=1, b=2)


def is_positive(x):
    return float(F.sum(x).array) > 0


def order_of_keys(x):
    table, added = {"a": 1, "b": 2}, {"k": 0}
    if is_positive(x):
        table["a"] = table.pop("a")
        added.update(p=1, q=2)
    else:
        added.update(q=1, p=2)
    return list(table), list(added), x * 2


def order_of_keys_that_are_set_anew(x):
    table = {"a": 1, "b": 2}
    if is_positive(x):
        table.clear()
        table["b"], table["a"] = 5, 6
    return list(table.items()), x * 2


def order_of_the_callers_keys(x):
    if is_positive(x):
        TABLE["a"] = TABLE.pop("a")
        ORDERED.move_to_end("a")
    return list(ORDERED), x * 2


def ordered_dict(x):
    table, added = collections.OrderedDict(a=1, b=2), collections.OrderedDict()
    if is_positive(x):
        table.move_to_end("a")
        added["k"] = x
    else:
        added["k"] = x * 3
    return list(table), list(added), added["k"] * 2


def order_in_a_loop(x):
    table, h = {"a": 1, "b": 2, "c": 3}, x * 4
    while float(F.sum(abs(h)).array) > 1:
        h = h * 0.5
        table["a"] = table.pop("a")
    return list(table), h


def containers_of_the_library(x):
    first, second = {"k": 1}, {"k": 2, "z": 3}
    chain, table, items = collections.ChainMap(first, second), collections.UserDict(a=1), collections.UserList([1, 2])
    space = types.SimpleNamespace(a=1)
    if is_positive(x):
        chain["z"], table["b"], space.a = 9, 5, 2
        items.append(3)
    else:
        del chain["k"]
        items[0] = 7
    return chain["z"], first, sorted(table), list(items), space.a, x * 2


def bytes_and_exceptions(x):
    text, error = bytearray(b"ab"), ValueError("a")
    if is_positive(x):
        text.append(99)
        error.args = ("b",)
    return bytes(text), error.args, x * 2


def class_made_inside(x):
    class Made:
        count = 1
    if is_positive(x):
        Made.count = 2
    return Made.count, x * 2


def values_while_a_loop_goes_over_keys(x):
    table, seen = {"a": 1, "b": 2, "c": 3, "d": 4}, []
    del table["a"]
    for key in table:
        seen.append(key)
        if is_positive(x):
            table[key] *= 2
    return seen, table, x * 2


def values_while_a_loop_goes_over_them(x):
    table, seen = collections.Counter("aabbc"), []
    del table["a"]
    for k, number in enumerate(table.values()):
        seen.append(number)
        if x.array[0, k] > 0:
            table["c"] += 1
    return seen, dict(table), x * 2


def values_of_the_caller_while_a_loop_goes_over_them(x):
    TABLE["z"] = TABLE.pop("a")
    seen = []
    for key, number in TABLE.items():
        seen.append((key, number))
        if is_positive(x):
            TABLE["z"] += 1
    return seen, x * 2


def key_while_a_loop_goes_over_keys(x):
    table, seen = {"a": 1, "b": 2, "c": 3}, []
    del table["a"]
    for key in table:
        seen.append(key)
        if is_positive(x):
            table["z"] = 1
            break
    return seen, list(table), x * 2


@pytest.mark.parametrize("make", [itertools.count, lambda: itertools.cycle([1, 2]), lambda: itertools.chain([1], [2, 3]),
                                  lambda: itertools.islice([1, 2, 3], 3), lambda: iter("abc"), lambda: itertools.tee([1, 2])[0]])
def test_iterators(make):
    def f(x):
        items = make()
        if is_positive(x):
            next(items)
        return next(items), x * 2
    check(lambda compile: compile(f), CALLS, backend="numpy")


@pytest.mark.parametrize("function", [order_of_keys, order_of_keys_that_are_set_anew, order_of_the_callers_keys, ordered_dict,
                                      order_in_a_loop, containers_of_the_library, bytes_and_exceptions, class_made_inside,
                                      values_while_a_loop_goes_over_keys, values_while_a_loop_goes_over_them,
                                      values_of_the_caller_while_a_loop_goes_over_them, key_while_a_loop_goes_over_keys],
                         ids=lambda function: function.__name__)
def test_undone(function):
    def make(compile):
        for table in (TABLE, ORDERED):
            for key in "abc":
                table.pop(key, None)
            table.update(a=1, b=2, c=3)
            table.pop("z", None)
        return compile(function), [TABLE, ORDERED]
    check(make, CALLS, backend="numpy")


def test_a_list_that_is_changed_back_after_it_was_stored():
    def make(compile):
        items, places = [1.0, 2.0], np.arange(3)

        def program(x):
            items.reverse()
            if places[int(is_positive(x))] > 0:         # this may raise: the list is stored before
                x = x * 2
            items.reverse()
            return x * 3
        return compile(program), items
    check(make, CALLS, compiled=True)


def set_and_deleted(state):
    state.extra = state.table["extra"] = 1
    yield
    del state.extra, state.table["extra"]


def taken_and_put_back(state):
    last, old, state.known = state.items.pop(), state.known, 5
    yield
    state.items.append(last)
    state.known = old


def turned_and_turned_back(state):
    state.turning.rotate(1)
    state.own.reverse()
    yield
    state.turning.rotate(-1)
    state.own.reverse()


class Own(list):
    pass


@pytest.mark.parametrize("changes, inside", [(set_and_deleted, False), (taken_and_put_back, False), (taken_and_put_back, True),
                                             (turned_and_turned_back, False), (turned_and_turned_back, True)],
                         ids=lambda item: getattr(item, "__name__", item))
def test_changed_back_after_one_side_may_have_stored_it(changes, inside):
    """Before a division that may fail, what is changed is stored: on one side of the decision only."""
    def around(state, x):
        change = changes(state)
        next(change)
        if is_positive(x):
            x = x * (1 / float(F.max(x).array))
        next(change, None)
        return x * 2

    def within(state, x):
        if is_positive(x):
            change = changes(state)
            next(change)
            x = x * (1 / float(F.max(x).array))
            next(change, None)
        return x * 2

    def make(compile):
        state = State()
        program = compile(within if inside else around)
        return (lambda x: program(state, x)), state
    check(make, [*CALLS, lambda: (variable(2, 3, seed=3, low=-2, high=-1),)])


class State:
    def __init__(self):
        self.known, self.table, self.items = 2, {"a": 1}, [1.0, 2.0]
        self.turning, self.own = collections.deque([1.0, 2.0, 3.0]), Own([1.0, 2.0])
