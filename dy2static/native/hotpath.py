"""The C functions of the hot path around programs: one library for all, compiled once per machine."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Tuple

from . import compiler, library

_SOURCE = Path(__file__).with_name("hotpath.c").read_text(encoding="utf-8")
_FLAGS = ("-O1", "-ftree-loop-vectorize")               # half the time to compile of -O3, and as fast


def is_kept() -> bool:
    """Whether nothing has to be compiled for `functions`.  Raises `compiler.NoCompiler`."""
    return compiler.is_kept(_SOURCE, _FLAGS)


def functions(objects: Tuple[Any, ...], fallbacks: Dict[str, Callable]) -> Dict[str, Callable]:
    """The functions of these names; each calls its Python fallback for cases that it does not know.

    objects: what the C text lists as OBJECTS, in that order.
    Raises `compiler.NoCompiler`, `compiler.BuildFailed` and `library.NotSupported`.
    """
    library.require_support()
    built = compiler.build(_SOURCE, _FLAGS)
    library.bind(built, "hot_start", _unknown)(objects)
    return {name: library.bind(built, f"hot_{name}", fallback) for name, fallback in fallbacks.items()}


def _unknown(*_: Any) -> None:
    raise library.NotSupported("native code cannot be started here")
