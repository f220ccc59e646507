"""What changes from call to call: numbers and texts, which become inputs, and what the warning about many captures names."""
from __future__ import annotations

import contextlib
import os
import re
import types
from typing import AbstractSet, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ..errors import Location
from ..heap.locations import definition
from ..heap.reads import place_of
from ..heap.wording import NUMBERS, TEXTS
from ..record.guards import (
    ArrayMatch,
    ContentsMatch,
    DistinctObjects,
    EqualsMatch,
    ExpressionMatch,
    Guard,
    IdentityMatch,
    KeyAbsent,
    KeysMatch,
    LengthMatch,
    SameObject,
    TypeMatch,
    VariableMatch,
)
from ..record.guards.base import PathGuard
from ..record.paths import (
    Argument,
    Source,
    contents_path,
    expression_path,
    family,
    follow,
    is_nested,
    joined,
    of_argument,
    paths_of,
    place_of_expression,
    size_path,
    with_siblings,
)
from ..runtime.program import Program

#: The most changes that a warning names, and the most characters of a value.
_MOST_TOLD, _LONGEST = 3, 60

#: What to do, by the guard that does not hold.
_SIZES = ("pad or sort the arrays so that fewer shapes come, give the sizes that differ as None in an `input_spec`, or compile a "
          "part of the function that has no such array")
_LENGTHS = "sort or pad the sequences so that fewer different lengths come together, or compile a part of the function without them"
_OBJECTS = "make the object once, outside, and change what it holds"
_VALUES = "keep what changes in every call out of the function, or where its value decides nothing"
_GROWING = "keep what grows out of the function, or give the function as many items in every call"
_KEYS = "keep what grows out of the function, and give it the same keys, in the same order, in every call"
_HINTS = {ArrayMatch: _SIZES, VariableMatch: _SIZES, ContentsMatch: _LENGTHS, IdentityMatch: _OBJECTS, TypeMatch: _OBJECTS,
          SameObject: _OBJECTS, DistinctObjects: _OBJECTS, LengthMatch: _GROWING, KeysMatch: _KEYS, KeyAbsent: _KEYS}


#: When so many numbers at one place in the items of a sequence have changed, all of them are inputs.
_FAMILY = 3

#: A list that has had so many lengths has another one in nearly every call.
_LENGTHS_OF_ONE = 3

#: So many places may be left to Python because what is read there differs in nearly every call.
_MOST_REFUSED = 16


class Varying(set):
    """The paths of numbers and texts that have been seen to change: inputs of later programs.

    Paths with ``...`` for the numbers of items stand for all values at one place in the items of lists and tuples: numbers, texts
    and truth values of which several have changed, and arrays and tuples that were one and are several now.

    texts: those of all but ints and floats, which cannot be inputs everywhere, and of lists of numbers that grow.
    fixed: paths of small arrays, numbers and expressions that are known in every program, whether they change or not.
    loose: those that are not to be known, and refused: what is not to be relied on (kinds of guards and paths), because there would
    be a program for nearly every call: captures stop there, and Python carries out these lines.  grown: lists that are longer or
    shorter in nearly every call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fixed: Set[Tuple] = set()
        self.loose: Set[Tuple] = set()
        self.refused: Set[Tuple] = set()
        self.grown: Set[Tuple] = set()
        self.texts: Set[Tuple] = set()
        self._lengths: Dict[Tuple, Set[int]] = {}
        self._needed: Set[Tuple] = set()                # those of them that cannot be inputs
        self._families: Dict[Tuple, Set[Tuple]] = {}
        self._places: Dict[Tuple, Tuple] = {}

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self.texts.clear()
        for learned in (self.fixed, self.loose, self.refused, self.grown):
            learned.clear()
        self._lengths.clear()
        self._needed.clear()
        self._families.clear()
        self._places.clear()

    def begin_with(self, other: "Varying", names: Sequence[str], own: Sequence[Optional[str]]) -> None:
        """Begin with what another part of the same function has learned.

        names: of its arguments.  own: of those of this one; None where the name may stand for something else there.
        """
        places = {number: own.index(name) for number, name in enumerate(names) if name in own}

        def moved(paths: AbstractSet[Tuple]) -> Iterator[Tuple]:
            return filter(None, [of_argument(path, places) for path in list(paths)])
        self.update(moved(other))
        self.texts.update(moved(other.texts))
        self.loose.update(moved(other.loose))
        self.grown.update(moved(other.grown))
        for kind, path in list(other.refused):
            self.refused.update([(kind, place) for place in moved({path})])

    def learned(self) -> Tuple[Set[Tuple], ...]:
        """What is relied on and what is not, for `restore`."""
        return set(self.fixed), set(self.loose), set(self.refused)

    def restore(self, learned: Tuple[Set[Tuple], ...]) -> None:
        """Rely again on what was relied on then."""
        fixed, self.loose, self.refused = learned
        self.fixed |= fixed

    def note(self, guards: Sequence[PathGuard]) -> None:
        """Note that the values of these guards have changed."""
        for guard in guards:
            path = guard.source.path()
            together = family(path)
            if isinstance(guard, LengthMatch):
                self._add(contents_path(path), list)
                continue
            if isinstance(guard, SameObject):
                self._add(together, object)
                continue
            members = self._families.setdefault(together, set())
            members.add(path)
            kind = type(guard.expected)
            if kind is not bool:                        # a single one tells two ways apart: each has its program
                self._add(path, kind)
            if together != path and len(members) >= _FAMILY:
                self._add(together, kind)

    def note_sizes(self, paths: Sequence[Tuple]) -> bool:
        """Note that Python needs the numbers at the ends of these paths, which have changed; False if that is known.

        Items of sequences are no sizes.
        """
        new = {size_path(path) for path in paths if family(path) == path} - self
        self.update(new)
        return bool(new)

    def _add(self, path: Tuple, kind: type) -> None:
        is_text = kind not in (int, float)
        if not is_text or path not in self._needed:
            self.add(path)
        if is_text and path in self:
            self.texts.add(path)

    def is_input(self, path: Tuple) -> bool:
        """Whether the number or text at the end of a path is an input of later programs."""
        return (path in self or family(path) in self) and with_siblings(path) not in self.fixed

    def refuse(self, guards: Sequence[Guard], named: Sequence[Tuple[str, Source]], is_last: bool, is_part: bool,
               contents: bool = False) -> bool:
        """Do not rely on what these guards are about; False if nothing can be done, or all of that has been done already.

        What was made known because it decides something is unknown again; then whole families of items.
        named: the numbers that guards of expressions name.  is_last: captures pause otherwise; so also what may come back, as
        numbers that are no items do.  is_part: also all numbers, and lengths of arguments, which are local names of the user's
        function.  contents: also contents of arrays, which may come back, as those of lengths do in the next epoch.
        """
        if len(self.refused) + len(self.loose) >= _MOST_REFUSED:
            return False
        known = self.fixed.intersection([_fixed_by(guard, named) for guard in guards
                                         if contents or not isinstance(guard, ContentsMatch)])
        if known:
            self.fixed -= known
            self.loose |= known
            return True
        may_be_any = is_last or is_part
        if not all(isinstance(guard, ExpressionMatch) and (may_be_any or self._is_no_size(guard, named)) or
                   _is_of_items(guard, named, is_part) for guard in guards):
            return False
        places = {(kind, self._places[kind, family(_place(guard, named))])
                  for guard in guards for kind in _kinds(guard)} - self.refused
        self.refused |= places
        return bool(places)

    def _is_no_size(self, guard: ExpressionMatch, named: Sequence[Tuple[str, Source]]) -> bool:
        """Whether a guard is about numbers that were tried as sizes, so that there is a program for each of many."""
        return type(guard.expected) is int and all([size_path(path) in self for path in paths_of(_place(guard, named))])

    def note_places(self, guards: Sequence[Guard], named: Sequence[Tuple[str, Source]]) -> None:
        """Note where in the items of sequences these guards, which cannot be inputs, have failed.  named: as for `refuse`."""
        for guard in guards:
            if not isinstance(guard, (PathGuard, ExpressionMatch)):
                continue
            path = _place(guard, named)
            for kind in _kinds(guard):
                place = kind, family(path)
                self._places[place] = joined(self._places.get(place, path), path)

    def note_length(self, guard: LengthMatch, now: int, of_numbers: bool, is_array: bool) -> None:
        """Note the length that a list has now.

        of_numbers: whether it holds floats only, which may be an input as a whole.  is_array: whether an array of it may be one.
        """
        path = guard.source.path()
        if of_numbers or is_array:
            self._add(contents_path(path), list)
        known = self._lengths.setdefault(path, set())
        known.update((guard.expected, now))
        if len(known) >= _LENGTHS_OF_ONE and (not of_numbers or contents_path(path) in self._needed):
            self.grown.add(path)

    @contextlib.contextmanager
    def without_texts(self) -> Iterator[None]:
        """Inside the block texts are fixed; if it succeeds, these stay so."""
        texts, self.texts = self.texts, set()
        self.difference_update(texts)
        try:
            yield
        except BaseException:
            self.update(texts)
            self.texts = texts
            raise
        self._needed |= {path for path in texts if not self._may_be_free(path)}

    def _may_be_free(self, path: Tuple) -> bool:
        """Whether this is of a list that has had too few lengths for its length to be free."""
        lengths = next((known for of, known in self._lengths.items() if contents_path(of) == path), None)
        return lengths is not None and len(lengths) < _LENGTHS_OF_ONE


def _fixed_by(guard: Guard, named: Sequence[Tuple[str, Source]]) -> Optional[Tuple]:
    """What a guard makes known, if it is an array, a number or an expression over such."""
    if isinstance(guard, ExpressionMatch):
        return expression_path(guard.text, named)
    return None if guard.source is None else with_siblings(guard.source.path())


def _place(guard: Guard, named: Sequence[Tuple[str, Source]]) -> Tuple:
    """The path of what a guard is about, or what stands for an expression in its place."""
    return place_of_expression(guard.text, named) if isinstance(guard, ExpressionMatch) else guard.source.path()


def _kinds(guard: Guard) -> Tuple[type, ...]:
    """What is not to be relied on instead of a guard; of something that is missing in some items, also what it is in others."""
    if isinstance(guard, IdentityMatch) and guard.expected is None:
        return IdentityMatch, ArrayMatch, TypeMatch, EqualsMatch
    return (type(guard),)


def _is_of_items(guard: Guard, named: Sequence[Tuple[str, Source]], is_part: bool) -> bool:
    """Whether a guard is about what an item of a sequence is, or an attribute of an object that another one keeps, or a length.

    named: the numbers that guards of expressions name.  is_part: or about how many there are in an argument.
    """
    if isinstance(guard, ExpressionMatch):
        place = _place(guard, named)
        return family(place) != place
    source = guard.source
    if isinstance(guard, (LengthMatch, KeysMatch)):
        return is_part or not isinstance(source, Argument)
    kinds = (EqualsMatch, IdentityMatch, TypeMatch, SameObject, ArrayMatch, VariableMatch)
    if isinstance(guard, (IdentityMatch, TypeMatch)) and is_nested(source.path()):
        return True
    return isinstance(guard, kinds) and family(source.path()) != source.path()


class Change(NamedTuple):
    """A guard that failed: the value that it checks, the earlier and the present value, and the line that reads it."""

    guard: Guard
    text: str
    at: Optional[Location] = None

    def __str__(self) -> str:
        return self.text if self.at is None else f"{self.text} ({self.at}: {self.at.text().strip()})"

    def placed(self, function: types.FunctionType, places: Mapping[Any, Optional[Location]]) -> "Change":
        """The change with the line that reads what changes; that of the function where this is not known."""
        return self._replace(at=place_of(self.guard, places) or definition(function))


def changes_of(function: types.FunctionType, program: Optional[Program], failed: Sequence[int], args: Tuple,
               kwargs: Mapping[str, Any]) -> List[Change]:
    """What the program that fits best wanted otherwise of this call."""
    def at(source: Source) -> Any:
        return follow(source, lambda root: args[root.key] if isinstance(root, Argument) else kwargs[root.key])

    found: Dict[str, Change] = {}
    for guard in [] if program is None else [program.guards[index] for index in failed if index >= 0]:
        if guard.describe() not in found:
            found[guard.describe()] = Change(guard, _told(guard, program, function.__code__, at))
    return list(found.values())[:_MOST_TOLD]


def _told(guard: Guard, program: Program, code: types.CodeType, at: Callable[[Source], Any]) -> str:
    """What the guard looks at, with its value before and now."""
    inputs = _inputs(guard, program) if isinstance(guard, ExpressionMatch) else {}
    source = inputs.get(guard.text) if isinstance(guard, ExpressionMatch) else guard.source
    if source is None:
        now = [f"`{_with_argument(each.describe(), each, code)}` is {at(each)!r}" for each in list(inputs.values())[:_MOST_TOLD]]
        return f"no longer {_named(guard, program, code)}{', now that ' * bool(now)}{' and '.join(now)}"
    value = at(source)
    values = (repr(guard.expected), repr(value)) if isinstance(guard, ExpressionMatch) else guard.change(value)
    if values is None:
        return f"no longer {_named(guard, program, code)}"
    name = _with_argument(source.describe(), source, code)
    return "`{}`, {} in an earlier call and {} in this one".format(name, *_shortened(*values))


def _inputs(guard: ExpressionMatch, program: Program) -> Dict[str, Source]:
    """The numbers and texts that an expression is made of, by their names in it."""
    return {name: source for name, source in program.recipe.outcome.named if re.search(rf"\b{name}\b", guard.text)}


def _shortened(before: str, now: str) -> Tuple[str, str]:
    """Two texts without the most of what is the same at their beginnings, and of what follows."""
    same = len(os.path.commonprefix([before, now]))
    start = same - _LONGEST // 2 if same > _LONGEST else 0

    def part(text: str) -> str:
        return f"{'...' * bool(start)}{text[start:start + _LONGEST]}{'...' * (len(text) > start + _LONGEST)}"
    first, second = part(before), part(now)
    return (f"one {first}", f"another {second}") if first == second else (first, second)


def _named(guard: Guard, program: Program, code: types.CodeType) -> str:
    """The guard in words, with the names of positional arguments."""
    text = guard.describe()
    if guard.source is not None:
        return _with_argument(text, guard.source, code)
    for name, source in program.recipe.outcome.named if isinstance(guard, ExpressionMatch) else ():
        path = _with_argument(source.describe(), source, code)
        text = re.sub(rf"\b{name}\b", lambda _, path=path: path, text)
    return text


def _with_argument(text: str, source: Source, code: types.CodeType) -> str:
    root = source.root
    if not isinstance(root, Argument) or root.key >= code.co_argcount:
        return text
    return text.replace(root.describe(), code.co_varnames[root.key], 1)


def _way_out(guard: Guard) -> str:
    """What to do about values that fail a guard."""
    if not isinstance(guard, (EqualsMatch, ExpressionMatch)):
        return _HINTS.get(type(guard), _VALUES)
    kind = type(guard.expected)
    return TEXTS if kind in (str, bytes) else NUMBERS if kind in (bool, int, float) else _VALUES


def storm_message(name: str, captures: int, useful: int, changes: Sequence[Change], evicted: int) -> str:
    """The warning that captures do not pay, and what can be done."""
    if not captures:
        return (f"{name} could not be captured for many different signatures, and never for any. From now on most calls with a new "
                "signature run in eager mode; remove to_static from it, or see explain_misses() for the reasons")
    used = "none of these programs was" if not useful else f"only {useful} of these programs {'was' if useful == 1 else 'were'}"
    what = "; ".join(map(str, changes)) or "something else in every call"
    hint = _way_out(changes[0].guard) if changes else _VALUES
    if evicted and useful:
        hint += "; or raise cache_limit"
    return (f"{name} is captured again and again: {captures} captures, and {used} needed again. What changes: {what}. "
            f"From now on most calls without a program run in eager mode; {hint}")
