"""Control flow on values, and the containers that loops need.

``if_``, ``while_`` and ``scan`` hold graphs (regions) that see nothing but their own inputs, which are the node's
operands.  Their meaning is `dy2static.ir.interpret`; the printer writes ``if``, ``while`` and ``for``.
`dy2static.passes.differentiation.branches` and `dy2static.passes.differentiation.loops` differentiate them.  Containers
are values like any other: ``list_append`` and ``push`` give a new list or stack.
"""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..ir.graph import Graph, Node, Value
from ..ir.op import declare, sample
from ..ir.types import Dynamic, Never, Scalar, Stack, Tensor, Type, Union, alike, python_scalar

# Branches and loops ---------------------------------------------------------------------------------------------


def _need_truth(type: Type, what: str) -> None:
    if isinstance(type, Tensor) and (not isinstance(type.size, int) or type.size == 1):
        return
    if not isinstance(type, (Scalar, Dynamic)):
        raise TypeError(f"{what} must have one truth value; {type} has not")


def _need_inputs(region: Graph, types: Sequence[Type], what: str) -> None:
    given = tuple(v.type for v in region.inputs)
    if len(given) != len(types) or not all(map(alike, given, types)):
        raise TypeError(f"{what} takes {_show(given)}, but gets {_show(types)}")


def _show(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def returns(region: Graph) -> bool:
    """Whether the region reaches its end; one with a result of type `Never` raises."""
    return not any(isinstance(v.type, Never) for v in region.outputs)


def join(a: Type, b: Type) -> Type:
    """The type of a value that comes from one of two branches."""
    if alike(a, b):
        return a if getattr(a, "device", a) else b
    alternatives: Tuple[Type, ...] = ()
    for type in (a, b):
        alternatives += type.alternatives if isinstance(type, Union) else (type,)
    return Union(tuple(dict.fromkeys(alternatives)))


def _if_infer(pred: Type, *captured: Type, regions: Tuple[Graph, Graph]) -> Tuple[Type, ...]:
    _need_truth(pred, "the condition of an if")
    then, orelse = regions
    _need_inputs(then, captured, "the branch")
    _need_inputs(orelse, captured, "the else branch")
    results = [tuple(v.type for v in region.outputs) for region in regions if returns(region)]
    if not results:
        return (Never(),)
    if len(results) == 2 and len(results[0]) != len(results[1]):
        raise TypeError(f"branches give {_show(results[0])} and {_show(results[1])}")
    return tuple(join(a, b) for a, b in zip(results[0], results[-1]))


#: One of two regions, by the truth of ``pred``.  Each takes the captured values and gives the results.
if_ = declare("if_", "pred *captured", kind="control", regions=("then", "orelse"), infer=_if_infer)


def _need_test(test: Graph, types: Sequence[Type]) -> None:
    _need_inputs(test, types, "the test of a loop")
    if len(test.outputs) != 1:
        raise TypeError("the test of a loop gives one value")
    _need_truth(test.outputs[0].type, "the test of a loop")


def _pushed(body: Graph, state: Sequence[Type]) -> Tuple[Type, ...]:
    """The stacks that a body fills with what it gives besides the new state."""
    if not returns(body):
        return ()
    after = tuple(v.type for v in body.outputs)
    if len(after) < len(state) or not all(map(alike, after, state)):
        raise TypeError(f"the body of a loop takes {_show(state)} and gives {_show(after)}")
    return tuple(Stack(type) for type in after[len(state):])


def _while_canonical(*operands: Type, carried: Any, counted: bool, runs: bool) -> Dict[str, Any]:
    carried = len(operands) if carried is None else carried
    if not 0 <= carried <= len(operands):
        raise TypeError(f"{carried} of {len(operands)} operands cannot be carried")
    return {"carried": carried}


def _while_infer(*operands: Type, carried: int, counted: bool, runs: bool, regions: Tuple[Graph, Graph]) -> Tuple[Type, ...]:
    test, body = regions
    state = operands[:carried]
    _need_test(test, operands)
    _need_inputs(body, operands, "the body of a loop")
    return state + _pushed(body, state) + ((python_scalar("py_int"),) if counted else ())


#: Repeat ``body`` while ``test`` holds.  The first ``carried`` operands (None: all) are the state; the others are
#: invariants.  Both regions take state and invariants; the body gives the new state, then values to push, one stack
#: each.  Outputs: the last state, the stacks, and with ``counted`` how often the body ran.  ``runs``: the body is known to run
#: at least once.
while_ = declare("while_", "*operands", {"carried": None, "counted": False, "runs": False}, kind="control",
                 regions=("test", "body"), canonical=_while_canonical, infer=_while_infer)


def _scan_infer(count: Type, *operands: Type, carried: int, reads: int, runs: bool, regions: Tuple[Graph]) -> Tuple[Type, ...]:
    (body,) = regions
    if not isinstance(count, Scalar) or count.kind != "py_int":
        raise TypeError(f"the count of a loop is an int, not {count}")
    state, stacks, invariants = operands[:carried], operands[carried:carried + reads], operands[carried + reads:]
    items = tuple(_need(stack, Stack, "a stack").elem for stack in stacks)
    _need_inputs(body, state + items + invariants, "the body of a loop")
    return state + _pushed(body, state)


#: Run ``body`` ``count`` times.  Operands: the state (``carried``), stacks that are read (``reads``; each has
#: ``count`` items), invariants.  The body takes the state, one item of each stack, from the last to the first, and
#: the invariants; it gives the new state, then values to push.  Outputs: the last state, the stacks pushed.
#:
#: This is the derivative of ``while_``, and of itself: whoever runs through the iterations backwards meets the items
#: in the order opposite to that in which they were pushed, and pushes gradients of items in the order of the items.
#: ``runs``: ``count`` is known to be at least one.
scan = declare("scan", "count *operands", {"carried": 0, "reads": 0, "runs": False}, kind="control", regions=("body",),
               infer=_scan_infer)


class Loop(NamedTuple):
    """The parts of a ``while_`` or ``scan`` node.

    count, stacks: operands of a scan.  test: the region of a while.  counted: the output of a while, if it has it.
    last, pushed: outputs; the results of ``body`` are the next state, then what is pushed.  runs: whether the body is known to run
    at least once.
    """

    count: Optional[Value]
    state: Tuple[Value, ...]
    stacks: Tuple[Value, ...]
    invariants: Tuple[Value, ...]
    test: Optional[Graph]
    body: Graph
    last: Tuple[Value, ...]
    pushed: Tuple[Value, ...]
    counted: Tuple[Value, ...]
    runs: bool

    @property
    def next(self) -> Tuple[Value, ...]:
        """The state after an iteration."""
        return self.body.outputs[:len(self.state)]

    @property
    def items(self) -> Tuple[Value, ...]:
        """What the body pushes."""
        return self.body.outputs[len(self.state):]

    def node(self, old: Node) -> Node:
        """The node with these parts, in the place of the old one."""
        attrs: Dict[str, Any] = {"carried": len(self.state), "runs": self.runs}
        if self.count is None:
            attrs["counted"] = bool(self.counted)
        else:
            attrs["reads"] = len(self.stacks)
        count = () if self.count is None else (self.count,)
        return replace(old, inputs=count + self.state + self.stacks + self.invariants, attrs=attrs,
                       outputs=self.last + self.pushed + self.counted,
                       regions=(self.body,) if self.test is None else (self.test, self.body))


def loop_of(node: Node) -> Loop:
    """The parts of a ``while_`` or ``scan`` node."""
    *test, body = node.regions
    carried, reads = node.attrs["carried"], node.attrs.get("reads", 0)
    count, operands = (node.inputs[0], node.inputs[1:]) if node.op is scan else (None, node.inputs)
    end = len(node.outputs) - bool(node.attrs.get("counted"))
    return Loop(count, operands[:carried], operands[carried:carried + reads], operands[carried + reads:],
                test[0] if test else None, body, node.outputs[:carried], node.outputs[carried:end], node.outputs[end:],
                node.attrs["runs"])


def _nothing_infer(*, type: Type) -> Type:
    return type


#: A placeholder of ``type`` that is never read: a branch gives it for values that only the other branch has.
nothing = declare("nothing", "", {"type": None}, kind="control", infer=_nothing_infer, numpy="None")

#: Raise ``exception``: a class, with ``message`` as the text or a callable that makes it; it is given the operands.
raise_ = declare(
    "raise_", "*values", {"exception": RuntimeError, "message": ""}, kind="control", effect=True,
    infer=lambda *values, exception, message: Never(),
)

# Stacks ---------------------------------------------------------------------------------------------------------


def _need(type: Type, kind: Any, what: str) -> Any:
    if not isinstance(type, kind):
        raise TypeError(f"{what} is needed, not {type}")
    return type


def _push_infer(stack: Type, item: Type) -> Type:
    if _need(stack, Stack, "a stack").elem != item:
        raise TypeError(f"{item} does not fit on {stack}")
    return stack


def _stack_add_infer(a: Type, b: Type) -> Type:
    if _need(a, Stack, "a stack") != b:
        raise TypeError(f"{a} and {b} cannot be added")
    return a


def _add_stacks(a: list, b: list) -> list:
    return [_add_items(x, y) for x, y in zip(a, b)]


def _add_items(x: Any, y: Any) -> Any:
    """The sum of two arrays, stacks, or gradients of lists: these may have no items, or None as an item."""
    if not isinstance(x, list):
        return y if x is None else x if y is None else x + y
    return _add_stacks(x, y) if x and y else x or y


def _elem_canonical(*_: Any, elem: Any) -> Dict[str, Any]:
    if elem is None:
        raise TypeError("an empty stack needs the type of its items")
    return {"elem": elem}


new_stack = declare(
    "new_stack", "", {"elem": None}, kind="control", canonical=_elem_canonical, infer=lambda *, elem: Stack(elem),
    numpy="[]", samples=(sample(elem=Tensor((2,), np.dtype("float32"))),),
)
push = declare("push", "stack item", kind="control", infer=_push_infer, numpy="{stack} + [{item}]")

#: The stack without its last item, and that item.
pop = declare(
    "pop", "stack", kind="control", infer=lambda stack: (stack, _need(stack, Stack, "a stack").elem),
    numpy="({stack}[:-1], {stack}[-1])",
)

#: The sums of the items of two stacks of one length: of gradients that reach a stack from two readers.
stack_add = declare("stack_add", "a b", kind="control", infer=_stack_add_infer, numpy=_add_stacks, onnx="Add",
                    vjp=lambda g, y, a, b: (g, g))

# Unions: at run time a pair of a tag and the value ------------------------------------------------------------


def _union_new_infer(x: Type, *, type: Union) -> Union:
    if x not in _need(type, Union, "a union").alternatives:
        raise TypeError(f"{x} is not an alternative of {type}")
    return type


def _union_get_infer(x: Type, *, tag: int) -> Type:
    return _need(x, Union, "a union").alternatives[tag]


def _union_tag_infer(x: Type) -> Scalar:
    _need(x, Union, "a union")
    return python_scalar("py_int")


union_new = declare(
    "union_new", "x", {"type": None}, kind="control", infer=_union_new_infer, numpy="({tag}, {x})",
    holes=lambda x, *, type: {"tag": str(type.alternatives.index(x))},
)
union_tag = declare("union_tag", "x", kind="control", infer=_union_tag_infer, numpy="{x}[0]")
union_get = declare("union_get", "x", {"tag": 0}, kind="control", infer=_union_get_infer, numpy="{x}[1]")
