"""Loops over the Links of a model in which an ``if`` holds what cannot be compiled: all iterations up to that become one part."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import chainer
import gast

from ..pyast import templates
from ..pyast.parser import RESERVED
from ..pyast.trees import copy_of
from .statements import Block, blocks, leaving, must_stay, within

#: So many items are looked at ahead, at most: each is in the program that goes through them.
_MOST = 64

#: If the test holds more often than this in one loop, there would be many programs: one for each item at which a part begins.
_OFTEN = 4

_FORM = """
box = [iterable]
ahead = _dy.ahead(box, maker, place)
if ahead is None:
    for target in box.pop():
        body
else:
    del box[:]
    start, again = _dy.after(None), False
    while True:
        if again:
            tail
        stop = False
        for target_copy in _dy.rest(ahead, start):
            start = _dy.after(start)
            head
            if test:
                stop = True
                break
            else:
                orelse
            tail_copy
        if not stop:
            break
        held
        again = _dy.ahead.met(place)
"""


def run_ahead(tree: gast.FunctionDef) -> None:
    """Change such loops of a function, in place; its statements that Python carries out have ``is_broken``.

    At run time, what has no Links, or is no list or tuple, is gone through as it was.
    """
    tree.body[:] = _changed(tree.body)


def _changed(block: Block) -> Block:
    found: Block = []
    for statement in block:
        held = _held(statement)
        if held is not None:
            found += _made(statement, held)
            continue
        if not isinstance(statement, (gast.For, gast.While)):       # copies in copies would be many
            for inner in blocks(statement):
                inner[:] = _changed(inner)
        found.append(statement)
    return found


def _held(statement: gast.AST) -> Optional[gast.If]:
    """The ``if`` that alone holds what Python carries out in a loop; None where the loop stays as it is."""
    if not isinstance(statement, gast.For) or statement.orelse or getattr(statement, "is_broken", False):
        return None
    holding = [inner for inner in statement.body if any(map(_is_for_python, within([inner])))]
    if len(holding) != 1 or not isinstance(holding[0], gast.If) or getattr(holding[0], "is_broken", False):
        return None
    held = holding[0]
    number = statement.body.index(held)
    for inner in leaving(statement.body):
        # a `continue` before the `if` goes on with the next item there, too
        if isinstance(inner, gast.Break) or isinstance(inner, gast.Continue) and inner in within(statement.body[number:]):
            return None
    return None if any(map(_is_for_python, within(held.orelse))) or must_stay(held) else held


def _is_for_python(statement: gast.AST) -> bool:
    return getattr(statement, "is_broken", False) or must_stay(statement)


def _made(loop: gast.For, held: gast.If) -> Block:
    number = loop.body.index(held)
    head, tail = loop.body[:number], loop.body[number + 1:]
    called = getattr(loop.iter, "func", None)
    maker = copy_of(called) if isinstance(called, gast.Name) else _constant(None, loop)
    names = {name: f"{RESERVED}_{name}_{loop.lineno}_{loop.col_offset}" for name in ("box", "ahead", "start", "again", "stop")}

    def copied(block: Block) -> Block:
        return [copy_of(each) for each in block] or [templates.place(gast.Pass(), loop)]
    found = templates.statements(
        _FORM, loop, **names, iterable=loop.iter, maker=maker, target=loop.target, target_copy=copy_of(loop.target),
        place=_constant((loop.lineno, loop.col_offset), loop), body=list(loop.body), head=copied(head), test=copy_of(held.test),
        orelse=copied(held.orelse), tail=copied(tail), tail_copy=copied(tail), held=copied(held.body))
    repeated = found[2].orelse[-1].body
    ends = [each for each in repeated if isinstance(each, gast.If) and isinstance(each.body[0], gast.Break)]
    for made in (*found[:2], ends[0], repeated[-1]):
        made.is_glue = True
    return found


def _constant(value: Any, at: gast.AST) -> gast.AST:
    return templates.place(gast.Constant(value, None), at)


class Ahead:
    """Looks ahead in the loops of one function, but for those whose tests are seen to hold often."""

    def __init__(self) -> None:
        self._met: Dict[Tuple[int, int], int] = {}
        self._often: Set[Tuple[int, int]] = set()

    def __call__(self, box: List[Any], maker: Any, place: Tuple[int, int]) -> Optional[Tuple[str, int, Tuple[Sequence[Any], ...]]]:
        """How to go through what is in ``box`` from any item on; None where only Python knows, and where there are no Links.

        maker: what has made it just now, if that is known.  place: that of the loop.
        """
        self._met[place] = 0
        found = None if place in self._often else _sequences(box[0], maker)
        if found is None or not all(len(items) <= _MOST for items in found[2]):
            return None
        return found if any(isinstance(item, chainer.Link) for items in found[2] for item in items) else None

    def met(self, place: Tuple[int, int]) -> bool:
        """Note that the test of a loop has held; True."""
        self._met[place] += 1
        if self._met[place] > _OFTEN:
            self._often.add(place)
        return True


def _sequences(iterable: Any, maker: Any) -> Optional[Tuple[str, int, Tuple[Sequence[Any], ...]]]:
    kind = type(iterable)
    if kind in (list, tuple):
        return "", 0, (_as_list(iterable),)
    if getattr(kind, "__iter__", None) is chainer.ChainList.__iter__:
        return "", 0, (iterable._children,)
    if kind is not maker or kind not in (enumerate, zip):
        return None
    inner = iterable.__reduce__()[1]
    items = [_items(each) for each in (inner[:1] if kind is enumerate else inner)]
    if None in items:
        return None
    return kind.__name__, inner[1] if kind is enumerate else 0, tuple(items)        # type: ignore[arg-type]


def _items(iterator: Any) -> Optional[Sequence[Any]]:
    """The list or tuple that an iterator is at the start of."""
    if type(iterator) not in _ITERATORS:
        return None
    _, (items, *_), *start = iterator.__reduce__()
    return _as_list(items) if start == [0] else None


def _as_list(items: Sequence[Any]) -> Sequence[Any]:
    """The items as a list, so that a part guards only the items it iterates over."""
    return list(items) if type(items) is tuple else items


_ITERATORS = (type(iter([])), type(iter(())))
