"""Gradients of lazy arrays, of any order: `grad`, `value_and_grad`, `vjp`, `jvp`, `hessian_vector_product`."""
from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Callable, Dict, List, Sequence, Tuple, Union

import numpy as np

from ..errors import SignatureError
from ..runtime.array_gradients import array_gradients
from .arrays import LazyArray, array_of_node
from .forms import call_of
from .making import array
from .nodes import COMPUTED, FRESH, TRACED, Node, call_node, leaf

_frame = sys._getframe

#: What gradients are taken by: the place of one argument, or of several.
Places = Union[int, Sequence[int]]


def grad(of: Any, by: Any = 0) -> Any:
    """The gradient of a function with a scalar result, as a function; or of a lazy scalar by lazy arrays it was built from.

    ``grad(f, by=0)``: a function like ``f`` that gives the gradient by the argument at the place ``by``; a tuple of gradients where
    ``by`` is a tuple of places.  ``grad(y, [a, b])``: a list of gradients of ``y``, which has shape ().

    Each gradient has the shape and dtype of the argument or array; it is zero if the result does not depend on it.

    >>> slope = grad(lambda x: (x ** 3).sum())
    >>> np.asarray(slope(np.array([1.0, 2.0]))).tolist()
    [3.0, 12.0]

    Raises TypeError if the result is not a lazy scalar of a float dtype, and ValueError if ``y`` or a part of it has been computed:
    its expression is not kept.  An operation without a gradient raises `CaptureError` or TypeError when the gradient is computed.
    """
    if isinstance(of, LazyArray):
        single = isinstance(by, LazyArray)
        found = _gradients_by([by] if single else list(by), of, _frame(1))
        return found[0] if single else found
    computed = value_and_grad(of, by)

    @functools.wraps(of)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return computed(*args, **kwargs)[1]
    return gradient


def value_and_grad(f: Callable[..., Any], by: Places = 0) -> Callable[..., Tuple[LazyArray, Any]]:
    """A function with the arguments of ``f`` that returns its result and the gradient (see `grad`), computed by one program."""
    places = (by,) if isinstance(by, int) else tuple(by)

    @functools.wraps(f)
    def both(*args: Any, **kwargs: Any) -> Tuple[LazyArray, Any]:
        frame = _frame(1)
        inputs, y = _traced(f, args, kwargs, places)
        found = _gradients(y, inputs, None, frame)
        _release([y, *found], inputs)
        return y, found[0] if isinstance(by, int) else tuple(found)
    return both


def vjp(f: Callable[..., Any], *args: Any) -> Tuple[LazyArray, Callable[..., Tuple[LazyArray, ...]]]:
    """The result of ``f(*args)``, and a function from a gradient of that result (same shape) to the gradients of all ``args``."""
    inputs, y = _traced(f, args, {}, range(len(args)))
    root, wanted = _history(y, inputs)
    _release([y], inputs)

    def pullback(seed: Any) -> Tuple[LazyArray, ...]:
        memo = {node: _copy(node, node.args) for node in wanted}        # each call has an expression of its own
        found = _gradient_arrays(_again(root, memo), [memo[node] for node in wanted], _like(seed, y), _frame(1))
        _release(found, inputs)
        return tuple(found)
    return y, pullback


def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> Tuple[LazyArray, LazyArray]:
    """The result of ``f(*args)`` and its derivative along ``tangents``, which have the shapes and dtypes of ``args``."""
    frame = _frame(1)
    inputs, y = _traced(f, args, {}, range(len(args)))
    along = [_like(tangent, each) for tangent, each in zip(tangents, inputs)]
    seed = _fresh(np.zeros_like(y), frame)              # the gradients are linear in it: their derivative by it is that of f
    total = _total(_gradients(y, inputs, seed, frame), along)
    found = _gradients(total, [seed], None, frame)[0]
    _release([y, found], [*inputs, seed])
    return y, found


def hessian_vector_product(f: Callable[..., Any], args: Sequence[Any], vectors: Sequence[Any]) -> Tuple[LazyArray, ...]:
    """The products of the second derivatives of a function that gives a number with vectors: both an array for each of ``args``."""
    frame = _frame(1)
    outer = [_fresh(each, frame) for each in args]
    inputs, y = _traced(f, outer, {}, range(len(args)))
    along = [_like(vector, each) for vector, each in zip(vectors, outer)]
    total = _total(_gradients(y, inputs, None, frame), along)
    found = _gradients(total, outer, None, frame)
    _release(found, [*outer, *inputs])
    return tuple(found)


def _total(arrays: Sequence[LazyArray], others: Sequence[LazyArray]) -> LazyArray:
    """The sum of the products of arrays with others."""
    parts = [(a * b).sum() for a, b in zip(arrays, others)]
    return functools.reduce(lambda a, b: a + b, parts)


def _like(given: Any, other: LazyArray) -> LazyArray:
    return given if isinstance(given, LazyArray) else array(given, other.dtype)


def _fresh(given: Any, frame: Any) -> LazyArray:
    """A lazy array that stands for another one, of which gradients are taken: what is built of it keeps how it was built."""
    node = (given if isinstance(given, LazyArray) else array(given))._now
    if isinstance(node.result, np.generic) and not node.args:
        node = leaf(np.asarray(node.result), node.op)   # a program takes it for an array, not for a number that may be constant
    made = call_node(FRESH, (node,), frame)
    made.depth, made.origin = TRACED + 1, object()
    return array_of_node(made)


def _traced(f: Callable[..., Any], args: Sequence[Any], kwargs: Dict[str, Any],
            places: Sequence[int]) -> Tuple[List[LazyArray], LazyArray]:
    """What stands for the arguments at some places, and what a function gives for it."""
    frame = _frame(2)
    given = list(args)
    for place in places:
        if not -len(given) <= place < len(given):
            raise SignatureError(f"a gradient is asked with respect to argument {place}, and the call has {len(given)}")
        given[place] = _fresh(given[place], frame)
    y = f(*given, **kwargs)
    if not isinstance(y, LazyArray):
        raise TypeError(f"a gradient is taken of a function that returns a lazy array; this one returns {type(y).__name__}")
    return [given[place] for place in places], y


def _release(results: Sequence[LazyArray], ours: Sequence[LazyArray]) -> None:
    """What is built of results from now on need not keep how it was built, unless an outer gradient is still to be taken."""
    own = {each._node.origin for each in ours}
    for each in results:
        node = each._now
        if node.depth >= TRACED and not _has_other_origins(node, own):
            node.depth = 2


def _has_other_origins(root: Node, own: Any) -> bool:
    """Whether an expression is built of something that gradients are taken by, other than our own."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            if node.op is FRESH and node.origin not in own:
                return True
            waiting += [arg for arg in node.args if type(arg) is Node]
    return False


def _gradients(y: LazyArray, inputs: Sequence[LazyArray], seed: Any, frame: Any) -> List[LazyArray]:
    root, wanted = _history(y, inputs)
    return _gradient_arrays(root, wanted, seed, frame)


def _gradients_by(inputs: Sequence[LazyArray], y: LazyArray, frame: Any) -> List[LazyArray]:
    if y.is_evaluated:
        raise ValueError("the array has been computed already, so its expression is gone: take its gradient before that, or "
                         "that of a function (lazy.grad(f))")
    _link_elements(y._now)
    stands = [_fresh(each, frame) for each in inputs]
    memo = {each._now: fresh._node for each, fresh in zip(inputs, stands)}
    wanted = [memo[each._now] for each in inputs]
    if _is_cut(y._now, memo):
        raise ValueError("a part of the expression has been computed already, so gradients cannot go through it: take the gradient "
                         "of a function (lazy.grad(f))")
    found = _gradient_arrays(_again(y._now, memo), wanted, None, frame)
    _release(found, stands)
    return found


def _link_elements(root: Node) -> None:
    """Connect elements that an expression contains with the arrays that they were taken of, where these are there as they were."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is COMPUTED and type(node.type) is tuple and len(node.type) == 3:
            reference, call, numbers = node.type
            array = reference()
            if array is not None:
                node.op, node.args, node.type = call, (array, *numbers), None
        waiting += [arg for arg in node.args if type(arg) is Node]


def _is_cut(root: Node, stops: Any) -> bool:
    """Whether an expression reaches what was computed from others, other than by the nodes that gradients are taken by."""
    waiting, seen = [root], set(stops)
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is COMPUTED:
            return True
        waiting += [arg for arg in node.args if type(arg) is Node]
    return False


def _history(y: LazyArray, inputs: Sequence[LazyArray]) -> Tuple[Node, List[Node]]:
    """The expression of ``y`` over again, with what stands in it for the inputs: results that are there by now end no gradient."""
    memo = {each._node: _copy(each._node, each._node.args) for each in inputs}
    return _again(y._now, memo), [memo[each._node] for each in inputs]


def _copy(node: Node, args: Tuple[Any, ...]) -> Node:
    """A node that computes the same of other operands, and has not been computed."""
    made = Node()
    made.op, made.args, made.code, made.last, made.depth = node.op, args, node.code, node.last, node.depth
    made.result = made.type = None
    if node.op is FRESH:
        made.origin = node.origin
    return made


def _again(root: Node, memo: Dict[Node, Node]) -> Node:
    """A copy of an expression in which nodes are replaced by others: of what is built of these; the rest is shared."""
    waiting = [root]
    while waiting:
        node = waiting[-1]
        missing = [] if node in memo else [arg for arg in node.args if type(arg) is Node and arg not in memo]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        if node not in memo:
            args = tuple([memo[arg] if type(arg) is Node else arg for arg in node.args])
            is_same = all([new is old for new, old in zip(args, node.args)])
            memo[node] = node if is_same else _copy(node, args)
    return memo[root]


def _gradient_arrays(root: Node, wanted: Sequence[Node], seed: Any, frame: Any) -> List[LazyArray]:
    """The lazy gradients of an expression by nodes in it."""
    args: Tuple[Any, ...] = (root, tuple(wanted)) if seed is None else (root, tuple(wanted), seed._now)
    call, operands = call_of(array_gradients, args, {})
    several = call_node(call, operands, frame)
    several.depth = TRACED + 1
    parts = [call_node("{}[%d]" % place, (several,), frame) for place in range(len(wanted))]
    several.type = tuple(map(weakref.ref, parts))
    return list(map(array_of_node, parts))
