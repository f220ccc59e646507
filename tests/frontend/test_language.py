"""The language, each construct inside each other: eagerly and compiled, decided by Python values and by array values."""
import importlib
import pathlib
import random
import re
import sys
import traceback
import types
import zlib

import chainer
import numpy as np
import pytest
from against_eager import check, floats_in, weighted_sum
from language import matrix
from language.constructs import BLOCKS, DECISIONS, SIMPLE

from dy2static import to_static


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("name", [*BLOCKS, *SIMPLE])
def test_alone(name, decision):
    check(matrix.make(matrix.program(name, decision=decision)), matrix.CALLS, rounds=1, compiled=True)


#: Of all pairs, by chance but always the same, those that a run of the tests takes.
PAIRS = random.Random(0).sample([(pair, decision) for pair in matrix.pairs() for decision in DECISIONS], 200)


@pytest.mark.parametrize("pair, decision", PAIRS, ids=str)
def test_inside(pair, decision):
    check(matrix.make(matrix.program(*pair, decision=decision)), matrix.CALLS[:3], rounds=1)


def three_deep(seed):
    choose = random.Random(zlib.crc32(b"%d" % seed))
    return choose.choice([*BLOCKS]), choose.choice([*BLOCKS]), choose.choice([*BLOCKS, *SIMPLE])


@pytest.mark.parametrize("seed", range(50))
def test_three_deep(seed):
    check(matrix.make(matrix.program(*three_deep(seed))), matrix.CALLS[:3], rounds=1)


FAMILIES = ("names", "functions", "walrus", "comprehensions", "containers", "blocks", "models")
PROGRAMS = {f"{family}.{name}": function for family in FAMILIES
            for name, function in vars(importlib.import_module(f"language.programs.{family}")).items()
            if isinstance(function, types.FunctionType) and function.__code__.co_varnames[:3] == ("x", "y", "n")}

#: Programs that run eagerly, with a warning, and why.
EAGER = {
    "comprehensions.gen_inside": "a generator whose loop array values decide",
    "containers.i_list": "which of two results are one Variable depends on array values",
    "containers.counter_dict": "a number of the run is the key of a dict",
    "containers.beam": "a list is sorted by tuples that hold numbers of the run",
}


def gradients(function, call):
    """The values and gradients of one call of a program, as arrays; or the exception."""
    np.random.seed(0)
    x, y, n = call()
    try:
        result = function(x, y, n)
    except Exception as error:
        return repr(error)
    floats = floats_in(result)
    total = weighted_sum(floats) if floats else None
    if total is None or total.creator is None:
        return None
    return [None if g is None else g.array for g in chainer.grad([total], [x, y], enable_double_backprop=True)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    same_with_gradients(lambda compile: (compile(PROGRAMS[name]), None), name not in EAGER)


def same_with_gradients(make, compiled):
    """Check a program; gradients by their values, not by which of them are one array."""
    compiled = check(make, CALLS, backward=False, compiled=compiled)
    function, _ = make(lambda function: function)
    for call in CALLS:
        eager, found = gradients(function, call), gradients(compiled, call)
        assert type(eager) is type(found) and (not isinstance(eager, str) or eager == found)
        for a, b in zip(eager or (), found or ()):
            np.testing.assert_allclose(b, a) if isinstance(a, np.ndarray) else None
            assert (a is None) == (b is None)


CALLS = [lambda seed=seed, n=n: (*matrix.variables(seed), n) for seed, n in ((0, 2), (1, 0), (2, 2), (3, 1), (4, 3))]


@pytest.mark.parametrize("name, line", [("unbound", 3), ("loop_only", 6), ("deleted", 4)])
def test_unbound_names_fail_where_they_are_read(name, line):
    """A read of a name without a value raises at the user's line, and only then."""
    function = PROGRAMS[f"names.{name}"]
    compiled = to_static(function)
    raised = set()
    for call in CALLS * 2:
        try:
            compiled(*call())
        except UnboundLocalError as error:
            steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename == function.__code__.co_filename]
            raised.add(steps[-1].lineno - function.__code__.co_firstlineno)
            with pytest.raises(UnboundLocalError, match=re.escape(str(error))):
                function(*call())
        else:
            function(*call())
    assert raised == {line}


PAGE = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
TITLES = [re.findall(r"^#+ (.*)", PAGE[:PAGE.index(example)], re.M)[-1] for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=TITLES)
def test_example_of_the_page(example):
    if "match " in example and sys.version_info < (3, 10):
        pytest.skip("Python 3.9 has no match")
    same_with_gradients(matrix.make(example), compiled="runs eagerly" not in example)
