"""The C functions of the hot path around programs: one library for all, compiled once per machine."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

from .. import compiler, library

#: The rows of guard tables, by their numbers.  guards.c says what each does with what stands behind it.
ROWS = ("argument", "keyword", "constant", "vars", "attribute", "cell", "item", "element", "class_attribute",
        "thread_attribute", "creator", "device", "data", "variable", "type", "is", "same", "equals", "texts", "absent",
        "keys", "length_of_dict", "length_of_list", "length_of_tuple", "array", "layout", "distinct", "apart", "state")

#: One text: each file uses what the files before it define.
_FILES = ("objects", "arrays", "variables", "backward", "links", "updates", "guards")
_SOURCE = f"enum {{{', '.join([f'ROW_{word}' for word in ROWS])}}};\n" + "\n".join(
    [Path(__file__).with_name(f"{name}.c").read_text(encoding="utf-8") for name in _FILES])
_FLAGS = ("-O1", "-ftree-loop-vectorize")               # half the time to compile of -O3, and as fast


def is_kept() -> bool:
    """Whether nothing has to be compiled for `functions`.  Raises `failures.NoCompiler`."""
    return compiler.is_kept(_SOURCE, _FLAGS)


def start() -> compiler.Build:
    """The library, which may be on its way.  Raises `failures.NoCompiler`."""
    return compiler.start(_SOURCE, _FLAGS)


def functions(objects: Tuple[Any, ...], fallbacks: Dict[str, Callable]) -> Dict[str, Callable]:
    """The functions of these names; each calls its Python fallback for cases that it does not know.

    objects: what the C text lists as OBJECTS, in that order.
    Raises `failures.NoCompiler`, `failures.BuildFailed` and `library.NotSupported`.
    """
    library.require_support()
    built = start().library()
    if not library.bind(built, "hot_start", _unknown)(objects, {"text"}, sys.version_info < (3, 13)):
        raise library.NotSupported("this Python keeps parts of tuples, sets or classes elsewhere")
    return {name: library.bind(built, f"hot_{name}", fallback) for name, fallback in fallbacks.items()}


def _unknown(*_: Any) -> None:
    raise library.NotSupported("native code cannot be started here")
