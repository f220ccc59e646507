"""How results are made that no literal makes: instances of the user's classes, arrays of Variables."""
from __future__ import annotations

import operator
from typing import Any, Dict, Mapping

array_of = operator.attrgetter("array")


def make_instance(cls: type, attributes: Mapping[str, Any]) -> Any:
    """An instance with these attributes, without its ``__init__``."""
    made = object.__new__(cls)
    made.__dict__.update(attributes)
    return made


def make_of(cls: type, base: type, contents: Any, attributes: Dict[str, Any]) -> Any:
    """An instance of a user's class with slots or a base of Python's, without its ``__init__``."""
    made = base.__new__(cls)
    if base is not object:
        (base.extend if base is list else base.update)(made, contents)      # type: ignore[attr-defined]
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made
