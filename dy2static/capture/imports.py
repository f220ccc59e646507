"""``import`` and ``class`` in converted functions, which Python carries out by built-in names.

Modules of the user's are read through shadows, as those imported at file level.
"""
from __future__ import annotations

import builtins
import importlib.util
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Sequence

from ..heap.attributes import is_of_user
from ..heap.dict_shadows import ShadowDict
from ..heap.objects import real_class
from ..heap.ownership import is_library_class
from ..record.paths import Constant, Item

if TYPE_CHECKING:
    from .protocols import Capture


class Imports:
    """What these statements do in one capture.  `builtins` are the built-in names of converted functions."""

    def __init__(self, capture: Capture):
        self.capture = capture
        self._before = dict(vars(builtins))
        self._ours = {"__import__": self._import, "__build_class__": self._class}
        self.builtins: Dict[str, Any] = {**self._before, **self._ours}

    def check(self) -> None:
        """Stop where built-in names were written, after putting them back: no program would write them again."""
        names = vars(builtins)
        if names == self._before and self.builtins == {**names, **self._ours}:
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

    def _class(self, body: Callable, name: str, *bases: Any, metaclass: Any = None, **kwargs: Any) -> type:
        """As ``__build_class__``, where nothing of the user's watches classes being made."""
        self.check_bases(name, bases, metaclass)
        chosen = {} if metaclass is None else {"metaclass": metaclass}
        made: type = vars(builtins)["__build_class__"](body, name, *bases, **chosen, **kwargs)
        self.capture.heap.objects.open_classes.made(made)
        return made

    def check_bases(self, name: str, bases: Sequence[Any], metaclass: Any = None) -> None:
        """Stop where making a class runs code of the user's, which Python would call unseen."""
        for base in bases:
            hook = getattr(getattr(base, "__init_subclass__", None), "__func__", None)
            if is_of_user(hook) and hook.__code__ not in self.capture.calls.staged_codes:
                self.capture.abort(f"class {name} is derived from {base.__name__} inside the compiled function")
        for kind in (metaclass, *map(type, bases)):
            if isinstance(kind, type) and issubclass(kind, type) and not is_library_class(real_class(kind)):
                self.capture.abort(f"class {name} with the metaclass {kind.__name__} is made inside the compiled function")
