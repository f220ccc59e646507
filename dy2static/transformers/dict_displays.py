"""Dict displays with keys that are computed."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.transformers.base import Transformer
from dy2static.transformers.f_strings import FStrings


class DictDisplays(Transformer):
    """Make dict displays with a key that is no constant calls, so that a key may be a text that only the run knows.

    Before:  return {tag: a, "b": c, **d}, {f"{tag}/loss": loss}
    After:   return {tag: a, "b": c, **d}, _dy.dict_((_dy.fstring(_dy.format_(tag), '/loss'), loss))
    """

    requires = (FStrings,)
    changes = (gast.Dict,)

    def visit_Dict(self, node: gast.Dict) -> Any:
        self.generic_visit(node)
        if None in node.keys or all(isinstance(key, gast.Constant) for key in node.keys):
            return node
        pairs = [gast.Tuple([key, value], gast.Load()) for key, value in zip(node.keys, node.values)]
        return self.quote("_dy.dict_(pairs)", pairs=pairs)
