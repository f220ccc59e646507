"""Effects: writes, prints, draws and host calls happen as often, in the same order and as far as eagerly."""
import collections
import contextlib
import logging
import sys
import types
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, variable

from dy2static import FallbackWarning, not_to_static, to_static

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


class Shown:
    """An object with a text of its own."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"Shown{self.value.shape}"


def test_messages_that_are_off(capsys):
    """Their arguments, which may be objects that the call makes, need no host; the level is looked at by each call."""
    def f(x):
        shown = Shown(F.tanh(x) * 2)
        LOGGER.info("%s, %d", shown, x.size)
        return F.sum(shown.value)
    static, printed = to_static(f), []
    for level in (logging.WARNING, logging.WARNING, logging.INFO, logging.WARNING):
        LOGGER.setLevel(level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            static(variable(2, 3))
        printed.append((capsys.readouterr().out, static.stats()["host_call"], static.stats()["cuts"]))
    LOGGER.setLevel(logging.NOTSET)
    assert printed[:2] == [("", 0, 0)] * 2 and [out for out, *_ in printed[2:]] == ["INFO Shown(2, 3), 6\n", ""]


def levels_change_inside(compile):
    def f(x):
        for level in (logging.DEBUG, logging.ERROR, logging.INFO):
            LOGGER.setLevel(level)
            LOGGER.info("level %d", level)
        LOGGER.setLevel(logging.WARNING)
        return x * 2
    return compile(f), None


def texts_are_added(compile):
    kept = Box(total=2)

    def f(x):
        total = F.sum(x)
        text = "sum: " + str(total.data) + ", " + repr(x.shape) + "; " + ", ".join([str(total.data), "%.2f" % float(total.data)])
        text += f" = {float(total.data):.1f}" + "|%d" % x.size + str(x[0, 0])
        text += "{:>9}".format(str(x.data.max())).ljust(12)[:11].replace(" ", "_") + "%(n)d %(v).2f" % {"n": 3, "v": float(total.data)}
        LOGGER.warning(text + "!")
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
        print(kept.total + 1)
        return total, text
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


@pytest.mark.parametrize("make", [logs, levels_change_inside, texts_are_added, draws_an_action])
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
