"""Every public entry of ``chainer.links``, compiled and compared with eager: values, gradients, state, an optimizer's steps."""
import pytest
from link_matrix import ENTRIES, ROWS, WITHOUT, matrix_row

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", ROWS)
def test_row(name):
    matrix_row(name)


def test_every_entry_has_a_row():
    """The list of entries is Chainer's own."""
    assert len(ENTRIES) > 60
    rows = {name.split()[0] for name in ROWS}
    assert sorted(set(ENTRIES) - rows - set(WITHOUT)) == []
    assert not rows & set(WITHOUT)
