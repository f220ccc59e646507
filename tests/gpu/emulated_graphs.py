"""Graphs of a few ops on arrays of NumPy's, as emulated kernels."""
import numpy as np

from dy2static.check_gpu.samples import Case, meaning, source_of
from dy2static.ir.building import Builder, building
from dy2static.ir.types import type_of
from dy2static.native.emulated import EmulatedDevice


def case(function, *arrays, number=0):
    """The kernels of a function of values of a graph.  number: another one for each case of a text."""
    builder = Builder("case")
    inputs = [builder.input(type_of(x), name) for x, name in zip(arrays, "stuvwxyz")]
    with building(builder):
        results = function(*inputs)
    graph = builder.build(results if isinstance(results, tuple) else (results,))
    return Case(f"case {number}", graph, arrays, meaning(graph, arrays), number)


def results(cases, orders=(0, 1, 2)):
    """What each of the cases gives, compiled together; compared with NumPy, and in these orders of threads."""
    text, kernels = source_of(cases)
    module = EmulatedDevice().load(text, [kernel.name for kernel in kernels])
    found = []
    for one in cases:
        given = [one.run(EmulatedDevice(order), module) for order in orders]
        assert not one.difference(given[0]), f"{one.difference(given[0])}\n{one.text}"
        assert all(a.tobytes() == b.tobytes() for other in given[1:] for a, b in zip(given[0], other)), one.text
        found.append(given[0])
    return found


def array(*shape, dtype=np.float32, seed=0):
    """Random numbers."""
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(dtype)
