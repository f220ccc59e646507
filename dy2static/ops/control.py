"""Control flow on values, and the containers that loops need.

``if_`` and ``while_`` hold graphs (regions) that get the node's operands as inputs.  Containers are values like any
other: ``list_append`` and ``push`` give a new list or stack.  Ops here have no ``vjp`` yet: a gradient through them
is refused by autodiff.  Their meaning is `dy2static.ir.interpret`; the printer writes ``if`` and ``while``.
"""
from __future__ import annotations

from typing import Any, Dict, Sequence, Tuple

import numpy as np

from ..ir.graph import Graph
from ..ir.op import declare, sample
from ..ir.types import Dynamic, List, Never, Scalar, Stack, Tensor, Type, Union, python_scalar

# Branches and loops ---------------------------------------------------------------------------------------------


def _need_truth(type: Type, what: str) -> None:
    if isinstance(type, Tensor) and (not isinstance(type.size, int) or type.size == 1):
        return
    if not isinstance(type, (Scalar, Dynamic)):
        raise TypeError(f"{what} must have one truth value; {type} has not")


def _need_inputs(region: Graph, types: Sequence[Type], what: str) -> None:
    given = tuple(v.type for v in region.inputs)
    if given != tuple(types):
        raise TypeError(f"{what} takes {_show(given)}, but gets {_show(types)}")


def _show(types: Sequence[Type]) -> str:
    return f"({', '.join(map(str, types))})"


def returns(region: Graph) -> bool:
    """Whether the region reaches its end; one with a result of type `Never` raises."""
    return not any(isinstance(v.type, Never) for v in region.outputs)


def join(a: Type, b: Type) -> Type:
    """The type of a value that comes from one of two branches."""
    if a == b:
        return a
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


def _while_infer(*state: Type, regions: Tuple[Graph, Graph]) -> Tuple[Type, ...]:
    test, body = regions
    _need_inputs(test, state, "the test of a loop")
    _need_inputs(body, state, "the body of a loop")
    if len(test.outputs) != 1:
        raise TypeError("the test of a loop gives one value")
    _need_truth(test.outputs[0].type, "the test of a loop")
    after = tuple(v.type for v in body.outputs)
    if returns(body) and after != state:
        raise TypeError(f"the body of a loop takes {_show(state)} and gives {_show(after)}")
    return state


#: Repeat ``body`` on the state while ``test`` of the state holds; gives the last state.
while_ = declare("while_", "*state", kind="control", regions=("test", "body"), infer=_while_infer)

#: Raise ``exception``: a class, with ``message`` as the text or a callable that makes it; it is given the operands.
raise_ = declare(
    "raise_", "*values", {"exception": RuntimeError, "message": ""}, kind="control", effect=True,
    infer=lambda *values, exception, message: Never(),
)

# Lists ----------------------------------------------------------------------------------------------------------


def _list_infer(*items: Type, elem: Any) -> List:
    elem = items[0] if elem is None and items else elem
    if elem is None or any(item != elem for item in items):
        raise TypeError(f"items of a list must have one type: {_show(items)}")
    return List(elem)


def _need(type: Type, kind: Any, what: str) -> Any:
    if not isinstance(type, kind):
        raise TypeError(f"{what} is needed, not {type}")
    return type


def _append_infer(xs: Type, item: Type) -> Type:
    if _need(xs, List, "a list").elem != item:
        raise TypeError(f"{item} does not fit into {xs}")
    return xs


#: A list of the operands; ``elem`` names the item type of an empty one.
list_new = declare(
    "list_new", "*items", {"elem": None}, kind="control", infer=_list_infer, numpy="[{items}]",
    samples=(sample((2,), (2,)), sample(1.5, 2.5), sample(elem=python_scalar("py_int"))),
)
list_append = declare("list_append", "xs item", kind="control", infer=_append_infer, numpy="{xs} + [{item}]")
list_get = declare(
    "list_get", "xs index", kind="control", infer=lambda xs, index: _need(xs, List, "a list").elem,
    numpy="{xs}[{index}]",
)


def _list_len_infer(xs: Type) -> Scalar:
    _need(xs, List, "a list")
    return python_scalar("py_int")


list_len = declare("list_len", "xs", kind="control", infer=_list_len_infer, numpy="len({xs})")

# Stacks ---------------------------------------------------------------------------------------------------------


def _push_infer(stack: Type, item: Type) -> Type:
    if _need(stack, Stack, "a stack").elem != item:
        raise TypeError(f"{item} does not fit on {stack}")
    return stack


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
