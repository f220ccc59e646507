"""Some programs that Hypothesis picks; ``python -m tests.lazy.random_expressions`` runs as many as one likes."""
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import random_expressions

from dy2static import lazy


@pytest.mark.parametrize("backend, count", [("numpy", 50), ("direct", 60), ("c", 2)])
def test_values_errors_and_warnings_are_those_of_numpy(backend, count):
    @hypothesis.settings(max_examples=count, phases=[hypothesis.Phase.generate], database=None)
    @hypothesis.given(st.integers(0, 900))
    def check(seed):
        program = random_expressions.Program(seed)
        assert random_expressions.problem_of(program.leaves, program.lines, backend) is None, program.lines
    check()


@pytest.mark.parametrize("lines", [["v0 = a0 + 1"], ["v0 = np.log(a0 - 5)"], ["v0 = a0[5]"]])
def test_differences_are_found(lines):
    eager = random_expressions.Outcome([("float64", (3,), 0)], lines, lambda x: x)
    changed = random_expressions.Outcome([("float64", (3,), 0)], ["v0 = (a0 + 1.0001).astype('f4')"], lazy.array)
    assert random_expressions.difference(eager, changed, True)
    assert random_expressions.of_values(np.ones(3), np.ones(3), True) is None
