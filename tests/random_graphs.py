"""Random small graphs for the tests of passes, gradients and generated code."""
import numpy as np
from hypothesis import strategies as st

from dy2static import ops
from dy2static.errors import Location
from dy2static.ir.building import Builder, building
from dy2static.ir.types import Tensor

SHAPES = [(3, 4), (4,), (4, 3), (1, 4), (), (3, 1), (2, 3), (12,)]
SMOOTH = ["tanh", "sigmoid", "neg", "square", "sin", "identity"]
STEPS = ["unary", "unary", "binary", "binary", "number", "matmul", "view", "sum", "take", "concat"]
ROUGH = ["relu", "abs", "softmax", "log_softmax"]


def build(function, *shapes, dtype="float64", names=None):
    """The graph of a Python function over values."""
    builder = Builder("forward")
    inputs = [builder.input(Tensor(shape, np.dtype(dtype)), f"x{i}" if names is None else names[i])
              for i, shape in enumerate(shapes)]
    with building(builder):
        outputs = function(*inputs)
    return builder.build(outputs if isinstance(outputs, tuple) else (outputs,))


def arrays(graph, seed=0):
    """Inputs for a graph, between -1 and 1."""
    rng = np.random.RandomState(seed)
    return [np.asarray(rng.uniform(-1, 1, v.shape).astype(v.dtype)) for v in graph.inputs]


@st.composite
def graphs(draw, dtype="float64", unary=tuple(SMOOTH + ROUGH), outputs=3):
    """A graph of up to 12 nodes, each on its own line of ``model.py``."""
    builder = Builder("forward")
    values = [builder.input(Tensor(shape, np.dtype(dtype)), f"x{i}")
              for i, shape in enumerate(draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3)))]
    with building(builder):
        for line in range(draw(st.integers(1, 12))):
            builder.loc = Location("model.py", line // 2 + 1)
            made = _step(draw, values, unary)
            if made is not None:
                values.append(made)
    count = draw(st.integers(1, outputs))
    return builder.build(tuple(draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))))


def _step(draw, values, unary):
    x = draw(st.sampled_from(values))
    kind = draw(st.sampled_from(STEPS))
    if kind == "unary":
        name = draw(st.sampled_from(unary))
        if "softmax" in name:
            return getattr(ops, name)(x, axis=-1) if x.ndim else None
        return getattr(ops, name)(x)
    if kind == "number":
        number = draw(st.sampled_from([1, 0, 0.5, -2.0]))
        return draw(st.sampled_from([lambda: x * number, lambda: x + number, lambda: number - x, lambda: x - number]))()
    y = draw(st.sampled_from(values))
    if kind == "binary":
        try:
            np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return None
        return ops.tanh(x * y) if draw(st.booleans()) else draw(st.sampled_from([lambda: x + y, lambda: x - y]))()
    if kind == "matmul":
        return _product(x, y)
    if kind == "view":
        return draw(st.sampled_from([lambda: ops.transpose(x), lambda: ops.reshape(x, shape=(-1,)),
                                     lambda: ops.reshape(x, shape=(1,) + x.shape),
                                     lambda: ops.broadcast_to(x, shape=(2,) + x.shape) if x.ndim < 3 else None]))()
    if kind == "sum":
        axis = None if x.ndim == 0 or draw(st.booleans()) else draw(st.integers(0, x.ndim - 1))
        return ops.sum(x, axis=axis, keepdims=draw(st.booleans()))
    if x.ndim == 0:
        return None
    if kind == "take":
        return ops.getitem(x, index=draw(st.sampled_from([0, -1, slice(None, 1), slice(None, None, -1)])))
    return ops.concat(x, x, axis=0)


def _product(x, y):
    if x.ndim != 2 or y.ndim != 2:
        return None
    for transa in (False, True):
        for transb in (False, True):
            if x.shape[0 if transa else 1] == y.shape[1 if transb else 0]:
                return ops.matmul(x, y, transa=transa, transb=transb)
    return None
