"""Readable names for values of the graph."""
from __future__ import annotations

from typing import List, Optional

from .sources import Source


def identifier(name: str) -> str:
    """A name in lower case that Python takes, made of any text."""
    cleaned = "".join(c if c.isalnum() else "_" for c in name).strip("_").lower()
    return cleaned if cleaned and not cleaned[0].isdigit() else "value"


def readable(source: Source) -> str:
    """The end of a path as a name: ``l1_w`` for ``self.l1.W``."""
    words: List[str] = []
    step: Optional[Source] = source
    while step is not None and len(words) < 2:
        if step.kind in ("item", "kwarg", "attr", "class"):
            words.append(str(step.key))
        elif step.kind == "arg":
            words.append(f"x{step.key}")
        step = step.parent
    return identifier("_".join(reversed(words)))
