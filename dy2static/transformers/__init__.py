"""Source to source: one file per construct, and the order they run in."""
from __future__ import annotations
from typing import Callable, Sequence
import gast

PIPELINE = ()
def apply(pipeline, tree, after_each=lambda transformer, tree: None):
    return gast.fix_missing_locations(tree)
