"""Source to source: one file per construct, and the order they run in."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple, Type

import gast

from dy2static.errors import InternalError
from dy2static.pyast.parser import reporting_depth
from dy2static.pyast.trees import nodes_of
from dy2static.transformers.asserts import Asserts
from dy2static.transformers.attribute_writes import AttributeWrites
from dy2static.transformers.base import Transformer
from dy2static.transformers.boolean_operators import BooleanOperators
from dy2static.transformers.break_continue import BreakContinue
from dy2static.transformers.calls import Calls
from dy2static.transformers.comparisons import Comparisons
from dy2static.transformers.comprehensions import Comprehensions
from dy2static.transformers.conditional_expressions import ConditionalExpressions
from dy2static.transformers.dict_displays import DictDisplays
from dy2static.transformers.early_return import EarlyReturn
from dy2static.transformers.f_strings import FStrings
from dy2static.transformers.function_parts import FunctionParts
from dy2static.transformers.handled_errors import HandledErrors
from dy2static.transformers.if_else import IfElse
from dy2static.transformers.list_displays import ListDisplays
from dy2static.transformers.loops import Loops
from dy2static.transformers.matches import Matches
from dy2static.transformers.named_expressions import NamedExpressions
from dy2static.transformers.subscripts import Subscripts
from dy2static.transformers.super_calls import SuperCalls
from dy2static.transformers.unbound_names import UnboundNames
from dy2static.transformers.unsupported import Unsupported

PIPELINE: Tuple[Type[Transformer], ...] = (
    Unsupported,  # first: report everything wrong at once, on the user's own code
    AttributeWrites,  # on the user's assignments
    FunctionParts,  # on attributes that the user reads
    SuperCalls,  # before any block is moved: `super()` would not know its method from inside a function
    Matches,  # before the jumps: these can then be in a case
    NamedExpressions,  # before all that looks at blocks: it makes new ones
    EarlyReturn,  # before BreakContinue: a return in a loop becomes a flag and a break
    BreakContinue,  # before blocks become functions: these have one exit
    UnboundNames,  # on plain names: before functions are made that capture them
    Loops,  # this and the next carry out the plan that UnboundNames has made for both
    IfElse,
    Asserts,  # this and the next six after IfElse, whose blocks settled which names may have no value
    ConditionalExpressions,
    BooleanOperators,
    Comprehensions,  # on conditions that BooleanOperators has seen
    Comparisons,
    FStrings,
    DictDisplays,  # after FStrings, whose texts may be the keys
    ListDisplays,  # on the user's assignments and those of blocks alike
    HandledErrors,  # after UnboundNames: the name is bound there
    Subscripts,
    Calls,  # last: whatever calls the others left or moved
)


def apply(
    pipeline: Sequence[Type[Transformer]],
    tree: gast.FunctionDef,
    after_each: Callable[[Type[Transformer], gast.FunctionDef], Any] = lambda transformer, tree: None,
) -> gast.FunctionDef:
    """Run each transformer once, in order, on ``tree`` in place; check what it promised to remove."""
    gone: Tuple[Type[gast.AST], ...] = ()
    for transformer in pipeline:
        with reporting_depth(tree.origin):
            tree = transformer().transform(tree)
        gone += transformer.removes
        after_each(transformer, tree)
    left = next(nodes_of([tree], gone), None)
    if left is not None:
        raise InternalError(f"{type(left).__name__} was to be removed", getattr(left, "origin", None))
    return tree
