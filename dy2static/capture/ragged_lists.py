"""Lists of sequences among the arguments: that their lengths differ from one another says at the first call that lengths vary."""
from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

import chainer
import numpy as np

#: Fewer sequences are arrays that happen to have different sizes.
_FEWEST = 3

#: How deep lists are looked for in one another.
_DEPTH = 3

#: The steps from a container to what is in it: keys, the first one first.
_Steps = Tuple[Any, ...]


class Member(NamedTuple):
    """One sequence of a list: the path of all of them, with None for the place, the lengths of all, and which of them it is.

    axes: those of that length: the first, and in square matrices (which nodes of a graph are neighbors) others.
    """

    family: Tuple
    lengths: Tuple[int, ...]
    place: int
    axes: Tuple[int, ...] = (0,)


def sequences_in(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Dict[Tuple, Member]:
    """The arrays in lists of arrays that are alike but for the length of their first axis, and of others as long, by their paths.

    The lists may stand in lists, tuples and dicts, and hold tuples of arrays: then the first of all tuples belong together, and so
    on.
    """
    found: Dict[Tuple, Member] = {}
    for path, item in [*((("arg", i), x) for i, x in enumerate(args)), *((("kwarg", name), x) for name, x in kwargs.items())]:
        _search(item, path, found, _DEPTH)
    return found


def _search(item: Any, path: Tuple, found: Dict[Tuple, Member], depth: int) -> None:
    keys = _keys(item)
    if depth == 0 or not len(keys):
        return
    if type(item) is not dict and len(item) >= _FEWEST:
        families: Dict[_Steps, List[np.ndarray]] = {}
        for part in item:
            for steps, array in _arrays(part, (), depth - 1):
                families.setdefault(steps, []).append(array)
        for steps, arrays in families.items():
            axes = _axes(arrays) if len(arrays) == len(item) else ()
            if axes:
                lengths = tuple([len(array) for array in arrays])
                for place in range(len(item)):
                    found[_path((place, *steps), path)] = Member(_path((None, *steps), path), lengths, place, axes)
    for key in keys:
        _search(item[key], ("item", key, *path), found, depth - 1)


def _keys(item: Any) -> Sequence[Any]:
    return list(item) if type(item) is dict else range(len(item)) if type(item) in (list, tuple) else ()


def _arrays(item: Any, steps: _Steps, depth: int) -> Iterator[Tuple[_Steps, np.ndarray]]:
    array = item.array if isinstance(item, chainer.Variable) else item
    if type(array) is np.ndarray:
        yield steps, array
    elif depth:
        for key in _keys(item):
            yield from _arrays(item[key], (*steps, key), depth - 1)


def _axes(arrays: Sequence[np.ndarray]) -> Tuple[int, ...]:
    """The axes along which each is as long as along the first, if they are of one length along all others; else none."""
    first = arrays[0]
    if not first.ndim or any((x.ndim, x.dtype) != (first.ndim, first.dtype) for x in arrays):
        return ()
    sizes = [tuple(each) for each in zip(*[x.shape for x in arrays])]
    axes = tuple([axis for axis, each in enumerate(sizes) if axis == 0 or each == sizes[0] and len(set(each)) > 1])
    return axes if all(axis in axes or len(set(each)) == 1 for axis, each in enumerate(sizes)) else ()


def _path(steps: _Steps, path: Tuple) -> Tuple:
    for key in steps:
        path = ("item", key, *path)
    return path
