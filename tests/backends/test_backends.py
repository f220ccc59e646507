"""What every backend of the registry promises: `backends.base.Backend`."""
import interpreter_backend
import numpy as np
import pytest

from dy2static import config, ops, passes
from dy2static.backends.registry import BACKENDS
from dy2static.ir.building import Builder, building
from dy2static.ir.interpret import interpret
from dy2static.ir.types import Tensor
from dy2static.native import compiler
from dy2static.runtime.clocks import Clock

ALL = {**BACKENDS, "interpreter": interpreter_backend.InterpreterBackend()}


@pytest.fixture(params=ALL)
def backend(request):
    if request.param == "c" and not compiler.available():
        pytest.skip("there is no C compiler")
    return ALL[request.param]


def graph():
    """Two outputs and a value that is kept."""
    builder = Builder("f")
    x, w = (builder.input(Tensor((3, 3), np.dtype("f")), name) for name in "xw")
    with building(builder):
        h = ops.tanh(ops.matmul(x, w, transa=False, transb=False))
        y = h * h
        return builder.build((y, ops.sum(y, axis=(0,), keepdims=False))), h


def test_it_computes_what_the_graph_means(backend):
    made, h = graph()
    compilation = backend.start(made, name="forward", escaping=set(made.outputs), saved=(h,))
    assert compilation.ready() in (True, False)
    function = compilation.finish()
    operands = [backend.arrays.asarray(np.random.RandomState(k).rand(3, 3).astype("f")) for k in range(2)]
    results = function.call(function.make_arena and function.make_arena(), *operands)
    assert len(results) == len(function.results) == 3 and all(map(backend.arrays.is_array, results))
    for one, other in zip(results, interpret(made, *operands)):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert backend.arrays.empty((2, 3), np.dtype("f")).shape == (2, 3) and backend.arrays.device == "cpu"
    assert f"def {function.call.__name__}(arena" in function.source and set(function.origins) <= set(range(1, 100))
    assert bool(function.native_code) == bool(function.native_nodes) == (backend.name == "c")


def test_it_supports_what_it_says(backend):
    made, _ = graph()
    assert all(map(backend.supports, made.nodes))


def test_a_clock_is_told(backend):
    made, _ = graph()
    clock = Clock("forward")
    function = backend.compile(made, name="forward", escaping=set(made.outputs), clock=clock)
    function.call(function.make_arena and function.make_arena(), np.ones((3, 3), "f"), np.ones((3, 3), "f"))
    assert clock.runs == 1 and {"matmul", "tanh"} <= {name for part, _, _ in clock.read() for name in part.operations}


def test_its_passes_are_in_its_pipeline(backend, caplog):
    made, _ = graph()
    with config.PASS_LEVEL.set(backend.passes.name):
        backend.compile(made, name="forward", escaping=set(made.outputs))
    told = [record.getMessage().split("'")[1] for record in caplog.records if record.name == "dy2static"]
    assert told == [step.name for step in backend.passes.passes]


def test_the_graphs_that_are_saved_are_cleaned():
    made, _ = graph()
    assert passes.run(passes.CLEAN, made) is made
