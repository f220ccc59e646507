"""Every model of the zoo trains compiled as it does eagerly, is compiled whole, and once."""
import pytest
from models.training import train, train_with_sizes
from models.zoo import ZOO


@pytest.mark.parametrize("name", ZOO)
def test_model(name):
    report = train(ZOO[name])
    assert not report.problems, "\n".join(report.problems[:5])
    assert report.captures and not report.recaptures
    assert report.lowered >= 0.7 * report.nodes


#: Models for which each size has programs of its own, and why.
EACH_SIZE = {
    "seq2seq, NStepLSTM": "the sentences are a list, whose length is that of the batch",
}


@pytest.mark.parametrize("name", [name for name in ZOO if not name.startswith("L.")])
def test_batches_of_any_size(name):
    """From the third size on, the programs are those for all sizes."""
    report = train_with_sizes(ZOO[name]._replace(warm=4), (4, 3, 5, 7, 2, 16))
    assert not report.problems, "\n".join(report.problems[:5])
    assert bool(report.recaptures) == (name in EACH_SIZE)


def test_models_of_other_packages():
    pytest.importorskip("chainerrl", reason="chainerrl is not installed (it needs gym 0.22); its models are not in the zoo")
    assert sum(name.startswith("chainerrl") for name in ZOO) == 4
