"""Guards: what a capture relied on.  One class for each, with its text, its description and its JSON."""
from typing import Dict, Tuple, Type

from .arrays import ArrayLayout, ArrayMatch, ContentsMatch, IndicesInRange, VariableMatch
from .base import Guard
from .joint import (
    DecimalsMatch,
    DefinitionsMatch,
    DistinctObjects,
    ErrorsNotRaised,
    ExpressionMatch,
    NoOverlap,
    PlainReports,
    SameMemory,
)
from .values import (
    AttributeAbsent,
    CellEmpty,
    EqualsMatch,
    IdentityMatch,
    ItemTypesMatch,
    KeyAbsent,
    KeysMatch,
    LengthMatch,
    LogOff,
    SameObject,
    TypeMatch,
)

__all__ = [
    "GUARDS", "SAVED_GUARDS", "Guard", "ArrayLayout", "ArrayMatch", "AttributeAbsent", "CellEmpty", "ContentsMatch",
    "DecimalsMatch", "DefinitionsMatch", "DistinctObjects", "EqualsMatch", "ErrorsNotRaised", "ExpressionMatch",
    "IdentityMatch", "IndicesInRange", "ItemTypesMatch", "KeyAbsent", "KeysMatch", "LengthMatch", "LogOff", "NoOverlap",
    "PlainReports", "SameMemory", "SameObject", "TypeMatch", "VariableMatch"]

GUARDS: Tuple[Type[Guard], ...] = (
    TypeMatch, IdentityMatch, EqualsMatch, LengthMatch, ItemTypesMatch, KeysMatch, KeyAbsent, AttributeAbsent, SameObject,
    CellEmpty, LogOff, ArrayMatch, VariableMatch, ArrayLayout, IndicesInRange, ContentsMatch, ExpressionMatch, DistinctObjects,
    NoOverlap, SameMemory, DecimalsMatch, DefinitionsMatch, PlainReports, ErrorsNotRaised)

#: Those that files may have, by what they call them.
SAVED_GUARDS: Dict[str, Type[Guard]] = {kind.word: kind for kind in GUARDS if kind.word}
