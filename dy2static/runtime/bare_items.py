"""The items of a dict or list whose class has its own ways to them: as the base class reads and writes them."""
from __future__ import annotations

from typing import Any, Iterable, Iterator, MutableMapping, Union

#: What programs read and write items with.
_WAYS = ("__getitem__", "__setitem__", "__delitem__", "__iter__", "__len__", "__contains__")


def has_own_ways(cls: type, base: type) -> bool:
    """Whether a class that derives from ``base``, ``dict`` or ``list``, replaces what programs use."""
    return hasattr(cls, "__missing__") or any(getattr(cls, name) is not getattr(base, name) for name in _WAYS)


class BareDict(MutableMapping):
    """A dict."""

    __slots__ = ("item",)

    def __init__(self, item: dict):
        self.item = item

    def __getitem__(self, key: Any) -> Any:
        if not dict.__contains__(self.item, key):       # `dict.__getitem__` would ask `__missing__`
            raise KeyError(key)
        return dict.__getitem__(self.item, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        dict.__setitem__(self.item, key, value)

    def __delitem__(self, key: Any) -> None:
        dict.__delitem__(self.item, key)

    def __contains__(self, key: Any) -> bool:
        return dict.__contains__(self.item, key)

    def __iter__(self) -> Iterator[Any]:
        return dict.__iter__(self.item)

    def __len__(self) -> int:
        return dict.__len__(self.item)


class BareList:
    """A list."""

    __slots__ = ("item",)

    def __init__(self, item: list):
        self.item = item

    def __getitem__(self, key: Any) -> Any:
        return list.__getitem__(self.item, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        list.__setitem__(self.item, key, value)

    def __iter__(self) -> Iterator[Any]:
        return list.__iter__(self.item)

    def __len__(self) -> int:
        return list.__len__(self.item)

    def extend(self, items: Iterable[Any]) -> None:
        """Append items."""
        list.extend(self.item, items)


def bare_items(item: Union[dict, list]) -> Union[BareDict, BareList]:
    """The items of a dict or list."""
    return BareDict(item) if isinstance(item, dict) else BareList(item)
