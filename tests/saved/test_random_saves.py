"""Random programs, saved after some calls and loaded: what comes next is as eagerly."""
import random
import tempfile
import warnings

import against_eager
import numpy as np
import pytest
import rich_programs
import staged_programs
from staged_programs import CALLS

from dy2static import SaveError, load, save, to_static
from dy2static.errors import SignatureError


def called(made, calls):
    """The function of a program after these calls; what it has kept does not remember where it is from, as in a file."""
    random.seed(7)
    np.random.seed(7)
    function, roots = made
    for call in calls:
        against_eager.observe(function, call(), {}, None, backward=False)
    for variable in against_eager.floats_in(roots):
        variable.unchain()
    return function


def through_a_file(function):
    """The function saved and loaded; None where it cannot be saved."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            save(function, folder)
        except SaveError:
            return None
        return load(folder)


def differences(program):
    """Lines that say where a program that was loaded differs from eager, and whether all of it was compared."""
    with np.errstate(all="ignore"):
        eager, loaded = called(program.make(lambda f: f), CALLS), through_a_file(called(program.make(to_static), CALLS))
        if loaded is None:
            return [], False
        for number, call in enumerate(CALLS):
            seen = []
            for function in (eager, loaded):
                random.seed(number)
                np.random.seed(number)
                args = call()
                seen.append(against_eager.observe(function, args, {}, None)[0])
            if seen[1]["error"] is not None and seen[1]["error"][0] == SignatureError.__name__:
                return [], False                        # another way through it than before
            lines = against_eager.differences(*seen)
            if lines:
                return [f"call {number}: {line}" for line in lines], True
    return [], True


@pytest.mark.parametrize("seed", [4, 5, 6, 7, 9, 11])
@pytest.mark.parametrize("kind", [staged_programs.Program, rich_programs.RichProgram], ids=["staged", "rich"])
def test_random_programs(kind, seed):
    lines, _ = differences(kind(seed))
    assert not lines, "\n".join(lines[:6]) + "\n" + kind(seed).text
