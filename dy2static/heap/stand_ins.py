"""Classes that stand for others: Python's messages, and texts that show a class, name those."""
from __future__ import annotations

from typing import Dict, Optional

_stand_ins: Dict[type, type] = {}


def stands_for(cls: type, real: type) -> None:
    """Let Python call a class what it calls the one that the class stands for."""
    _stand_ins[cls] = real
    cls.__name__ = name_in_messages(real)
    cls.__qualname__, cls.__module__ = real.__qualname__, real.__module__


def is_stand_in(cls: type) -> bool:
    """Whether a class stands for one of Python's, NumPy's or Chainer's."""
    return cls in _stand_ins


def stood_for(cls: type) -> Optional[type]:
    """The class that a class stands for; None if it stands for none."""
    return _stand_ins.get(cls)


def name_in_messages(cls: type) -> str:
    """What Python's messages call a class: with its module if it is written in C."""
    try:
        type.__getattribute__(cls, "-")
    except AttributeError as error:
        return str(error).split("'")[1]
    return cls.__name__
