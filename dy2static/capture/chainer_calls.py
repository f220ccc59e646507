"""What `FunctionNode.apply` does while a capture runs: the function becomes ops, or one opaque node (`opaque_functions`)."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

import chainer
import numpy as np
from chainer.functions.array.get_item import GetItem
from chainer.functions.array.scatter_add import ScatterAdd

from ..errors import Location
from ..heap.dict_shadows import as_key
from ..heap.global_state_guard import is_other
from ..heap.ownership import is_altered
from ..heap.wording import a_type
from ..ir.graph import Value
from ..ir.op import OPS
from ..lowering.registration import registered
from ..lowering.registry import CALLED, MAY_FAIL, lowering_of, state_of
from ..symbolic.applications import holds_inputs
from ..symbolic.array_or_variable import variable_of
from ..symbolic.data_dependent_sizes import may_be_empty
from ..symbolic.size_trials import check_types
from ..symbolic.values import SymbolicArray, SymbolicVariable
from ..symbolic.variable_identity import Choice
from ..symbolic.views import arrays_in
from .devices import has_own_libraries
from .failing_calls import as_raised
from .function_nodes import implementation_of, name_of, trap_attributes
from .index_lists import with_arrays
from .label_counts import count_classes
from .masks import without_mask
from .opaque_functions import OpaqueFunctions, trial_run
from .single_rows import with_numbers
from .windows import with_windows

if TYPE_CHECKING:
    from .protocols import Capture


class ChainerCalls:
    """The functions of Chainer that one capture applies.  applied: how many."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self.applied = 0
        self.opaque = OpaqueFunctions(capture)
        self._altered: Dict[type, bool] = {}

    def apply(self, node: chainer.FunctionNode, inputs: Sequence[Any]) -> Tuple[SymbolicVariable, ...]:
        """What ``node.apply(inputs)`` does while this capture runs."""
        self.capture.check()
        if isinstance(inputs, chainer.Variable):
            bool(inputs)                                # Chainer asks whether there are any, and Variables raise TypeError
        inputs = [variable_of(x) for x in inputs]
        taken, attributes = self._given(node, inputs)
        given = [*taken, *attributes]
        relied = self._keep_by_reference(inputs, given, given if holds_inputs(node) else attributes)
        operands = [self._operand(x) for x in inputs]
        requires = [r for _, r in operands]
        values = [v for v, _ in operands]
        device = self.capture.builder.device = self.capture.placement.of_call(values)
        choice = self._choice(inputs)
        node._input_layouts = (None,) * len(values)
        if chainer.config.type_check:
            check_types(self.capture, node, [v.type for v in values], _Typed)
        if node._n_local_function_hooks:
            self.capture.abort("a function with hooks of its own")
        if chainer.get_function_hooks():
            self.capture.abort("a function hook is registered inside the compiled function", hint="register it around the call")
        position, self.applied = self.applied, self.applied + 1
        if isinstance(node, (GetItem, ScatterAdd)):
            shape = values[0].shape
            key = with_arrays(self.capture, self.capture.expressions.with_sizes(node.slices))
            key = without_mask(self.capture, key, shape)
            key = with_windows(self.capture, key, shape) if isinstance(node, GetItem) else key
            node.slices = with_numbers(self.capture, key, shape)
        start = len(self.capture.builder.nodes)
        with self.capture.placement.inside(device):
            outputs = self._lowered(node, values, device)
        if self.capture.staging.in_loop and any(made.attrs.get("extents") for made in self.capture.builder.nodes[start:]):
            self.capture.abort("the size of a slice depends on array values, inside a loop on array values")
        if outputs is None:
            outputs = self.opaque.add(node, values, requires, position, device)
        connected = any(requires) and chainer.config.enable_backprop
        may_view = self._may_view(outputs, values, start)
        made = tuple(self.capture.builder.nodes[start:])
        self.capture.array_writes.applied(node, made, given, [*attributes, *_of_callers(inputs)], outputs, connected)
        if relied and connected:
            self.capture.array_writes.overwritten.relied(outputs, relied)
        results = tuple([self.result(v, values, any(requires), connected) for v in outputs])
        for variable in results:
            variable.__dict__["siblings"] = results
            if choice is not None:
                variable.__dict__.update(choice=choice, uncertain=True, decision=self.capture.staging.path.decision)
            self.capture.array_writes.gave(node, given, may_view, variable._data[0], connected)
        return results

    def _choice(self, inputs: Sequence[Any]) -> Optional[Choice]:
        """Whether a result requires a gradient, where a run decides that."""
        required = [x for x in inputs if isinstance(x, chainer.Variable) and x.requires_grad]
        if not required or not all(x.__dict__.get("uncertain") for x in required):
            return None
        unknown = [x for x in required if "choice" not in x.__dict__ or not chainer.config.enable_backprop]
        if unknown:
            self.capture.abort("whether a Variable requires a gradient depends on a decision on array values", because=unknown[0])
        return self.capture.staging.choices.result(self.capture, required)

    def _given(self, node: chainer.FunctionNode, inputs: Sequence[Any]) -> Tuple[List[SymbolicArray], List[SymbolicArray]]:
        """The arrays that a function gets: its inputs, and those in its attributes."""
        holder = node.function if isinstance(node, chainer.function.FunctionAdapter) else node
        found = arrays_in([x._data[0] if isinstance(x, chainer.Variable) else x for x in inputs])
        state = state_of(node)
        return found, arrays_in([value for name, value in holder.__dict__.items() if name not in state])

    def _keep_by_reference(self, inputs: Sequence[Any], given: Sequence[SymbolicArray],
                           held: Sequence[SymbolicArray]) -> List[Optional[Location]]:
        """What backward will read is the array itself, if it is one of the user's that was written.

        given: the arrays that a function gets.  held: those that it holds.
        Gives the lines that wrote arrays of Variables of the user's.
        """
        required = [x for x in inputs if isinstance(x, chainer.Variable) and x.requires_grad]
        relied: List[Optional[Location]] = []
        if not chainer.config.enable_backprop or not required:
            return relied
        own = {id(x._data[0]): x for x in required if isinstance(x, SymbolicVariable) and "source" in x.__dict__}
        for x in required:                              # leaves that are made here may have been written, too
            if isinstance(x, SymbolicVariable) and "source" not in x.__dict__ and not x.connected and x._data[0].memory is not None:
                self.capture.gradients.know_again(x)
        for array in given:
            if id(array) not in own:
                if any(array is other for other in held):
                    self.capture.array_writes.by_reference(array)
            elif self.capture.array_writes.is_written(array) or self.capture.rebound_arrays.has(own[id(array)]):
                relied.append(self.capture.rebound_arrays.at(own[id(array)]) or self.capture.array_writes.written_at(array))
                self.capture.gradients.know_again(own[id(array)])
        return relied

    def _may_view(self, outputs: Sequence[Value], values: Sequence[Value], start: int) -> bool:
        """Whether a result of what was just lowered may share memory with an operand."""
        made = {v: node for node in self.capture.builder.nodes[start:] for v in node.outputs}

        def root(value: Value) -> Value:
            while value in made and made[value].op.name in ("by_rule", "reshape"):  # a mark that is not there in a run; a new shape
                value = made[value].inputs[0]
            return value

        found = [root(value) for value in outputs]
        return len(set(found)) < len(found) or any(
            v in values or v in made and (made[v].op.view or made[v].op.kind in ("opaque", "control")) for v in found)

    def _operand(self, x: Any) -> Tuple[Value, bool]:
        if isinstance(x, chainer.Variable):
            if isinstance(x, SymbolicVariable):
                if "exposed" in x.__dict__:
                    self.capture.abort(f"a Variable is used after {x.__dict__['exposed']}, which may have changed it",
                                       of_host=True, whole=True)
                return x.value, x.requires_grad
            array, requires_grad = x._data[0], x.requires_grad
        else:
            array, requires_grad = x, False
        if type(array) is SymbolicArray:
            if array.is_scalar:
                self.capture.abort("a NumPy scalar is given to a Chainer function")
            if array is x and array.now() in self.capture.gradients.variables:      # `h.array`, which is not `h`
                return OPS["stop_gradient"](array.now()), False
            return array.now(), requires_grad
        if not isinstance(array, chainer.get_array_types()):
            self.capture.abort(f"a Chainer function gets {a_type(array)}, which is no array")
        if type(array) is not np.ndarray or requires_grad:
            self.capture.abort(f"{a_type(array)} made inside a library function is differentiated")
        return OPS["constant"](value=array), False

    def _lowered(self, node: chainer.FunctionNode, values: List[Value], device: str) -> Optional[Tuple[Value, ...]]:
        try:
            return self._lower(node, values, device)
        except Exception as error:                      # which is the user's: others end the capture
            failed = error
        with trial_run():
            failed = as_raised(failed, node, values, self.opaque.made_up)
        raise failed

    def _lower(self, node: chainer.FunctionNode, values: List[Value], device: str) -> Optional[Tuple[Value, ...]]:
        implementation = implementation_of(node)
        own = registered(implementation)
        lowering = lowering_of(node) or own
        self.capture.heap.objects.rely_on_class(implementation, data=True)
        if lowering is None or own is None and self.is_altered(implementation):
            return None
        if chainer.is_debug() or has_own_libraries(node, self.changed_config(), device):
            return None                                 # whole, it looks for NaN in each result, and under its own name
        self.capture.event("staged", name_of(node))
        called = {name: getattr(node, name) for name in CALLED.get(type(node), ())}
        for name, function in called.items():
            self.capture.effects.store_writes()
            setattr(node, name, self.capture.calls.callee(function))
        count_classes(self.capture, node, values)
        fails = type(node) in MAY_FAIL
        if fails:
            self.capture.effects.store_writes()
        start = len(self.capture.builder.nodes)
        outputs = lowering(node, *values)
        if outputs is None:
            if called and len(self.capture.builder.nodes) > start:
                self.capture.abort(f"a function that {name_of(node)} calls gives it something else than arrays of the right shapes")
            node.__dict__.update(called)
            del self.capture.builder.nodes[start:]
            self.capture.events.pop()
            return None
        self._fill_attributes(node)
        if own is not None:
            trap_attributes(node, None, self.capture)
        if not fails and (any(map(self.capture.index_ranges.may_raise, self.capture.builder.nodes[start:])) or
                          may_be_empty([v.type for v in values])):
            if called and self.capture.array_writes.is_ahead:
                self.capture.abort(f"{name_of(node)} changes an array of the user's, and may fail then")
            if not self._cannot_fail(start):
                self.capture.effects.store_writes_before(start)
        node.__dict__.update({name: SymbolicArray(self.capture, attribute) for name, attribute in node.__dict__.items()
                              if isinstance(attribute, Value)})
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def is_altered(self, cls: type) -> bool:
        """Whether a method of a function of Chainer's was replaced by somebody else's."""
        if cls not in self._altered:
            self._altered[cls] = is_altered(cls)
        return self._altered[cls]

    def _fill_attributes(self, node: chainer.FunctionNode) -> None:
        """What the lowering left in the node is there for others to read."""
        for name, item in list(node.__dict__.items()):
            if isinstance(item, Value):
                setattr(node, name, SymbolicArray(self.capture, item))

    def _cannot_fail(self, start: int) -> bool:
        """Whether the nodes from ``start`` can be guarded not to fail, where that spares storing what was written."""
        made = self.capture.builder.nodes[start:]
        spares = any(node.op.may_raise for node in made) and (
            self.capture.effects.is_protected() or self.capture.heap.has_changed_containers() or
            self.capture.staging.in_loop and self.capture.grad_state.is_ahead)
        return spares and self.capture.index_ranges.cover(made)

    def changed_config(self) -> Dict[str, Any]:
        """Entries of ``chainer.config`` that differ from those at the start of the call."""
        now = chainer.config._local.__dict__
        before = self.capture.start_config
        return {k: as_key(v) for k, v in now.items() if k not in before or is_other(v, before[k])}

    def result(self, value: Value, inputs: List[Value], requires_grad: bool, connected: bool) -> SymbolicVariable:
        """The Variable that a call gives for a value; a value that went in becomes one of its own."""
        if requires_grad and not connected and self.capture.differentiates:
            value = OPS["stop_gradient"](value)
        elif value in inputs:
            value = OPS["identity"](value)
        return SymbolicVariable(self.capture, SymbolicArray(self.capture, value), requires_grad, connected)

    def new_variable(self, array: Any, requires_grad: bool) -> SymbolicArray:
        """The array of a Variable that user code makes: a leaf, whatever the array was computed from.

        One that is made here, and that nothing else holds, may be written in place until a function reads it.
        """
        if self._is_free(array):
            return self.capture.array_writes.given(array, OPS["stop_gradient"](array.now()))
        self.capture.array_writes.by_reference(array)
        return self.capture.array_writes.holds(SymbolicArray(self.capture, OPS["stop_gradient"](array.value)), array)

    def leaf(self, array: SymbolicArray, requires_grad: bool) -> SymbolicArray:
        """What a Variable holds to which user code assigns an array, or of which it assigns the gradient: a leaf, too.

        An array that is made here, and that nothing else holds, may be written in place afterwards (``parameter.array -= g``): the
        Variable gets the array itself.  Others are kept as they are, and so are those in blocks, which may run again.
        """
        if not self._is_free(array):
            return self.new_variable(array, requires_grad)
        self.capture.array_writes.replace_contents(array, OPS["stop_gradient"](array.now()))
        return array

    def _is_free(self, array: Any) -> bool:
        """Whether a Variable may get an array itself, to be written in place: no other has it, whose gradients are its own."""
        return not self.capture.staging.depth and self.capture.array_writes.is_own(array) and not self.capture.gradients.has(array)


def _of_callers(inputs: Sequence[Any]) -> List[SymbolicArray]:
    """The arrays of those that are Variables of the user's and require a gradient."""
    return [x._data[0] for x in inputs if isinstance(x, SymbolicVariable) and x.requires_grad and "source" in x.__dict__]


class _Typed:
    """What Chainer's type check looks at in an array."""

    def __init__(self, type_: Any):
        self.shape, self.dtype, self.ndim = type_.shape, type_.dtype, len(type_.shape)
        self.size = math.prod(type_.shape)

    @property
    def __class__(self) -> type:
        return np.ndarray                               # it asserts that before it composes its message
