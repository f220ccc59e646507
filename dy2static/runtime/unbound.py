"""What stands for the value of a name that is unbound."""
from __future__ import annotations


class Undefined:
    """Stands for a local name that is not bound yet; raises only when it is read."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"<unbound {self.name}>"


class Unbound:
    """Stands for a local name without a value where names pass between the parts of a function; the class itself is the value."""
