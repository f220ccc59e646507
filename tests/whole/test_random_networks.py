"""Random networks, called and trained in turns, against eager: values, gradients, state, random numbers and exceptions."""
import pytest
import random_networks
from program_comparison import compare_network


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", (*range(20), 88, 10051, 30384, 40372))
def test_random_networks(seed):
    network = random_networks.Network(seed)
    lines, _ = compare_network(network)
    assert not lines, "\n".join(lines[:6]) + "\n" + network.text
