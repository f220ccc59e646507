"""Paths as tuples, which are equal in different captures, and what stands among them for expressions and families."""
from __future__ import annotations

import re
from typing import Callable, FrozenSet, Iterable, Mapping, Optional, Tuple

from .base import Source
from .steps import Argument, ArrayOfSize, InstanceDict, Item, Slots

_NAME = re.compile(r"\b(n\d+)\b")                      # of a number, in an expression


def with_siblings(path: Tuple) -> Tuple:
    """What is the same for the paths of all items of one list or tuple; the path itself where it is to something else."""
    return (path[0], None, *path[2:]) if len(path) > 2 and type(path[1]) is int else path


def contents_path(path: Tuple) -> Tuple:
    """What stands among paths for all that a list at the end of a path holds, however much that is."""
    return ("contents", None, *path)


def size_path(path: Tuple) -> Tuple:
    """What stands among paths for a number as a size of arrays."""
    return (ArrayOfSize.word, None, *path)


def is_of_size(path: Tuple) -> bool:
    """Whether a path is that of a number as a size of arrays."""
    return bool(path[0] == ArrayOfSize.word)


def expression_path(text: str, named: Iterable[Tuple[str, Source]]) -> Tuple:
    """What stands among paths for an expression over numbers, in every capture of a function; the path of a number itself.

    named: the numbers that the expression names, and others, with their sources.  Of paths to items, those of all siblings.
    """
    return _of_expression(text, named, with_siblings)


def place_of_expression(text: str, named: Iterable[Tuple[str, Source]]) -> Tuple:
    """The same with the paths of the numbers themselves."""
    return _of_expression(text, named, lambda path: path)


def _of_expression(text: str, named: Iterable[Tuple[str, Source]], form: Callable[[Tuple], Tuple]) -> Tuple:
    split = _NAME.split(text)
    names = set(split[1::2])
    paths = {name: form(source.path()) for name, source in named if name in names}
    parts = tuple([paths.get(part, part) for part in split])
    return parts[1] if len(parts) == 3 and parts[::2] == ("", "") and type(parts[1]) is tuple else ("expression", *parts)


def paths_of(path: Tuple) -> FrozenSet[Tuple]:
    """The paths of the numbers of an expression; the path itself where it is that of a number."""
    return frozenset([part for part in path if type(part) is tuple]) if path[0] == "expression" else frozenset((path,))


def family(path: Tuple) -> Tuple:
    """What is the same for the paths of all values at this place in the items of lists and tuples: ``batch[...].reward``."""
    if path[0] == "expression":
        return tuple([family(part) if type(part) is tuple else part for part in path])
    if int not in map(type, path[1::2]):
        return path                                     # through no item of a sequence
    steps = zip(path[::2], path[1::2])
    return tuple([part for word, key in steps for part in (word, ... if word == Item.word and type(key) is int else key)])


def is_nested(path: Tuple) -> bool:
    """Whether this is an attribute of an object that an object of an argument keeps: ``tree.left.word``."""
    return path[-2] == Argument.word and sum([word in (InstanceDict.word, Slots.word) for word in path[::2]]) > 1


def joined(first: Tuple, second: Tuple) -> Tuple:
    """A path with ``...`` where two of one family differ."""
    return tuple([a if a == b else joined(a, b) if type(a) is tuple else ... for a, b in zip(first, second)])


def stands_for(pattern: Tuple, path: Tuple) -> bool:
    """Whether a path with ``...`` in it stands for another one."""
    return len(pattern) == len(path) and all(
        a is ... or a == b or type(a) is type(b) is tuple and stands_for(a, b) for a, b in zip(pattern, path))


def of_argument(path: Tuple, numbers: Mapping[int, int]) -> Optional[Tuple]:
    """A path, or what stands for an expression, that begins with another argument; None if there is none.

    numbers: of that argument, by that of the one with which it begins.
    """
    if path[0] == "expression":
        parts = tuple([of_argument(part, numbers) if type(part) is tuple else part for part in path])
        return None if None in parts else parts
    return (*path[:-1], numbers[path[-1]]) if path[-2] == Argument.word and path[-1] in numbers else None
