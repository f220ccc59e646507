"""Random programs whose decisions depend on array values, against eager: all that is seen, and gradients of two orders."""
import pytest
import rich_programs
import staged_programs
from hypothesis import given, settings, strategies
from program_comparison import compare_staged


def check(program):
    """Compare a program with eager mode; returns the compiled function."""
    lines, compiled = compare_staged(program)
    assert not lines, "\n".join(lines[:6]) + "\n" + program.text
    return compiled


def test_random_programs():
    """All agree, and nearly all of them are compiled."""
    compiled = sum(not check(staged_programs.Program(seed)).stats()["fallbacks"] for seed in range(25))
    assert compiled >= 23


@settings(max_examples=8)
@given(strategies.integers(0, 10 ** 6))
def test_random_programs_with_lists(seed):
    check(staged_programs.Program(seed, lists=True))


@settings(max_examples=15)
@given(strategies.integers(0, 10 ** 6))
def test_random_rich_programs(seed):
    check(rich_programs.RichProgram(seed))


@pytest.mark.parametrize("seed", (25, 34, 48, 60, 74, 83))
def test_programs_that_once_differed(seed):
    """Objects, bools, draws and writes that came out wrong before."""
    assert not compare_staged(staged_programs.Program(seed))[0]
