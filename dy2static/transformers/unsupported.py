"""What cannot be compiled is reported before anything else is done."""

from __future__ import annotations

from typing import List

import gast

from dy2static.errors import UnsupportedSyntaxError
from dy2static.pyast.kinds import bits_of, may_hold
from dy2static.pyast.scopes import children
from dy2static.transformers.base import Transformer

_ASYNC = {
    gast.AsyncFunctionDef: "an async function",
    gast.Await: "await",
    gast.AsyncFor: "async for",
    gast.AsyncWith: "async with",
}

_BITS = bits_of((*_ASYNC, gast.comprehension))


class Unsupported(Transformer):
    """Raise one UnsupportedSyntaxError that lists every construct that cannot be compiled; change nothing.

    These are async functions and what only they may hold.  Generators are allowed: they run as plain Python.

    Before:  return (i for i in range(n))
    After:   return (i for i in range(n))
    """

    adds_names = False
    changes = (*_ASYNC, gast.comprehension)
    removes = tuple(_ASYNC)

    def start(self) -> None:
        problems = list(_problems(self.tree))
        if len(problems) == 1:
            raise problems[0]
        if problems:
            listed = "\n".join(str(problem).split(": ", 1)[1] for problem in problems)      # the code comes first, once
            raise UnsupportedSyntaxError(f"{len(problems)} constructs cannot be compiled\n{listed}")


def _problems(tree: gast.AST) -> List[UnsupportedSyntaxError]:
    """One error for each unsupported construct, in the order of the source.

    What an async function holds is part of it, and not reported again.
    """
    what = _ASYNC.get(type(tree))
    if isinstance(tree, gast.comprehension) and tree.is_async:
        what = "an async comprehension"
    hint = "decorate the synchronous function that it calls, or use not_to_static"
    found = (
        [UnsupportedSyntaxError(f"{what} cannot be compiled", tree.origin, hint)] if what is not None else []
    )
    if isinstance(tree, gast.AsyncFunctionDef):
        return found
    return found + [problem for child in children(tree) if may_hold(child, _BITS) for problem in _problems(child)]
