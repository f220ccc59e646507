"""The patterns of ``match``, as objects: converted code builds one and asks it for a subject.

A pattern gives the test, which is symbolic where the subject is, and the values of its names in the order of the
source.  How tests are joined is told from outside: nothing here knows of a capture.
"""
from __future__ import annotations

import collections.abc
from typing import Any, Callable, NamedTuple, Sequence, Tuple


class Ways(NamedTuple):
    """The tests that patterns use: functions of `_dy`, which leave symbolic values to the capture."""

    all_of: Callable[..., Any]
    if_exp: Callable[..., Any]
    is_: Callable[[Any, Any], Any]
    call: Callable[[Callable], Callable]


Matched = Tuple[Any, Tuple[Any, ...]]


class Pattern:
    """Base of all patterns.  ``count`` is how many names one binds."""

    count = 0

    def match(self, subject: Any, ways: Ways) -> Matched:
        """Whether the subject matches, and what the names are then."""
        raise NotImplementedError

    def failed(self) -> Matched:
        """No match: all names that the pattern binds are None."""
        return False, (None,) * self.count


def _in_order(steps: Sequence[Tuple[Pattern, Callable[[], Any]]], ways: Ways) -> Matched:
    """Match several patterns in order, as long as they match."""
    found: list = []

    def ask(number: int) -> Any:
        pattern, subject = steps[number]
        test, names = pattern.match(subject(), ways)
        found.append(names)
        return test
    if not steps:
        return True, ()
    test = ways.all_of(ask(0), *[lambda number=number: ask(number) for number in range(1, len(steps))])
    if len(found) < len(steps):
        found += [(None,) * pattern.count for pattern, _ in steps[len(found):]]
    return test, tuple(name for names in found for name in names)


class Value(Pattern):
    """``case 1`` and ``case Color.RED``."""

    def __init__(self, value: Callable[[], Any]):
        self.value = value

    def match(self, subject: Any, ways: Ways) -> Matched:
        return subject == self.value(), ()


class Same(Pattern):
    """``case None``, ``case True`` and ``case False``."""

    def __init__(self, value: Any):
        self.value = value

    def match(self, subject: Any, ways: Ways) -> Matched:
        return ways.is_(subject, self.value), ()


class Anything(Pattern):
    """``case _``."""

    def match(self, subject: Any, ways: Ways) -> Matched:
        return True, ()


_ANYTHING = Anything()


class Name(Pattern):
    """``case x`` and ``case pattern as x``."""

    def __init__(self, pattern: Pattern = _ANYTHING):
        self.pattern, self.count = pattern, pattern.count + 1

    def match(self, subject: Any, ways: Ways) -> Matched:
        test, names = self.pattern.match(subject, ways)
        return test, (*names, subject)


class Rest(Pattern):
    """``*names``, or ``*_`` if ``count`` is 0, in a sequence."""

    def __init__(self, count: int = 1):
        self.count = count

    def match(self, subject: Any, ways: Ways) -> Matched:
        return True, (list(subject),) * self.count


class Sequence_(Pattern):
    """``case [first, *rest]``."""

    def __init__(self, *patterns: Pattern):
        self.patterns = patterns
        self.count = sum(pattern.count for pattern in patterns)

    def match(self, subject: Any, ways: Ways) -> Matched:
        if not isinstance(subject, collections.abc.Sequence) or isinstance(subject, (str, bytes, bytearray)):
            return self.failed()
        size, needed = ways.call(len)(subject), len(self.patterns)
        star = next((i for i, pattern in enumerate(self.patterns) if type(pattern) is Rest), None)
        if (size != needed) if star is None else (size < needed - 1):
            return self.failed()
        after = needed if star is None else needed - 1 - star
        places: list = list(range(needed))
        if star is not None:
            places = [*range(star), None, *range(size - after, size)]
        return _in_order(
            [(pattern, (lambda place=place: subject[place]) if place is not None
              else lambda: [subject[i] for i in range(star, size - after)])
             for pattern, place in zip(self.patterns, places)], ways)


class Mapping(Pattern):
    """``case {"a": pattern, **rest}``."""

    def __init__(self, keys: Callable[[], Tuple[Any, ...]], *patterns: Pattern, rest: bool = False):
        self.keys, self.patterns, self.rest = keys, patterns, rest
        self.count = sum(pattern.count for pattern in patterns) + rest

    def match(self, subject: Any, ways: Ways) -> Matched:
        if not isinstance(subject, collections.abc.Mapping) or len(subject) < len(self.patterns):
            return self.failed()
        keys, missing = self.keys(), object()
        seen: set = set()
        for key in keys:
            if key in seen:
                raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
            seen.add(key)
        values = [subject.get(key, missing) for key in keys]
        if any(value is missing for value in values):
            return self.failed()
        test, names = _in_order([(pattern, lambda value=value: value) for pattern, value in zip(self.patterns, values)], ways)
        if self.rest:
            names += ({key: value for key, value in dict(subject).items() if key not in seen},)
        return test, names


class Instance(Pattern):
    """``case Point(0, y=1)``."""

    #: What stands for itself in ``case int(x)``.
    _ITSELF = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)

    def __init__(self, cls: Callable[[], Any], *patterns: Pattern, **named: Pattern):
        self.cls, self.patterns, self.named = cls, patterns, named
        self.count = sum(pattern.count for pattern in (*patterns, *named.values()))

    def match(self, subject: Any, ways: Ways) -> Matched:
        cls = self.cls()
        if not isinstance(cls, type):
            raise TypeError("called match pattern must be a class")
        if not ways.call(isinstance)(subject, cls):
            return self.failed()
        steps, attributes, positions = [], list(self.named), self.patterns
        if positions and not hasattr(cls, "__match_args__") and issubclass(cls, self._ITSELF):
            if len(positions) > 1:
                raise TypeError(f"{cls.__name__}() accepts 1 positional sub-pattern ({len(positions)} given)")
            steps, positions = [(positions[0], lambda: subject)], ()
        elif positions:
            attributes = self._positional(cls) + attributes
        if len(set(attributes)) < len(attributes):
            again = next(name for i, name in enumerate(attributes) if name in attributes[:i])
            raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {again!r}")
        missing = object()
        values = []
        for name in attributes:
            values.append(getattr(subject, name, missing))
            if values[-1] is missing:
                return self.failed()
        steps += [(pattern, lambda value=value: value) for pattern, value in zip((*positions, *self.named.values()), values)]
        return _in_order(steps, ways)

    def _positional(self, cls: type) -> list:
        names = getattr(cls, "__match_args__", ())
        if type(names) is not tuple:
            raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {type(names).__name__})")
        if len(self.patterns) > len(names):
            plural = "" if len(names) == 1 else "s"
            raise TypeError(f"{cls.__name__}() accepts {len(names)} positional sub-pattern{plural} ({len(self.patterns)} given)")
        return list(names[:len(self.patterns)])


class Either(Pattern):
    """``case 1 | 2``.  order: per alternative, where its names stand among those of the first."""

    def __init__(self, *patterns: Pattern, order: Tuple[Tuple[int, ...], ...] = ()):
        self.patterns, self.order = patterns, order
        self.count = patterns[0].count

    def match(self, subject: Any, ways: Ways) -> Matched:
        return self._from(0, subject, ways)

    def _from(self, number: int, subject: Any, ways: Ways) -> Matched:
        test, names = self.patterns[number].match(subject, ways)
        if self.order:
            names = tuple(names[place] for place in self.order[number])
        if number + 1 == len(self.patterns):
            return test, names
        found = ways.if_exp(test, lambda: (True, *names), lambda: _flat(self._from(number + 1, subject, ways)))
        return found[0], found[1:]


def _flat(matched: Matched) -> Tuple[Any, ...]:
    return (matched[0], *matched[1])
