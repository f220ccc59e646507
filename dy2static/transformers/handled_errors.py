"""Where code gets exceptions: ``except`` blocks that give the exception a name, and ``__exit__``."""

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

    A function of the name ``__exit__`` begins in the same way, with its third argument, or with ``*args``.
    """

    changes = (gast.ExceptHandler, gast.FunctionDef)

    def transform(self, tree: gast.FunctionDef) -> gast.FunctionDef:
        super().transform(tree)
        self.tree, self.at, self.within = tree, [tree], [tree]
        return self._seen_at_exit(tree)

    def visit_FunctionDef(self, node: gast.FunctionDef) -> Any:
        return self._seen_at_exit(super().visit_FunctionDef(node))

    def _seen_at_exit(self, node: gast.FunctionDef) -> gast.FunctionDef:
        if node.name != "__exit__":
            return node
        positional = node.args.posonlyargs + node.args.args
        if len(positional) > 2:
            seen = self.quote_statements("_dy.handled(error)", error=positional[2].id)
        elif node.args.vararg is not None:
            seen = self.quote_statements("_dy.handled(*rest)", rest=node.args.vararg.id)
        else:
            return node
        place = 1 if gast.get_docstring(node, clean=False) is not None else 0
        if [gast.dump(each) for each in node.body[place : place + 1]] != [gast.dump(each) for each in seen]:
            node.body[place:place] = seen
        return node

    def visit_ExceptHandler(self, node: gast.ExceptHandler) -> Any:
        self.generic_visit(node)
        if node.name is not None:
            (seen,) = self.quote_statements("_dy.handled(error)", error=node.name)
            if gast.dump(node.body[0]) != gast.dump(seen):
                node.body = [seen, *node.body]
        return node
