"""Objects that only host calls can use, and their methods."""
from __future__ import annotations

from typing import Any, final

from ..capture_context import CaptureContext
from ..ir.graph import Value
from ..library_facts import python as python_facts
from ..library_facts.table import named
from ..record.paths import Attribute

#: Methods of texts that give a text.
GIVING_TEXT = named("text", python_facts.METHODS)

#: Properties of communicators of ChainerMN that are numbers for the life of the object: guards compare them.
_COMMUNICATORS = "chainermn.communicators."
_NUMBERS = ("rank", "size", "intra_rank", "intra_size", "inter_rank", "inter_size")


@final
class SymbolicObject:
    """Any other object: usable only by what runs on the host, at every call.

    real: the object in the call that is being captured; `Missing` for results of host calls.  is_text: it is a text, which others
    can be added to.
    """

    __slots__ = ("capture", "value", "real", "is_text")
    Missing = object()
    capture: CaptureContext
    value: Value
    real: Any
    is_text: bool

    def __init__(self, capture: CaptureContext, value: Value, real: Any = Missing, is_text: bool = False):
        for name, held in (("capture", capture), ("value", value), ("real", real), ("is_text", is_text)):
            object.__setattr__(self, name, held)

    def __setattr__(self, name: str, value: Any) -> None:
        self.capture.abort(f"attribute {name!r} of {self.describe()} is assigned", of_host=True)

    def __delattr__(self, name: str) -> None:
        self.capture.abort(f"attribute {name!r} of {self.describe()} is deleted", of_host=True)

    @property
    def __class__(self) -> type:
        return SymbolicObject if self.real is SymbolicObject.Missing else type(self.real)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        kind = type(self.real)
        if name in _NUMBERS and kind.__module__.startswith(_COMMUNICATORS) and isinstance(getattr(kind, name, None), property):
            place = self.capture.heap.source(Attribute, self.capture.inputs.source_of(self.value), name)
            return self.capture.heap.shadow(getattr(self.real, name), place)
        if self.real is not SymbolicObject.Missing and _lacks(self.real, name):
            self.capture.abort(f"attribute {name!r} of {self.describe()}, which has none, is read", of_host=True)
        if self.is_text and not hasattr(str, name):
            raise AttributeError(f"'str' object has no attribute {name!r}")
        return BoundHostMethod(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = "result" if self.real is SymbolicObject.Missing else type(self.real).__name__
        return self.capture.host.call(self, args, kwargs, name=name)

    def __getitem__(self, index: Any) -> Any:
        is_known = type(index) is slice and all(type(part) in (int, type(None)) for part in (index.start, index.stop, index.step))
        return self.capture.texts.part(self, index) if self.is_text and is_known else self._contents()

    def _contents(self, *_: Any) -> Any:
        self.capture.abort(f"the program depends on {self.describe()}, which is known at run time only", of_host=True)

    def __add__(self, other: Any) -> Any:
        return self.capture.texts.joined(self, other) if self.is_text and _is_text(other) else self._contents()

    def __radd__(self, other: Any) -> Any:
        return self.capture.texts.joined(other, self) if self.is_text and _is_text(other) else self._contents()

    def describe(self) -> str:
        """What it is, for messages."""
        if self.real is SymbolicObject.Missing:
            return "the result of a call that is not compiled"
        return f"an object of type {type(self.real).__name__}"

    def __enter__(self) -> Any:
        self.capture.abort(f"a `with` statement enters {self.describe()}", "move the block into a function with `not_to_static`",
                           of_host=True)

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = __next__ = __contains__ = _contents
    __setitem__ = __delitem__ = __str__ = __repr__ = __format__ = __exit__ = __hash__ = _contents
    __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __eq__ = __ne__ = _contents
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __pow__ = __rpow__ = __mod__ = __rmod__ = __array__ = _contents


def _lacks(real: Any, name: str) -> bool:
    """Whether an object has no attribute of this name; False where its class computes attributes."""
    kind = type(real)
    if kind.__getattribute__ is not object.__getattribute__ or hasattr(kind, "__getattr__") or hasattr(kind, name):
        return False
    return name not in getattr(real, "__dict__", ())


def _is_text(item: Any) -> bool:
    """Whether Python sees a text."""
    return type(item) is SymbolicObject and item.is_text or type(item) is not SymbolicObject and item.__class__ is str


class BoundHostMethod:
    """A method of a `SymbolicObject`: calling it is a host call."""

    __slots__ = ("owner", "method")

    def __init__(self, owner: SymbolicObject, name: str):
        self.owner, self.method = owner, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = self.owner.capture.host.call(self, args, kwargs, name=self.method)
        is_text = self.owner.is_text and self.method in GIVING_TEXT
        return SymbolicObject(self.owner.capture, made.value, is_text=True) if is_text else made

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_dy2static")):
            raise AttributeError(name)
        self.refuse()

    def refuse(self, *_: Any) -> Any:
        """Stop the capture: Python needs to know what the attribute is."""
        self.owner.capture.abort(f"attribute {self.method!r} of {self.owner.describe()} is read", of_host=True)

    __bool__ = __len__ = __iter__ = __getitem__ = __float__ = __int__ = __index__ = refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __array__ = refuse
    __str__ = __repr__ = __format__ = __contains__ = __setitem__ = __delitem__ = __next__ = __enter__ = __exit__ = refuse
    __pow__ = __rpow__ = __mod__ = __rmod__ = __neg__ = __matmul__ = __rmatmul__ = refuse
    __hash__ = None
