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
