"""Every public entry of ``chainer.functions``, compiled and compared with eager."""
import pytest
from call_matrix import ENTRIES, ROWS, entries_of, matrix_row

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("case", ROWS, ids=str)
def test_row(case):
    matrix_row(case)


def test_every_entry_has_a_row():
    """The list of entries is Chainer's own."""
    assert len(ENTRIES) > 200
    covered = set().union(*(entries_of(case)[0] for case in ROWS))
    assert sorted(set(ENTRIES) - covered) == []
