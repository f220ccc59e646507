"""Names in generated code: identifiers that nothing else has, and constants bound to readable ones."""
from __future__ import annotations

import builtins
import keyword
import re
from typing import Any, Collection, Dict, Tuple

import numpy as np

#: Names that a value must not have: the text uses them for what they mean in NumPy and Python.
_MEANINGFUL = frozenset(dir(np)) | frozenset(dir(builtins)) | frozenset(keyword.kwlist) | {"np", "arena"}

#: NumPy as it was imported: functions that have been replaced since may not take what these take.
_NUMPY = dict(vars(np))

_NOT_IN_NAMES, _NUMBERED = re.compile(r"\W"), re.compile(r"_\d+$")
_OF_NUMPY = re.compile(r"\bnp\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")


class Names:
    """Gives out names for one generated function and collects the objects that must be in its namespace."""

    def __init__(self, reserved: Collection[str] = ()):
        self.taken = set(reserved)
        self.namespace: Dict[str, Any] = {}
        self._bound: Dict[Tuple[str, int], str] = {}
        self._counts: Dict[str, int] = {}               # how far each base has got

    def fresh(self, hint: str) -> str:
        """An identifier close to the hint: ``h``, else ``h_1``, ``h_2``."""
        base = hint if hint.isidentifier() else _NOT_IN_NAMES.sub("_", hint) or "v"
        base = f"v{base}" if base[0].isdigit() or base.startswith("np_") else base
        name = base
        while name in self.taken or name in _MEANINGFUL:
            base = _NUMBERED.sub("", base) if name == base else base
            count = self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def bind(self, hint: str, value: Any) -> str:
        """The name under which this object is in the namespace of the code."""
        key = (hint, id(value))
        if key not in self._bound:
            self._bound[key] = self.fresh(hint)
            self.namespace[self._bound[key]] = value
        return self._bound[key]

    def numpy(self, code: str) -> str:
        """The code with short names for what it takes from NumPy: ``np.add(x, y)`` becomes ``add(x, y)``."""
        return _OF_NUMPY.sub(lambda found: self._short(found.group(1)), code) if "np." in code else code

    def _short(self, path: str) -> str:
        first, *rest = path.split(".")
        name = f"np_{first}" if hasattr(builtins, first) or keyword.iskeyword(first) else first
        if isinstance(_NUMPY[first], float):                   # nan, inf, pi
            name = f"np_{first}"
        self.namespace[name] = _NUMPY[first]
        self.taken.add(name)
        return ".".join([name, *rest])
