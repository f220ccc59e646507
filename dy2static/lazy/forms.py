"""What a call of the user's is in an expression: its form, found by one look into a dict, and its operands."""
from __future__ import annotations

import sys
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from .arrays import LazyArray
from .calls import CONSTANTS, Call, Constant, Group, Hole
from .nodes import NUMBERS, Node, leaf
from .ownership import owned

_HOLE = Hole()
_known: Dict[Any, Call] = {}

#: So many forms are kept; then they are forgotten, and what is built later is compiled again.
MOST_FORMS = 4096


class Unsupported(Exception):
    """An argument that no expression holds."""


class Index(NamedTuple):
    """An index as an argument.  Its whole numbers are operands: they may vary from call to call."""

    index: Any


def operand(item: Any) -> Any:
    """What stands for a value in an expression: a node or a number; None of what cannot."""
    if type(item) is LazyArray:
        return item._now
    if type(item) in NUMBERS:
        return item
    if isinstance(item, np.generic):
        return leaf(item)
    if type(item) is np.ndarray:
        return leaf(owned(item, None, sys.maxsize))
    if isinstance(item, np.ma.MaskedArray):
        return None
    if isinstance(item, (np.ndarray, list, tuple)):
        return leaf(np.array(item))
    return None


def call_of(target: Any, args: Tuple, kwargs: Dict[str, Any], is_method: bool = False) -> Tuple[Call, Tuple[Any, ...]]:
    """The form of a call and its operands: nodes and numbers.

    Raises `Unsupported` where an argument can be in no expression.
    """
    operands: List[Any] = []
    key: List[Any] = [target, is_method]                # what tells forms apart: None for an operand, class and value of a constant
    for item in args:
        kind = type(item)
        if kind is LazyArray:
            operands.append(item._node if item._view is None else item._now)
            key.append(None)
        elif kind in CONSTANTS:
            key.append(kind)
            key.append(item)
        else:
            key.append(_key(item, operands))
    if kwargs:
        for name, item in kwargs.items():
            key.append(name)
            kind = type(item)
            if kind in CONSTANTS:
                key.append(kind)
                key.append(item)
            else:
                key.append(_key(item, operands))
    form = tuple(key)
    found = _known.get(form)
    if found is None:
        found = _made(form, target, args, kwargs, is_method)
    return found, tuple(operands)


def _made(key: Any, target: Any, args: Tuple, kwargs: Dict[str, Any], is_method: bool) -> Call:
    """The call of a form that is new."""
    rest: List[Any] = []
    form = _form(args, rest), _form(kwargs, rest)
    if len(_known) >= MOST_FORMS:
        _known.clear()
    return _known.setdefault(key, Call(target, *form, is_method, len(rest)))


def _key(item: Any, operands: List[Any]) -> Any:
    """What tells the forms of an argument from others, quickly made; None for an operand.  Raises `Unsupported`."""
    kind = type(item)
    if kind is LazyArray:
        operands.append(item._node if item._view is None else item._now)
        return None
    if kind is type:
        return kind, item
    if kind is float or kind is complex or kind is Node:
        operands.append(item)
        return None
    if kind in CONSTANTS:
        return kind, item
    if kind is tuple or kind is list:
        return (kind, *[_key(part, operands) for part in item])
    if kind is Index:
        return _index_key(item.index, operands)
    if kind is dict:
        return (kind, *item, *[_key(part, operands) for part in item.values()])
    if kind is slice:
        return slice, _key(item.start, operands), _key(item.stop, operands), _key(item.step, operands)
    before = len(operands)
    form = _form(item, operands)
    return None if len(operands) > before else form


def _index_key(item: Any, operands: List[Any]) -> Any:
    kind = type(item)
    if kind is int:
        operands.append(item)
        return None
    if kind is tuple:
        return (kind, *[_index_key(part, operands) for part in item])
    if kind is slice:
        return (kind, *[_index_key(bound, operands) for bound in (item.start, item.stop, item.step)])
    return _key(item, operands)


def _form(item: Any, operands: List[Any]) -> Any:
    kind = type(item)
    if kind is LazyArray:
        operands.append(item._now)
        return _HOLE
    if kind in CONSTANTS:
        return Constant(kind, item)
    if kind is Index:
        return _index_form(item.index, operands)
    if kind is float or kind is complex or kind is Node:
        operands.append(item)
        return _HOLE
    if isinstance(item, np.generic):
        operands.append(leaf(item))
        return _HOLE
    if kind is np.ndarray:
        operands.append(leaf(owned(item, None, sys.maxsize)))
        return _HOLE
    if kind in (tuple, list):
        return Group(kind, tuple([_form(part, operands) for part in item]))
    if kind is dict:
        return Group(dict, tuple([_form(part, operands) for part in item.values()]), tuple(item))
    if kind is slice:
        return Group(slice, tuple([_form(part, operands) for part in (item.start, item.stop, item.step)]))
    if isinstance(item, (np.dtype, type, np.ufunc)):
        return Constant(kind, item)
    raise Unsupported(f"{kind.__name__} as an argument")


def _index_form(item: Any, operands: List[Any]) -> Any:
    if type(item) is int:
        operands.append(item)
        return _HOLE
    if type(item) is tuple:
        return Group(tuple, tuple([_index_form(part, operands) for part in item]))
    if type(item) is slice:
        return Group(slice, tuple([_index_form(part, operands) for part in (item.start, item.stop, item.step)]))
    return _form(item, operands)
