"""Gradients of arrays that a compiled function asks for: `runtime.array_gradients`."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Set

from ..errors import CaptureError
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..ir.types import Scalar
from ..lowering.numpy.differentiable import differentiable
from ..lowering.numpy.legalize import CALLS, call_as_ops
from ..ops.scalar import scalar_to_tensor, tensor_to_scalar
from ..passes.differentiation.inner_autodiff import inner_autodiff
from ..runtime.array_gradients import needs_seed
from ..symbolic.values import SymbolicArray

if TYPE_CHECKING:
    from .protocols import Calls, Capture


def array_gradients(calls: Calls, function: Callable, y: Any, xs: Sequence[Any], seed: Any = None) -> List[Any]:
    """What `runtime.array_gradients` gives in a capture: nodes of the graph."""
    capture = calls.capture
    if not all(isinstance(each, SymbolicArray) and each.dtype.kind == "f" for each in (y, *xs)):
        raise TypeError("a gradient is taken of an array of floats, with respect to arrays of floats")
    if seed is None and y.shape != ():
        raise TypeError(needs_seed(y))
    if seed is not None and not (isinstance(seed, SymbolicArray) and (seed.shape, seed.dtype) == (y.shape, y.dtype)):
        raise TypeError(f"the gradient that is given for an array {y.dtype}{y.shape} must have the same dtype and shape")
    history = _History(capture, [x.now() for x in xs])
    history.lead_to(y.now())
    given = OPS["full"](shape=y.shape, value=1.0, dtype=y.dtype) if seed is None else _tensor(seed.now())
    root = history.of(y.now())
    found: Dict[Value, Any] = {}
    if root is not None:
        try:
            found, _ = inner_autodiff([capture.builder], history.nodes, {root: given}, set(history.wanted), ())
        except CaptureError as error:
            capture.abort(str(error.args[0]))
    return [_result(capture, x, found.get(wanted)) for x, wanted in zip(xs, history.wanted)]


#: Ops without a gradient whose derivative is zero, wherever they have one; and those between arrays and NumPy scalars.
_FLAT = frozenset({"ceil", "floor", "floor_divide", "rint", "sign", "stop_gradient", "trunc"})
_BETWEEN = (tensor_to_scalar, scalar_to_tensor)


def _is_float(value: Value) -> bool:
    """Whether a value is a number or numbers that a gradient can go through."""
    return getattr(getattr(value.type, "dtype", None), "kind", "") == "f"


def _has_gradient(part: Node) -> bool:
    """Whether gradients know what to do with an op: it has one, none goes through it, or its derivative is zero."""
    return part.op.vjp is not None or part.op.name in _FLAT or part.op in _BETWEEN or not any(map(_is_float, part.outputs))


def _tensor(value: Value) -> Value:
    """A NumPy scalar as an array without axes; arrays as they are."""
    return scalar_to_tensor(value, dtype=value.type.dtype) if isinstance(value.type, Scalar) else value


def _result(capture: Capture, x: SymbolicArray, found: Optional[Any]) -> SymbolicArray:
    value = OPS["full"](shape=x.shape, value=0.0, dtype=x.dtype) if found is None else found.value
    return SymbolicArray(capture, tensor_to_scalar(value) if x.is_scalar else value)


class _History:
    """What a value was computed from, as ops on arrays that have gradients, from the wanted values on.

    Calls of NumPy are written as ops, and NumPy scalars as arrays without axes.  What changes by that is added to the graph; what
    it replaces is not computed unless something else needs it.
    """

    def __init__(self, capture: Capture, wanted: Sequence[Value]):
        self.capture, self.nodes = capture, []
        self._tensors: Dict[Value, Value] = {}          # for each value that depends on a wanted one, and for parts of calls
        self._active: Set[Value] = set(wanted)
        self.wanted = [self._tensors.setdefault(value, _tensor(value)) for value in wanted]

    def of(self, value: Value) -> Optional[Value]:
        """The array that stands for a value; None of one that does not depend on what is wanted."""
        return self._tensors.get(value) if value in self._active else None

    def lead_to(self, value: Value) -> None:
        """Go over the nodes that lead to a value.  Linear in the nodes of the graph."""
        builder = self.capture.builder
        needed, path = {value}, []
        for node in reversed(builder.nodes):
            if not needed.isdisjoint(node.outputs):
                needed.update(node.inputs)
                path.append(node)
        at = builder.loc
        for node in reversed(path):
            if not self._active.isdisjoint(node.inputs) and self._active.isdisjoint(node.outputs):
                builder.loc = node.loc
                self._go_over(node)
        builder.loc = at

    def _go_over(self, node: Node) -> None:
        is_plain = not node.regions and node.op.kind not in ("opaque", "effect")
        parts = self._call_parts(node) if node.op.name in CALLS else [node] if is_plain else None
        name = getattr(node.attrs.get("call"), "name", "") or node.op.name
        if parts is None:
            self.capture.abort(f"the gradient goes through {name}, which has none here",
                               hint="write it with functions that have one, or take its values out with float or numpy.asarray")
        for part in parts:
            if not _has_gradient(part) and any(v in self._active or v in self._tensors for v in part.inputs):
                self.capture.abort(f"the gradient goes through {name}, which has none")
            self._add(part, node)
        self._active.update(v for v in node.outputs if _is_float(v))

    def _call_parts(self, node: Node) -> Optional[List[Node]]:
        """A call of NumPy as ops, as such that have gradients if there are some."""
        parts = call_as_ops(node)
        return parts if parts is not None and all(map(_has_gradient, parts)) else differentiable(node) or parts

    def _add(self, part: Node, node: Node) -> None:
        """Add an op of a node of the history to the graph, unless it is there as it is."""
        known = self._tensors
        if part.op is tensor_to_scalar or part.op is scalar_to_tensor and part.inputs[0] in known:
            tensor = known.get(part.inputs[0], part.inputs[0])
            dtype = part.outputs[0].type.dtype
            known[part.outputs[0]] = tensor if tensor.type.dtype == dtype else OPS["cast"](tensor, dtype=dtype)
            return
        inputs = tuple([known.get(value, value) for value in part.inputs])
        made = part
        if inputs != part.inputs or part is not node:
            self.capture.builder.add(part.op, inputs, part.attrs)
            made = self.capture.builder.nodes[-1]
        self.nodes.append(made)
        known.update(zip(part.outputs, made.outputs))
