"""Which names may still be read: after each ``if`` and loop, in its blocks, and where an exception may lead."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, NamedTuple, Set

import gast

from dy2static.pyast.managers import lets_through
from dy2static.pyast.scopes import SCOPES, Scopes, bound_by, own_nodes, targets

Names = FrozenSet[str]
_NONE: Names = frozenset()


class Live(NamedTuple):
    """The names whose values may be read later, at several points of an ``if`` or loop."""

    after: Names  # after it
    body: Names  # from the start of its first block; from where a loop begins each round
    orelse: Names  # from the start of its second block
    on_raise: Names  # where an exception raised in it leads, in this function


class Point(NamedTuple):
    """What may be read behind a statement."""

    after: Names  # where it ends
    on_raise: Names  # where an exception raised in it leads, in this function


class _Exits(NamedTuple):
    """The names live where a jump out of a block leads."""

    on_break: Names = _NONE
    on_continue: Names = _NONE
    on_return: Names = _NONE
    on_raise: Names = _NONE


def analyse(function: gast.FunctionDef, scopes: Scopes) -> Dict[gast.AST, Live]:
    """The live names at every ``if`` and loop of a function (not of those in it).

    Names may be reported live that are not, never the reverse.  What inner functions capture counts as read
    where they are made; that they may read it later is for the caller to see (``Scope.captured``).
    """
    return _analysed(function, scopes).at


def points(function: gast.FunctionDef, scopes: Scopes) -> Dict[gast.AST, Point]:
    """The live names behind every statement of a function (not of those in it), as `analyse` reports them."""
    return _analysed(function, scopes).points


def _analysed(function: gast.FunctionDef, scopes: Scopes) -> _Liveness:
    analysis = _Liveness(scopes)
    analysis.block(function.body, _NONE, _Exits())
    return analysis


class _Liveness:
    """Goes backwards through a function, statement by statement; loops until nothing changes."""

    def __init__(self, scopes: Scopes):
        self.scopes = scopes
        self.at: Dict[gast.AST, Live] = {}
        self.points: Dict[gast.AST, Point] = {}
        self.cached: Dict[gast.AST, Names] = {}

    def block(self, statements: List[gast.AST], after: Names, exits: _Exits) -> Names:
        """The names live before ``statements``, where ``after`` are live after them."""
        for statement in reversed(statements):
            visit = getattr(self, "visit_" + type(statement).__name__, self.other)
            self.points[statement] = Point(after, exits.on_raise)
            # any statement may raise, before or after what it writes
            after = visit(statement, after, exits) | exits.on_raise
        return after

    def uses(self, *roots: gast.AST) -> Names:
        """The names of this scope that expressions read; a scope within reads all it takes from outside."""
        found: Set[str] = set()
        for root in roots:
            if root is not None:
                if root not in self.cached:
                    self.cached[root] = frozenset(self._uses(root))
                found |= self.cached[root]
        return frozenset(found)

    def _uses(self, root: gast.AST) -> Set[str]:
        names: Set[str] = set()
        for node in own_nodes(root):
            if isinstance(node, gast.Name) and not isinstance(node.ctx, (gast.Store, gast.Param)):
                names.add(node.id)
            elif isinstance(node, SCOPES):
                names |= self.scopes[node].free
        return names

    def other(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        """A simple statement: it reads, then it writes (``:=`` may not: it does not count)."""
        return (after - frozenset(bound_by(node))) | self.uses(node)

    def visit_Assign(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        return after.difference(*map(targets, node.targets)) | self.uses(*node.targets, node.value)

    def visit_AnnAssign(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        written = targets(node.target) if node.value is not None else []
        return after.difference(written) | self.uses(node.target, node.value)

    def visit_AugAssign(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        own = {node.target.id} if isinstance(node.target, gast.Name) else set()
        return after | self.uses(node.target, node.value) | own

    def visit_Return(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        return self.uses(node.value) | exits.on_return

    def visit_Raise(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        return self.uses(node.exc, node.cause)

    def visit_Break(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        return exits.on_break

    def visit_Continue(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        return exits.on_continue

    def visit_If(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        body, orelse = self.block(node.body, after, exits), self.block(node.orelse, after, exits)
        self.at[node] = Live(after, body, orelse, exits.on_raise)
        return body | orelse | self.uses(node.test)

    def visit_While(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        leave = self.block(node.orelse, after, exits)
        return self._loop(node, self.uses(node.test) | leave, _NONE, leave, after, exits)

    def visit_For(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        leave = self.block(node.orelse, after, exits)
        head, bound = leave | self.uses(node.target), frozenset(targets(node.target))
        return self._loop(node, head, bound, leave, after, exits) | self.uses(node.iter)

    visit_AsyncFor = visit_For

    def _loop(
        self, node: gast.AST, head: Names, target: Names, leave: Names, after: Names, exits: _Exits
    ) -> Names:
        while True:
            inner = exits._replace(on_break=after, on_continue=head)
            grown = head | (self.block(node.body, head, inner) - target)
            if grown == head:
                self.at[node] = Live(after, head, leave, exits.on_raise)
                return head
            head = grown

    def visit_With(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        # __exit__ may swallow an exception: then what follows runs with what the block had written so far
        swallowed = _NONE if lets_through(node) else after
        live = self.block(node.body, after, exits._replace(on_raise=exits.on_raise | swallowed))
        for item in reversed(node.items):
            if item.optional_vars is not None:
                live = live.difference(targets(item.optional_vars)) | self.uses(item.optional_vars)
            live |= self.uses(item.context_expr) | swallowed
        return live

    visit_AsyncWith = visit_With

    def visit_Try(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        if node.finalbody:
            everywhere = after.union(*exits)
            after = self.block(node.finalbody, everywhere, exits)
            exits = _Exits(after, after, after, after)
        caught = exits.on_raise
        for handler in node.handlers:
            body = self.block(handler.body, after, exits)
            name = frozenset([handler.name.id]) if handler.name is not None else _NONE
            caught |= (body - name) | self.uses(handler.type)
        orelse = self.block(node.orelse, after, exits)
        return self.block(node.body, orelse, exits._replace(on_raise=caught))

    visit_TryStar = visit_Try

    def visit_Match(self, node: gast.AST, after: Names, exits: _Exits) -> Names:
        live = after | self.uses(node.subject)
        for case in node.cases:
            live |= self.uses(case.pattern, case.guard) | self.block(case.body, after, exits)
        return live
