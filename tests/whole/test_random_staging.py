"""Random programs whose decisions depend on array values, against eager: all that is seen, and gradients of two orders."""
import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
import rich_programs
import staged_programs
from hypothesis import given, settings, strategies

from dy2static import to_static

#: Gradients are checked by value: that two of them are one array is a matter of how Chainer adds them.
TOLERANCE = 1e-8


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


def observed(program, compile):
    """What is seen of a series of calls, and the gradients of another."""
    seen, function = against_eager.run(program.make, staged_programs.CALLS * 2, compile, backward=False)
    np.random.seed(3)
    function, (_, start) = program.make(compile)
    with np.errstate(all="ignore"):
        return seen, against_eager_silently(gradients, function, start), function


def against_eager_silently(call, *args):
    with against_eager.contextlib.redirect_stdout(against_eager.io.StringIO()), against_eager.warnings.catch_warnings():
        against_eager.warnings.simplefilter("ignore")
        return call(*args)


def same(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    return type(a) is type(b) and a == b


def compare(seed, lists=False):
    """Lines that say where a program differs from eager, and whether it was compiled."""
    return compare_program(staged_programs.Program(seed, lists))


def compare_program(program):
    """The same for a program."""
    eager, slopes, _ = observed(program, lambda f: f)
    found, compiled_slopes, function = observed(program, to_static)
    lines = [f"call {i}: {line}" for i, pair in enumerate(zip(eager, found)) for line in against_eager.differences(*pair)]
    lines += [f"gradient {i}: eager {a}, compiled {b}" for i, (a, b) in enumerate(zip(slopes, compiled_slopes))
              if not same(a, b)]
    return lines, function


@settings(max_examples=25)
@given(strategies.integers(0, 10 ** 6))
def test_random_programs(seed):
    lines, _ = compare(seed)
    assert not lines, "\n".join(lines[:6]) + "\n" + staged_programs.Program(seed).text


@settings(max_examples=8)
@given(strategies.integers(0, 10 ** 6))
def test_random_programs_with_lists(seed):
    lines, _ = compare(seed, lists=True)
    assert not lines, "\n".join(lines[:6]) + "\n" + staged_programs.Program(seed, lists=True).text


@settings(max_examples=15)
@given(strategies.integers(0, 10 ** 6))
def test_random_rich_programs(seed):
    program = rich_programs.RichProgram(seed)
    lines, _ = compare_program(program)
    assert not lines, "\n".join(lines[:6]) + "\n" + program.text


def test_most_random_programs_are_compiled():
    compiled = sum(not function.stats()["fallbacks"] for _, function in map(compare, range(12)))
    assert compiled >= 7


@pytest.mark.parametrize("seed", (25, 34, 48, 60, 74, 83))
def test_programs_that_once_differed(seed):
    """Objects, bools, draws and writes that came out wrong before."""
    assert not compare(seed)[0]
