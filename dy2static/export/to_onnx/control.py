"""Branches, loops, unions and what raises, as ONNX has them.

A region sees the graphs around it, as a graph inside of a node of ONNX does: only what a loop carries gets new names.  A union is
a number, which says what it is, and a value of each alternative.  A stack is an array along a new first axis, or a sequence
where its items have several shapes.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np

from ...ir.dims import Dim
from ...ir.graph import Graph, Node, Value
from ...ir.onnx_forms import Name, NotInOnnx
from ...ir.types import Extent, Scalar, Stack, Tensor, Type, Union
from ...ir.types import List as ListType
from ...ops.control import loop_of, returns
from . import proto
from .writer import GraphWriter

Names = Tuple[Name, ...]

# What a value is made of ----------------------------------------------------------------------------------------


def parts(type_: Type) -> List[Type]:
    """The types of the ONNX values that a value is made of."""
    if isinstance(type_, Union):
        return [Scalar("py_int", np.dtype(np.int64)), *(part for one in type_.alternatives for part in parts(one))]
    return [type_]


def is_sequence(type_: Type) -> bool:
    """Whether the value is a sequence of ONNX."""
    if isinstance(type_, Stack):
        item = type_.elem
        return not isinstance(item, Scalar) and not (isinstance(item, Tensor) and all(_is_outer(n) for n in item.shape))
    return isinstance(type_, ListType)


def _is_outer(n: Any) -> bool:
    """Whether a size is a number, or one of the caller's arrays: it is the same in all iterations."""
    return not isinstance(n, Dim) or all(symbol.startswith("length") for symbol in n.symbols)


def dtype_of(type_: Type) -> np.dtype:
    """The dtype of an ONNX value, or of its items."""
    if isinstance(type_, (Stack, ListType)):
        return dtype_of(type_.elem)
    if isinstance(type_, (Tensor, Scalar)):
        return type_.dtype
    if isinstance(type_, Extent):
        return np.dtype(np.int64)
    raise NotInOnnx(f"ONNX has no {type_}")


def placeholder(w: GraphWriter, type_: Type) -> Name:
    """A value of this type that is never read."""
    if is_sequence(type_):
        return w.nodes("SequenceEmpty", (), (dtype_of(type_),), dtype=dtype_of(type_))[0]
    ndim = len(type_.shape) if isinstance(type_, Tensor) else 0
    ndim += isinstance(type_, Stack) and 1 + len(getattr(type_.elem, "shape", ()))
    return w.constant(np.zeros((0,) * ndim, dtype_of(type_)))


def _lifted(w: GraphWriter, value: Value, to: Type) -> Names:
    """The names of a value, as one of a union where it comes to be one."""
    names = w.names_of(value)
    if value.type == to or not isinstance(to, Union):
        return names
    return _union(w, names, value.type, to)


def _union(w: GraphWriter, names: Names, type_: Type, to: Union) -> Names:
    tag = to.alternatives.index(type_)
    found: List[Name] = [w.constant(tag, np.int64)]
    for k, one in enumerate(to.alternatives):
        found += names if k == tag else [placeholder(w, part) for part in parts(one)]
    return tuple(found)


# Branches -------------------------------------------------------------------------------------------------------


def _truth(w: GraphWriter, x: Name, type_: Any) -> Name:
    if getattr(type_, "shape", ()) != ():
        x = w.node("Reshape", x, w.constant(np.zeros(0, np.int64)))
    return w.cast(x, bool)


def _inlined(w: GraphWriter, region: Graph, operands: Sequence[Names]) -> None:
    for value, names in zip(region.inputs, operands):
        w.declare(value, names)
    w.graph(region)


def _if(w: GraphWriter, node: Node) -> None:
    pred, *captured = node.inputs
    operands = [w.names_of(v) for v in captured]
    there = [region for region in node.regions if returns(region)]
    if len(there) < 2:
        _raising(w, node, [region for region in node.regions if not returns(region)], bool(there))
        _inlined(w, there[0], operands)
        for value, result in zip(node.outputs, there[0].outputs):
            w.declare(value, _lifted(w, result, value.type))
        return
    condition = _truth(w, w.name_of(pred), pred.type)
    has_checks = w.options.checks == "fail" and any(inner.op.name == "raise_" for inner in node.walk())
    dtypes = _dtypes(node.outputs) + [np.dtype(np.int64)] * has_checks
    if not dtypes:
        return
    branches = {name: _branch(w, node, region, operands, has_checks)
                for name, region in zip(("then_branch", "else_branch"), node.regions)}
    results = w.nodes("If", (condition,), dtypes, **branches)
    _declare_all(w, node.outputs, results)
    w.scope.checks += results[len(dtypes) - has_checks:]


def _branch(w: GraphWriter, node: Node, region: Graph, operands: Sequence[Names], has_checks: bool) -> Any:
    """A branch; with checks its last result is zero, once they have been made."""
    with w.inside() as scope:
        _inlined(w, region, operands)
        names = [name for value, result in zip(node.outputs, region.outputs) for name in _lifted(w, result, value.type)]
        if has_checks:
            names.append(w.checked() or w.constant(0, np.int64))
        results = [w.produced(name) for name in names]
    return proto.graph(w.fresh("branch"), scope.nodes, results)


def _dtypes(values: Sequence[Value]) -> List[np.dtype]:
    return [dtype_of(part) for v in values for part in parts(v.type)]


def _declare_all(w: GraphWriter, values: Sequence[Value], names: Sequence[Name]) -> None:
    rest = iter(names)
    for value in values:
        w.declare(value, tuple(next(rest) for _ in parts(value.type)))


def _raising(w: GraphWriter, node: Node, regions: Sequence[Graph], returning: bool) -> None:
    """What becomes of the sides of a decision that raise."""
    raising = [inner for region in regions for inner in region.walk() if inner.op.name == "raise_"]
    what = raising[0].attrs["exception"].__name__ if raising else "an exception"
    if not returning:
        raise NotInOnnx(f"all that can happen here is {what}")
    if w.options.checks == "refuse":
        raise NotInOnnx(f"ONNX cannot raise {what}; with `checks=\"fail\"` the run fails, with \"leave out\" it goes on")
    if w.options.checks == "fail":
        condition = _truth(w, w.name_of(node.inputs[0]), node.inputs[0].type)
        message, place = (raising[0].attrs["message"], raising[0].loc or node.loc) if raising else ("", node.loc)
        words = f"{what}: {message}" if isinstance(message, str) and message else what
        w.fail_if(condition if regions[0] is node.regions[0] else w.node("Not", condition), f"{words} ({place})")


def _raise(w: GraphWriter, node: Node) -> None:
    raise NotInOnnx(f"ONNX cannot raise {node.attrs['exception'].__name__}, which the function does in any case")


# Loops ----------------------------------------------------------------------------------------------------------


def _while(w: GraphWriter, node: Node) -> None:
    loop = loop_of(node)
    assert loop.test is not None
    test, invariants = loop.test, [w.names_of(v) for v in loop.invariants]
    start = [w.names_of(v) for v in loop.state]

    def going(state: Sequence[Names]) -> Name:
        _inlined(w, test, [*state, *invariants])
        return _truth(w, w.name_of(test.outputs[0]), test.outputs[0].type)

    def body(i: Name, state: Sequence[Names]) -> Tuple[List[Names], List[Value]]:
        _inlined(w, loop.body, [*state, *invariants])
        return [w.names_of(v) for v in loop.next], list(loop.items)
    counted = [w.constant(0, np.int64)] if loop.counted else []
    _loop(w, "", going(start), start, counted, loop.last, loop.pushed, loop.counted, body, going)


def _scan(w: GraphWriter, node: Node) -> None:
    loop = loop_of(node)
    assert loop.count is not None
    count, stacks, invariants = w.name_of(loop.count), [w.name_of(v) for v in loop.stacks], [w.names_of(v) for v in loop.invariants]

    def body(i: Name, state: Sequence[Names]) -> Tuple[List[Names], List[Value]]:
        one = w.constant(1, np.int64)
        place = w.node("Sub", w.node("Sub", count, i), one)     # the last item first
        items = [(w.node("SequenceAt", stack, place) if is_sequence(v.type) else w.node("Gather", stack, place, axis=0),)
                 for stack, v in zip(stacks, loop.stacks)]
        _inlined(w, loop.body, [*state, *items, *invariants])
        return [w.names_of(v) for v in loop.next], list(loop.items)
    _loop(w, count, "", [w.names_of(v) for v in loop.state], [], loop.last, loop.pushed, (), body, None)


def _loop(w: GraphWriter, count: Name, first: Name, start: Sequence[Names], counted: List[Name], last: Sequence[Value],
          pushed: Sequence[Value], count_output: Sequence[Value], body: Callable[..., Any], going: Any) -> None:
    """Write a ``Loop``: the state, a counter if asked, sequences that grow, then arrays of all iterations."""
    sequences = [k for k, v in enumerate(pushed) if is_sequence(v.type)]
    for v in pushed:
        if is_sequence(v.type) and is_sequence(v.type.elem):        # type: ignore[union-attr]
            raise NotInOnnx("there are no sequences of sequences: a loop in a loop in a loop")
    initial = [name for names in start for name in names] + counted + [placeholder(w, pushed[k].type) for k in sequences]
    dtypes = [w.dtype(name) for name in initial]
    with w.inside() as scope:
        i, on = w.fresh("i"), w.fresh("going")
        w.note(i, np.int64)
        w.note(on, bool)
        inside = [w.fresh() for _ in initial]
        for name, dtype in zip(inside, dtypes):
            w.note(name, dtype)
        rest = iter(inside)
        state = [tuple(next(rest) for _ in names) for names in start]
        following, items = body(i, state)
        more = [w.node("Add", next(rest), w.constant(1, np.int64)) for _ in counted]
        grown = [w.node("SequenceInsert", next(rest), w.name_of(items[k])) for k in sequences]
        stacked = [w.name_of(item) for k, item in enumerate(items) if k not in sequences]
        test = w.behind_checks(w.constant(True) if going is None else going(following))
        names = [test, *(name for names in following for name in names), *more, *grown, *stacked]
        results = [w.produced(name) for name in names]
    graph = proto.body(w.fresh("body"), scope.nodes, i, on, inside, results)
    made = iter(w.nodes("Loop", (count, first, *initial), [*dtypes, *(w.dtype(name) for name in stacked)], body=graph))
    for value in last:
        w.declare(value, tuple(next(made) for _ in parts(value.type)))
    for value in count_output:
        w.declare(value, (next(made),))
    found: Dict[int, Name] = {k: next(made) for k in sequences}
    for k, value in enumerate(pushed):
        w.declare(value, (found[k] if k in found else next(made),))


# Unions, and values that are never read -------------------------------------------------------------------------


def _nothing(w: GraphWriter, node: Node) -> None:
    value, = node.outputs
    w.declare(value, tuple(placeholder(w, part) for part in parts(value.type)))


def _union_new(w: GraphWriter, node: Node) -> None:
    (x,), (y,) = node.inputs, node.outputs
    w.declare(y, _union(w, w.names_of(x), x.type, y.type))      # type: ignore[arg-type]


def _union_tag(w: GraphWriter, node: Node) -> None:
    w.declare(node.outputs[0], w.names_of(node.inputs[0])[:1])


def _union_get(w: GraphWriter, node: Node) -> None:
    (x,), tag = node.inputs, node.attrs["tag"]
    counts = [len(parts(one)) for one in x.type.alternatives]      # type: ignore[union-attr]
    start = 1 + sum(counts[:tag])
    w.declare(node.outputs[0], w.names_of(x)[start:start + counts[tag]])


#: How nodes are written that are more than operators, by the name of their op.
CONTROL: Dict[str, Callable[[GraphWriter, Node], None]] = {
    "if_": _if, "while_": _while, "scan": _scan, "raise_": _raise, "nothing": _nothing, "union_new": _union_new,
    "union_tag": _union_tag, "union_get": _union_get}
