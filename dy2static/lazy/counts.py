"""How much has been compiled."""
from __future__ import annotations

from typing import Dict

from . import nodes
from .structures import structures


def stats() -> Dict[str, int]:
    """Counts since the start of the process.

    structures: expressions that differ in more than values.  kept: those in the cache.  captures: programs made for these; one
    structure has several where dtypes decide, and for sizes that vary until one program is made for all.
    """
    with nodes.lock:
        kept = list(structures.known.values())
    return {"structures": structures.made, "kept": len(kept), "captures": sum([each.captures() for each in kept])}
