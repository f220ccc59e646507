"""``a.b = value`` and ``del a.b``."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer, is_dy, is_self


class AttributeWrites(Transformer):
    """Ask ``_dy.owner`` about objects whose attributes are set or deleted: a capture must not change what belongs to a library.

    What is called ``self`` belongs to the user.

    Before:  np.count += 1; self.h = x
    After:   _dy.owner(np).count += 1; self.h = x
    """

    adds_names = False
    changes = (gast.Assign, gast.AugAssign, gast.AnnAssign, gast.Delete)

    def visit_Assign(self, node: gast.Assign) -> Any:
        node.targets = [self._asked(target) for target in node.targets]
        return node

    visit_Delete = visit_Assign

    def visit_AugAssign(self, node: gast.AugAssign) -> Any:
        node.target = self._asked(node.target)
        return node

    visit_AnnAssign = visit_AugAssign

    def _asked(self, target: gast.AST) -> gast.AST:
        if isinstance(target, (gast.Tuple, gast.List)):
            target.elts = [self._asked(part) for part in target.elts]
        elif isinstance(target, gast.Attribute) and not is_dy(target.value) and not is_self(target.value):
            target.value = self.quote("_dy.owner(value)", value=target.value)
        return target
