"""Operators that ask the right operand first, and ``__getattr__``, which Python calls once for an attribute."""
import collections
import dataclasses

import chainer.functions as F
import numpy as np
import pytest

from dy2static import to_static

LOG = []


class Base:
    """Operators that tell who was asked."""

    def __add__(self, other):
        LOG.append("Base.add")
        return 1

    def __radd__(self, other):
        LOG.append("Base.radd")
        return 2

    def __lt__(self, other):
        LOG.append("Base.lt")
        return True

    def __gt__(self, other):
        LOG.append("Base.gt")
        return False


class Same(Base):
    """Nothing of its own: additions ask the left operand, comparisons the right one."""


class Other:
    """A second base, with a reflected operator."""

    def __radd__(self, other):
        LOG.append("Other.radd")
        return 3

    def __eq__(self, other):
        LOG.append("Other.eq")
        return NotImplemented

    __hash__ = object.__hash__


class Both(Other, Same):
    """Derives from both."""


class Items(list):
    """A list that is asked first."""

    def __radd__(self, other):
        return "radd", [*other, *self]

    def __eq__(self, other):
        return "eq"

    def __gt__(self, other):
        return "gt"


class Silent(list):
    """A list that is asked first and does not know."""

    def __radd__(self, other):
        return NotImplemented

    def __eq__(self, other):
        return NotImplemented


class Table(dict):
    """A dict that is asked first."""

    def __eq__(self, other):
        return "eq"

    def __ne__(self, other):
        return "ne"

    def __ror__(self, other):
        return "ror"


class Delegating:
    """Missing attributes are those of another object; who asks is counted."""

    def __init__(self):
        self.asked, self.inner, self.is_ready = [], Inner(), False

    @property
    def scale(self):
        if not self.is_ready:
            raise AttributeError("not ready")
        return 3.0

    def __getattr__(self, name):
        self.asked.append(name)
        return 5.0 if name == "scale" else getattr(self.inner, name)


class Inner:
    """What missing attributes are taken from."""

    gain = 2.0


class State:
    """Lists and dicts that the caller holds."""

    def __init__(self):
        self.plain, self.items, self.silent, self.dict, self.table = [1], Items([1]), Silent([1]), {"a": 1}, Table(a=1)
        self.ordered, self.count = collections.OrderedDict(a=1), collections.Counter("ab")
        self.defaults, self.queue = collections.defaultdict(int, b=2), collections.deque([1, 2])
        self.objects = [Base(), Same(), Both()]
        self.delegating = Delegating()


def of_classes(state, x):
    made = [Base(), Same(), Both()]
    pairs = [(p, q) for objects in (state.objects, made) for p in objects for q in objects if p is not q]
    return [(p + q, p < q, p == q) for p, q in pairs]


def of_lists(state, x):
    found = []
    for left in ([1], state.plain):
        for right in (state.items, Items([1]), state.silent, Silent([1])):
            found += [left == right, right == left, left != right, left < right]
            try:
                found.append(left + right)
            except TypeError as error:
                found.append(type(error).__name__)
    return found


def of_dicts(state, x):
    return [(left == right, left != right, left | right) for left in ({"a": 1}, state.dict) for right in (state.table, Table(a=1))]


def of_collections(state, x):
    every = [state.ordered, state.count, state.defaults, state.dict, {"a": 3}, collections.OrderedDict(z=1)]
    joined = [left | right for left in every for right in every]
    return [(type(item).__name__, list(item.items())) for item in joined]


def lists_and_arrays(state, x):
    kept, made, copied, items = state.plain, [1.0], list(state.plain), [2.0]
    made += x.array[:1]
    copied += x.array[:1]
    items += Items([3.0])
    state.plain += x.array[:1]
    if isinstance(kept, list):
        kept.append(2)
    return made, copied, items, state.plain, kept


def of_deques(state, x):
    found = []
    for action in (lambda: state.queue.remove(7), lambda: state.queue.index(7), lambda: state.queue.remove(1)):
        try:
            found.append(action())
        except ValueError as error:
            found.append(str(error))
    return found, list(state.queue)


def missing_attributes(state, x):
    item = state.delegating
    found = [hasattr(item, "nothing"), getattr(item, "nothing", 1), item.gain, item.scale]
    try:
        item.other
    except AttributeError as error:
        found.append(str(error))
    item.is_ready = True
    return found, item.scale


@dataclasses.dataclass
class Record:
    """What `dataclasses.asdict` copies: it calls the classes of lists and dicts."""

    rows: list
    names: dict


def copied_records(state, x):
    return dataclasses.asdict(Record([[1], 2], {"a": [3]})), dataclasses.astuple(Record(list(state.plain), dict(state.dict)))


def caught_errors(state, x):
    found = []
    for item in ([1], state.plain, state.dict):
        for action in (lambda: item + 1, lambda: item < 3, lambda: item.nothing, lambda: {item: 1}, lambda: int(item), lambda: item - item):
            try:
                action()
            except (TypeError, AttributeError) as error:
                found.append(str(error))
    return found


def plain(item):
    """The item, comparable: arrays and dicts as lists."""
    if isinstance(item, np.ndarray):
        return "array", item.dtype.name, item.tolist()
    return [type(item).__name__, *map(plain, item)] if isinstance(item, (list, tuple)) else item


@pytest.mark.parametrize("function", [of_classes, of_lists, of_dicts, of_collections, lists_and_arrays, of_deques, missing_attributes,
                                      copied_records, caught_errors])
def test_the_same_operand_is_asked_as_in_eager_mode(function):
    def program(state, x):
        for _ in range(10):                             # a function that is worth compiling
            x = F.tanh(x * 1.5)
        return function(state, x)
    compiled, found = to_static(program, backend="numpy"), []
    for run in (program, compiled):
        LOG.clear()
        state = State()
        results = [plain(run(state, F.identity(np.ones(2, np.float32)))) for _ in range(2)]
        found.append((results, list(LOG), state.delegating.asked, plain(state.plain), list(state.queue)))
    assert found[1] == found[0]
    assert compiled.stats()["captures"] and not compiled.stats()["fallbacks"]
