"""Readable names for values of the graph."""
from __future__ import annotations

import functools
import itertools

from ..record.paths import Source


@functools.lru_cache(maxsize=1024)
def identifier(name: str) -> str:
    """A name in lower case that Python takes, made of any text."""
    cleaned = "".join(c if c.isalnum() else "_" for c in name).strip("_").lower()
    return cleaned if cleaned and not cleaned[0].isdigit() else "value"


def readable(source: Source) -> str:
    """The end of a path as a name: ``l1_w`` for ``self.l1.W``."""
    words = list(itertools.islice(source.labels(), 2))
    return identifier("_".join(reversed(words)))
