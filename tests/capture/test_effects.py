"""Effects: writes, prints, draws and host calls happen as often, in the same order and as far as eagerly."""
import contextlib
import logging
import sys
import warnings

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import Box, check, variable

from dy2static import to_static


def x23(roots=None):
    return (variable(2, 3),)


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
