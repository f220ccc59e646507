"""The differentiable op of a compiled call: a FunctionNode and its Variables, built by hand.

``FunctionNode.apply`` takes 12 µs for what needs one: its checks (types, hooks, layouts, debug) are done at capture
or stand behind guards.  What is written here is exactly what ``apply`` would have left behind.
"""
from __future__ import annotations

import itertools
import weakref
from typing import Any, Dict, List, Optional, Sequence, Tuple

import chainer
import numpy as np
from chainer.variable import Variable, VariableNode

from ..errors import RunError
from . import hooks
from .segment import ArenaLease, BackwardProgram, Expected, Segment
from .traceback import show_user_line

_config = chainer.config
_new_variable, _new_node = Variable.__new__, VariableNode.__new__


#: Ranks of Variables that are used before they get their creators.  Chainer's own count is never so far apart.
_FIRST_EARLY = 1 << 20
_early_ranks = itertools.count(_FIRST_EARLY, _FIRST_EARLY)


def make_variable(array: Any, requires_grad: bool, early: bool = False) -> Variable:
    """A Variable without creator, as ``Variable(array, requires_grad=requires_grad)`` makes it, without its checks.

    early: others use it before it gets its creator, so that its rank must already be above those of all that it depends on.
    """
    variable = _new_variable(Variable)
    node = _new_node(VariableNode)
    node.__dict__ = {
        "_variable": weakref.ref(variable), "name": None, "_requires_grad": requires_grad, "_layout": None,
        "dtype": array.dtype, "shape": array.shape}
    variable.__dict__ = {
        "_requires_grad": requires_grad, "_loss_scale": None, "_grad_var": None, "_device": None,
        "_grad_valid": True, "_layout": None, "_data": [array], "_node": node, "_grad": None}
    if early:
        node._rank = next(_early_ranks)
    return variable


def is_unconnected(node: VariableNode) -> bool:
    """Whether a Variable will have a creator only when the call is over that makes it."""
    return "_creator_node" not in node.__dict__ and node._rank >= _FIRST_EARLY


def settle_leaf(variable: Variable) -> None:
    """A Variable that was to get a creator when the call is over gets none: it was unchained."""
    variable.node._rank = 0


def make_variables(required: Sequence[bool], *arrays: Any) -> List[Variable]:
    """The Variables that `make_variable` makes of these arrays."""
    return list(map(make_variable, arrays, required))


def store_gradient(variable: Variable, marks: Tuple[bool, bool], gradient: Optional[Variable]) -> None:
    """Set the gradient of a Variable.  marks: whether it was cleared, and whether `backward` has passed it."""
    cleared, differentiated = marks
    variable._set_grad_var_without_check(gradient)
    if cleared:
        variable._grad_valid = True
    if differentiated:
        variable._loss_scale = None


def store_gradients(marks: Sequence[Tuple[bool, bool]], *pairs: Any) -> None:
    """`store_gradient` with a Variable and its gradient, and with the next two, and so on."""
    for mark, variable, gradient in zip(marks, pairs[::2], pairs[1::2]):
        store_gradient(variable, mark, gradient)


def give_gradients(result: Any, *pairs: Variable) -> Any:
    """The result of a call, when Variables that the call has made have the gradients behind them in ``pairs``."""
    for variable, gradient in zip(pairs[::2], pairs[1::2]):
        variable._set_grad_var_without_check(gradient)
    return result


class CompiledFunction(chainer.FunctionNode):
    """One segment of a compiled call in Chainer's graph.

    held: operands of backward.  A VariableNode stands for its array at backward time (what Chainer retains by
        reference); everything else is the value itself.
    lease: keeps the arenas that ``held`` lies in: an `ArenaLease`, None, or a tuple of these.
    """

    segment: Segment
    held: Tuple[Any, ...] = ()
    lease: Any = None
    _input_layouts = _output_layouts = (None,)

    @property
    def label(self) -> str:
        return self.segment.name

    @property
    def _impl_name(self) -> str:
        return self.segment.name

    def forward(self, inputs: Tuple[Any, ...]) -> Tuple[Any, ...]:
        """Never runs: the compiled call has computed the outputs before this node exists."""
        raise RuntimeError("the forward of a compiled node has run already; call the decorated function again")

    def backward(self, target_input_indexes: Tuple[int, ...], grad_outputs: Sequence[Any]) -> Tuple[Any, ...]:
        """The gradients of the targets, None for those that nothing given depends on."""
        given = tuple([g is not None for g in grad_outputs])
        if True not in given:                           # Chainer's functions compute with that None, and most of them fail
            raise TypeError(f"{self.label}: backward is called on a result that is no scalar and has no gradient; call it on the "
                            "sum or the mean")
        again = _config.enable_backprop
        key = (target_input_indexes, given, again)
        program = self.segment.backward.get(key)
        if program is None:
            program = hooks.compile_backward(self.segment, *key)
            self.segment.backward[key] = program
        return _run_backward(self, program, [_fitting(self, y, g) for y, g in zip(self.outputs, grad_outputs) if g is not None])

    def unchain(self) -> None:
        """Cut this node out of the graph, as Chainer does, and let go of what backward would have read."""
        super().unchain()
        self.held, self.lease = (), None


def current(held: Any) -> Any:
    """The value a held entry stands for now."""
    return held._data if type(held) is VariableNode else held


def is_replaced(held: Sequence[Any], program: BackwardProgram) -> bool:
    """Whether a Variable has been given an array of another shape or dtype since the call, for which the program is not made."""
    sizes: Dict[str, int] = {}
    for index, known, is_free, _, _ in program.watched:
        array = held[index]
        if type(array) is VariableNode:
            array = array._data
        elif not is_free:
            continue
        if array is not None and (array.shape, array.dtype.str) != known and not (is_free and _fits(array, known, sizes)):
            return True
    return False


def _fits(array: np.ndarray, known: Expected, sizes: Dict[str, int]) -> bool:
    """Whether an array is as expected where sizes are not known.  sizes: the numbers of those seen so far, which it completes."""
    shape, dtype = known
    return array.dtype.str == dtype and array.ndim == len(shape) and all([
        n == (sizes.setdefault(size, n) if isinstance(size, str) else size) for size, n in zip(shape, array.shape)])


def _fitting(node: CompiledFunction, output: Any, gradient: Any) -> Variable:
    """The gradient of an output as a Variable of the shape and dtype that the backward is made for.

    ``chainer.grad`` and functions of the user's may give others, or an array.  A dtype is cast, as most of Chainer's functions do.
    """
    if not isinstance(gradient, Variable):
        gradient = chainer.as_variable(gradient)
    y, g = output(), gradient.array
    if y is None or g.dtype == y.dtype and g.shape == y.shape:
        return gradient
    if g.shape != y.shape:
        raise ValueError(f"{node.label}: the gradient of a result has the shape {g.shape}, where the result has {y.shape}")
    return chainer.functions.cast(gradient, y.dtype)


def _run_backward(node: CompiledFunction, program: BackwardProgram, given: Sequence[Variable]) -> Tuple[Any, ...]:
    held = node.held
    if is_replaced(held, program):
        raise RunError(f"{node.label}: a Variable was given an array of another shape or dtype between the call and its backward",
                       hint="call the function again before `backward`")
    operands = [current(held[k]) if kind == "held" else given[k].array for kind, k in program.operands]
    lease = None if program.pool is None else ArenaLease(program.pool)
    try:
        results = program.run(None if lease is None else lease.arena, *operands)
    except Exception as error:
        raise show_user_line(error, program.run.__code__, program.origins)  # noqa: B904  the same error, with one more entry
    count = sum(program.connected)
    depends, reached = program.depends, ()
    if program.depends_in_run is not None:
        depends, reached = program.depends_in_run(*[_fact(current(held[k])) for k in program.facts])
    # As in eager, a gradient requires grad if something that it was computed from does.
    gradients = [make_variable(array, any([node.inputs[i]._requires_grad for i in entering])
                               or any([given[i]._requires_grad for i in arriving]))
                 for array, (entering, arriving) in zip(results[:count], depends)]
    if program.again is not None:
        inputs = [x.get_variable() for x in node.inputs] + list(given)
        sources = {"held": held, "given": [g.node for g in given], "extra": results[count + program.bools:]}
        for kind, k in program.held:
            if kind == "given":
                given[k].node._data = given[k].array
        connect(program.again, inputs, gradients, tuple([sources[kind][k] for kind, k in program.held]),
                (lease, node.lease), node.lazy_grad_sum)        # it also holds what this node holds
    ready = iter(gradients)
    answer = [next(ready) if connected else None for connected in program.connected]
    for target, index in program.conditions:
        if not results[index]:
            answer[target] = None
    return tuple([gradient if there else None for gradient, there in zip(answer, reached)]) if reached else tuple(answer)


def _fact(value: Any) -> Any:
    """What decided in a run: a number or a truth; of what a loop pushed, all of them."""
    if type(value) is list:
        return tuple([_fact(item) for item in value])
    return value if type(value) is int else bool(value)


def connect(segment: Segment, inputs: Sequence[Variable], outputs: Sequence[Variable], held: Tuple[Any, ...],
            lease: Any, lazy_grad_sum: bool = False) -> None:
    """Make the node of a segment the creator of its outputs.

    inputs: the Variables that enter; at least one requires grad.
    held: as in `CompiledFunction`; VariableNodes in it must hold their data already.
    lease: what keeps the arenas that ``held`` lies in.
    lazy_grad_sum: the entry of ``chainer.config``; the entry guards it.
    """
    node = CompiledFunction.__new__(CompiledFunction)
    nodes = tuple([x._node for x in inputs])
    rank = max([n._rank for n in nodes])
    for variable in outputs:
        variable._node._creator_node = node
        variable._node._rank = rank + 1
    node.__dict__ = {
        "segment": segment, "held": held, "lease": lease, "rank": rank, "inputs": nodes,
        "outputs": tuple([weakref.ref(v._node) for v in outputs]), "_output_count": len(outputs),
        "lazy_grad_sum": lazy_grad_sum}


def connect_some(segment: Segment, inputs: Sequence[Optional[Variable]], outputs: Sequence[Optional[Variable]],
                 held: Tuple[Any, ...], lease: Any, lazy_grad_sum: bool = False) -> None:
    """`connect` where some of the inputs and outputs (None) were not made in this call, or were used before it."""
    there = [v for v in outputs if v is not None]
    if there:
        ranks = [v._node._rank for v in there]
        entering = [make_variable(_NO_ARRAY, False) if v is None else v for v in inputs]
        connect(segment, entering, there, held, lease, lazy_grad_sum)
        for variable, rank in zip(there, ranks):
            variable._node._rank = max(variable._node._rank, rank)
        node: CompiledFunction = there[0]._node._creator_node
        references = iter(node.outputs)
        node.outputs = tuple([_gone if v is None else next(references) for v in outputs])
        node._output_count = len(outputs)


#: Of inputs that were not made in a call.
_NO_ARRAY = np.empty((0,), np.float32)


def _gone() -> None:
    """A reference to an output that was never made."""


class HiddenLeaves(CompiledFunction):
    """The creator of a Variable whose gradient ends at Variables made inside the compiled call."""

    segment = Segment("forward", None)

    def backward(self, target_input_indexes: Tuple[int, ...], grad_outputs: Sequence[Any]) -> Tuple[Any, ...]:
        """No gradient for anything that anybody has."""
        return (None,) * len(target_input_indexes)


def connect_nowhere(variable: Variable) -> None:
    """Give a Variable that only depends on leaves made inside a creator: it is no leaf, and gets no ``grad``."""
    node, leaf = HiddenLeaves.__new__(HiddenLeaves), make_variable(variable.array, True)
    variable._node._creator_node, variable._node._rank = node, max(1, variable._node._rank)
    node.__dict__ = {"rank": 0, "inputs": (leaf._node,), "outputs": (weakref.ref(variable._node),), "_output_count": 1,
                     "lazy_grad_sum": _config.lazy_grad_sum}
