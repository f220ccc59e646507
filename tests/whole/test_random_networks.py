"""Random networks, called and trained in turns, against eager: values, gradients, state, random numbers and exceptions."""
import contextlib
import random
import warnings

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
import random_networks

from dy2static import to_static

#: Deep networks add up more rounding than single functions.
TOLERANCE = {"e": (2e-2, 2e-3), "f": (2e-3, 2e-4), "d": (1e-7, 1e-9)}

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


def observed(network, compile):
    """What is seen after each step, until one fails; and the network."""
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


def differences(seed):
    """Lines that say where a network differs from eager."""
    network = random_networks.Network(seed)
    eager, found = observed(network, lambda f: f), observed(network, to_static)
    return [f"step {i} {network.steps[i]}: {line}" for i, pair in enumerate(zip(eager, found))
            for line in against_eager.differences(*pair)][:6]


@pytest.fixture
def loose(monkeypatch):
    monkeypatch.setattr(against_eager, "TOLERANCE", TOLERANCE)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", (*range(20), 10051, 30384, 40372))
def test_random_networks(seed, loose):
    lines = differences(seed)
    assert not lines, "\n".join(lines) + "\n" + random_networks.Network(seed).text
