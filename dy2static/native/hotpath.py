"""The C functions that stand around native programs: one library for all, compiled once per machine."""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Dict, Tuple

from . import compiler, library

_SOURCE = Path(__file__).with_name("hotpath.c").read_text(encoding="utf-8")
_FLAGS = ("-O1", "-ftree-loop-vectorize")               # half the time to compile of -O3, and as fast


def is_kept() -> bool:
    """Whether nothing has to be compiled for `functions`.  Raises `compiler.NoCompiler`."""
    return compiler.is_kept(_SOURCE, _FLAGS)


def functions(objects: Tuple[Any, ...], twins: Dict[str, Callable]) -> Dict[str, Callable]:
    """The functions of these names; each asks its twin where it does not know what it is given.

    objects: what the C text lists as OBJECTS, in that order.
    Raises `compiler.NoCompiler`, `compiler.BuildFailed` and `library.NotSupported`.
    """
    library.require_support()
    built = compiler.build(_SOURCE, _FLAGS)
    library.bind(built, "hot_start", _unknown)(objects)
    return {name: library.bind(built, f"hot_{name}", twin) for name, twin in twins.items()}


def _unknown(*_: Any) -> None:
    raise library.NotSupported("native code cannot be started here")
