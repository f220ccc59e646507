"""The language, each construct inside each other: eagerly and compiled, decided by Python values and by array values."""
import random
import zlib

import pytest
from against_eager import check
from language import matrix
from language.constructs import BLOCKS, DECISIONS, SIMPLE


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


@pytest.mark.parametrize("seed", range(60))
def test_three_deep(seed):
    check(matrix.make(matrix.program(*three_deep(seed))), matrix.CALLS[:3], rounds=1)
