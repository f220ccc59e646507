"""Building graphs: a builder collects nodes; inside ``with building(builder):`` ops and operators add to it.

Operators on values (``+ - * / ** @``, comparisons) broadcast as NumPy does and write that out: the graph holds
``broadcast_to`` nodes, and elementwise nodes always have operands of one shape.  Numbers become constants of the
other operand's dtype.
"""
from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ..errors import InternalError, Location
from . import op as _op
from .dims import Dim, broadcast_shapes
from .graph import Graph, Node, Value
from .op import OPS, OpDef
from .types import Scalar, Tensor, Type

_CURRENT: contextvars.ContextVar[Optional["Builder"]] = contextvars.ContextVar("dy2static_builder", default=None)


class Builder:
    """Collects nodes in order; `build` ends it and gives the immutable graph."""

    def __init__(self, name: str = "graph"):
        self.name = name
        self.inputs: List[Value] = []
        self.nodes: List[Node] = []
        self.loc: Optional[Location] = None
        self._taken: Dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """A value name that is not taken yet, made from a hint: ``h``, ``h_1``, ``h_2``."""
        count = self._taken.get(hint, 0)
        self._taken[hint] = count + 1
        return hint if count == 0 else self.fresh(f"{hint}_{count}")

    def input(self, type: Type, name: str = "x") -> Value:
        """A new graph input of this type."""
        value = Value(type, self.fresh(name))
        self.inputs.append(value)
        return value

    def add(self, op: OpDef, inputs: Tuple[Value, ...], attrs: Mapping[str, Any] = {},
            regions: Tuple[Graph, ...] = (), name: Optional[str] = None) -> Tuple[Value, ...]:
        """Add one node; gives its outputs.  Raises what the op's ``infer`` raises for wrong operands."""
        full, types = infer(op, tuple(v.type for v in inputs), attrs, regions)
        outputs = tuple(Value(t, self.fresh(name or op.name)) for t in types)
        self.nodes.append(Node(op, tuple(inputs), outputs, full, tuple(regions), self.loc))
        return outputs

    def build(self, outputs: Tuple[Value, ...]) -> Graph:
        """The finished graph."""
        return Graph(tuple(self.inputs), tuple(outputs), tuple(self.nodes), self.name)


def infer(op: OpDef, types: Tuple[Type, ...], attrs: Mapping[str, Any],
          regions: Tuple[Graph, ...] = ()) -> Tuple[Mapping[str, Any], Tuple[Type, ...]]:
    """The canonical attributes and the result types of an op on operands of these types."""
    expected = len(op.inputs)
    if len(types) < expected - op.variadic or (len(types) > expected and not op.variadic):
        raise TypeError(f"{op.name} takes {expected - op.variadic} operands, not {len(types)}")
    unknown = [name for name in attrs if name not in op.attrs]
    if unknown:
        raise TypeError(f"{op.name} has no attribute {unknown[0]!r}")
    full = {**op.attrs, **attrs}
    if op.canonical is not None:
        full = {**full, **op.canonical(*types, **full)}
    results = op.infer(*types, **full, **({"regions": regions} if op.regions or regions else {}))
    return full, results if isinstance(results, tuple) else (results,)


@contextlib.contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    """Inside the block, calling an op or using operators on values adds nodes to ``builder``."""
    token = _CURRENT.set(builder)
    try:
        yield builder
    finally:
        _CURRENT.reset(token)


def current() -> Builder:
    """The builder of the innermost `building` block."""
    builder = _CURRENT.get()
    if builder is None:
        raise InternalError("an op was applied outside `with building(...)`")
    return builder


def constant(value: Any, dtype: Any = None) -> Value:
    """A value known now: an array, or a number as a 0-d array of ``dtype``."""
    return OPS["constant"](value=np.array(value, dtype=dtype))


def broadcast(*values: Value) -> Tuple[Value, ...]:
    """The values with the shape that NumPy broadcasting gives them."""
    shape: Tuple[Any, ...] = ()
    for value in values:
        shape = broadcast_shapes(shape, value.shape)
    return tuple(v if v.shape == shape else OPS["broadcast_to"](v, shape=shape) for v in values)


def _as_value(operand: Any, peers: List[Value]) -> Value:
    """A number or array as a value that fits the operands next to it."""
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, Dim):
        raise InternalError(f"the size {operand} cannot be an operand; use the `size` op")
    if peers and all(isinstance(peer.type, Scalar) for peer in peers) and not isinstance(operand, np.ndarray):
        return OPS["py_constant"](value=operand)
    if isinstance(operand, (np.ndarray, np.generic)) and not np.isscalar(operand):
        return constant(operand)
    dtypes = [peer.dtype for peer in peers]
    return constant(operand, next((dtype for dtype in dtypes if dtype != bool), dtypes[0] if dtypes else None))


def _emit(op: OpDef, inputs: Tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    peers = [v for v in inputs if isinstance(v, Value) and isinstance(v.type, (Tensor, Scalar))]
    values = tuple(_as_value(v, peers) for v in inputs)
    if op.kind == "elementwise" and len(values) > 1:
        values = broadcast(*values)
    outputs = current().add(op, values, attrs)
    return outputs[0] if len(outputs) == 1 else outputs


_op._EMITTER[0] = _emit


def _binary(name: str, scalar: str, scalar_attrs: Mapping[str, Any] = {}) -> Callable[[Any, Any], Value]:
    """The rule of an operator: one op for arrays, one for numbers, an array with a number as an array."""
    def apply(a: Any, b: Any) -> Value:
        peers = [v for v in (a, b) if isinstance(v, Value)]
        a, b = _as_value(a, peers), _as_value(b, peers)
        if isinstance(a.type, Scalar) and isinstance(b.type, Scalar):
            return OPS[scalar](a, b, **scalar_attrs)
        if isinstance(a.type, Scalar):
            a = OPS["scalar_to_tensor"](a, dtype=b.dtype)
        if isinstance(b.type, Scalar):
            b = OPS["scalar_to_tensor"](b, dtype=a.dtype)
        return OPS[name](a, b)
    return apply


def _power(x: Value, exponent: Any) -> Value:
    if isinstance(exponent, (int, float)) and isinstance(x.type, Tensor):
        return OPS["power_const"](x, exponent=exponent)
    return _binary("power", "py_pow")(x, exponent)


def _negative(x: Value) -> Value:
    return OPS["py_neg" if isinstance(x.type, Scalar) else "neg"](x)


def _install() -> None:
    """Give `Value` its operators.  They live here because a graph's values must not know ops."""
    for symbol, name in (("add", "add"), ("sub", "sub"), ("mul", "mul"), ("truediv", "div")):
        rule = _binary(name, f"py_{symbol}")
        setattr(Value, f"__{symbol}__", rule)
        setattr(Value, f"__r{symbol}__", lambda b, a, rule=rule: rule(a, b))
    for symbol, sign, name in (("gt", ">", "greater"), ("lt", "<", "less"), ("ge", ">=", "greater_equal"),
                               ("le", "<=", "less_equal")):
        setattr(Value, f"__{symbol}__", _binary(name, "py_compare", {"op": sign}))
    Value.__pow__ = _power                                      # type: ignore[attr-defined]
    Value.__rpow__ = lambda b, a: _binary("power", "py_pow")(a, b)      # type: ignore[attr-defined]
    Value.__neg__ = _negative                                   # type: ignore[attr-defined]
    Value.__matmul__ = lambda a, b: OPS["matmul"](a, b)         # type: ignore[attr-defined]


_install()
