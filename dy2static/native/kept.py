"""What is made from source and graphs and kept for later processes: whether it is, of which version of the package, and code."""
from __future__ import annotations

import functools
import marshal
import os
import sys
import time
from pathlib import Path
from types import CodeType
from typing import Callable, Optional, Tuple

from .. import config
from ..ir.digest import digest
from . import store

_PACKAGE = Path(__file__).parents[1]
_STARTED = time.time_ns()
_LONG = 1 << 13                     # characters of a text that Python compiles more slowly than it is found on disk


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


def code_of(source: str, make: Callable[[], CodeType]) -> CodeType:
    """The code of a generated text in Python, from an earlier process if it is long; ``make()`` compiles it.

    Its file is that of the process which made it.
    """
    if len(source) < _LONG or not is_wanted():
        return make()
    key = digest((version(), sys.version, sys.flags.optimize, source))
    found = kept_code(key)
    if found is None:
        found = make()
        keep_code(key, found)
    return found


def kept_code(key: str) -> Optional[CodeType]:
    """The code that an earlier process has kept under this key."""
    content = store.text(key, store.CODE)
    try:
        code = None if content is None else marshal.loads(content)
    except (EOFError, TypeError, ValueError):
        return None
    return code if isinstance(code, CodeType) else None


def keep_code(key: str, code: CodeType) -> None:
    """Keep code for later processes."""
    store.keep_text(key, marshal.dumps(code), store.CODE)
