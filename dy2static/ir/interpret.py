"""Interprets a graph node by node with NumPy: the reference for what it computes."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..errors import InternalError, RunError
from .dims import as_multiple
from .evaluate import evaluate, execute
from .graph import Graph, Node, Value
from .shapes import evaluate_shape
from .template import fills_out, numpy_source
from .types import Extent, Tensor, Type

#: ``watch(node, results)`` is told what each node gave, those in regions once per execution.
Watch = Callable[[Node, Tuple[Any, ...]], Any]


class Run(NamedTuple):
    """What one interpretation passes on: the numbers of symbols of shapes, and the callback for results."""

    sizes: Dict[str, int]
    watch: Optional[Watch] = None


def interpret(graph: Graph, *arrays: Any, watch: Optional[Watch] = None) -> Tuple[Any, ...]:
    """The outputs of the graph for these inputs.  Raises what its nodes raise.

    Arrays that are outputs may share memory with inputs where the graph says ``view``.
    """
    if len(arrays) != len(graph.inputs):
        raise InternalError(f"{graph.name} takes {len(graph.inputs)} inputs, not {len(arrays)}")
    return _run(graph, arrays, Run(bind_sizes([v.type for v in graph.inputs], arrays), watch))


def bind_sizes(types: Sequence[Type], arrays: Sequence[Any]) -> Dict[str, int]:
    """The values of the symbols in the shapes of inputs.  Raises `RunError` where an array does not fit its type."""
    sizes: Dict[str, int] = {}
    for type, array in zip(types, arrays):
        if isinstance(type, Tensor) and np.ndim(array) == type.ndim:
            for n, m in zip(type.shape, np.shape(array)):
                multiple = as_multiple(n)
                if multiple is not None:
                    sizes.setdefault(multiple[0], m // multiple[1])
    for type, array in zip(types, arrays):
        if isinstance(type, Tensor) and evaluate_shape(type.shape, sizes) != np.shape(array):
            raise RunError(f"an array of shape {np.shape(array)} is not a {type}")
    return sizes


def _run(graph: Graph, inputs: Sequence[Any], run: Run) -> Tuple[Any, ...]:
    values: Dict[Value, Any] = dict(zip(graph.inputs, inputs))
    for node in graph.nodes:
        values.update(zip(node.outputs, interpret_node(node, [values[v] for v in node.inputs], run)))
    return tuple(values[v] for v in graph.outputs)


def interpret_node(node: Node, operands: Sequence[Any], run: Run) -> Tuple[Any, ...]:
    """The results of one node; symbols of sizes that it finds out get their numbers in ``run``.  Raises what the node raises."""
    results = _CONTROL.get(node.op.name, _primitive)(node, operands, run)
    if run.watch is not None:
        run.watch(node, results)
    if node.op.name in ("list_stack", "list_array"):
        run.sizes[str(node.attrs["extent"])] = len(operands[0])
    for symbol, output, axis in () if node.op.name == "scatter_span" else node.attrs.get("extents", ()):
        run.sizes[symbol] = results[output].shape[axis]
    return results


def _primitive(node: Node, operands: Sequence[Any], run: Run) -> Tuple[Any, ...]:
    op, results = node.op, tuple(v.type for v in node.outputs)
    if callable(op.numpy):
        made = op.numpy(*operands, **node.attrs)
        return (made,) if len(node.outputs) == 1 else tuple(made)
    if op.numpy is None:
        raise InternalError(f"{op.name} has no NumPy meaning", node.loc)
    names = [f"operand_{i}" for i in range(len(operands))]
    outs = [f"out_{i}" for i in range(len(results))]
    text = numpy_source(op, names, outs, [v.type for v in node.inputs], results[0], node.attrs)
    scope: Dict[str, Any] = {**run.sizes, **{f.__name__: f for f in op.calls}, **dict(zip(names, operands))}
    if fills_out(op):
        arrays = tuple(_empty(result, run.sizes) for result in results)
        execute(text, {**scope, **dict(zip(outs, arrays))})
        return arrays
    value = evaluate(text, scope)
    return (value,) if len(node.outputs) == 1 else value


def _empty(type: Type, sizes: Dict[str, int]) -> np.ndarray:
    assert isinstance(type, Tensor)
    return np.empty(evaluate_shape(type.shape, sizes), type.dtype)


def _if(node: Node, operands: Sequence[Any], run: Run) -> Tuple[Any, ...]:
    region = node.regions[0 if operands[0] else 1]
    return _run(region, operands[1:], run)


def _while(node: Node, operands: Sequence[Any], run: Run) -> Tuple[Any, ...]:
    test, body = node.regions
    carried, count = node.attrs["carried"], 0
    state, invariants = tuple(operands[:carried]), tuple(operands[carried:])
    stacks: List[List[Any]] = [[] for _ in body.outputs[carried:]]
    while _run(test, state + invariants, run)[0]:
        state = _pushed(_run(body, state + invariants, run), carried, stacks)
        count += 1
    return state + tuple(stacks) + ((count,) if node.attrs["counted"] else ())


def _scan(node: Node, operands: Sequence[Any], run: Run) -> Tuple[Any, ...]:
    (body,), (count, *rest) = node.regions, operands
    carried, invariants = node.attrs["carried"], tuple(rest[node.attrs["carried"] + node.attrs["reads"]:])
    state, read = tuple(rest[:carried]), rest[carried:carried + node.attrs["reads"]]
    stacks: List[List[Any]] = [[] for _ in body.outputs[carried:]]
    for i in reversed(range(count)):
        run.sizes.update((v.type.symbol, stack[i]) for v, stack in zip(body.inputs[carried:], read) if isinstance(v.type, Extent))
        state = _pushed(_run(body, state + tuple(stack[i] for stack in read) + invariants, run), carried, stacks)
    return state + tuple(stacks)


def _pushed(results: Tuple[Any, ...], carried: int, stacks: Sequence[List[Any]]) -> Tuple[Any, ...]:
    """The new state; the other results of a body go to their stacks."""
    for stack, item in zip(stacks, results[carried:]):
        stack.append(item)
    return results[:carried]


def _raise(node: Node, operands: Sequence[Any], run: Run) -> Tuple[Any, ...]:
    raise make_exception(node.attrs["exception"], node.attrs["message"], operands)


def make_exception(exception: Any, message: Any, operands: Sequence[Any]) -> BaseException:
    """What a ``raise_`` node raises: the message is a text with ``{}`` for operands, or a callable that makes it."""
    if callable(message):
        return exception(message(*operands))
    return exception(message.format(*operands) if operands else message)


_CONTROL: Dict[str, Callable[..., Tuple[Any, ...]]] = {
    "if_": _if, "while_": _while, "scan": _scan, "raise_": _raise}
