"""List comprehensions with conditions."""

from __future__ import annotations

from typing import Any, List, Optional

import gast

from dy2static.pyast.scopes import walk
from dy2static.transformers.base import is_dy
from dy2static.transformers.boolean_operators import BooleanOperators
from dy2static.transformers.thunks import Thunks


class Comprehensions(Thunks):
    """Make a list comprehension with a condition a call, so that a symbolic condition can be staged.

    It stays where it has several ``for`` or conditions, where what it binds is no name or tuple of up to three names, where a
    function is made in it, and where a part of it cannot be moved into a lambda.

    Before:  return [a * n for a in xs if a > 0]
    After:   return _dy.list_of(xs, lambda a: a > 0, lambda a: a * n, 0)
    """

    requires = (BooleanOperators,)  # it looks at the conditions of comprehensions
    changes = (gast.ListComp,)

    def visit_ListComp(self, node: gast.ListComp) -> Any:
        loop, *others = node.generators
        names = _names(loop.target)
        movable = not others and len(loop.ifs) == 1 and not loop.is_async and self.can_move(node.elt, *loop.ifs)
        self.generic_visit(node)
        if not movable or names is None or _keeps_names(node.elt, *loop.ifs):
            return node
        count = 0 if isinstance(loop.target, gast.Name) else len(names)
        return self.quote(
            "_dy.list_of(items, test, element, count)",
            items=loop.iter,
            test=self._function(names, loop.ifs[0]),
            element=self._function(names, node.elt),
            count=gast.Constant(count, None),
        )

    def _function(self, names: List[str], body: gast.AST) -> gast.Lambda:
        made = self.quote("lambda: body", body=body)
        made.args.args = [gast.Name(name, gast.Param(), None, None) for name in names]
        return made


def _keeps_names(*parts: gast.AST) -> bool:
    """Whether something may read names later: all functions made in a comprehension share those that it binds."""
    found = list(walk(*parts))
    own = {id(given) for node in found if isinstance(node, gast.Call) and is_dy(node) for given in node.args}
    return any(isinstance(node, (gast.Lambda, gast.GeneratorExp)) and id(node) not in own for node in found)


def _names(target: gast.AST) -> Optional[List[str]]:
    """The names that an item is bound to; None for any other target."""
    parts = target.elts if isinstance(target, gast.Tuple) and 1 < len(target.elts) < 4 else [target]
    names = [part.id for part in parts if isinstance(part, gast.Name)]
    return names if len(names) == len(parts) == len(set(names)) else None
