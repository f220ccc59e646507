"""Random programs whose decisions depend on array values, against eager: all that is seen, and gradients of two orders."""
import pytest
import rich_programs
import staged_programs
from hypothesis import given, settings, strategies
from program_comparison import compare_staged


def check(program):
    lines, _ = compare_staged(program)
    assert not lines, "\n".join(lines[:6]) + "\n" + program.text


@settings(max_examples=25)
@given(strategies.integers(0, 10 ** 6))
def test_random_programs(seed):
    check(staged_programs.Program(seed))


@settings(max_examples=8)
@given(strategies.integers(0, 10 ** 6))
def test_random_programs_with_lists(seed):
    check(staged_programs.Program(seed, lists=True))


@settings(max_examples=15)
@given(strategies.integers(0, 10 ** 6))
def test_random_rich_programs(seed):
    check(rich_programs.RichProgram(seed))


def test_most_random_programs_are_compiled():
    compiled = sum(not compare_staged(staged_programs.Program(seed))[1].stats()["fallbacks"] for seed in range(12))
    assert compiled >= 7


@pytest.mark.parametrize("seed", (25, 34, 48, 60, 74, 83))
def test_programs_that_once_differed(seed):
    """Objects, bools, draws and writes that came out wrong before."""
    assert not compare_staged(staged_programs.Program(seed))[0]
