"""Programs with more than one step in a call do compiled what they do eagerly."""
import many_steps
import pytest


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", many_steps.CALLS, ids=lambda make: make.__name__)
def test_many_steps(make):
    _, problems, _, _ = many_steps.compared(make)
    assert not problems, "\n".join(problems[:8])
