"""List comprehensions, and what ``all`` and ``any`` ask of each item."""

from __future__ import annotations

from typing import Any, List, Optional

import gast

from dy2static.pyast.scopes import walk
from dy2static.transformers.base import is_dy
from dy2static.transformers.boolean_operators import BooleanOperators
from dy2static.transformers.thunks import Thunks


class Comprehensions(Thunks):
    """Make a list comprehension a call, so that its length and its condition can be symbolic; so `all` and `any` of a generator.

    It stays where it has several ``for`` or conditions, where what it binds is no name or tuple of up to three names, where a
    function is made in it, where a part of it cannot be moved into a lambda, and where it goes over a display.

    Before:  return [a * n for a in xs if a > 0], all(a > 0 for a in xs)
    After:   return _dy.list_of(xs, lambda a: a > 0, lambda a: a * n, 0), _dy.truth_of(all, xs, None, lambda a: a > 0, 0)
    """

    requires = (BooleanOperators,)  # it looks at the conditions of comprehensions
    changes = (gast.ListComp, gast.GeneratorExp)

    def visit_ListComp(self, node: gast.ListComp) -> Any:
        loop = node.generators[0]
        is_known = not loop.ifs and isinstance(loop.iter, (gast.Tuple, gast.List, gast.Constant))
        names = None if is_known else self._own_names(node)
        self.generic_visit(node)
        if names is None or _keeps_names(node.elt, *loop.ifs):
            return node
        return self.quote(
            "_dy.list_of(items, test, element, count)",
            items=loop.iter,
            test=self._test(names, loop),
            element=self._function(names, node.elt),
            count=_count(loop.target, names),
        )

    def visit_Call(self, node: gast.Call) -> Any:
        asks = isinstance(node.func, gast.Name) and node.func.id in ("all", "any") and len(node.args) == 1 and not node.keywords
        asked = node.args[0] if asks else None
        names = self._own_names(asked) if isinstance(asked, gast.GeneratorExp) else None
        self.generic_visit(node)
        if names is None or _keeps_names(asked.elt, *asked.generators[0].ifs):
            return node
        loop = asked.generators[0]
        return self.quote(
            "_dy.truth_of(function, items, test, element, count)",
            function=node.func,
            items=self._items(loop.iter),
            test=self._test(names, loop),
            element=self._function(names, asked.elt),
            count=_count(loop.target, names),
        )

    def _items(self, iterable: Any) -> gast.AST:
        """What is iterated over; of a call, which nothing else has, a capture may know all items."""
        is_call = isinstance(iterable, gast.Call) and isinstance(iterable.func, (gast.Name, gast.Attribute))
        if not is_call or is_dy(iterable) or iterable.keywords or any(isinstance(each, gast.Starred) for each in iterable.args):
            return iterable
        return self.quote("_dy.items_of(function, args)", function=iterable.func, args=iterable.args)

    def _own_names(self, node: Any) -> Optional[List[str]]:
        """What a comprehension binds of one ``for`` with at most one condition; None where it cannot be moved."""
        loop, *others = node.generators
        movable = not others and len(loop.ifs) < 2 and not loop.is_async and self.can_move(node.elt, *loop.ifs)
        return _names(loop.target) if movable else None

    def _test(self, names: List[str], loop: gast.comprehension) -> gast.AST:
        return self._function(names, loop.ifs[0]) if loop.ifs else gast.Constant(None, None)

    def _function(self, names: List[str], body: gast.AST) -> gast.Lambda:
        made = self.quote("lambda: body", body=body)
        made.args.args = [gast.Name(name, gast.Param(), None, None) for name in names]
        return made


def _count(target: gast.AST, names: List[str]) -> gast.Constant:
    """How many names are bound to the parts of an item; 0 for one that is bound to the item."""
    return gast.Constant(0 if isinstance(target, gast.Name) else len(names), None)


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
