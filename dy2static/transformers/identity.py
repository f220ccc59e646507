"""``is`` and ``is not``."""

from __future__ import annotations

from typing import Any, ClassVar, Dict

import gast

from dy2static.transformers.base import Transformer


class Identity(Transformer):
    """Make ``is`` a call: what stands for an object known only at run time must not be taken for another one.

    Chained comparisons stay.

    Before:  return a is None, a is not b
    After:   return _dy.is_(a, None), _dy.is_not(a, b)
    """

    _NAMES: ClassVar[Dict[type, str]] = {gast.Is: "_dy.is_", gast.IsNot: "_dy.is_not"}

    def visit_Compare(self, node: gast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) > 1 or type(node.ops[0]) not in self._NAMES:
            return node
        name = self._NAMES[type(node.ops[0])]
        return self.quote(f"{name}(left, right)", left=node.left, right=node.comparators[0])
