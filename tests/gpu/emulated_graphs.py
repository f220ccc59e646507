"""Graphs of a few ops on arrays of NumPy's, as emulated kernels."""
import numpy as np

from dy2static.check_gpu.samples import Case, kernels_of, meaning
from dy2static.ir.building import Builder, building
from dy2static.ir.types import type_of
from dy2static.native.emulated import EmulatedDevice


def case(function, *arrays):
    """The kernels of a function of values of a graph.

    What NumPy gives for float16 is computed in float32: NumPy rounds sums of columns after each addition.
    """
    graph = graph_of(function, arrays)
    wide = [x.astype(np.float32) if x.dtype == np.float16 else x for x in arrays]
    expected = [x.astype(v.dtype) for x, v in zip(meaning(graph_of(function, wide), wide), graph.outputs)]
    return Case("case", graph, arrays, expected)


def graph_of(function, arrays):
    """The graph of such a function, of operands like these arrays."""
    builder = Builder("case")
    inputs = [builder.input(type_of(x), name) for x, name in zip(arrays, "stuvwxyz")]
    with building(builder):
        found = function(*inputs)
    return builder.build(found if isinstance(found, tuple) else (found,))


def results(cases, orders=(0, 1, 2)):
    """What each of the cases gives, compiled together; compared with NumPy, and in these orders of threads."""
    module = EmulatedDevice().load(kernels_of(cases))
    found = []
    for one in cases:
        given = [one.run(EmulatedDevice(order), module) for order in orders]
        assert not one.difference(given[0]), f"{one.difference(given[0])}\n{one.text}"
        assert all(a.tobytes() == b.tobytes() for other in given[1:] for a, b in zip(given[0], other)), one.text
        found.append(given[0])
    return found


def run(one, device):
    """How the results of a case on a device differ from NumPy's; "" where they do not."""
    return one.difference(one.run(device, device.load(kernels_of([one]))))


def array(*shape, dtype=np.float32, seed=0):
    """Random numbers."""
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(dtype)
