"""The import machinery that hands out the modules of ``patches.PATCHES`` with their source edited.

Nothing on disk changes, and neither does NumPy's namespace.  Only the standard library is imported here.
"""
from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any, Callable

from .patches import PATCHES, apply


class PatchedLoader(SourceFileLoader):
    """Loads one module of the table; ``error`` makes the exception for a source that does not fit it."""

    def __init__(self, name: str, path: str, error: Callable[[str], Exception]):
        super().__init__(name, path)
        self.error = error

    def path_stats(self, path: str) -> Any:
        """Refuse, which keeps ``.pyc`` files out: those on disk are compiled from the unedited source."""
        raise OSError("an edited module has no bytecode cache")

    def source_to_code(self, data: Any, path: Any, **options: Any) -> Any:  # type: ignore[override]
        """Return the code object of the edited source."""
        try:
            edited = apply(self.name, data.decode("utf-8"))
        except ValueError as reason:
            raise self.error(f"{self.name} in {path} is not Chainer 7.8.1's: {reason}") from None
        return super().source_to_code(edited.encode("utf-8"), path, **options)

    def get_source(self, fullname: str) -> "str | None":
        """Return the edited source, which is what runs (lines are where they are on disk)."""
        source = super().get_source(fullname)
        return source and apply(self.name, source)


class PatchFinder(MetaPathFinder):
    """Answers for the modules of the table alone; every other import goes its usual way."""

    def __init__(self, error: Callable[[str], Exception]):
        self.error = error

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> "ModuleSpec | None":
        """The spec of a module that is patched, with a loader that patches it; None for all others."""
        if fullname not in PATCHES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        spec.loader = PatchedLoader(spec.loader.name, spec.loader.path, self.error)
        spec.cached = None
        return spec


def insert(error: Callable[[str], Exception]) -> None:
    """Put the finder in front of ``sys.meta_path``, once."""
    if not any(isinstance(finder, PatchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, PatchFinder(error))
