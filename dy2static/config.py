"""The environment variables and switches of the package; the only module that reads the environment."""
from __future__ import annotations

import contextlib
import os
from typing import Any, ClassVar, Dict, Iterator


class Flag:
    """One setting: the environment variable it starts from, its value now, and its meaning."""

    table: ClassVar[Dict[str, "Flag"]] = {}

    def __init__(self, name: str, default: Any, doc: str):
        self.name, self.default, self.doc = name, default, doc
        self.value = type(default)(os.environ.get(name, default))
        Flag.table[name] = self

    @contextlib.contextmanager
    def set(self, value: Any) -> Iterator[None]:
        """Have another value inside a ``with`` block."""
        old, self.value = self.value, value
        try:
            yield
        finally:
            self.value = old


CODE_LEVEL = Flag("DY2STATIC_CODE_LEVEL", "",
                  "log the source after these transformers: `all`, a name, a number, or several with commas; `diff`: what changed")
VERBOSITY = Flag("DY2STATIC_VERBOSITY", 0,
                 "0 warnings only · 1 captures and cache misses · 2 converted functions · 3 graphs · 4 generated code")
VERIFY = Flag("DY2STATIC_VERIFY", 0, "1 checks every graph after every pass (always on in the tests)")
ENABLED = Flag("DY2STATIC_ENABLED", 1, "0 runs every decorated function eagerly")
BACKEND = Flag("DY2STATIC_BACKEND", "auto",
               "what programs run on: `numpy`; `c`, native code where there is a C compiler; `auto`, NumPy at first, then C")
NATIVE_AFTER = Flag("DY2STATIC_NATIVE_AFTER", 10, "with `auto`, the calls of a program after which it becomes native code")
BACKGROUND = Flag("DY2STATIC_BACKGROUND", 1, "with `auto`, calls go on with NumPy while the C compiler runs; 0: they wait for it")
RECOMPUTE = Flag("DY2STATIC_RECOMPUTE", "none",
                 "what backwards compute again instead of keeping it: `none`, `cheap`, `sublinear`, or how many bytes may be kept")
CC = Flag("DY2STATIC_CC", "",
          "the C compiler of native programs, with flags of its own if it needs any; empty: the first of cc, gcc, clang")
CC_SECONDS = Flag("DY2STATIC_CC_SECONDS", 120,
                  "how many seconds the C compiler may take for one text; then it is ended, and programs run on NumPy")
CACHE_DIR = Flag("DY2STATIC_CACHE_DIR", "",
                 "where compiled libraries are kept, in a folder closed to other users; empty: `dy2static` in the user's cache")
CACHE_MB = Flag("DY2STATIC_CACHE_MB", 256, "how many MiB of compiled libraries are kept; those used least recently go")
ONEDNN = Flag("DY2STATIC_ONEDNN", "",
              "the file of oneDNN's library; `none`: do without; empty: that of this environment or the system")
THREADS = Flag("DY2STATIC_THREADS", 0,
               "how many threads native programs use; 0: `OMP_NUM_THREADS`, if that is less than there are cores, or one for each")


def openmp_threads() -> int:
    """The number of threads in OMP_NUM_THREADS, the first if there is a list; 0 where there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def cache_home() -> str:
    """The directory for what may be made again: DY2STATIC_CACHE_DIR, or ours in the user's cache (XDG)."""
    if CACHE_DIR.value:
        return os.path.abspath(os.path.expanduser(CACHE_DIR.value))
    home = os.environ.get("XDG_CACHE_HOME", "")
    # the standard says that a relative path is to be ignored
    return os.path.join(home if os.path.isabs(home) else os.path.expanduser("~/.cache"), "dy2static")
