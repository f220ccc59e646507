"""Random programs and networks, compiled and eager: everything that is seen of a series of calls, and gradients of two orders."""
import builtins
import contextlib
import inspect
import itertools
import linecache
import random
import re
import traceback
import warnings

import against_eager
import breaks
import chainer
import chainer.functions as F
import numpy as np
import random_networks
import session_worlds
import staged_programs

from dy2static import to_static

#: Gradients are checked by value: that two of them are one array is a matter of how Chainer adds them.
TOLERANCE = 1e-8

#: Deep networks add up more rounding than single functions.
NETWORK_TOLERANCE = {"e": (2e-2, 2e-3), "f": (2e-3, 2e-4), "d": (1e-7, 1e-9)}

_serial = itertools.count()


@contextlib.contextmanager
def silently():
    """Nothing is printed or warned of."""
    with contextlib.redirect_stdout(against_eager.io.StringIO()), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def differences(eager, found, name, rounded=False):
    """Lines that say where two series of observations differ.  rounded: native code may round otherwise."""
    pairs = [(i, *pair) for i, pair in enumerate(zip(eager, found))
             if not rounded or session_worlds._compare_rounded(tuple(pair[0].items()), tuple(pair[1].items()))]
    lines = [f"{name(i)}: {line}" for i, one, other in pairs for line in against_eager.differences(one, other)]
    return lines + [f"{len(eager)} observations eagerly, {len(found)} compiled"] * (len(eager) != len(found))


# --- staged programs ------------------------------------------------------------------------------------------------------


def gradients(function, start):
    """Per call: first- and second-order gradients of all results with respect to inputs and the parameter."""
    found = []
    for call in staged_programs.CALLS:
        x, y, s = call()
        try:
            results = function(x, y, s)
        except Exception as error:
            found.append(repr(error))
            continue
        floats = against_eager.floats_in(results)
        if not floats:
            found.append(None)
            continue
        total = against_eager.weighted_sum(floats)
        given = [v for v in (x, y, start) if v.requires_grad]
        first = chainer.grad([total], given, enable_double_backprop=True)
        there = [g for g in first if g is not None]
        second = [None] * len(given)
        if there:
            norm = sum(F.sum(g * g) for g in there)
            second = chainer.grad([norm], given) if norm.creator is not None else second
        found += [None if g is None else g.array for g in (*first, *second)]
    return found


def staged_observed(program, compile):
    """What is seen of a series of calls of a function, and the gradients of calls after them; and the function."""
    made = []

    def make(compile):
        made.append(program.make(compile))
        return made[-1]
    seen, function = against_eager.run(make, staged_programs.CALLS * 2, compile, backward=False)
    np.random.seed(3)
    (_, (_, start)), = made
    with silently():
        return seen, gradients(function, start), function


def same(a, b):
    """Whether two gradients are equal, or both raised the same."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    return type(a) is type(b) and a == b


def compare_staged(program, compile=to_static, rounded=False):
    """Lines that say where a staged program differs from eager, and the compiled function."""
    eager, slopes, _ = staged_observed(program, lambda f: f)
    found, compiled_slopes, function = staged_observed(program, compile)
    lines = differences(eager, found, lambda i: f"call {i}", rounded)
    lines += [f"gradient {i}: eager {a}, compiled {b}" for i, (a, b) in enumerate(zip(slopes, compiled_slopes))
              if not same(a, b)]
    return lines, function


# --- networks -------------------------------------------------------------------------------------------------------------

MODES = {"call": contextlib.nullcontext, "test": lambda: chainer.using_config("train", False), "quiet": chainer.no_backprop_mode}


def slopes(results, given, net):
    """First gradients of the results, and second ones of their squares."""
    total = against_eager.weighted_sum(results)
    wanted = [v for v in (*given[:3], *[p for _, p in sorted(net.namedparams())]) if v.requires_grad and v.array is not None]
    first = chainer.grad([total], wanted, enable_double_backprop=True)
    norms = [F.sum(g * g) for g in first if g is not None]
    second = chainer.grad([sum(norms)], wanted) if norms and sum(norms).creator is not None else ()
    return [None if g is None else g.array for g in (*first, *second)]


def take(step, number, net, optimizer, made, dtype):
    """One step; what it gives beside its effects.

    made: the results of the calls whose backward may still be asked for, with the arguments.  Arrays that are written
    between forward and backward are another matter: see the limitations.
    """
    if step in MODES:
        given = random_networks.arguments(number, dtype)
        with MODES[step]():
            made.append((net.forward(*given), given))
    elif step == "clear":
        net.cleargrads()
    elif step == "reset":
        net.reset_state()
    elif step in ("update", "parameter", "write"):
        if step == "update":
            optimizer.update()
        for x in {"parameter": list(net.params()), "write": made[-1][1][:3] if made else ()}.get(step, ()):
            if x.array is not None:
                x.array[...] *= 0.9
        made.clear()
        net.reset_state()
    elif made:
        result, given = made[number % len(made) if step == "again" else -1]
        results = against_eager.floats_in(result)
        if step == "grad" and results:
            return slopes(results, given, net)
        total = against_eager.weighted_sum(results[:1] if step == "loss" else results) if results else None
        if total is not None and total.creator is not None:
            total.backward()
    return None


def network_observed(network, compile):
    """What is seen after each step, until one fails."""
    random.seed(7)
    np.random.seed(7)
    net = network.make(compile)
    optimizer = getattr(chainer.optimizers, network.optimizer)(0.05)
    optimizer.setup(net)
    net.cleargrads()
    seen, made = [], []
    for step, number in network.steps:
        error, found = None, None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = take(step, number, net, optimizer, made, network.dtype)
            except Exception as raised:
                error = type(raised).__name__, str(raised)
        if error is not None and step not in MODES:
            return seen                                 # of Chainer's own gradients, which the compiled ones need not copy
        seen.append({"error": error, "random": against_eager._random_state(),
                     "found": against_eager.Picture().of(found), "seen": against_eager.Picture().of([made, net])})
        if error is not None:
            return seen
    return seen


@contextlib.contextmanager
def loose():
    """Compare with the tolerance of networks."""
    before, against_eager.TOLERANCE = against_eager.TOLERANCE, NETWORK_TOLERANCE
    try:
        yield
    finally:
        against_eager.TOLERANCE = before


def compare_network(network, compile=to_static, rounded=False):
    """Lines that say where a network differs from eager, and the compiled function."""
    made = []

    def compiling(function):
        made.append(compile(function))
        return made[-1]
    with loose():
        eager, found = network_observed(network, lambda f: f), network_observed(network, compiling)
        shorter = min(len(eager), len(found))           # a backward of Chainer's that fails ends one of them
        return differences(eager[:shorter], found[:shorter], lambda i: f"step {i} {network.steps[i]}", rounded), made[0]


# --- programs without arrays ----------------------------------------------------------------------------------------------

_MOST_LOGGED = 100


def plain_observed(text, compile):
    """What a program of `random_programs` does on a few arguments, twice; and the function."""
    file = f"/random/plain_{next(_serial)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names = {"suppress": contextlib.suppress, "__name__": "plain_program", **breaks.NAMES}
    exec(builtins.compile(text, file, "exec"), names)
    function = compile(names["f"])
    seen = [plain_call(function, args, file) for args in ((0, 1), (1, 0), (2, 3), (-1, -1)) * 2]
    return seen, function


def plain_call(function, args, file):
    """What one call gives or raises, from which lines, and what it logged."""
    log, found, error = [], None, None

    def logged(value):
        log.append(clean(repr(value)))
        return value
    with silently():
        try:
            found = function(*args, logged)
            found = list(itertools.islice(found, 5)) if inspect.isgenerator(found) else found
        except Exception as raised:
            lines = [step.lineno for step in traceback.extract_tb(raised.__traceback__) if step.filename == file]
            error = type(raised).__name__, clean(str(raised)), tuple(lines)
    return {"error": error, "result": clean(repr(found)), "log": tuple(log[:_MOST_LOGGED])}


def clean(text):
    """A text without addresses and the names of files."""
    return re.sub(r" at 0x\w+|plain_\d+", "", text)


def compare_plain(program, compile=to_static, rounded=False):
    """Lines that say where a program of `random_programs` differs from eager, and the compiled function."""
    eager, _ = plain_observed(program.text, lambda f: f)
    found, function = plain_observed(program.text, compile)
    return differences(eager, found, lambda i: f"call {i}", rounded), function
