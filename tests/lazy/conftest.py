"""Small lazy arrays are computed by programs in these tests, as large ones are, except where a test is about those without."""
import pytest

from dy2static.lazy import evaluation, structures


@pytest.fixture(autouse=True)
def always_by_programs(monkeypatch):
    """Compile every expression that is computed."""
    monkeypatch.setattr(evaluation, "SMALL", -1)
    monkeypatch.setattr(structures, "WORTH_COMPILING", 0)
