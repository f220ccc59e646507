"""Expressions that become functions, to be evaluated later or never."""

from __future__ import annotations

from typing import Set

import gast

from dy2static.pyast import assigned, scopes
from dy2static.pyast.kinds import bits_of, may_hold
from dy2static.transformers.base import Transformer
from dy2static.transformers.frames import counts_frames, may_count_frames
from dy2static.transformers.if_else import IfElse

_FIXED = (gast.NamedExpr, gast.Yield, gast.YieldFrom, gast.Await)
_FIXED_BITS = bits_of(_FIXED)


class Thunks(Transformer):
    """Base of the transformers that move expressions into lambdas.

    An expression can be moved unless it binds a name (``:=``), yields, calls ``super()``, stands in a class
    body, or reads a local that may have no value yet.
    """

    requires = (IfElse,)  # it must see which functions of the user capture a name; here many get made

    def can_move(self, *values: gast.AST) -> bool:
        """Whether expressions where the visit is now could as well stand in a lambda there."""
        if isinstance(self.within[-1], gast.ClassDef):
            return False
        if not values:
            return True
        frames = may_count_frames(self.tree)
        if frames or any(may_hold(value, _FIXED_BITS) for value in values):
            if any(isinstance(node, _FIXED) or counts_frames(node) for node in scopes.walk(*values)):
                return False
        names = {node.id for node in scopes.walk(*values) if isinstance(node, gast.Name)}
        return self._are_sure(names) or _unsure(self.tree).isdisjoint(scopes.walk(*values))

    def _are_sure(self, names: Set[str]) -> bool:
        """Whether names have a value, as far as can be said without going through the function."""
        unknown, function = names & self.tree.bound, self.within[-1]
        if not unknown:
            return True
        own = {param.id for param in scopes.parameters(function.args)} if isinstance(function, gast.FunctionDef) else set()
        return unknown <= own - self.tree.deleted


def _unsure(tree: gast.FunctionDef) -> Set[gast.AST]:
    """The reads of locals that may have no value, in a function and those in it."""
    if not hasattr(tree, "unsure"):  # found once: lambdas that hold none of them change nothing
        found = scopes.analyse(tree)
        known = [assigned.analyse(node, found) for node in found if isinstance(node, gast.FunctionDef)]
        tree.unsure = set().union(*(each.unsure | each.unsure_inside for each in known))
    return tree.unsure
