"""How much has been compiled."""
from __future__ import annotations

from typing import Dict

from . import nodes
from .structures import structures


def stats() -> Dict[str, int]:
    """Counts since the start of the process.

    structures: expressions that differ in more than values.  kept: the structures in the cache.  captures: programs compiled for
    them.  One structure has several programs for several dtypes, and for varying sizes until one program serves all sizes.
    """
    with nodes.lock:
        kept, captures = list(structures.known.values()), structures.captures
    return {"structures": structures.made, "kept": len(kept), "captures": captures + sum([each.captures() for each in kept])}
