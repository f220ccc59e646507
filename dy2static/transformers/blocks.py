"""Which blocks become functions, and of which names: the plan of `UnboundNames`, `Loops` and `IfElse`."""

from __future__ import annotations

from typing import AbstractSet, Dict, List, NamedTuple, Optional, Set

import gast

from dy2static.pyast import assigned, liveness, scopes
from dy2static.pyast.kinds import BINDS, bits_of
from dy2static.pyast.scopes import own_nodes, walk, written
from dy2static.transformers.jumps import LOOP_JUMPS, YIELDS, holds, is_generator


class Passing:
    """What passes through one ``if`` or loop: ``names``, of which ``undefined`` have no value before it.

    given: how many of the names, the first ones, it gives back.
    shared: names that do not pass through it, but stay with the function around: a handler, or an inner function, could read
        them at any time.  declared: those that may have no other place there where they get a value.
    stop: the ``if name: break`` at the end of a ``for``.
    """

    def __init__(
        self,
        written: List[str],
        shared: Set[str],
        stop: Optional[gast.If],
        needed: Set[str],
        kept: Set[str],
        missing: Set[str],
        reads: Set[str],
        possible: Set[str],
        declared: Set[str],
    ):
        self.written, self.shared, self.stop, self.declared = written, sorted(shared), stop, declared
        self.needed, self.kept, self.missing = needed, kept, missing
        self.introduce = reads | (missing & possible)
        self.names: List[str] = []
        self.given = 0
        self.undefined: Set[str] = set()

    def settle(self, introduced: Set[str]) -> None:
        """Fix names and their order; what the start of the function introduces passes every writer."""
        self.undefined, self.declared = self.missing - introduced, self.declared - introduced
        kept = self.kept | introduced.intersection(self.written)
        first = [name for name in self.written if name in kept]
        self.given = len(first)
        self.names = first + [name for name in self.written if name in self.needed - kept]


class Plan(NamedTuple):
    """What `plan` finds for one function."""

    passing: Dict[gast.AST, Passing]  # by ``if`` or loop that becomes a call
    introduced: Set[str]  # names that need something to hold from the start of the function on
    checked: Set[gast.AST]  # the reads that may find no value


def plan(function: gast.FunctionDef, found: scopes.Scopes, fixed: Set[gast.AST]) -> Plan:
    """The ``if`` statements and loops of one function, not of those in it, that can become calls.

    fixed: the nodes that must stay in their function.
    """
    live = liveness.analyse(function, found)
    known = assigned.analyse(function, found, live)
    planner = _Planner(function, found[function], live, known, fixed)
    for node in reversed(list(known.at)):  # inner ones before outer
        passing = planner.passing(node) if node in live else None
        if passing is not None:
            planner.planned[node] = passing
    planned = planner.planned
    introduced: Set[str] = set().union(*(each.introduce for each in planned.values()))
    managed = introduced.union(*(each.missing for each in planned.values()))
    for each in planned.values():
        each.settle(introduced)
    return Plan(planned, introduced, {node for node in known.unsure if _name_read(node) in managed})


class _Planner:
    """Decides for the blocks of one function, inner ones first."""

    def __init__(
        self,
        function: gast.FunctionDef,
        scope: scopes.Scope,
        live: Dict[gast.AST, liveness.Live],
        known: assigned.Assigned,
        fixed: Set[gast.AST],
    ):
        self.scope, self.live, self.known, self.fixed = scope, live, known, fixed
        self.planned: Dict[gast.AST, Passing] = {}
        self.unsure = {_name_read(node) for node in known.unsure}
        self.unsure_inside = {node.id for node in known.unsure_inside}
        self.is_generator = is_generator(function)

    def passing(self, node: gast.AST) -> Optional[Passing]:
        """What passes through ``node``; None where it has to stay as it is."""
        live, scope = self.live[node], self.scope
        is_if = isinstance(node, gast.If)
        if not is_if and (node.orelse or self.is_generator):
            return None
        stop = stop_of(node) if isinstance(node, gast.For) else None
        parts = node.body + node.orelse if is_if else _parts_of_loop(node, stop)
        order = _written_in_order(parts)
        captured = scope.captured.intersection(order)
        if self._must_stay(parts) or set(order) - scope.locals or captured and not isinstance(node, gast.For):
            return None
        if isinstance(node, gast.While) and written(node.test):
            return None
        certain, possible = self.known.at[node]
        shared = self._shared(node, live.on_raise.intersection(order))
        if shared - certain or shared & (self.unsure | scope.deleted | _caught(parts)):
            return None                                 # the error of a read without a value would be another one
        if captured & (self.unsure | self.unsure_inside | scope.deleted | _caught(parts)):
            return None
        shared |= captured                              # an inner function sees what every iteration leaves
        order = [name for name in order if name not in shared]
        names = set(order)
        # a name read without a value anywhere must stay a local of the function: also if what a block writes is
        # not read
        kept = names & (live.after | self.unsure)
        needed = kept | names & (live.body | live.orelse)
        if stop is not None:
            needed |= names & {stop.test.id}
        missing = needed - certain
        reads: Set[str] = set()
        if self.known.unsure:
            reads = {_name_read(inner) for inner in own_nodes(*parts) if inner in self.known.unsure} - names
        if (needed | reads) & scope.deleted or (missing | reads) & (scope.captured | self.unsure_inside):
            return None
        if (names | shared) & self.unsure_inside or self._reads_unsure_inside(parts):
            return None
        return Passing(order, shared, stop, needed, kept if is_if else needed, missing, reads, set(possible), captured - certain)

    def _shared(self, node: gast.AST, exposed: Set[str]) -> Set[str]:
        """The names of ``exposed``, which a handler may read, that have to stay with the function around."""
        is_safe = isinstance(node, gast.If) and all(self._all_or_nothing(block, exposed) for block in (node.body, node.orelse))
        return set() if is_safe else set(exposed)

    def _reads_unsure_inside(self, parts: List[gast.AST]) -> bool:
        """Whether a comprehension in the parts reads a name that may have no value."""
        return bool(self.unsure_inside) and any(inner in self.known.unsure_inside for inner in walk(*parts))

    def _must_stay(self, parts: List[gast.AST]) -> bool:
        """Whether control leaves the parts other than at their end, or they hold what cannot be moved."""
        if holds(parts, LOOP_JUMPS) or self.fixed and any(node in self.fixed for node in walk(*parts)):
            return True
        return any(
            isinstance(node, _STAY) or isinstance(node, gast.Name) and isinstance(node.ctx, gast.Del)
            for node in own_nodes(*parts, bits=_STAY_BITS)
        )

    def _all_or_nothing(self, block: List[gast.AST], on_raise: AbstractSet[str]) -> bool:
        """Whether nothing in ``block`` can fail once a name is written that an exception handler may read.

        So it is if such names are written by nothing but an assignment to names at its very end; a converted
        ``if`` is one.
        """
        exposed = on_raise and written(*block) & on_raise
        if not exposed:
            return True
        last = block[-1]
        if exposed & written(*block[:-1]):
            return False
        if isinstance(last, gast.If):
            return last in self.planned and not exposed & written(last.test)
        return (
            isinstance(last, gast.Assign)
            and all(_is_name(target) for target in last.targets)
            and not exposed & written(last.value)
        )


def stop_of(loop: gast.For) -> Optional[gast.If]:
    """The last statement of a ``for``, if that is ``if name: break``."""
    last = loop.body[-1]
    if (
        isinstance(last, gast.If)
        and isinstance(last.test, gast.Name)
        and len(last.body) == 1
        and isinstance(last.body[0], gast.Break)
        and not last.orelse
    ):
        return last
    return None


def _parts_of_loop(loop: gast.AST, stop: Optional[gast.If]) -> List[gast.AST]:
    """What a loop does in every round, in order."""
    if isinstance(loop, gast.While):
        return [loop.test, *loop.body]
    return [loop.target, *loop.body] if stop is None else [loop.target, *loop.body[:-1], stop.test]


def _caught(parts: List[gast.AST]) -> Set[str]:
    """The names that errors are caught under, which have no value afterwards."""
    return {getattr(node, "name", None) for node in own_nodes(*parts, bits=BINDS) if isinstance(node, gast.ExceptHandler)}


_STAY = (gast.Return, gast.Global, gast.Nonlocal) + YIELDS
_STAY_BITS = bits_of(_STAY) | BINDS


def _is_name(target: gast.AST) -> bool:
    return (
        isinstance(target, gast.Name)
        or isinstance(target, gast.Tuple)
        and all(_is_name(part) for part in target.elts)
    )


def _name_read(node: gast.AST) -> str:
    return node.target.id if isinstance(node, gast.AugAssign) else node.id


def _written_in_order(parts: List[gast.AST]) -> List[str]:
    """The names that the parts write, in the order in which they first do."""
    order: Dict[str, None] = {}
    for inner in own_nodes(*parts, bits=BINDS):
        names = sorted(written(inner)) if isinstance(inner, scopes.COMPREHENSIONS) else scopes.bound_by(inner)
        order.update(dict.fromkeys(names))
    return list(order)
