"""``except`` blocks that give the exception a name."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer


class HandledErrors(Transformer):
    """Let the capture see an exception that code of the user's is about to look at.

    Before:
        try:
            f(a)
        except ValueError as error:
            b = str(error)
    After:
        try:
            f(a)
        except ValueError as error:
            _dy.handled(error)
            b = str(error)
    """

    changes = (gast.ExceptHandler,)

    def visit_ExceptHandler(self, node: gast.ExceptHandler) -> Any:
        self.generic_visit(node)
        if node.name is not None:
            (seen,) = self.quote_statements("_dy.handled(error)", error=node.name)
            if gast.dump(node.body[0]) != gast.dump(seen):
                node.body = [seen, *node.body]
        return node
