"""Backprop through compiled calls only, without the checks that Chainer makes for functions of any kind.

For a loss that comes from compiled calls, Chainer's own loop takes several times as long as their gradients.  This one
does the same for such graphs, in the same order; all other graphs are Chainer's.
"""
from __future__ import annotations

import contextlib
import functools
import heapq
from typing import Any, Callable, Collection, Dict, Iterator, List, Optional, Sequence, Set, Tuple

import chainer
import numpy as np
from chainer import _backprop
from chainer.variable import Parameter, Variable, VariableNode

from ..config import ENABLED
from ..errors import RunError
from . import hooks, node
from .collection import uncollected
from .hooks import stage
from .node import CompiledFunction, current, is_replaced, is_unconnected
from .progress import shown
from .segment import ArenaLease, BackwardProgram
from .traceback import show_user_line

_config, _hooks = chainer.config, chainer.get_function_hooks
_of_chainer, _backward = _backprop._backprop_to_all, Variable.backward
_ABSENT = object()

#: Where backprop begins, by dtype.
ONES: Dict[np.dtype, np.ndarray] = {np.dtype(char): np.ones((), char) for char in "efd"}


@functools.wraps(_backward)
def backward(self: Variable, retain_grad: bool = False, enable_double_backprop: bool = False,
             loss_scale: Optional[float] = None) -> None:
    found = None
    if not (retain_grad or enable_double_backprop or loss_scale is not None or stage.capture is not None or not ENABLED.value
            or _config.debug or _hooks()):
        found = prepared(self)
    if found is None:
        if self._node is not None and is_unconnected(self._node):
            raise RunError("code that is not compiled calls `backward` of a Variable whose compiled call is not over",
                           hint="call `backward` in compiled code, or behind the call")
        _backward(self, retain_grad, enable_double_backprop, loss_scale)
        return
    function, program, operands, leaves = found
    self._grad_valid = True
    entries = _config._local.__dict__
    before = entries.get("enable_backprop", _ABSENT)
    entries["enable_backprop"] = False
    try:
        lease = None if program.pool is None else ArenaLease(program.pool)
        results = program.run(None if lease is None else lease.arena, *operands)
    except Exception as error:
        raise show_user_line(error, program.run.__code__, program.origins)  # noqa: B904  the same error, with one more entry
    finally:
        if before is _ABSENT:
            del entries["enable_backprop"]
        else:
            entries["enable_backprop"] = before
    finished(function, program, leaves, results)


def prepared(variable: Variable) -> Optional[Tuple[CompiledFunction, BackwardProgram, Tuple[Any, ...], Tuple[Any, ...]]]:
    """What the backward of a loss takes: its creator, the program, the operands, and the Variables that get gradients.

    None for all but the plainest: the loss is a scalar without a gradient, its creator a compiled call, and nothing else
    that it has made has a gradient; all that enters are leaves without gradients.  A leaf that has been freed is None.
    """
    function = None if variable._node is None else variable._node._creator_node
    if type(variable) is not Variable or type(function) is not CompiledFunction or function._n_local_function_hooks:
        return None
    array = variable._data[0]
    if (type(array) is not np.ndarray or array.ndim or variable._layout is not None or variable._grad_var is not None
            or variable._grad is not None or array.dtype not in ONES):
        return None
    given = []
    for reference in function.outputs:
        y = reference()
        given.append(y is variable._node)
        other = None if y is None or y is variable._node else y._variable()
        if other is not None and (other._grad_var is not None or other._grad is not None):
            return None
    nodes, targets, leaves = set(), [], []
    for i, x in enumerate(function.inputs):
        if type(x) is not VariableNode or x._creator_node is not None or x._old_style_grad_generator is not None:
            return None
        if x._requires_grad:
            leaf = x._variable()
            if leaf is not None and (type(leaf) not in (Parameter, Variable) or leaf._has_chainerx_array
                                     or leaf._grad_var is not None or leaf._grad is not None):
                return None
            nodes.add(x)
            targets.append(i)
            leaves.append(leaf)
    program = function.segment.backward.get((tuple(targets), tuple(given), False))
    if program is None or not program.is_plain or len(nodes) != len(targets):
        return None
    held, one = function.held, ONES[array.dtype].copy()
    if is_replaced(held, program):
        return None
    operands = [one if k < 0 else current(held[k]) for k in program.takes]
    return function, program, tuple(operands), tuple(leaves)


def finished(function: CompiledFunction, program: BackwardProgram, leaves: Sequence[Any], results: Sequence[Any]) -> None:
    """Store the gradients of the leaves."""
    for leaf, array, (entering, arriving) in zip(leaves, results, program.depends):
        if leaf is not None:
            requires_grad = bool(arriving) or any([function.inputs[i]._requires_grad for i in entering])
            leaf._grad_var, leaf._grad, leaf._loss_scale = node.make_variable(array, requires_grad), array, None


def backprop_to_all(outputs: Sequence[Tuple[Any, Any]], retain_grad: bool, loss_scale: Optional[float]) -> None:
    """What ``chainer._backprop._backprop_to_all`` does.  outputs: pairs of a VariableNode and its gradient."""
    functions = () if retain_grad or chainer.config.debug or chainer.get_function_hooks() else _compiled_behind(outputs)
    if not functions:
        _of_chainer(outputs, retain_grad, loss_scale)
        return
    if len([function for function in functions if not function.segment.backward]) > 1:
        _compile_at_once(outputs)
    _backprop_compiled(outputs, loss_scale)


def install() -> None:
    """Replace Chainer's ``backward`` by the one above."""
    _backprop._backprop_to_all = backprop_to_all
    Variable.backward = backward


#: Chainer's method, by its replacement: captures follow Chainer's.
ORIGINALS: Dict[Callable, Callable] = {backward: _backward}


def _compiled_behind(outputs: Sequence[Tuple[Any, Any]]) -> Collection[CompiledFunction]:
    """The functions behind these outputs if all are compiled calls; none otherwise."""
    waiting = [y._creator_node for y, _ in outputs]
    seen: Set[CompiledFunction] = set()
    while waiting:
        function = waiting.pop()
        if function is None or function in seen:
            continue
        if type(function) is not CompiledFunction or function._n_local_function_hooks:
            return ()
        seen.add(function)
        for x in function.inputs:
            if type(x) is not VariableNode or x._old_style_grad_generator is not None:
                return ()
            waiting.append(x._creator_node)
    return seen


class _Order:
    """The functions in the order in which Chainer asks them for gradients.  leaves: the Variables that have been met."""

    def __init__(self) -> None:
        self.leaves: Dict[Any, None] = {}
        self._waiting: List[Tuple[int, int, CompiledFunction]] = []
        self._seen: Set[CompiledFunction] = set()

    def meet(self, node: Any) -> None:
        """A gradient has arrived at a Variable."""
        function = node._creator_node
        if function is None:
            self.leaves[node] = None
        elif function not in self._seen:
            heapq.heappush(self._waiting, (-function.rank, len(self._seen), function))
            self._seen.add(function)

    def __iter__(self) -> Iterator[CompiledFunction]:
        while self._waiting:
            yield heapq.heappop(self._waiting)[2]


@uncollected()
def _compile_at_once(outputs: Sequence[Tuple[Any, Any]]) -> None:
    """Make the programs that `_backprop_compiled` is about to ask for, in the same order, but before any of them runs.

    It asks for others where a run decides which gradients there are.  What cannot be made fails again where it is asked for.
    """
    batch, again, order = hooks.backward_batch(), _config.enable_backprop, _Order()
    arrived: Dict[Any, bool] = {}
    for y, _ in outputs:
        arrived[y] = True
        order.meet(y)
    with shown("compiling a backward"):
        with contextlib.suppress(RunError):
            for function in order:
                targets = tuple([i for i, x in enumerate(function.inputs) if x._requires_grad])
                given = tuple([y is not None and y._creator_node is not None and arrived.get(y, _has_gradient(y))
                               for y in [reference() for reference in function.outputs]])
                if targets:
                    for i, connected in zip(targets, batch.begin(function.segment, targets, given, again)):
                        x = function.inputs[i]
                        arrived[x] = arrived.get(x, False) or connected
                        if connected:
                            order.meet(x)
        batch.finish()


def _has_gradient(node: Any) -> bool:
    variable = node._variable()
    return variable is not None and variable.grad_var is not None


def _backprop_compiled(outputs: Sequence[Tuple[Any, Any]], loss_scale: Optional[float]) -> None:
    gradients: Dict[Any, List[Any]] = {}
    order = _Order()
    for y, gradient in outputs:
        _of(gradients, y).append(gradient)
        order.meet(y)
    for function in order:
        inputs = function.inputs
        targets = tuple([i for i, x in enumerate(inputs) if x._requires_grad])
        arriving = tuple([None if y is None or y._creator_node is None else _taken(gradients, y)
                          for y in [reference() for reference in function.outputs]])
        if not targets:
            continue
        known = {inputs[i]: _of(gradients, inputs[i]) for i in targets}
        for i, gradient in zip(targets, function.backward(targets, arriving)):
            if gradient is not None:
                known[inputs[i]].append(gradient)
        for x, found in known.items():
            if found:
                order.meet(x)
    for x in order.leaves:
        variable = x._variable()
        gradient = _taken(gradients, x)
        if variable is not None:
            variable._set_grad_var_without_check(gradient)
            variable._loss_scale = loss_scale


def _of(gradients: Dict[Any, List[Any]], node: Any) -> List[Any]:
    """What has arrived at a node so far; a leaf begins with the gradient that its Variable had."""
    found = gradients.get(node)
    if found is None:
        before = _had(node) if node._creator_node is None else None
        found = gradients[node] = [] if before is None else [before]
    return found


def _had(node: Any) -> Any:
    """The gradient of the Variable of a node, if that is still there; it is taken away from it."""
    variable = node._variable()
    if variable is None:
        return None
    gradient = variable.grad_var
    variable._set_grad_var_without_check(None)
    return gradient


def _taken(gradients: Dict[Any, List[Any]], node: Any) -> Any:
    """The sum of what has arrived at a node."""
    found = gradients.pop(node, None)
    if found is None:
        return _had(node)
    if len(found) > 1:
        return chainer.functions.add(*found)
    return found[0] if found else None
