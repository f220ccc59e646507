"""``import`` in converted functions: modules of the user's are read through shadows, as those imported at file level."""
from __future__ import annotations

import builtins
import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence

from ..heap.shadows import ShadowDict
from ..record.paths import Constant, Item

if TYPE_CHECKING:
    from .capture import Capture


class Imports:
    """What ``import`` statements do in one capture.  `builtins` are the built-in names of converted functions."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._before = dict(vars(builtins))
        self.builtins: Dict[str, Any] = {**self._before, "__import__": self._import}

    def check(self) -> None:
        """Stop where built-in names were written, after putting them back: no program would write them again."""
        names = vars(builtins)
        if names == self._before and self.builtins == {**names, "__import__": self._import}:
            return
        for name in names.keys() - self._before.keys():
            del names[name]
        names.update(self._before)
        self.capture.abort("a built-in name is written", hint="keep it in a module of your own")

    def _import(self, name: str, names: Optional[dict] = None, local: Any = None, wanted: Optional[Sequence[str]] = (),
                level: int = 0) -> Any:
        """As ``__import__``; what is imported already is looked up, and guarded to stay what it is."""
        space = names.real if isinstance(names, ShadowDict) else names or {}
        try:
            full = importlib.util.resolve_name("." * level + name, space.get("__package__")) if level else name
        except (ImportError, ValueError):               # Python itself says what is wrong with it
            full = ""
        module = sys.modules.get(full)
        if module is None or any(not hasattr(module, item) for item in wanted or ()):
            self.capture.abort(f"module {full or name} is imported for the first time, or has not all that is imported from it",
                               again=True, hint="import it at the head of the file")
        found = vars(builtins)["__import__"](name, space, local, wanted, level)
        heap, key = self.capture.heap, full if wanted else full.partition(".")[0]
        return heap.shadow(found, heap.source(Item, heap.source(Constant, None, sys.modules), key))
