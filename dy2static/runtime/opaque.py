"""One application of a Chainer function that stays whole: each run applies a copy to fresh Variables and keeps the tape."""
from __future__ import annotations

import contextlib
import weakref
from copy import copy
from dataclasses import replace
from typing import Any, Callable, Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import chainer
import numpy as np
from chainer._backprop_utils import _reduce as summed
from chainer._backprop_utils import backprop_step
from chainer.function import FunctionAdapter

from ..ir.shapes import evaluate_shape
from ..ir.types import type_of
from .host_calls import fill
from .observed import Surprise


class Tape(NamedTuple):
    """What Chainer's backward needs: the Variables that went in and came out of one application.

    callers: per input, whether its array is that of a Variable of the caller's, who may have given it another one since.
    """

    inputs: Tuple[chainer.Variable, ...]
    outputs: Tuple[chainer.Variable, ...]
    callers: Tuple[bool, ...] = ()


class Reads(NamedTuple):
    """What a gradient is computed from: gradients of these outputs, and these inputs."""

    outputs: Tuple[int, ...]
    inputs: Tuple[int, ...]


#: Classes of functions whose results had other types than in the call that was observed, and of those of which a gradient
#: that was to be there is None.
VARYING: "weakref.WeakSet[type]" = weakref.WeakSet()
VANISHING: "weakref.WeakSet[type]" = weakref.WeakSet()

#: Classes whose results did not follow the sizes of operands as they had for other sizes.
UNFOLLOWED: "weakref.WeakSet[type]" = weakref.WeakSet()


class OpaqueCall:
    """One application of a FunctionNode.

    node: never run itself; each run works on a copy.
    attributes: those of the node's attributes that hold operands, as templates.
    requires: per input, whether its Variable requires grad.
    callers: per input, whether it comes from the caller, and may be another array when backward runs.
    connected: per input, whether backward gives it a gradient.
    reads: per input, what its gradient is computed from: indexes of outputs (whose gradients were given), and of inputs;
        None where that is not known.
    config: the entries of ``chainer.config`` that were set where it was applied.
    written: the attributes that ``forward`` sets on the node; None where that is not known.
    observed: the types of the outputs, where they are known from other calls only, and not for all contents, or sizes.
    sizes: where symbols in these are found: the operand, the axis, and the factor that its size has before the symbol.
    failed: a run has seen others, or a gradient missing; programs with this application are of no use any more.
    """

    __slots__ = ("node", "attributes", "requires", "callers", "connected", "reads", "config", "written", "observed", "sizes",
                 "failed")

    def __init__(self, node: chainer.FunctionNode, attributes: Mapping[str, Any], requires: Sequence[bool],
                 callers: Sequence[bool], config: Mapping[str, Any]):
        self.node, self.attributes, self.config = node, dict(attributes), dict(config)
        self.requires, self.callers = tuple(requires), tuple(callers)
        self.connected: Tuple[bool, ...] = self.requires
        self.reads: Optional[Tuple[Reads, ...]] = None
        self.written: Optional[frozenset] = None
        self.observed: Optional[Tuple[Any, ...]] = None
        self.sizes: Mapping[str, Tuple[int, int, int]] = {}
        self.failed = False

    @property
    def implementation(self) -> type:
        """The class of the function as it was written, also for an old-style Function."""
        return type(self.node.function if isinstance(self.node, FunctionAdapter) else self.node)

    def __repr__(self) -> str:
        return self.node.label

    def fresh_node(self, operands: Sequence[Any]) -> chainer.FunctionNode:
        """A copy of the node with the operands in its attributes, ready to be applied once."""
        node = copy_node(self.node)
        holder = node.function if isinstance(node, FunctionAdapter) else node
        for name, template in self.attributes.items():
            holder.__dict__[name] = fill(template, operands)
        return node

    def __call__(self, *operands: Any) -> List[Any]:
        """Apply a copy: the output arrays and the tape."""
        tape = self._apply(self.fresh_node(operands), operands)
        if self.observed is not None and tuple([type_of(y.array) for y in tape.outputs]) != self._expected(operands):
            self._fail(UNFOLLOWED if self.sizes else VARYING, "gives results of other shapes or dtypes than in an earlier call")
        return [y.array for y in tape.outputs] + [tape]

    def _expected(self, operands: Sequence[Any]) -> Any:
        """The types of the outputs for these operands."""
        if not self.sizes:
            return self.observed
        numbers = {symbol: operands[i].shape[axis] // factor for symbol, (i, axis, factor) in self.sizes.items()}
        return tuple([replace(t, shape=evaluate_shape(t.shape, numbers)) for t in self.observed or ()])

    def require_gradient(self, is_there: bool) -> List[Any]:
        """Stop the run if a gradient that the compiled function computes with is None."""
        if not is_there:
            self._fail(VANISHING, "gives None as a gradient that is used inside the compiled function")
        return []

    def _fail(self, found: Any, what: str) -> None:
        self.failed = True
        found.add(self.implementation)
        raise Surprise(f"{self.implementation.__name__} {what}",
                       hint="what this call has changed before stays changed; later calls run eagerly")

    def _apply(self, node: chainer.FunctionNode, operands: Sequence[Any]) -> Tape:
        inputs = tuple([chainer.Variable(array, requires_grad=requires)
                        for array, requires in zip(operands, self.requires)])
        with using_configs(self.config):
            return Tape(inputs, node.apply(inputs), self.callers)

    def probe(self, arrays: Sequence[np.ndarray]) -> Tuple[Any, ...]:
        """The types of the outputs, learned (with ``connected`` and ``written``) from a run on example arrays."""
        node = self.fresh_node(arrays)
        holder = node.function if isinstance(node, FunctionAdapter) else node
        before = dict(holder.__dict__)
        tape = self._apply(node, arrays)
        self.written = frozenset(name for name, value in holder.__dict__.items()
                                 if name not in _BOOKKEEPING and before.get(name, holder) is not value)
        if any(self.requires) and chainer.config.enable_backprop and tape.outputs[0].creator is not None:
            try:
                self._differentiate(tape, True)
            except Exception:                       # what can be differentiated once only may say so at once
                self._differentiate(self._apply(self.fresh_node(arrays), arrays), False)
        return tuple(type_of(y.array) for y in tape.outputs)

    def _differentiate(self, tape: Tape, twice: bool) -> None:
        """Learn ``connected`` and ``reads`` from a backward.  twice: from one that can be differentiated again."""
        targets = [x for x in tape.inputs if x.requires_grad]
        ends = {j: y for j, y in enumerate(tape.outputs) if y.dtype.kind == "f"}
        given = {j: chainer.Variable(np.ones_like(y.array), requires_grad=twice) for j, y in ends.items()}
        gradients = iter([None] * len(targets))
        if ends:
            gradients = iter(chainer.grad(list(ends.values()), targets, list(given.values()), enable_double_backprop=twice))
        found = [next(gradients) if x.requires_grad else None for x in tape.inputs]
        self.connected = tuple(gx is not None for gx in found)
        reads = []
        for gx in found:
            below = _nodes_below(gx) if gx is not None and twice else set()
            # where there is no graph to look at, it may have read all; the gradient of an old-style function raises if read
            outputs = not twice or any(node._old_style_grad_generator for node in below)
            inputs = outputs if twice else gx is not None and gx.requires_grad
            reads.append(Reads(tuple(j for j, g in given.items() if outputs or g.node in below),
                               tuple(i for i, x in enumerate(tape.inputs) if inputs or x.node in below)))
        self.reads = tuple(reads)

    def types(self, arrays: Sequence[np.ndarray]) -> Tuple[Any, ...]:
        """The types of the outputs of a run on these arrays."""
        return tuple(type_of(y.array) for y in self._apply(self.fresh_node(arrays), arrays).outputs)


def _nodes_below(variable: chainer.Variable) -> Set[Any]:
    """The nodes of the Variables that require grad and that this one was computed from, and its own."""
    found, left = set(), [variable.node]
    while left:
        node = left.pop()
        if node.requires_grad and node not in found:
            found.add(node)
            left += [] if node.creator_node is None else node.creator_node.inputs
    return found


#: What `FunctionNode.apply` itself sets.
_BOOKKEEPING = frozenset(("inputs", "outputs", "rank", "stack", "lazy_grad_sum", "_input_indexes_to_retain",
                          "_output_indexes_to_retain", "_retained_output_data", "_output_count", "_input_layouts",
                          "_output_layouts", "_node", "_owned_node"))


def copy_node(node: chainer.FunctionNode) -> chainer.FunctionNode:
    """A copy of a node that was not applied yet; for an old-style Function, of both its parts."""
    made = copy(node)
    if isinstance(node, FunctionAdapter):
        function = copy(node.function)
        made._function, made._weak_function = function, None
        function._node, function._owned_node = weakref.ref(made), None
    return made


@contextlib.contextmanager
def using_configs(entries: Mapping[str, Any]) -> Any:
    """``chainer.using_config`` for several entries."""
    with contextlib.ExitStack() as stack:
        for name, value in entries.items():
            stack.enter_context(chainer.using_config(name, value))
        yield


class UnderConfig:
    """Makes host calls with entries of ``chainer.config`` set.

    within: calls a function from frames at the user's lines; None where these are never seen.
    """

    __slots__ = ("entries", "within")

    def __init__(self, entries: Mapping[str, Any], within: Optional[Callable[[Any, Tuple, Dict[str, Any]], Any]]):
        self.entries, self.within = dict(entries), within

    def __call__(self, function: Any, args: Tuple, kwargs: Dict[str, Any]) -> Any:
        with using_configs(self.entries):
            return function(*args, **kwargs) if self.within is None else self.within(function, args, kwargs)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two arrays are one, or two views of the same elements."""
    return one is other or isinstance(one, np.ndarray) and one.__array_interface__ == getattr(other, "__array_interface__", None)


def _alone(tape: Tape, given: Collection[Any]) -> Optional[chainer.FunctionNode]:
    """The function of a tape that gives all these nodes, if it takes the inputs of the tape themselves, arrays of NumPy's.

    None also where somebody watches what Chainer's backward does.
    """
    function: Optional[chainer.FunctionNode] = next(iter(given)).creator_node
    if function is None or function._n_local_function_hooks or chainer.get_function_hooks() or chainer.is_debug() or \
            any([node.creator_node is not function for node in given]) or len(tape.inputs) != len(function.inputs):
        return None
    is_alone = all([x.node is node and node.creator_node is None and type(x.array) is np.ndarray
                    for x, node in zip(tape.inputs, function.inputs)])
    return function if is_alone else None


def _gradients_of(function: chainer.FunctionNode, wanted: Sequence[chainer.Variable],
                  given: Mapping[Any, chainer.Variable]) -> List[Optional[chainer.Variable]]:
    """As `chainer.grad` of one function, which is all there is: without the search for what else lies between.

    given: the gradients by the nodes of the outputs.
    """
    targets = {x.node: [] for x in wanted}
    indexes = tuple([i for i, node in enumerate(function.inputs) if node in targets])
    gradients = tuple([given.get(reference()) for reference in function.outputs])
    with chainer.using_config("enable_backprop", False):
        backprop_step(function, indexes, gradients, targets, False)
    return [summed(targets[x.node]) for x in wanted]


def run_vjp(tape: Tape, *operands: Any, call: OpaqueCall, given: Tuple, targets: Tuple, uncertain: Tuple, types: Tuple,
             asks: bool, reads: Any, again: Optional[bool]) -> List[Any]:
    """Run Chainer's backward on a tape: the gradients of the targets, their tape, and if asked whether each is there."""
    again = bool(chainer.config.enable_backprop) if again is None else again
    changes = isinstance(call.node, FunctionAdapter)    # a backward of the old style may work in place, as that of hinge does
    gradients = tuple([chainer.Variable(array.copy() if changes else array) for array in operands[:len(given)]])
    wanted = tuple([tape.inputs[i] for i in targets])
    for i, array in zip(targets, operands[len(given):]):
        if any(tape.callers[i:i + 1]) and not _is_same(tape.inputs[i].array, array):
            tape.inputs[i].array = array.copy()         # as the node of the caller's Variable has it
    absent = {given[k] for k, there in zip(uncertain, operands[len(given) + len(targets):]) if not there}
    arriving: Dict[Any, List[chainer.Variable]] = {}    # by node: `chainer.grad` takes one gradient for each
    for i, gradient in zip(given, gradients):
        if i not in absent and tape.outputs[i] is not None:
            arriving.setdefault(tape.outputs[i].node, []).append(gradient)
    found = [None] * len(wanted)
    if arriving:
        with chainer.using_config("enable_backprop", again):
            sums = [parts[0] if len(parts) == 1 else chainer.functions.add(*parts) for parts in arriving.values()]
        function = None if again or changes else _alone(tape, arriving)
        found = (chainer.grad([y.get_variable() for y in arriving], list(wanted), sums, enable_double_backprop=again)
                 if function is None else _gradients_of(function, wanted, dict(zip(arriving, sums))))
    zeros = chainer.backend.get_array_module(*wanted).zeros
    results = [zeros(x.shape, x.dtype) if gx is None else gx.array for gx, x in zip(found, wanted)]
    return results + [Tape(wanted + gradients, tuple([gx for gx in found]))] + ([gx is not None for gx in found] if asks else [])
