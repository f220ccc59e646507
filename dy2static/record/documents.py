"""Parts of a JSON document, which may hold anything: each is what it should be, or a `LoadError` says so."""
from __future__ import annotations

from typing import Any, Tuple

from ..errors import LoadError


def need(said: Any, kind: Any, what: str) -> Any:
    """The part of a document, if it is of this JSON type.  Raises `LoadError`."""
    if type(said) is not kind:
        raise LoadError(f"{what} should be {_WORDS[kind]}, and is {str(said)[:60]}")
    return said


def entry(document: Any, name: str, kind: Any, what: str = "the file") -> Any:
    """An entry of an object of a document.  Raises `LoadError` where it is missing or of another type."""
    if name not in need(document, dict, what):
        raise LoadError(f"{what} has no {name!r}")
    return need(document[name], kind, f"{name!r} of {what}")


def pair_of(said: Any) -> Tuple[Any, Any]:
    """Two parts of a document.  Raises `LoadError`."""
    if type(said) is not list or len(said) != 2:
        raise LoadError(f"{str(said)[:80]} is not a pair")
    return said[0], said[1]


_WORDS = {dict: "an object", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}
