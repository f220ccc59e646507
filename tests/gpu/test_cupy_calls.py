"""Programs of CuPy calls give what those of NumPy calls give, and call what CuPy has."""
import ast
import collections
import re
import sys
import warnings
from pathlib import Path

import chainer
import numpy as np
import pytest
from cupy_double import on_double

from dy2static.backends.cupy.backend import CUPY
from dy2static.backends.host.backend import NUMPY
from dy2static.ir.building import Builder, building
from dy2static.ir.op import OPS
from dy2static.ir.types import Tensor, type_of

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "ops"))
from test_ops import CASES, FLOATS, TOLERANCE

cupy = chainer.backends.cuda.cupy

BY_OP = collections.defaultdict(list)
for _case in CASES:
    BY_OP[_case.op.name].append(_case)
FLOATS_BY_OP = collections.defaultdict(list)
for _case in FLOATS:
    FLOATS_BY_OP[_case.op.name].append(_case)


def sent(value, how):
    """The value with all its arrays turned: those in lists and tuples, too."""
    if isinstance(value, (list, tuple)):
        return type(value)([sent(item, how) for item in value])
    return how(value)


def to_device(value):
    return sent(value, lambda x: cupy.array(x) if isinstance(x, np.ndarray) else x)


def to_host(value):
    return sent(value, lambda x: x.get() if isinstance(x, cupy.ndarray) else x)


def compiled(backend, graph):
    made = backend.compile(graph, name="program", escaping=set(graph.outputs))
    return made, lambda *operands: made.call(made.make_arena and made.make_arena(), *operands)


def check(case, dtype, tolerance):
    operands = case.operands(dtype)
    graph = case.graph(map(type_of, operands))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = compiled(NUMPY, graph)[1](*operands)
    found = to_host(compiled(CUPY, graph)[1](*to_device(operands)))
    for actual, wanted in zip(found, expected):
        assert type(actual) is type(wanted) or isinstance(actual, np.ndarray) and isinstance(wanted, np.generic)
        if isinstance(wanted, (np.ndarray, np.generic)):
            assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
        if case.op.effect:
            continue                                    # draws are CuPy's
        if isinstance(wanted, np.ndarray) and wanted.dtype.kind == "f":
            np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_equal(actual, wanted)


@pytest.mark.parametrize("name", sorted(BY_OP))
@pytest.mark.stand_in("check_gpu compares all samples on a device")
@on_double
def test_each_op_is_numpys(name):
    for case in BY_OP[name]:
        check(case, None, 1e-6)
    for case in FLOATS_BY_OP[name]:
        for dtype in ("float16", "float64"):
            check(case, dtype, TOLERANCE[dtype] / 10)


def spelled(name):
    return re.sub(r"^cp\.", "cupy.", name)


@pytest.mark.parametrize("version", [14, 13], ids=["14.2", "13.6"])
@pytest.mark.stand_in("it looks at texts only")
@on_double
def test_texts_call_what_cupy_has_with_keywords_that_it_has(version):
    from cupy_double_arrays import names_of
    names = names_of(version)
    called = 0
    for case in CASES:
        source = compiled(CUPY, case.graph(map(type_of, case.operands())))[0].source
        for node in ast.walk(ast.parse(source)):
            name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            if re.fullmatch(r"(cp|cupyx)(\.\w+)+", name):
                assert spelled(name) in {*names, "cupyx.scipy", "cupyx.scipy.special"}, source
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                known = names.get(spelled(ast.unparse(node.func)), names.get(f"cupy.ndarray.{node.func.attr}")) or ("**",)
                assert all(keyword.arg in known or known[-1].startswith("**") for keyword in node.keywords), source
                called += 1
    assert called > 300


@pytest.mark.stand_in("it looks at texts only")
@on_double
def test_forms_for_cupy_fill_arrays_where_those_for_numpy_do():
    for op in OPS.values():
        if isinstance(op.cupy, str) and isinstance(op.numpy, str) and op.cupy != "on host":
            assert ("{out}" in op.cupy) == ("{out}" in op.numpy), op


@pytest.mark.devices(2)
@on_double
def test_the_text_is_readable():
    builder = Builder("readable")
    x = builder.input(Tensor((4, 3), np.dtype("float32"), "cupy:1"), "x")
    with building(builder):
        graph = builder.build((OPS["sum"](OPS["exp"](x) * 0.5, axis=(0,)),))
    made, run = compiled(CUPY, graph)
    assert made.source == """\
def program(arena, x):
    (exp_1,) = arena
    with cp.cuda.Device(1):
        cp.exp(x, out=exp_1)
        cp.multiply(exp_1, c0_5, out=exp_1)
        sum_1 = cp.sum(exp_1, axis=0)
    return (sum_1,)
"""
    with cupy.cuda.Device(1):
        x = cupy.array(np.ones((4, 3), "f"))
    (result,) = run(x)
    assert result.device.id == 1 and cupy.cuda.Device().id == 0
    np.testing.assert_allclose(result.get(), np.full(3, 2 * np.e), rtol=1e-6)


@on_double
def test_what_is_on_the_host_is_computed_there():
    builder = Builder("mixed")
    x = builder.input(Tensor((3,), np.dtype("float32"), "cupy:0"), "x")
    y = builder.input(Tensor((3,), np.dtype("float32"), "cpu"), "y")
    with building(builder):
        graph = builder.build((x + x * x, OPS["exp"](y + y) + y))
    made, run = compiled(CUPY, graph)
    device, host = run(cupy.ones(3, np.float32), np.ones(3, np.float32))
    assert type(device) is cupy.ndarray and type(host) is np.ndarray
    np.testing.assert_allclose(host, np.full(3, np.exp(2) + 1), rtol=1e-6)
    assert device.tolist() == [2, 2, 2] and "cp.add" in made.source and " add(" in made.source
