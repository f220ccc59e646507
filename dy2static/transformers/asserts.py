"""``assert`` statements."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import count_as_truth
from dy2static.transformers.thunks import Thunks


class Asserts(Thunks):
    """Make ``assert`` a call, so that a symbolic test can be staged; the message stays lazy.

    It stays under ``python -O``, which does not run it, and where the message cannot be moved into a lambda.

    Before:
        assert a
        assert a > b, c
    After:
        _dy.assert_(a)
        _dy.assert_(a > b, lambda: c)
    """

    changes = (gast.Assert,)

    def visit_Assert(self, node: gast.Assert) -> Any:
        count_as_truth(node.test)
        message = [] if node.msg is None else [node.msg]
        movable = self.can_move(*message)
        self.generic_visit(node)
        if not __debug__ or not movable:
            return node
        thunk = [self.quote("lambda: message", message=node.msg)] if message else []
        return self.quote_statements("_dy.assert_(test, message)", test=node.test, message=thunk)
