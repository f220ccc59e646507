"""Building graphs: a builder collects nodes; inside ``with building(builder):`` ops and operators add to it.

Operators on values (``+ - * / ** @``, comparisons) broadcast as NumPy does and write that out: the graph holds
``broadcast_to`` nodes, and elementwise nodes always have operands of one shape.  Numbers become constants of the
other operand's dtype.
"""
from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from ..errors import InternalError, Location
from . import graph as _graph
from . import op as _op
from .devices import common
from .dims import Dim
from .graph import Graph, Node, Value
from .op import OPS, OpDef
from .shapes import broadcast_shapes
from .types import Scalar, Tensor, Type, place_of, placed, unplaced

_CURRENT: contextvars.ContextVar[Optional["Builder"]] = contextvars.ContextVar("dy2static_builder", default=None)


class Builder:
    """Collects nodes in order; `build` ends it and gives the immutable graph.

    device: where the results of nodes without operands are, such as constants.
    """

    def __init__(self, name: str = "graph"):
        self.name = name
        self.inputs: List[Value] = []
        self.nodes: List[Node] = []
        self.loc: Optional[Location] = None
        self.outer: Optional[Builder] = None
        self.device = ""
        self._taken: Dict[str, int] = {}
        self._places: Dict[Value, int] = {}             # where nodes were when they were last looked for
        self._seen = 0

    def fresh(self, hint: str) -> str:
        """A value name that is still free, made from a hint: ``h``, ``h_1``, ``h_2``."""
        taken = self._taken
        while True:
            count = taken.get(hint, 0)
            taken[hint] = count + 1
            if count == 0:
                return hint
            hint = f"{hint}_{count}"

    def region(self) -> "Builder":
        """A builder for a region inside, whose ``outer`` is this one: it shares the names, and where nodes come from."""
        inner = Builder(f"{self.name}_region")
        inner._taken, inner.loc, inner.outer, inner.device = self._taken, self.loc, self, self.device
        return inner

    def input(self, type: Type, name: str = "x") -> Value:
        """A new graph input of this type."""
        value = Value(type, self.fresh(name))
        self.inputs.append(value)
        return value

    def add(self, op: OpDef, inputs: Tuple[Value, ...], attrs: Mapping[str, Any] = {},
            regions: Tuple[Graph, ...] = (), name: Optional[str] = None) -> Tuple[Value, ...]:
        """Add one node; gives its outputs.  Raises what the op's ``infer`` raises for wrong operands."""
        full, types = infer(op, tuple([v.type for v in inputs]), attrs, regions)
        if self.device and not op.places and not op.regions:
            types = tuple([placed(t, self.device) for t in types])
        return self.place(op, tuple(inputs), full, types, name or op.name, tuple(regions))

    def place(self, op: OpDef, inputs: Tuple[Value, ...], attrs: Mapping[str, Any], types: Tuple[Type, ...], name: str,
              regions: Tuple[Graph, ...] = ()) -> Tuple[Value, ...]:
        """Add one node, all of whose attributes are given, and the types of its outputs; gives these."""
        outputs = tuple([Value(t, self.fresh(name)) for t in types])
        self.nodes.append(Node(op, inputs, outputs, attrs, regions, self.loc))
        return outputs

    def producer(self, value: Value) -> Optional[Node]:
        """The node here that gives a value; None for inputs, and for values of other builders."""
        nodes, places = self.nodes, self._places
        at = places.get(value)
        if at is not None and at < len(nodes) and value in nodes[at].outputs:
            return nodes[at]
        if value in self.inputs:
            return None
        if at is None:
            for at in range(self._seen if self._seen <= len(nodes) else 0, len(nodes)):
                places.update(dict.fromkeys(nodes[at].outputs, at))
            self._seen = len(nodes)
        at = places.get(value, len(nodes))
        if at < len(nodes) and value in nodes[at].outputs:
            return nodes[at]
        return next((node for node in reversed(nodes) if value in node.outputs), None)     # nodes were removed, or put elsewhere

    def build(self, outputs: Tuple[Value, ...]) -> Graph:
        """The finished graph."""
        return Graph(tuple(self.inputs), tuple(outputs), tuple(self.nodes), self.name)


def infer(op: OpDef, types: Tuple[Type, ...], attrs: Mapping[str, Any],
          regions: Tuple[Graph, ...] = ()) -> Tuple[Mapping[str, Any], Tuple[Type, ...]]:
    """The canonical attributes and the result types of an op on operands of these types.

    Results are on the device of the operands, of which the rule of the op knows nothing, unless it says where they are
    (`OpDef.places`).
    """
    devices = [device for device in map(place_of, types) if device]
    is_placed = bool(devices) and not op.places and not op.regions
    if is_placed:
        types = tuple(map(unplaced, types))
    expected = len(op.inputs)
    if len(types) != expected and (len(types) < expected - op.variadic or not op.variadic):
        raise TypeError(f"{op.name} takes {expected - op.variadic} operands, not {len(types)}")
    full = dict(op.attrs)
    for name, attr in attrs.items():
        if name not in full:
            raise TypeError(f"{op.name} has no attribute {name!r}")
        full[name] = _plain(attr)
    if op.canonical is not None:
        full.update(op.canonical(*types, **full))
    asked = {**full, "elem": unplaced(full["elem"])} if is_placed and "elem" in full else full
    results = op.infer(*types, **asked, regions=regions) if op.regions or regions else op.infer(*types, **asked)
    results = results if isinstance(results, tuple) else (results,)
    if is_placed:
        device = common(devices)
        results = tuple([placed(t, device) for t in results])
    return full, results


def _plain(attr: Any) -> Any:
    """The attribute with plain `Dim`s in place of the sizes that user code sees."""
    if type(attr) is tuple:
        return tuple([_plain(part) for part in attr])
    if type(attr) is slice:
        return slice(_plain(attr.start), _plain(attr.stop), _plain(attr.step))
    return attr.plain if isinstance(attr, Dim) else attr


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


def new_extent() -> Dim:
    """A symbol for a size that no node so far has: the same one whenever the nodes before are the same."""
    count, builder = 0, _CURRENT.get()
    while builder is not None:
        count += sum(len(inner.attrs.get("extents", ())) for node in builder.nodes for inner in node.walk())
        builder = builder.outer
    return Dim(f"size_{count}")


def constant(value: Any, dtype: Any = None) -> Value:
    """A value known now: an array, or a number as a 0-d array of ``dtype``."""
    return OPS["constant"](value=np.array(value, dtype=dtype))


def broadcast(*values: Value) -> Tuple[Value, ...]:
    """The values with the shape that NumPy broadcasting gives them."""
    shape: Tuple[Any, ...] = values[0].shape if values else ()
    for value in values[1:]:
        if value.shape != shape:
            shape = broadcast_shapes(shape, value.shape)
    return tuple([v if v.shape == shape else OPS["broadcast_to"](v, shape=shape) for v in values])


def _as_value(operand: Any, peers: List[Value]) -> Value:
    """A number or array as a value that fits the operands next to it."""
    if isinstance(operand, Value):
        return operand
    if _stands_for_array(operand):
        return OPS["stop_gradient"](operand.now())
    if peers and all(isinstance(peer.type, Scalar) for peer in peers) and not isinstance(operand, np.ndarray):
        return OPS["dimension"](size=operand) if isinstance(operand, Dim) else OPS["py_constant"](value=operand)
    if isinstance(operand, (np.ndarray, np.generic)) and not np.isscalar(operand):
        return constant(operand)
    dtypes = sorted((peer.dtype for peer in peers), key=lambda dtype: dtype.kind == "b")    # a mask says nothing
    is_size, beside_floats = isinstance(operand, Dim), bool(dtypes) and dtypes[0].kind == "f"
    if beside_floats and (is_size or _stands_for_number(operand)):
        number = OPS["dimension"](size=operand) if is_size else operand.value
        return OPS["scalar_to_tensor"](number, dtype=dtypes[0])
    if is_size:
        raise InternalError(f"the size {operand} is an operand beside arrays that are not of floats; use the op `dimension`")
    return constant(operand, dtypes[0] if dtypes else None)


_PLAIN = frozenset((bool, int, float))


def _stands_for_array(item: Any) -> bool:
    """Whether this is an array of a capture, in which no gradient goes on."""
    return hasattr(item, "now") and isinstance(getattr(item, "type", None), Tensor)


def _stands_for_number(item: Any) -> bool:
    """Whether this is a number of a capture that differs from call to call."""
    return type(item) not in _PLAIN and isinstance(item, (int, float)) and hasattr(item, "fix")


def _emit(op: OpDef, inputs: Tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    peers = [v for v in inputs if isinstance(v, Value) and isinstance(v.type, (Tensor, Scalar))]
    values = inputs if len(peers) == len(inputs) else tuple([_as_value(v, peers) for v in inputs])
    if op.kind == "elementwise" and len(values) > 1:
        values = broadcast(*values)
    outputs = current().add(op, values, {name: _as_known(item) for name, item in attrs.items()})
    return outputs[0] if len(outputs) == 1 else outputs


def _as_known(item: Any) -> Any:
    """An attribute; what stands for a number in it becomes the number, on which the capture relies from then on."""
    if type(item) is tuple:
        return tuple(map(_as_known, item))
    return item.fix() if _stands_for_number(item) else item


_op._EMITTER[0] = _emit


#: The op on numbers for each operator, and its attributes.
_ON_NUMBERS: Dict[str, Tuple[str, Dict[str, Any]]] = {
    "add": ("py_add", {}), "sub": ("py_sub", {}), "mul": ("py_mul", {}), "div": ("py_truediv", {}),
    "power": ("py_pow", {}), "neg": ("py_neg", {}), "greater": ("py_compare", {"op": ">"}),
    "greater_equal": ("py_compare", {"op": ">="}), "less": ("py_compare", {"op": "<"}),
    "less_equal": ("py_compare", {"op": "<="}),
}


def _operate(name: str, *operands: Any) -> Value:
    """The rule of every operator: one op for arrays, one for numbers; a number with an array becomes an array."""
    peers = [v for v in operands if isinstance(v, Value)]
    if all(isinstance(v.type, Scalar) for v in peers):
        scalar, attrs = _ON_NUMBERS[name]
        return OPS[scalar](*operands, **attrs)
    if name == "power" and isinstance(operands[1], (int, float)):
        return OPS["power_const"](operands[0], exponent=operands[1])
    dtype = next(v.dtype for v in peers if not isinstance(v.type, Scalar))
    return OPS[name](*(OPS["scalar_to_tensor"](v, dtype=dtype) if isinstance(v, Value) and isinstance(v.type, Scalar)
                       else v for v in operands))


_graph._OPERATE.append(_operate)
