"""Every model of the zoo trains compiled as it does eagerly, is compiled whole, and once."""
import pytest
from models.training import train
from models.zoo import ZOO


@pytest.mark.parametrize("name", ZOO)
def test_model(name):
    report = train(ZOO[name])
    assert not report.problems, "\n".join(report.problems[:5])
    assert report.captures and not report.recaptures
    assert report.lowered >= 0.7 * report.nodes


def test_models_of_other_packages():
    pytest.importorskip("chainerrl", reason="chainerrl is not installed (it needs gym 0.22); its models are not in the zoo")
    assert sum(name.startswith("chainerrl") for name in ZOO) == 4
