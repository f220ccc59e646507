"""Paths: how every later call finds a value again that a capture has read."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple, Type

from .base import GuardWriter, Namespace, Source, TableWriter
from .forms import (
    contents_path,
    expression_path,
    family,
    is_nested,
    is_of_size,
    joined,
    of_argument,
    paths_of,
    place_of_expression,
    size_path,
    stands_for,
    with_siblings,
)
from .steps import (
    SAVED_STEPS,
    Argument,
    ArrayOfList,
    ArrayOfSize,
    Attribute,
    BareItems,
    CellContents,
    ClassNamespace,
    Constant,
    Implementation,
    InstanceDict,
    Item,
    Keyword,
    Length,
    Referent,
    RuleState,
    Shown,
    Slots,
    shown_by,
)

__all__ = [
    "SAVED_STEPS", "Argument", "ArrayOfList", "ArrayOfSize", "Attribute", "BareItems", "CellContents", "ClassNamespace", "Constant",
    "GuardWriter", "Implementation", "InstanceDict", "Item", "Keyword", "Length", "Namespace", "Referent", "RuleState", "Shown",
    "Slots", "Source", "Sources", "TableWriter", "contents_path", "expression_path", "family", "follow", "is_nested", "is_of_size",
    "joined", "of_argument", "paths_of", "place_of_expression", "shown_by", "size_path", "stands_for", "with_siblings"]


class Sources:
    """Interns the steps of one capture."""

    def __init__(self) -> None:
        self._known: Dict[Tuple, Source] = {}

    def get(self, step: Type[Source], parent: Optional[Source], key: Any = None) -> Source:
        """The step of this class."""
        ident = (step, parent, id(key) if step is Constant else (type(key), key))
        found = self._known.get(ident)
        if found is None:
            found = self._known[ident] = step(parent, key, len(self._known))
        return found


def follow(source: Source, start: Callable[[Source], Any]) -> Any:
    """What is at the end of a path now.  Raises what Python raises where there is nothing.

    start: gives the argument that a path begins with.
    """
    if source.parent is None:
        return source.key if isinstance(source, Constant) else start(source)
    return source.read(follow(source.parent, start))
