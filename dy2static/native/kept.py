"""Whether what is made from source and graphs is kept for later processes, and which version of the package makes it."""
from __future__ import annotations

import functools
import os
import time
from pathlib import Path
from typing import Tuple

from .. import config
from ..ir.digest import digest

_PACKAGE = Path(__file__).parents[1]
_STARTED = time.time_ns()


def is_wanted() -> bool:
    """Whether anything is kept: not where each step is to be checked, nor if the package has changed since the start."""
    return bool(config.KEEP.value) and not config.VERIFY.value and _sources()[0] < _STARTED


def version() -> str:
    """The hash of what tells the files of the package from those of other versions."""
    return _sources()[1]


@functools.lru_cache(maxsize=None)
def _sources() -> Tuple[int, str]:
    """When a file of the package was last changed, and the hash of what tells its files from those of other versions."""
    root = str(_PACKAGE)
    latest, rows, folders = 0, [], [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders += [entry.path] if entry.name != "__pycache__" else []
                elif entry.name.endswith((".py", ".c", ".h")):
                    seen = entry.stat()
                    latest = max(latest, seen.st_mtime_ns, seen.st_ctime_ns)
                    rows.append((entry.path[len(root):], seen.st_size, seen.st_mtime_ns))
    return latest, digest(tuple(sorted(rows)))
