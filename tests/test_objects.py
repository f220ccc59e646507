"""Objects that models make and keep: dataclasses, named tuples, enums and the containers of `collections`."""
import collections
import dataclasses
import enum
import typing

import against_eager
import chainer.functions as F
import pytest
from against_eager import variable


@dataclasses.dataclass
class State:
    h: typing.Any
    n: int = 0
    log: list = dataclasses.field(default_factory=list)

    def step(self, rate):
        return State(self.h * rate, self.n + 1, self.log + [self.n])


@dataclasses.dataclass
class Scaled:
    h: typing.Any
    scale: float = 2.0
    total: typing.Any = dataclasses.field(init=False)

    def __post_init__(self):
        self.total = F.sum(self.h) * self.scale
        if float(self.total.array) > 1:
            self.scale = 0.5


@dataclasses.dataclass
class ScaledMore(Scaled):
    extra: dataclasses.InitVar[int] = 3

    def __post_init__(self, extra):
        super().__post_init__()
        self.more = extra


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    n: int = 1
    h: typing.Any = dataclasses.field(default=None, compare=False)


class Mode(enum.Enum):
    A = 1
    B = 2


class Pair(typing.NamedTuple):
    h: typing.Any
    n: int = 0

    def twice(self):
        return self.h * 2


def of_methods(x):
    state = State(x)
    for _ in range(3):
        state = state.step(1.5)
    return state.h, state.n, state.log


def with_post_init(x):
    a, b = Scaled(x, 1.5), ScaledMore(x * 2, extra=7)
    return a.total, a.scale, b.total, b.scale, b.more


def frozen(x):
    made = Frozen(2, x * 2)
    changed = dataclasses.replace(made, n=5)
    try:
        made.n = 3
    except dataclasses.FrozenInstanceError as error:
        return changed.h * changed.n, made.n, str(error), made < changed, made == Frozen(2), hash(made) == hash(Frozen(2))


def replaced(x):
    state = State(x)
    other = dataclasses.replace(state, h=state.h * 3, n=state.n + 2)
    return other.h, other.n, other.log is state.log


def asked_for_fields(x):
    state = State(1.5, 2, [3])
    names = [field.name for field in dataclasses.fields(state)]
    return x * dataclasses.asdict(state)["h"], names, dataclasses.is_dataclass(state), state == State(1.5, 2, [3])


def changed_by_decision(x):
    state = State(x)
    if float(F.sum(x).array) > 0:
        state.h, state.n = state.h * 2, 7
    while float(F.sum(state.h * state.h).array) < 8:
        state.h = state.h * 2 + 0.1
        state.n += 1
    return state.h, state.n


def enums(x, mode=Mode.A):
    if mode is Mode.A:
        x = x * 2
    return x + 1 if Mode(2) == Mode.B else x, mode.name


def named_tuples(x):
    pair = Pair(x * 2)
    changed = pair._replace(n=4)
    h, n = changed
    return pair.twice(), h * n, changed.n, Pair._fields


def containers(x):
    counts = collections.Counter()
    counts["a"] += 2
    counts.update(["a", "b"])
    lists = collections.defaultdict(list)
    lists["k"].append(x)
    lists["k"].append(x * 2)
    ordered = collections.OrderedDict(z=x)
    ordered["y"] = x * 3
    last = collections.deque(maxlen=2)
    for k in range(4):
        last.append(x * k)
    return sum(lists["k"]), dict(counts), list(ordered), ordered["y"], list(last)


CASES = [of_methods, with_post_init, frozen, replaced, asked_for_fields, changed_by_decision, enums, named_tuples, containers]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_objects(case):
    calls = [lambda k=k: (variable(3, seed=k, low=-0.5, high=1.0),) for k in range(4)]
    against_eager.check(lambda compile: (compile(case), None), calls, compiled=True)
