"""Blocks as functions of the names that pass through them."""

from __future__ import annotations

from typing import List

import gast

from dy2static.pyast import templates
from dy2static.transformers.base import Transformer
from dy2static.transformers.blocks import Passing


class BlockFunctions(Transformer):
    """Base of the transformers that carry out the plan of `UnboundNames`."""

    def function(self, name: str, body: List[gast.AST], passing: Passing, item: List[gast.AST] = ()) -> List[gast.AST]:
        """The definition of ``name``: takes the names, does the block, gives the names."""
        made = self.quote_statements(
            "def function(params): body", function=name, params=[*item, *loads(passing.names)], body=body
        )
        if passing.shared:
            made[0].body.insert(0, gast.copy_location(gast.Nonlocal(list(passing.shared)), made[0]))
        end = body[-1] if body else self.at[-1]
        if not isinstance(end, gast.Raise):
            made[0].body += templates.statements("return (values,)", end, values=loads(passing.names[: passing.given]))
        return made

    def call(self, template: str, passing: Passing, at: gast.AST, **holes: templates.Hole) -> List[gast.AST]:
        """The statement that calls ``_dy``, the names among its arguments, and takes what it gives."""
        values = [
            templates.expression("_dy.Undefined(name)", at, name=gast.Constant(name, None))
            if name in passing.undefined
            else load
            for name, load in zip(passing.names, loads(passing.names))
        ]
        return templates.statements(
            f"(targets,) = {template}" if passing.given else template,
            at,
            targets=loads(passing.names[: passing.given]),
            values=values,
            names=[gast.Constant(name, None) for name in passing.names],
            **holes,
        )


def loads(names: List[str]) -> List[gast.AST]:
    """The names as expressions."""
    return [templates.name_of(name, gast.Load()) for name in names]
