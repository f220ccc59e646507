"""What tests of backends share."""
import pytest

from dy2static import config
from dy2static.native import team


@pytest.fixture
def threads():
    """A function that sets the number of threads, which share work on a busy machine, too."""
    before = config.THREADS.value
    team.team().handle.insist(1)
    yield team.set_threads
    team.team().handle.insist(0)
    team.set_threads(before or team.wanted())
    config.THREADS.value = before
