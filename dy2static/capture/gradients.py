"""Gradients that the function itself asks for: `chainer.grad`, `backward`, and what Variables keep in ``grad_var``."""
from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import chainer
import numpy as np

from ..control_flow.branches import Decided
from ..errors import CaptureError
from ..heap.wording import BEFORE_CALL, a_type
from ..ir.graph import Node, Value
from ..ir.op import OPS
from ..lowering import host, opaque
from ..passes.differentiation.inner_autodiff import BY_OPERAND, ancestors, inner_autodiff, requires_grad
from ..passes.rewriting import with_regions
from ..record.guards import IdentityMatch
from ..record.paths import Attribute
from ..runtime.host_calls import Call, Hole
from ..runtime.opaque import VANISHING
from ..symbolic.applications import Application, changed_operands, read_again
from ..symbolic.values import SymbolicArray, SymbolicVariable
from .devices import check_gradients
from .gradient_arrays import separate_arrays, views_of
from .gradient_crossings import Crossings, alternatives, chain
from .unchaining import Unchaining
from .value_enumeration import producer

if TYPE_CHECKING:
    from .protocols import Capture


class _Reach(NamedTuple):
    """What gradients of some outputs may go through.

    nodes: what leads to the outputs, in order.  values: all values that they depend on, up to leaves.  stops: where no
    gradient goes on.
    """

    nodes: List[Node]
    values: Set[Value]
    stops: Set[Value]


class Gradients:
    """Of one `Capture`: the Variables it knows, and gradients between them.

    variables: by value.  stops: the values of those without a creator.  taken: how often gradients were taken.
    """

    def __init__(self, capture: Capture):
        self.capture = capture
        self.variables: Dict[Value, SymbolicVariable] = {}
        self.stops: Set[Value] = set()
        self.taken = 0
        self.crossings, self.unchaining = Crossings(self), Unchaining(self)

    def note(self, variable: SymbolicVariable) -> None:
        """Know a new Variable."""
        variable.__dict__["serial"] = len(self.variables)
        self.variables[variable.value] = variable
        if not variable.connected:
            self.stops.add(variable.value)

    def know_again(self, variable: SymbolicVariable) -> None:
        """Know a Variable without creator by what was written into its array."""
        self.variables[variable.value] = variable
        self.stops.add(variable.value)

    def has(self, array: SymbolicArray) -> bool:
        """Whether a Variable has this very array."""
        return any(variable._data[0] is array for variable in self.variables.values())

    # --- what user code calls ---------------------------------------------------------------------------------------------

    def grad(self, outputs: Any, inputs: Any, grad_outputs: Any = None, grad_inputs: Any = None, set_grad: Any = False,
             retain_grad: Any = False, enable_double_backprop: Any = False, loss_scale: Any = None) -> List[Any]:
        """`chainer.grad`."""
        capture = self.capture
        for name, items in (("outputs", outputs), ("inputs", inputs)):
            if not isinstance(items, (tuple, list)):
                raise TypeError(f"{name} must be a tuple or a list, not {type(items)}.")
        outputs, inputs = list(outputs), list(inputs)
        self.check((*outputs, *inputs))
        if retain_grad:
            capture.abort("chainer.grad with retain_grad is called inside the compiled function")
        seeds: Dict[Value, SymbolicVariable] = {}
        for items, given in ((outputs, grad_outputs), (inputs, grad_inputs)):
            given = [None] * len(items) if given is None else list(given)
            if len(given) != len(items):
                raise ValueError("there must be as many gradients as Variables")
            for variable, seed in zip(items, given):
                if seed is None and items is outputs:
                    seed = self._ones(variable, False, 1 if loss_scale is None else loss_scale)
                if seed is not None:
                    self._check_seed(variable, seed)
                    seeds[variable.value] = seed
        reach = self._reach(outputs, inputs)
        self._check_required(outputs, inputs)
        wanted = dict.fromkeys([v.value for v in inputs if v.value in reach.values])
        if any(v.dtype.kind != "f" for v in wanted):
            capture.abort("a gradient is taken with respect to an array of integers")
        found = self._differentiate(seeds, wanted, reach, bool(enable_double_backprop), "grad")
        results = [found.get(v.value, seeds.get(v.value)) for v in inputs]
        if set_grad:
            for variable, gradient in zip(inputs, results):
                self.capture.grad_state.set(variable, gradient)
        return results

    def backward(self, variable: SymbolicVariable, retain_grad: Any = False, enable_double_backprop: Any = False,
                 loss_scale: Any = None) -> None:
        """`Variable.backward`."""
        capture = self.capture
        self.check((variable,))
        seed = self.capture.grad_state.get(variable)
        if seed is None:
            if variable.ndim:
                capture.abort("backward is called inside the compiled function on a Variable that is no scalar and has no gradient",
                              hint="call it on the sum or the mean")
            seed = self._scaled_ones(variable, loss_scale)
        else:
            self._check_seed(variable, seed)
            self.capture.grad_state.set(variable, None)
        if not variable.connected:
            self.check_leaf(variable)
            self.capture.grad_state.set(variable, seed, cleared=True)
            self.capture.grad_state.set_loss_scale(variable, loss_scale)
            return
        reach = self._reach([variable], None)
        leaves = [v for v in map(self.variables.get, reach.values & self.stops) if v is not None and v.requires_grad
                  and v.dtype.kind == "f"]
        leaves.sort(key=lambda v: v.__dict__["serial"])
        between = self._between(reach.values) if retain_grad else []
        kept = {leaf.value: before for leaf in leaves if (before := self.capture.grad_state.get(leaf)) is not None}
        if chainer.is_debug() and not {before.value for before in kept.values()}.isdisjoint(capture.root.inputs):
            capture.abort("a gradient is added to one that is there already while `chainer.config.debug` looks for NaN in it",
                          hint="clear the gradients before `backward`")
        for leaf in leaves:
            if leaf.value in kept:
                self._check_seed(leaf, kept[leaf.value])
        # as in Chainer, what a leaf keeps comes first, and what its uses give is added to it one by one
        # in order: the graph is to be the same one in each process
        found = self._differentiate({variable.value: seed, **kept}, dict.fromkeys([v.value for v in (*leaves, *between)]), reach,
                                    bool(enable_double_backprop), "backward")
        if not enable_double_backprop:
            self._let_write([found[v.value] for v in (*leaves, *between) if v.value in found])
        for passed in between:
            self.capture.grad_state.set(passed, found.get(passed.value, seed if passed is variable else None))
        for leaf in leaves:
            gradient = found.get(leaf.value)
            if gradient is not None and gradient is not kept.get(leaf.value):
                self.check_leaf(leaf)
                self.capture.grad_state.set(leaf, gradient)
                self.capture.grad_state.set_loss_scale(leaf, loss_scale)

    def creator(self, variable: SymbolicVariable) -> None:
        """`Variable.creator`, where that is None."""
        self.check((variable,))
        if variable.connected or "siblings" in variable.__dict__ and not variable.requires_grad:
            self.capture.abort("the creator of a Variable is used inside the compiled function")
        self.check_leaf(variable)

    # --- checks ------------------------------------------------------------------------------------------------------------

    def check(self, variables: Iterable[Any]) -> None:
        """Stop at what are no Variables, or such of which it is not known what they are."""
        self.capture.check()
        for variable in variables:
            if not isinstance(variable, SymbolicVariable):
                self.capture.abort(f"the gradient of {a_type(variable)} is asked inside the compiled function")
            if "exposed" in variable.__dict__:
                self.capture.abort(f"a Variable is used after {variable.__dict__['exposed']}, which may have changed it",
                                   of_host=True, whole=True)
            if variable.__dict__.get("uncertain"):
                self.capture.abort("whether a Variable requires a gradient depends on a decision on array values",
                                   because=variable)

    def _check_required(self, outputs: Sequence[SymbolicVariable], inputs: Sequence[SymbolicVariable]) -> None:
        """Stop at inputs that require no gradient: eagerly they may get one, since results of them have creators, too."""
        idle = [v for v in inputs if not v.requires_grad]
        if idle:
            nodes = [node for part in chain(self.capture.builder) for node in part.nodes]
            values = ancestors(nodes, [v.value for v in outputs], ())[1]
            if any(v.value in values for v in idle):
                self.capture.abort("the gradient with respect to a Variable that requires none is asked inside the compiled "
                                   "function")

    def _check_seed(self, variable: SymbolicVariable, seed: Any) -> None:
        self.check((seed,))
        if seed.value.type != variable.value.type or variable.dtype.kind != "f":
            self.capture.abort(f"the gradient for a Variable of type {variable.value.type} is of type {seed.value.type}")

    def check_leaf(self, variable: SymbolicVariable) -> None:
        """Guard that a Variable of the user's has no creator: a gradient would go on there."""
        source = variable.__dict__.get("source")
        if source is not None:
            if self.capture.grad_state.real(variable).creator_node is not None:
                self.capture.abort(BEFORE_CALL)
            heap = self.capture.heap
            heap.guard(IdentityMatch(heap.source(Attribute, source, "creator_node"), None))

    # --- what leads to what ------------------------------------------------------------------------------------------------

    def _reach(self, outputs: Sequence[SymbolicVariable], inputs: Optional[Sequence[SymbolicVariable]]) -> _Reach:
        """What gradients of the outputs go through; inputs: with respect to these only."""
        nodes = [node for part in chain(self.capture.builder) for node in part.nodes]
        found, values = ancestors(nodes, [v.value for v in outputs], self.stops, set(self.capture.root.inputs))
        self.unchaining.check(values)
        again = self.capture.array_writes.overwritten.read_again(found, values)
        if again:
            found, values = self._read_again(found, values, again)
        check_gradients(self.capture, found)
        made = {v for node in found for v in node.outputs}
        entering = {v for v in values if v not in made and v in self.variables}
        if inputs is None:
            if any(self.variables[v].connected for v in entering):
                self.crossings.abort()
        else:
            self.crossings.check(entering, made, inputs, values)
            self._check_identity(nodes, values, outputs, inputs)
        return _Reach(found, values, self.stops | entering)

    def _read_again(self, nodes: List[Node], values: Set[Value],
                    applications: Sequence[Application]) -> Tuple[List[Node], Set[Value]]:
        """What a backward goes through, with what the arrays of Parameters hold by now in the place of what they held."""
        for value, array in changed_operands(applications).items():
            variable = self.variables.get(value)
            if variable is None or variable.connected or variable._data[0] is not array:
                self.capture.abort("an array is changed in place that a backward reads", hint="compute a new array instead",
                                   whole=True)
            if variable.value in values:
                self.capture.abort("a backward goes through a Variable before and after its array was changed in place",
                                   whole=True)
            self.know_again(variable)
            values = values - {value} | {variable.value}
        return read_again(self.capture, nodes, applications), values

    def _check_identity(self, nodes: Sequence[Node], values: Set[Value], outputs: Sequence[SymbolicVariable],
                        inputs: Sequence[SymbolicVariable]) -> None:
        """Stop where a decision says which of the Variables that the outputs depend on is one of the inputs."""
        targets = {id(v): v for v in inputs}
        produced = {v for node in nodes for v in node.outputs}
        for variable in [self.variables[v] for v in values if v in self.variables and v not in produced]:
            if any(id(other) in targets for other in alternatives(variable)):
                self._abort_identity(variable)
        for variable in inputs:
            others = alternatives(variable)
            if others:
                past = ancestors(nodes, [v.value for v in outputs], {*self.stops, variable.value})[1]
                if any(other.value in past for other in others):
                    self._abort_identity(variable)

    def _abort_identity(self, variable: SymbolicVariable) -> None:
        self.capture.abort("with respect to which Variable a gradient is taken depends on a decision on array values",
                           because=variable)

    def out_of_reach(self, values: Collection[Value]) -> Set[Value]:
        """What is made outside of branches and loops, and no gradient of these values goes through."""
        nodes = self.capture.root.nodes
        return {v for node in nodes for v in node.outputs}.difference(ancestors(nodes, values, self.stops)[1])

    def apart_from(self, read: Set[Value], values: Collection[Value]) -> Tuple[Value, ...]:
        """Those of the values whose gradients go through nothing that is ``read``; none if some of that is made in a region."""
        if not read:
            return tuple(dict.fromkeys(values))
        nodes = self.capture.root.nodes
        if not read.issubset(v for node in nodes for v in node.outputs):
            return ()
        return tuple([v for v in dict.fromkeys(values) if read.isdisjoint(ancestors(nodes, [v], self.stops)[1])])

    # --- gradients as nodes --------------------------------------------------------------------------------------------------

    def _differentiate(self, seeds: Mapping[Value, SymbolicVariable], wanted: Collection[Value], reach: _Reach,
                       double: bool, name: str) -> Dict[Value, SymbolicVariable]:
        """The gradients of the wanted values that there are."""
        capture, builder = self.capture, self.capture.builder
        self.taken += 1
        capture.event("staged", name)
        given = {v: seed.value for v, seed in seeds.items() if v in reach.values}
        at, start = builder.loc, len(builder.nodes)
        try:
            found, nodes = inner_autodiff(chain(builder), reach.nodes, given, wanted, reach.stops)
        except CaptureError as error:
            capture.abort(str(error.args[0]))
        finally:
            builder.loc = at
        builder.nodes[start:] = [_told(node, double) for node in builder.nodes[start:]]
        if any(capture.index_ranges.may_raise(node) or node.op.kind in ("opaque", "effect") for node in builder.nodes[start:]):
            capture.effects.store_writes_before(start)
        read = {v for node in nodes for v in node.inputs}
        requiring = [v for v in read if v in self.variables and self.variables[v].requires_grad]
        active = requires_grad(nodes, requiring, certainly=False)
        is_open = any([node.op.name in BY_OPERAND for node in nodes])
        certain = requires_grad(nodes, requiring, certainly=True) if is_open else active
        known = {seed.value: seed for seed in seeds.values()}
        results = {}
        for value in wanted:
            gradient = found.get(value)
            if gradient is None:
                continue
            self._be_there(gradient.present, nodes)
            if gradient.value in active and gradient.value not in certain:
                capture.abort("whether a gradient requires a gradient is known at run time only",
                              hint="a decision on array values, or a function of the user's own, decides")
            if gradient.value not in known:
                known[gradient.value] = self._variable(gradient.value, gradient.value in active, double)
            results[value] = known[gradient.value]
        arrays = [gradient._data[0] for gradient in results.values()]
        for array, seed in views_of([seed._data[0] for seed in seeds.values()], arrays, functools.partial(producer, builder)):
            capture.array_writes.views.may_share(array, (seed,))
        return results

    def _be_there(self, present: Any, nodes: Sequence[Node]) -> None:
        """Rely on a gradient.  If a function of the user decides at run time whether it exists, each call checks it."""
        if present is True:
            return
        makers = {v: node for node in nodes for v in node.outputs}
        waiting, calls = [present], []
        while waiting:
            value = waiting.pop()
            node = makers.get(value)
            if node is not None and node.op.name == "tape_vjp":
                calls.append(node.attrs["call"])
            elif node is not None and node.op.name in ("py_or", "py_and", "py_not", "py_bool"):
                waiting += node.inputs
            else:
                self.capture.abort("whether a gradient is None depends on a decision on array values",
                                   because=Decided(self.capture.staging.path.decision_behind(value, makers)))
        for call in calls:
            if call.implementation in VANISHING:
                self.capture.abort(f"whether a gradient is None depends on {call.implementation.__name__}")
        if calls:
            check = Call(calls[0].require_gradient, (Hole(0),), {}, list, "require_gradient")
            self.capture.builder.add(host.checked_call, (present,), {"call": check, "types": ()}, name="check")

    def _variable(self, value: Value, requires_grad: bool, double: bool) -> SymbolicVariable:
        """A gradient as a Variable: what its gradients go through only with ``double``."""
        if not (requires_grad and double) and self.capture.differentiates:
            value = OPS["stop_gradient"](value)
        elif value in self.variables:
            value = OPS["identity"](value)
        return SymbolicVariable(self.capture, SymbolicArray(self.capture, value), requires_grad, requires_grad and double)

    def _ones(self, variable: SymbolicVariable, requires_grad: bool, value: Any = 1) -> SymbolicVariable:
        """The gradient that an output has if none is given."""
        if variable.dtype.kind != "f" or not isinstance(value, (int, float, np.floating)):
            self.capture.abort(f"the gradient of a Variable of type {variable.value.type} is taken inside the compiled function")
        made = OPS["full"](shape=variable.shape, value=float(value), dtype=variable.dtype)
        return SymbolicVariable(self.capture, SymbolicArray(self.capture, made), requires_grad)

    def _scaled_ones(self, variable: SymbolicVariable, scale: Any) -> SymbolicVariable:
        """The gradient that `backward` begins with: ones, multiplied in place by a loss scale that is not None."""
        seed = self._ones(variable, True)
        if scale is not None:
            array = seed._data[0]
            self.capture.array_writes.filled(array)
            array *= scale
        return seed

    def _let_write(self, gradients: Sequence[SymbolicVariable]) -> None:
        """Allow writing in place into arrays of gradients that have no other reference."""
        made_by = functools.partial(producer, self.capture.builder)
        for array in separate_arrays([g._data[0] for g in gradients], made_by):
            self.capture.array_writes.filled(array)

    def _between(self, values: Collection[Value]) -> List[SymbolicVariable]:
        """The Variables that some of these values belong to and that have creators, in the order in which they were made."""
        found = [v for v in map(self.variables.get, values) if v is not None and v.connected and v.requires_grad]
        return sorted(found, key=lambda v: v.__dict__["serial"])


def _told(node: Node, double: bool) -> Node:
    """The node, and those inside, with word of whether functions that stay whole are differentiated for another gradient."""
    node = with_regions(node, lambda region: region.with_(nodes=tuple([_told(inner, double) for inner in region.nodes])))
    return replace(node, attrs={**node.attrs, "again": double}) if node.op is opaque.tape_vjp else node
