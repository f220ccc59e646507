"""Joining an array with a Variable: functions of Chainer's take either, and what tells them apart settles the decision."""
from __future__ import annotations

from typing import Any, Callable, List, Sequence

from ..ir.building import building
from ..ir.graph import Value
from ..ir.op import OPS
from ..symbolic.array_or_variable import ArrayOrVariable, variable_of
from ..symbolic.kinds import describe
from ..symbolic.values import SymbolicArray, SymbolicVariable
from .branches import Branch
from .protocols import Joins


def differ_in_kind(a: Any, b: Any) -> bool:
    """Whether one of these is an array, or either, and the other a Variable, or either, of the same shape and dtype."""
    if ArrayOrVariable not in (type(a), type(b)) and isinstance(a, SymbolicVariable) is isinstance(b, SymbolicVariable):
        return False
    arrays = [_array_of(x) for x in (a, b)]
    return all([type(x) is SymbolicArray and not x.is_scalar for x in arrays]) and arrays[0].type == arrays[1].type


def merge_kinds(joins: Joins, a: Any, b: Any, branches: List[Branch], name: str) -> Callable[[Sequence[Value]], Any]:
    """How to make, from the outputs of the node, what is ``a`` or ``b``."""
    capture, arrays = joins.capture, (_array_of(a), _array_of(b))
    words = f"{name} is {describe(a)} or {describe(b)}, by a decision on array values"
    sides = [_as_variable(joins, variable_of(x), branch) for x, branch in zip((a, b), branches)]
    joined = joins.merge_variables(*sides, branches, name)

    def merged(outputs: Sequence[Value]) -> ArrayOrVariable:
        variable = joined(outputs)
        capture.array_writes.chose(variable._data[0], arrays, variable)
        return ArrayOrVariable(variable, words)
    return merged


def _array_of(item: Any) -> Any:
    item = variable_of(item)
    return item._data[0] if isinstance(item, SymbolicVariable) else item


def _as_variable(joins: Joins, item: Any, branch: Branch) -> SymbolicVariable:
    """A Variable, or what functions of Chainer's make of an array that they are given: no gradient passes it."""
    if isinstance(item, SymbolicVariable):
        return item
    builder = joins.capture.builder.region()
    with building(builder):
        value = OPS["stop_gradient"](branch.value_of(item, is_kept=False))
    branch.nodes += builder.nodes
    made = SymbolicVariable(joins.capture, SymbolicArray(joins.capture, value), False)
    made.__dict__["depth"] = joins.staging.depth + 1           # it is made under the decision
    return made
