"""Where a captured value was read from: the path by which every later call finds it again, and what was relied on."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Tuple


class Source:
    """One step of a path: ``kind`` says how the value is got from ``parent``.

    kinds: "arg" (key: position), "kwarg" (key: name), "const" (key: the object itself), "dict" (the ``__dict__`` of
    the parent), "slots" (its slots, and its ``__dict__`` if it has one; as a mapping), "item" (``parent[key]``),
    "cell" (contents of a closure cell), "class" (``getattr(type(parent), key)``), "attr" (``getattr(parent, key)`` of a
    class or module), "len" (of the parent), "keys" (all keys of the parent, in order).
    Interned by `Sources`, so identity is equality.
    """

    __slots__ = ("kind", "parent", "key", "number")

    def __init__(self, kind: str, parent: Optional["Source"], key: Any, number: int):
        self.kind, self.parent, self.key, self.number = kind, parent, key, number

    def describe(self) -> str:
        """The path as a reader would write it: ``self.l1.W``, ``xs[0]``, ``global SCALE``."""
        above = "" if self.parent is None else self.parent.describe()
        if self.kind == "arg":
            return f"argument {self.key}"
        if self.kind == "kwarg":
            return f"argument {self.key}"
        if self.kind == "const":
            return getattr(self.key, "__name__", type(self.key).__name__)
        if self.kind == "item" and self.parent is not None and self.parent.kind in ("dict", "slots"):
            return f"{self.parent.parent.describe()}.{self.key}"
        if self.kind == "item":
            return f"{above}[{self.key!r}]"
        if self.kind in ("class", "attr"):
            return f"{above}.{self.key}"
        return {"len": f"len({above})", "dict": f"vars({above})", "slots": f"slots of {above}", "cell": above,
                "keys": f"keys of {above}"}[self.kind]

    def path(self) -> Tuple:
        """A hashable form that is equal for equal paths of different captures."""
        key = id(self.key) if self.kind == "const" else self.key
        return (self.kind, key) + (() if self.parent is None else self.parent.path())


class Sources:
    """Interns sources."""

    def __init__(self) -> None:
        self._known: dict = {}

    def get(self, kind: str, parent: Optional[Source], key: Any = None) -> Source:
        """The source of this step."""
        ident = (kind, parent, id(key) if kind == "const" else (type(key), key))
        found = self._known.get(ident)
        if found is None:
            found = self._known[ident] = Source(kind, parent, key, len(self._known))
        return found


@dataclass(frozen=True, eq=False)
class Guard:
    """Something a capture relied on, checked before every run of its program.

    test: "type" (``type(v) is expected``), "is", "eq" (same type and equal), "len", "keys" (all keys, in order),
    "absent" (``expected not in v``), "lacks" (no attribute of this name), "array" (expected: shape and
    dtype), "variable" (expected: type, requires_grad,
    shape, dtype), "same" (expected: another source), "distinct" (source None; expected: sources whose objects all
    differ), "expr" (expected: text over bound numbers, and its value), "unbound" (an empty closure cell),
    "range" (of an array of ints: the least element there may be, and the first there may not be),
    "apart" (source None; expected: sources of arrays that are written, and of others, which share no memory with them),
    "definitions" (source None; expected: `Definitions`, of classes and library functions),
    "reports" (source None; expected: sources of objects whose reports a reporter of Chainer's own takes, or none).
    """

    source: Optional[Source]
    test: str
    expected: Any = None

    def describe(self) -> str:
        """For ``why did it recompile``: what was expected of which value."""
        if self.test == "distinct":
            return "objects that were different are now one"
        if self.test == "apart":
            return "an array that is written shares memory with another one, or is read-only"
        if self.test == "definitions":
            return self.expected.difference() or "a class or a function of a library was replaced"
        if self.test == "reports":
            return "the current reporter is one of the user's, or does not know an object that reports"
        if self.test == "expr":
            return f"{self.expected[0]} == {self.expected[1]!r}"
        where = self.source.describe()
        if self.test == "same":
            return f"{where} is {self.expected.describe()}"
        if self.test == "variable":
            kind, requires_grad, shape, dtype = self.expected
            return f"{where}: {kind.__name__} {shape} {dtype} requires_grad={requires_grad}"
        if self.test == "range":
            return f"{where}: indices in range({self.expected[0]}, {self.expected[1]})"
        if self.test == "array":
            return f"{where}: ndarray {self.expected[0]} {self.expected[1]}"
        words = {"type": "has type", "is": "is", "eq": "==", "len": "has length", "keys": "has keys",
                 "absent": "has no", "lacks": "lacks", "unbound": "is unbound"}
        expected = getattr(self.expected, "__name__", None) or repr(self.expected)
        return f"{where} {words[self.test]} {expected}"
