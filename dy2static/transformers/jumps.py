"""Jumps moved to where control goes anyway: after an ``if`` that may jump, the rest stands where it does not."""

from __future__ import annotations

from typing import ClassVar, Iterator, List, Tuple

import gast

from dy2static.pyast import templates
from dy2static.pyast.kinds import bits_of
from dy2static.pyast.scopes import children, own_nodes
from dy2static.transformers.base import Transformer

YIELDS = (gast.Yield, gast.YieldFrom, gast.Await)
_YIELD_BITS = bits_of(YIELDS)
LOOP_JUMPS = (gast.Break, gast.Continue)
LOOPS = (gast.For, gast.While)
_LEAVE = LOOP_JUMPS + (gast.Return, gast.Raise)

#: With more jumps than this, what is made would be nested too deeply to be read.
_MOST = 20


class Jumps(Transformer):
    """Base of the transformers that replace jumps of some ``kinds`` by assignments.

    A statement after ``if test: jump`` moves into its ``else``.  Where a block only may jump, a flag says
    whether it did, and guards the rest.
    """

    kinds: ClassVar[Tuple[type, ...]] = ()

    def jump(self, node: gast.AST, last: bool) -> List[gast.AST]:
        """What stands for a jump; ``last``: where nothing would run but what the jump leads to."""
        raise NotImplementedError

    def loop(self, node: gast.AST) -> List[gast.AST]:
        """What stands for a loop that holds jumps."""
        raise NotImplementedError

    def end(self, at: gast.AST) -> List[gast.AST]:
        """What to add to a block at whose end control goes where a jump leads."""
        return []

    def guard(self, node: gast.AST, at: gast.AST) -> gast.AST:
        """The condition for running what follows ``node``, which may have jumped."""
        raise NotImplementedError

    def settled(self, block: List[gast.AST], last: bool, at: gast.AST) -> List[gast.AST]:
        """A block of ``at`` without jumps; ``last``: where nothing follows it but what the jumps lead to."""
        for index, node in enumerate(block):
            before, rest = block[:index], block[index + 1 :]
            if isinstance(node, self.kinds):
                return before + self.jump(node, last)
            if holds([node], self.kinds):
                return before + self._split(node, rest, last)
        return block + (self.end(block[-1] if block else at) if last and not leaves(*block) else [])

    def _split(self, node: gast.AST, rest: List[gast.AST], last: bool) -> List[gast.AST]:
        if isinstance(node, gast.With):
            node.body = self.settled(node.body, False, node)
            return [node] + self._guarded(node, rest, last)
        if not isinstance(node, gast.If):
            forever = is_forever(node)
            made = self.loop(node)
            return made if forever else made + self._guarded(node, rest, last)
        if rest and leaves(*node.body):
            node.orelse, rest = node.orelse + rest, []
        elif rest and leaves(*node.orelse):
            node.body, rest = node.body + rest, []
        guarded = self._guarded(node, rest, last) if rest else []
        last = last and not rest
        node.body, node.orelse = (self.settled(block, last, node) for block in (node.body, node.orelse))
        return _tidied(node) + guarded

    def _guarded(self, node: gast.AST, rest: List[gast.AST], last: bool) -> List[gast.AST]:
        """The rest of a block after ``node``, which may have jumped."""
        at = rest[0] if rest else node
        test = self.guard(node, at)
        body = self.settled(rest, last, at)
        return templates.statements("if test: body", at, test=test, body=body) if body else []

    def can_settle(self, block: List[gast.AST]) -> bool:
        """Whether all jumps in a block are in ``if`` statements, loops and ``with``, with no dead code, and not too many."""
        return self._is_simple(block, False) and sum(1 for _ in jumps_in(block, self.kinds)) <= _MOST

    def _is_simple(self, block: List[gast.AST], in_loop: bool) -> bool:
        for node in block:
            if not holds([node], self.kinds):
                continue
            if leaves(node) and node is not block[-1]:
                return False
            if isinstance(node, self.kinds):
                continue
            is_loop = isinstance(node, LOOPS)
            if isinstance(node, gast.With):
                # a plain `return` at its end is where it should be
                if in_loop or gast.Return not in self.kinds or leaves(*node.body):
                    return False
            elif not isinstance(node, gast.If) and (gast.Return not in self.kinds or not is_loop):
                return False
            if not all(self._is_simple(inner, in_loop or is_loop) for inner in (node.body, getattr(node, "orelse", []))):
                return False
        return True


def jumps_in(block: List[gast.AST], kinds: Tuple[type, ...]) -> Iterator[gast.AST]:
    """The jumps of some kinds in statements; a ``break`` or ``continue`` of a loop within is not theirs."""
    for node in block:
        if isinstance(node, kinds):
            yield node
        elif isinstance(node, LOOPS):
            yield from jumps_in(node.body, tuple(kind for kind in kinds if kind not in LOOP_JUMPS))
            yield from jumps_in(node.orelse, kinds)
        elif not isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.expr)):
            yield from jumps_in(children(node), kinds)


def holds(block: List[gast.AST], kinds: Tuple[type, ...]) -> bool:
    """Whether there are jumps of some kinds in statements."""
    return next(jumps_in(block, kinds), None) is not None


def leaves(*block: gast.AST) -> bool:
    """Whether control never comes to the end of a block (as far as ``if``, ``raise`` and jumps go)."""
    last = block[-1] if block else None
    if isinstance(last, gast.If):
        return leaves(*last.body) and leaves(*last.orelse)
    return isinstance(last, _LEAVE) or is_forever(last)


def is_forever(node: gast.AST) -> bool:
    """Whether ``node`` is a loop that ends by no more than a ``return`` or exception."""
    return (
        isinstance(node, gast.While)
        and isinstance(node.test, gast.Constant)
        and bool(node.test.value)
        and not holds(node.body, (gast.Break,))
    )


def is_generator(function: gast.FunctionDef) -> bool:
    """Whether a function has a ``yield``."""
    return any(isinstance(node, YIELDS) for node in own_nodes(*function.body, bits=_YIELD_BITS))


def _tidied(node: gast.If) -> List[gast.AST]:
    """An ``if`` whose first block is not empty; none if it has no block and asks but a flag of ours."""
    if not node.body and not node.orelse and hasattr(node.test, "is_flag"):
        return []
    if not node.body and node.orelse:
        test = node.test
        if isinstance(test, gast.UnaryOp) and isinstance(test.op, gast.Not):
            node.test = test.operand
        else:
            node.test = templates.expression("not test", test, test=test)
        node.body, node.orelse = node.orelse, []
    node.body = node.body or templates.statements("pass", node)
    return [node]
