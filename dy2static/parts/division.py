"""What of a function is compiled: the runs of statements between those that Python carries out."""
from __future__ import annotations

import copy
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import gast

from ..pyast import assigned, liveness, scopes
from ..transformers.frames import reads_names_unseen
from .expressions import take_out
from .loops import run_ahead
from .rebinding import rebinds_variables
from .statements import (
    Block,
    Place,
    at_lines,
    blocks,
    exits,
    head_nodes,
    is_left_to_python,
    late_scopes,
    leaving,
    makes_functions,
    must_stay,
    within,
)

Names = Tuple[str, ...]


class Key(NamedTuple):
    """Which run of a function this is; equal ones share their programs.

    ins, outs: the names that come in and go out; unsure: those among them that may have no value.
    """

    first: Place
    last: Place
    ins: Names
    outs: Names
    unsure: FrozenSet[str]
    is_tail: bool


class Run(NamedTuple):
    """Statements that become one compiled function.

    leaves: which of `Return`, `Break` and `Continue` lead out of them.
    declared: the names among them that are global, and those that are nonlocal.
    """

    key: Key
    statements: Block
    leaves: Set[type]
    declared: Tuple[Names, Names]


class Cuts(NamedTuple):
    """What is known of a function: the lines that Python carries out, where runs end, and which are not worth a call.

    lines: of statements that stopped a capture.  spots: places of expressions that did.
    ends: places of statements before which a run ends.  plain: keys of runs.
    """

    lines: FrozenSet[int] = frozenset()
    spots: FrozenSet[Place] = frozenset()
    ends: FrozenSet[Place] = frozenset()
    plain: FrozenSet[Key] = frozenset()


def can_be_divided(tree: gast.AST) -> bool:
    """Whether a function, as `parse` gives it, may be divided.

    Nothing in it may look at all of its names, or give another array to a Variable that a part has made.
    """
    return isinstance(tree, gast.FunctionDef) and not reads_names_unseen(tree) and not rebinds_variables(tree)


class Division:
    """The runs of one function, by their first statements.  Expressions that Python carries out become statements of the tree."""

    def __init__(self, tree: gast.FunctionDef, cuts: Cuts):
        self.tree, self.cuts = tree, cuts
        for statement in take_out(tree, cuts.spots, cuts.lines) | at_lines(tree.body, cuts.lines):
            statement.is_broken = True
        run_ahead(tree)
        found = scopes.analyse(tree)
        self.scopes, self.scope = found, found[tree]
        self.points = liveness.points(tree, found)
        self.before = assigned.analyse(tree, found).before
        self._bindings = self._count_bindings()
        self._made = set().union(*(makes_functions(statement) for statement in within(tree.body)))
        inner = [scope for scope in found.values() if scope is not self.scope and scope.node.__class__ in scopes.FUNCTIONS]
        self._changed_inside = self.scope.locals.intersection(*[set().union(*(scope.nonlocals for scope in inner))])
        self.broken = {statement for statement in within(tree.body) if getattr(statement, "is_broken", False)}
        self.opened: Set[gast.AST] = set()
        self.stay = {statement for statement in within(tree.body) if self._stays(statement)}
        self._open(tree.body)
        self.runs: Dict[gast.AST, Run] = {}
        self._divide(tree.body)
        if getattr(tree, "is_part", False) and [run.statements for run in self.runs.values()] == [tree.body]:
            self.runs = {}                              # it would be the same part again

    # --- what Python carries out -----------------------------------------------------------------------------------------

    def _count_bindings(self) -> Dict[str, int]:
        """How often each name may be bound: a binding in a loop counts as many."""
        counts = {param.id: 1 for param in scopes.parameters(self.tree.args)}

        def count(block: Block, times: int) -> None:
            for statement in block:
                inner = 2 if isinstance(statement, (gast.For, gast.While)) else times
                own = scopes.written(statement) if not list(blocks(statement)) else set()
                heads = scopes.written(statement) - set().union(*(scopes.written(*b) for b in blocks(statement)), own)
                for name in own | heads:
                    counts[name] = counts.get(name, 0) + (inner if name in heads else times)
                for block_ in blocks(statement):
                    count(block_, inner)
        count(self.tree.body, 1)
        return counts

    def _stays(self, statement: gast.AST) -> bool:
        """Whether Python carries out a simple statement, or the head of a compound one.  What is never reached has no point."""
        if statement in self.broken or statement not in self.before or must_stay(statement):
            return True
        if not self._changed_inside.isdisjoint(_mentioned(statement)):
            return True
        if list(blocks(statement)):
            return False
        taken = {name for node in late_scopes(statement) for name in self.scopes[node].free & self.scope.locals}
        return any(self._bindings.get(name, 0) != 1 for name in taken)

    def _open(self, block: Block) -> bool:
        """Note the compound statements that hold what Python carries out; whether there is any in a block."""
        found = False
        for statement in block:
            inside = [self._open(inner) for inner in blocks(statement)]
            seen = self._seen_from_outside(statement) if inside else set()
            if any(inside) or inside and (statement in self.stay or seen):
                self.opened.add(statement)
            found = found or statement in self.opened or statement in self.stay
        return found

    def _seen_from_outside(self, statement: gast.AST) -> Set[str]:
        """The names that a statement writes and that others may read before the run ends: a handler, an inner function."""
        if statement not in self.before:
            return set()
        return (scopes.written(statement) & (self.points[statement].on_raise | self.scope.captured)) & self.scope.locals

    # --- the runs ----------------------------------------------------------------------------------------------------------

    def _divide(self, block: Block) -> None:
        run: Block = []
        for number, statement in enumerate(block):
            if Place.of(statement) in self.cuts.ends:
                run = self._end(run, block)
            if statement in self.opened:
                run = self._end(run, block)
                for inner in blocks(statement):
                    self._divide(inner)
            elif statement in self.stay or is_left_to_python(statement) and not run or _is_docstring(self.tree, block, number):
                run = self._end(run, block)
            elif self._takes_functions(statement, run):
                run = self._end(run, block)
                for inner in blocks(statement):
                    self._divide(inner)
            else:
                run.append(statement)
                if self._seen_from_outside(statement):
                    run = self._end(run, block)
        self._end(run, block)

    def _takes_functions(self, statement: gast.AST, run: Block) -> bool:
        """Whether a function or class that each call makes anew would come into a run with a statement: no program fits twice."""
        made = set().union(*(makes_functions(node) for node in within([*run, statement])))
        return not (self._made - made).isdisjoint(_names_in(statement))

    def _end(self, run: Block, block: Block) -> Block:
        """Take a run down, if there is one; gives the next, which is empty."""
        is_tail = block is self.tree.body and bool(run) and run[-1] is block[-1]
        while run and is_left_to_python(run[-1]) and not (is_tail and isinstance(run[-1], gast.Return)):
            run.pop()
            is_tail = False
        if len(run) == 1 and isinstance(run[0], gast.Return) and not is_tail:
            run = []
        if run:
            made = self._run(run, is_tail)
            if made.key not in self.cuts.plain:
                self.runs[run[0]] = made
        return []

    def _run(self, statements: Block, is_tail: bool) -> Run:
        own, state = self.scope.locals, self.before[statements[0]]
        changed = scopes.written(*statements) | _deleted(statements)
        outs = () if is_tail else tuple(sorted(changed & own & self.points[statements[-1]].after))
        trial = _Trial(self.tree, statements, outs)
        here = state.possible | own - changed           # others have no value before the run, which gives them one
        ins = tuple(sorted(trial.read & own & here))
        sure = [name for name in ins if name in state.certain]
        unsure = frozenset([*set(ins).difference(sure), *set(outs).difference(trial.certain(sure))])
        key = Key(Place.of(statements[0]), Place.of(statements[-1]), ins, outs, unsure, is_tail)
        mentioned = set().union(*map(_names_in, statements))
        declared = (tuple(sorted(mentioned & self.scope.globals)), tuple(sorted(mentioned & self.scope.nonlocals)))
        return Run(key, statements, exits(statements), declared)


class _Trial:
    """A run as a function of its own, to see which names it reads and gives.  read: those that it reads from outside."""

    def __init__(self, tree: gast.FunctionDef, statements: Block, outs: Names):
        start, self.tree = gast.Pass(), tree
        end = gast.Return(_tuple(outs))
        jumps: Dict[gast.AST, gast.AST] = {
            node: gast.Return(_tuple(outs)) for node in leaving(statements) if not isinstance(node, gast.Return)}
        self.ends = [end, *jumps.values()]
        self.body = [start, *_replaced(statements, jumps), end]
        made = _function(tree, (), self.body)
        self.read = liveness.points(made, scopes.analyse(made))[start].after

    def certain(self, given: Sequence[str]) -> Set[str]:
        """The names that have a value wherever it ends, if those given have one at the start."""
        made = _function(self.tree, tuple(given), self.body)
        before = assigned.analyse(made, scopes.analyse(made)).before
        return set.intersection(*(set(before[end].certain) for end in self.ends))


def _replaced(block: Block, others: Mapping[gast.AST, gast.AST]) -> Block:
    """Copies of statements as far as others stand for some in them."""
    found: Block = []
    for statement in block:
        if statement in others:
            found.append(others[statement])
            continue
        if not others.keys().isdisjoint(within([statement])):
            statement = copy.copy(statement)
            for field in ("body", "orelse", "finalbody"):
                if isinstance(getattr(statement, field, None), list):
                    setattr(statement, field, _replaced(getattr(statement, field), others))
            for field in ("handlers", "cases"):
                if hasattr(statement, field):
                    setattr(statement, field, [_with_body(part, others) for part in getattr(statement, field)])
        found.append(statement)
    return found


def _with_body(part: gast.AST, others: Mapping[gast.AST, gast.AST]) -> gast.AST:
    made = copy.copy(part)
    made.body = _replaced(part.body, others)
    return made


def _mentioned(statement: gast.AST) -> Set[str]:
    """The names in a simple statement, or in the head of a compound one."""
    return {node.id for node in head_nodes(statement) if isinstance(node, gast.Name)}


def _names_in(statement: gast.AST) -> Set[str]:
    """The names in a statement, and in all that it holds."""
    return {node.id for node in scopes.walk(statement) if isinstance(node, gast.Name)}


def _is_docstring(tree: gast.FunctionDef, block: Block, number: int) -> bool:
    first = block[number]
    return block is tree.body and not number and isinstance(first, gast.Expr) and isinstance(first.value, gast.Constant)


def _deleted(statements: Block) -> Set[str]:
    """The names that some statements make unbound."""
    found: Set[str] = set()
    for node in scopes.own_nodes(*statements):
        if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Del):
            found.add(node.id)
        elif isinstance(node, gast.ExceptHandler) and node.name is not None:
            found.add(node.name.id)
    return found


def _tuple(names: Names) -> gast.AST:
    return gast.Tuple([gast.Name(name, gast.Load(), None, None) for name in names], gast.Load())


def _function(like: gast.FunctionDef, params: Names, body: List[gast.AST]) -> gast.FunctionDef:
    arguments = gast.arguments([gast.Name(name, gast.Param(), None, None) for name in params], [], None, [], [], None, [])
    return gast.FunctionDef(like.name, arguments, body, [], None, None, [])


def halves(statements: Block) -> Optional[Place]:
    """Where to end a run of which it is not known what stopped its capture; None for a single statement."""
    return Place.of(statements[len(statements) // 2]) if len(statements) > 1 else None


