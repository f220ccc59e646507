"""The statements of a function: which hold a line, which hold others, and what they do to its control flow."""
from __future__ import annotations

from typing import AbstractSet, Iterator, List, NamedTuple, Set

import gast

from ..pyast.scopes import FUNCTIONS, own_nodes
from ..transformers.frames import counts_frames

Block = List[gast.AST]

#: Statements with a scope of their own: what is in them is not part of the function.
_APART = (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)

_LOOPS = (gast.For, gast.AsyncFor, gast.While)

#: Statements that Python carries out in no time, wherever they are.
_LEFT_TO_PYTHON = (*_APART, gast.Import, gast.ImportFrom, gast.Global, gast.Nonlocal, gast.Delete, gast.Pass)

_SUSPENDING = (gast.Yield, gast.YieldFrom, gast.Await, gast.AsyncFor, gast.AsyncWith)

#: Expressions that may compute with arrays.
_COMPUTING = (gast.Call, gast.BinOp, gast.AugAssign, gast.UnaryOp, gast.Compare, gast.Subscript)

_CONSUMERS = frozenset(("sum", "min", "max", "any", "all", "list", "tuple", "set", "dict", "sorted", "frozenset"))


class Place(NamedTuple):
    """Where a statement begins and ends in the user's file."""

    line: int
    col: int
    end_line: int
    end_col: int

    @classmethod
    def of(cls, node: gast.AST) -> Place:
        """The place of a statement."""
        return cls(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


def blocks(statement: gast.AST) -> Iterator[Block]:
    """The blocks of a compound statement; none of a function or class."""
    if isinstance(statement, _APART):
        return
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list) and block:
            yield block
    for field in ("handlers", "cases"):
        for part in getattr(statement, field, ()):
            yield part.body


def within(block: Block) -> Iterator[gast.AST]:
    """All statements of a block, and of the blocks in it."""
    for statement in block:
        yield statement
        for inner in blocks(statement):
            yield from within(inner)


def at_lines(block: Block, lines: AbstractSet[int]) -> Set[gast.AST]:
    """The innermost statements that contain one of these lines."""
    found: Set[gast.AST] = set()
    for statement in block:
        own = lines & set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
        for inner in blocks(statement):
            held = set(range(inner[0].lineno, (inner[-1].end_lineno or inner[-1].lineno) + 1))
            found |= at_lines(inner, own & held)
            own = own - held
        if isinstance(statement, _APART):               # what its decorators, defaults and bases ask for is computed here
            own -= set(range(statement.body[0].lineno, (statement.end_lineno or statement.lineno) + 1))
        if own:
            found.add(statement)
    return found


def is_left_to_python(statement: gast.AST) -> bool:
    """Whether a simple statement is not worth a call: it computes nothing, or Python alone can carry it out."""
    if isinstance(statement, _LEFT_TO_PYTHON):
        return True
    return not computes(statement) and not list(blocks(statement))


def computes(node: gast.AST) -> bool:
    """Whether a statement or an expression may compute with arrays, itself or by what it calls."""
    return any(isinstance(inner, _COMPUTING) for inner in own_nodes(node))


def must_stay(statement: gast.AST) -> bool:
    """Whether a simple statement, or the head of a compound one, has to run in the function itself."""
    if getattr(statement, "is_glue", False):
        return True
    if isinstance(statement, gast.Delete) and any(isinstance(target, gast.Name) for target in statement.targets):
        return True
    return isinstance(statement, _SUSPENDING) or any(
        isinstance(node, _SUSPENDING) or counts_frames(node) for node in head_nodes(statement))


def makes_functions(statement: gast.AST) -> Set[str]:
    """The names that a statement binds to functions or classes which it makes."""
    if isinstance(statement, _APART):
        return {statement.name}
    if isinstance(statement, gast.Assign) and isinstance(statement.value, gast.Lambda):
        return {target.id for target in statement.targets if isinstance(target, gast.Name)}
    return set()


def head_nodes(statement: gast.AST) -> Iterator[gast.AST]:
    """The nodes of a statement that run in the function itself, without those of its blocks."""
    inside = {inner for block in blocks(statement) for inner in block}
    pending = [statement]
    while pending:
        node = pending.pop()
        yield node
        for child in gast.iter_child_nodes(node):
            if child not in inside and not isinstance(child, FUNCTIONS):
                pending.append(child)


def late_scopes(statement: gast.AST) -> Iterator[gast.AST]:
    """The lambdas and generator expressions of a statement that may run after it."""
    used_up = {node.args[0] for node in own_nodes(statement) if isinstance(node, gast.Call) and len(node.args) == 1
               and isinstance(node.func, gast.Name) and node.func.id in _CONSUMERS and isinstance(node.args[0], gast.GeneratorExp)}
    for node in own_nodes(statement):
        if isinstance(node, (gast.Lambda, gast.GeneratorExp)) and node not in used_up:
            yield node


def exits(statements: Block) -> Set[type]:
    """Which of `Return`, `Break` and `Continue` lead out of these statements."""
    return {type(node) for node in leaving(statements)}


def leaving(statements: Block) -> Iterator[gast.AST]:
    """The statements that lead out of these: returns, and breaks and continues of loops around them."""
    for statement in statements:
        if isinstance(statement, (gast.Return, gast.Break, gast.Continue)):
            yield statement
        inside = list(blocks(statement))
        for number, block in enumerate(inside):
            of_loop = isinstance(statement, _LOOPS) and number == 0
            yield from (node for node in leaving(block) if isinstance(node, gast.Return) or not of_loop)
