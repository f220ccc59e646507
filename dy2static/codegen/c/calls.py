"""Calls of NumPy that the capture kept as they are, as ops that C knows; their twin still makes the very call."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, List, Optional

from ...ir.building import Builder, building
from ...ir.graph import Node, Value
from ...ir.types import Scalar, Tensor
from ...lowering.host import fill
from ...lowering.numpy_calls import lower_numpy
from ...ops.scalar import scalar_to_tensor, tensor_to_scalar


def call_as_ops(node: Node) -> Optional[List[Node]]:
    """Nodes that compute the same as a ``numpy_call``; None where there are none."""
    call, (value, *others) = node.attrs["call"], node.outputs
    type_ = value.type
    is_number = isinstance(type_, Scalar) and type_.kind == "numpy"
    if others or not is_number and not isinstance(type_, Tensor) or type_.dtype.kind not in "biuf":
        return None
    builder = Builder("call")
    builder.loc = node.loc
    wanted = Tensor((), type_.dtype) if is_number else type_
    with building(builder):
        operands = list(map(_as_array, node.inputs))
        function = _key(call.function)
        result = lower_numpy(function, fill(call.args, operands), fill(call.kwargs, operands), wanted)
        if result is None or result.type != wanted or result not in {v for n in builder.nodes for v in n.outputs}:
            return None
        if is_number:
            result = tensor_to_scalar(result)
    return [replace(new, outputs=tuple(value if v is result else v for v in new.outputs)) for new in builder.nodes]


def _key(function: Any) -> Any:
    """How `lower_numpy` names a method or an attribute of arrays."""
    for kind in ("method", "attribute"):
        name = getattr(function, kind, None)
        if isinstance(name, str):
            return kind, name
    return function


def _as_array(value: Value) -> Value:
    is_number = isinstance(value.type, Scalar) and value.type.kind == "numpy" and value.dtype.kind in "biuf"
    return scalar_to_tensor(value, dtype=value.dtype) if is_number else value
