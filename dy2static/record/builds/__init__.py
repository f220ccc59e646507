"""Builds: how to make what a call gives back or stores.  One class for each kind, with its text and its JSON."""
from typing import Dict, Tuple, Type

from .base import Build, BuildsIn, BuildsOut, EntryWriter, Values, walk
from .objects import Again, Call, Cycle, DictOf, Fillable, ListOf, Method, ObjectOf, Partial, SetOf, TupleOf
from .values import Choice, Const, FromSource, FromValue, FromVariable, Number

__all__ = [
    "BUILDS", "SAVED_BUILDS", "Build", "BuildsIn", "BuildsOut", "EntryWriter", "Values", "walk", "Again", "Call", "Choice",
    "Const", "Cycle", "DictOf", "Fillable", "FromSource", "FromValue", "FromVariable", "ListOf", "Method", "Number", "ObjectOf",
    "Partial", "SetOf", "TupleOf"]

BUILDS: Tuple[Type[Build], ...] = (
    Const, FromSource, FromValue, FromVariable, Number, Choice, TupleOf, ListOf, DictOf, SetOf, ObjectOf, Method, Partial, Call,
    Cycle, Again)

#: Those that files may have, by what they call them.
SAVED_BUILDS: Dict[str, Type[Build]] = {kind.word: kind for kind in BUILDS if kind not in (ObjectOf, Method, Partial)}
