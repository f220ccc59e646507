"""The texts of cells that IPython's ``%%time`` runs: their code has a file name of its own, under which no source is stored."""

from __future__ import annotations

import ast
import linecache
from typing import Iterator

#: What ``%%time`` compiles its cells as.
FILE = "<timed exec>"

_CALL = "get_ipython().run_cell_magic('time',"


def timed_texts() -> Iterator[str]:
    """The texts of all timed cells, the latest first, from the calls that IPython makes of such cells."""
    for entry in reversed(list(linecache.cache.values())):
        lines = entry[2] if len(entry) == 4 else ()  # a lazy entry is that of a module
        for line in lines:
            if line.startswith(_CALL):
                try:
                    yield ast.literal_eval("(" + line[len(_CALL) :].strip())[1]
                except (SyntaxError, ValueError):  # it only looks like one
                    continue
