"""Calls of NumPy that the capture kept as they are, as ops, for backends that ask."""
from __future__ import annotations

import functools
import operator
import weakref
from dataclasses import replace
from typing import Any, Callable, List, Mapping, Optional, Sequence

import numpy as np

from ...ir.building import Builder, building, constant
from ...ir.graph import Graph, Node, Value
from ...ir.size_needed import SizeNeeded
from ...ir.types import Scalar, Tensor
from ...ops import scalar
from ...ops.creation import full
from ...ops.scalar import tensor_to_scalar
from ...runtime.host_calls import Call, fill
from .membership import is_among
from .operands import as_arrays
from .table import OF_NUMBERS, Row, fixed_array, found, lower_numpy, on_request_row

#: Elements up to which an array that a call makes of nothing is a constant.
LARGEST = 4096
#: Nodes that are calls of NumPy.
CALLS = ("numpy_call", "checked_call")

_known: "weakref.WeakKeyDictionary[Node, Optional[List[Node]]]" = weakref.WeakKeyDictionary()


def legalize_numpy_calls(graph: Graph, supports: Callable[[Node], bool] = lambda node: True) -> Graph:
    """The graph with ops in place of `CALLS`, in regions too.  Values keep their identity; the last bits may differ.

    supports: whether the backend has an op; a call that needs others stays.  Linear in nodes.
    """
    nodes: List[Node] = []
    for node in graph.nodes:
        instead = call_as_ops(node) if node.op.name in CALLS else None
        if instead is not None and all(map(supports, instead)):
            nodes += instead
        elif node.regions:
            change = functools.partial(legalize_numpy_calls, supports=supports)
            nodes.append(replace(node, regions=tuple(map(change, node.regions))))
        else:
            nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def call_as_ops(node: Node) -> Optional[List[Node]]:
    """Nodes that compute the same as one of `CALLS`; None where there are none."""
    if node not in _known:
        _known[node] = _as_ops(node)
    return _known[node]


def _as_ops(node: Node) -> Optional[List[Node]]:
    if not node.outputs:
        return None                                     # a check, which gives nothing
    (type_, *others) = [value.type for value in node.outputs]
    is_python = not others and isinstance(type_, Scalar) and type_.kind != "numpy"
    return _of_numbers(node) or _among(node) or by_rule(node, _lowered) if is_python else by_rule(node, _lowered)


def by_rule(node: Node, lowered: Callable[[Call, Sequence[Value], Tensor], Optional[Value]]) -> Optional[List[Node]]:
    """Nodes that compute the one array or number that a call gives, by a function that builds them; None where it gives None.

    lowered: takes the call, its operands and the type of the array, without axes for a number.
    """
    call, (value, *others) = node.attrs["call"], node.outputs
    type_ = value.type
    is_number = isinstance(type_, Scalar)
    if others or not is_number and not isinstance(type_, Tensor) or type_.dtype.kind not in "biuf":
        return None
    builder = Builder("call")
    builder.loc = node.loc
    wanted = Tensor((), type_.dtype) if is_number else type_
    with building(builder):
        result = lowered(call, node.inputs, wanted)
        if result is None or result.type != wanted or result not in {v for n in builder.nodes for v in n.outputs}:
            return None
        if is_number:
            result = (tensor_to_scalar if type_.kind == "numpy" else scalar.item)(result)
            if result.type != type_:
                return None
    made = _needed(builder.nodes, result)               # a rule that declines leaves nodes
    return [replace(new, outputs=tuple(value if v is result else v for v in new.outputs)) for new in made]


def _needed(nodes: Sequence[Node], result: Value) -> List[Node]:
    """The nodes that a result is computed by."""
    kept: List[Node] = []
    read = {result}
    for node in reversed(nodes):
        if not read.isdisjoint(node.outputs):
            kept.append(node)
            read.update(node.inputs)
    return kept[::-1]


def _computed(call: Call, wanted: Tensor) -> Optional[Value]:
    """What a call without operands gives, such as ``np.arange(12)``, where that is no large array, or one number everywhere."""
    value = fixed_array(call) if all(isinstance(n, int) for n in wanted.shape) else None
    if value is None:
        return None
    if value.size <= LARGEST:
        return constant(value)
    number = value.flat[0]
    return full(shape=value.shape, value=number.item(), dtype=value.dtype) if np.all(value == number) else None


def _lowered(call: Call, inputs: Sequence[Value], wanted: Tensor) -> Optional[Value]:
    if not inputs:
        value = _computed(call, wanted)
        if value is not None:
            return value
    function = key_of(call.function)
    row = on_request_row(call, function)
    if row is not None:
        operands = inputs if row.takes_numbers else as_arrays(inputs, wanted)
        asked = _asked(row, wanted, fill(call.args, operands), fill(call.kwargs, operands))
        if asked is not None:
            return asked
    operands = as_arrays(inputs, wanted)
    args, kwargs = fill(call.args, operands), fill(call.kwargs, operands)
    return lower_numpy(function, tuple(constant(x) if isinstance(x, np.generic) else x for x in args), kwargs, wanted,
                       of_any_size=True)


def _asked(row: Row, wanted: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Optional[Value]:
    try:
        return row.rule(wanted, *args, **kwargs)
    except (SizeNeeded, TypeError, ValueError):                # arguments, or sizes, that the rule does not know
        return None


def _of_numbers(node: Node) -> Optional[List[Node]]:
    """Arithmetic and comparisons of Python's numbers."""
    call, (value,) = node.attrs["call"], node.outputs
    rule = None if call.kwargs else found(OF_NUMBERS, call.function)
    if rule is None:
        return None
    builder = Builder("call")
    builder.loc = node.loc
    with building(builder):
        operands = [_as_number(item) for item in fill(call.args, node.inputs)]
        if any(x is None for x in operands):
            return None
        result = rule(*operands)
        if node.op.name == "checked_call":
            result = scalar.needed(result)
    if result.type != value.type:
        return None
    return [replace(new, outputs=tuple(value if v is result else v for v in new.outputs)) for new in builder.nodes]


def _among(node: Node) -> Optional[List[Node]]:
    """Whether a number is one of several."""
    call, (value,) = node.attrs["call"], node.outputs
    if call.function is not operator.contains:
        return None
    builder = Builder("call")
    builder.loc = node.loc
    with building(builder):
        result = is_among(*fill(call.args, node.inputs))
    if result is None or result.type != value.type:
        return None
    return [replace(new, outputs=tuple(value if v is result else v for v in new.outputs)) for new in builder.nodes]


def _as_number(item: Any) -> Optional[Value]:
    if isinstance(item, Value):
        return item if isinstance(item.type, Scalar) and item.type.kind != "numpy" else None
    return scalar.py_constant(value=item) if type(item) in (bool, int, float) else None


def key_of(function: Any) -> Any:
    """How the table names a method or an attribute of arrays."""
    for kind in ("method", "attribute"):
        name = getattr(function, kind, None)
        if isinstance(name, str):
            return kind, name
    return function
