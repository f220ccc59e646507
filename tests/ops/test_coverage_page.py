"""``docs/op_coverage.md`` says what the matrices of functions and links find, and why something stays whole."""
import pathlib
import sys

import call_matrix
import link_matrix
import pytest
from op_coverage import page

from dy2static.lowering.reasons import OPAQUE_REASONS, reason_of
from dy2static.lowering.registry import LOWERINGS

pytestmark = pytest.mark.filterwarnings("ignore")
PAGE = pathlib.Path(__file__).parent.parent.parent / "docs" / "op_coverage.md"


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the page is the same on every Python; it takes a minute, so one checks it")
def test_page(update_golden):
    text = page()
    if update_golden:
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "run `pytest tests/ops/test_coverage_page.py --update-golden`"


def test_what_stays_whole_has_a_reason():
    whole = set().union(*(call_matrix.matrix_row(case).opaque for case in call_matrix.ROWS),
                        *(link_matrix.matrix_row(name)[0] for name in link_matrix.ROWS)) - set(LOWERINGS)
    assert sorted(cls.__name__ for cls in whole if not reason_of(cls)) == []


def test_no_reason_for_what_is_lowered():
    assert sorted(cls.__name__ for cls in set(OPAQUE_REASONS) & set(LOWERINGS)) == []
