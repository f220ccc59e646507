"""What can change in an object: read, compared and put back without running code of the user's."""
from __future__ import annotations

import collections
import operator
import types
from typing import Any, Dict, List, Optional, Tuple

import chainer

from ..heap.dict_shadows import ShadowDict
from ..heap.object_shadows import ShadowBase
from ..heap.ownership import is_library_class
from ..heap.stand_ins import is_stand_in
from ..record.paths import Namespace
from .kept_gradients import KeptGradient
from .kinds import ABSENT
from .lists import StagedList
from .memories import Memory
from .values import is_symbolic

#: Libraries whose objects are changed in ways of their own; those of Python's library are what their attributes are.
_CALLED_WHOLE = frozenset(("chainer", "chainerx", "cupy", "dy2static", "numpy"))


def container_of(item: Any) -> Any:
    """The container of what can change in an object; None for what cannot."""
    if is_symbolic(item) or isinstance(item, (type, types.ModuleType, chainer.FunctionNode, types.FunctionType, types.MethodType)):
        return None                                     # the `__dict__` of a method is that of its function
    if isinstance(item, (list, dict, set, types.CellType)):
        return item
    if isinstance(item, ShadowBase):
        return object.__getattribute__(item, "__dict__")
    cls = type(item)
    is_whole = is_library_class(cls) and cls.__module__.partition(".")[0] in _CALLED_WHOLE
    if not is_whole and isinstance(getattr(item, "__dict__", None), dict):
        return item.__dict__
    return None


def is_iterator(item: Any) -> bool:
    """Whether this is an iterator of Python's, which cannot be put back."""
    cls = type(item)
    if is_stand_in(cls):
        return False                                    # one of them refuses `next`
    return cls.__name__ == "Elements" or cls.__module__ in ("builtins", "itertools") and hasattr(cls, "__next__")


def insides_of(item: Any) -> Optional[List[Any]]:
    """What changes in an object beside its `container_of`: slots, items of a deque, attributes of a list of one's own."""
    if isinstance(item, (collections.deque, bytearray)):
        return list(item)
    if isinstance(item, BaseException):
        return [*item.args, item.__cause__, item.__context__]
    if isinstance(item, type):
        return None
    cls = type(item)
    if is_library_class(cls) or is_symbolic(item) or isinstance(item, (ShadowBase, types.ModuleType, chainer.FunctionNode)):
        return None
    found = [getattr(item, name, None) for base in cls.__mro__ for name in _slots(base)]
    return found + list(item.__dict__.values()) if isinstance(item, (list, dict, set)) and hasattr(item, "__dict__") else \
        found or None


def _slots(cls: type) -> Tuple[str, ...]:
    """The names of the slots that a class adds."""
    return tuple(name for name, kind in cls.__dict__.items() if type(kind) is types.MemberDescriptorType)


def contents_of(item: Any) -> Any:
    """A copy of the contents, read without loading anything."""
    if isinstance(item, list):
        if type(item) is StagedList:
            item.settle()
        return list.copy(item)
    if isinstance(item, dict):
        if _has_own_order(item):
            return {key: dict.__getitem__(item, key) for key in collections.OrderedDict.__iter__(item)}
        return dict(dict.items(item))
    if isinstance(item, set):
        return set(item)
    if isinstance(item, Memory):
        return item.contents
    if isinstance(item, KeptGradient):
        return item.gradient
    try:
        return item.cell_contents
    except ValueError:
        return ABSENT


def assign(item: Any, contents: Any) -> None:
    """Put these contents into a container, in place of what it has."""
    if isinstance(item, list):
        list.clear(item)
        list.extend(item, contents)
    elif isinstance(item, dict):
        _assign_items(item, contents)
    elif isinstance(item, set):
        set.clear(item)
        set.update(item, contents)
    elif isinstance(item, Memory):
        item.contents = contents
    elif isinstance(item, KeptGradient):
        item.gradient = contents
    elif contents is not ABSENT:
        item.cell_contents = contents
    elif contents_of(item) is not ABSENT:
        del item.cell_contents


def _assign_items(item: dict, contents: Dict) -> None:
    """Let a dict have these items.  Keys keep their places where that is possible: a loop may be on its way through them."""
    for key in [key for key in contents_of(item) if key not in contents]:
        assign_key(item, key, ABSENT)
    if not all(map(operator.is_, [*contents_of(item), ABSENT], [*contents, ABSENT])):
        (collections.OrderedDict if _has_own_order(item) else dict).clear(item)
    for key, value in contents.items():
        assign_key(item, key, value)


def assign_key(item: dict, key: Any, value: Any) -> None:
    """Set the item of a dict; delete it if the value is `ABSENT`."""
    kind = collections.OrderedDict if _has_own_order(item) else dict
    if value is not ABSENT:
        kind.__setitem__(item, key, value)
    elif dict.__contains__(item, key):
        kind.__delitem__(item, key)


def _has_own_order(item: dict) -> bool:
    """Whether this is an OrderedDict: its order is not that in which a dict holds its items."""
    return issubclass(type(item), collections.OrderedDict) and not isinstance(item, ShadowDict)


def same(now: Any, before: Any) -> bool:
    """Whether contents are the same objects in the same places."""
    if now is before:
        return True
    if type(now) is StagedList:
        return False                                    # what a cell holds
    if isinstance(now, dict):
        return list(now) == list(before) and all(now[k] is before[k] for k in now)
    if isinstance(now, list):
        return len(now) == len(before) and all(a is b for a, b in zip(now, before))
    return now == before if isinstance(now, set) else now is before


def is_reordered(item: dict, now: Dict, before: Dict, dropped: int) -> bool:
    """Whether keys of a dict have changed their order, and not only come and gone.

    dropped: of a shadow, how many of `ShadowDict.dropped` come from before.
    """
    if isinstance(item, ShadowDict):
        return any(key in now for key in item.dropped[dropped:])
    stay = [key for key in before if key in now]
    return list(now)[:len(stay)] != stay


def is_namespace(item: dict) -> bool:
    """Whether a shadow is one of attributes, whose order hardly anything sees."""
    return isinstance(item, ShadowDict) and isinstance(item.source, Namespace)
