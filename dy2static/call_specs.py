"""Arguments made up for what an `InputSpec` describes, and the specs of calls that were made."""
from __future__ import annotations

import itertools
import math
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import chainer
import numpy as np

from .errors import SignatureError
from .input_spec import InputSpec
from .ir.dims import Dim
from .record.guards import ArrayMatch, EqualsMatch, Guard, IdentityMatch, KeysMatch, LengthMatch, TypeMatch, VariableMatch
from .record.outcome import Outcome
from .record.paths import Argument, Item, Source

#: An axis that is None in some spec: the number of the spec among all, and of the axis.
Free = Tuple[int, int]
#: Which sizes are one: for each free axis, the number of its size.
Sharing = Mapping[Free, int]


class Given(InputSpec):
    """Of an example, or of a call that was made: how it was given is known, too."""

    def __init__(self, shape: Sequence[Optional[int]], dtype: Any, given: str):
        super().__init__(shape, dtype)
        self.given = given

    def _key(self) -> Tuple:
        return (*super()._key(), self.given)

    def __repr__(self) -> str:
        return f"{super().__repr__()}, {self.given}"


#: How one array of a call is given: "array", "variable" or "detached", a Variable that requires no gradient.
Form = Tuple[str, ...]

_GIVEN: Dict[str, Callable[[np.ndarray, InputSpec], Any]] = {
    "array": lambda array, spec: array,
    "variable": lambda array, spec: chainer.Variable(array, requires_grad=not spec.stop_gradient),
    "detached": lambda array, spec: chainer.Variable(array, requires_grad=False)}

#: Up to so many arrays, each is also given as the only Variable.
_MOST_ALONE = 4


def normal(spec: Any) -> Any:
    """A spec with `InputSpec` in the place of arrays and Variables.  Raises `SignatureError` for one without an array."""
    if isinstance(spec, chainer.Variable):
        return Given(spec.shape, spec.dtype, "variable" if spec.requires_grad else "detached")
    if isinstance(spec, np.ndarray):
        return Given(spec.shape, spec.dtype, "array")
    if type(spec) in (tuple, list):
        return type(spec)([normal(part) for part in spec])
    if type(spec) is dict:
        return {key: normal(part) for key, part in spec.items()}
    if isinstance(spec, InputSpec) or spec is None or type(spec) in (bool, int, float, str):
        return spec
    raise SignatureError(f"an input_spec holds InputSpecs, arrays, Variables and plain values, not {type(spec).__name__}")


def leaves(spec: Any) -> Iterator[InputSpec]:
    """The `InputSpec`s in a spec, in order."""
    if isinstance(spec, InputSpec):
        yield spec
    elif isinstance(spec, (tuple, list, dict)):
        for part in spec.values() if isinstance(spec, dict) else spec:
            yield from leaves(part)


def sharings(specs: Sequence[Any]) -> List[Sharing]:
    """Ways in which free axes may have sizes in common, the most general first.

    None; the first axes; axes of one number; and then all other ways, if there are few.  Axes with a name share their size with
    those of the same name, and with no others.
    """
    names = {(k, axis): name for k, spec in enumerate(leaves(list(specs))) for axis, name in enumerate(spec.size_names)}
    free = [(k, axis) for k, spec in enumerate(leaves(list(specs))) for axis, n in enumerate(spec.shape) if n is None]
    found: List[Sharing] = []
    unnamed = [axis for axis in free if names[axis] is None]
    rules: List[Callable[[Free], Any]] = [lambda axis: axis, lambda axis: 0 if axis[1] == 0 else axis, lambda axis: axis[1]]
    rules += [parts.__getitem__ for parts in _partitions(unnamed)] if len(unnamed) <= _MOST_PARTED else [lambda axis: 0]
    for rule in rules:
        groups: Dict[Any, int] = {}
        sharing = {axis: groups.setdefault(names[axis] or (rule(axis),), len(groups)) for axis in free}
        if sharing not in found:
            found.append(sharing)
    return found


#: Of so many axes, all ways to share sizes are tried.
_MOST_PARTED = 4


def _partitions(axes: Sequence[Free]) -> List[Dict[Free, int]]:
    """All ways to put axes into groups, those with the most groups first."""
    found: List[Dict[Free, int]] = [{}]
    for axis in axes:
        found = [{**parts, axis: group} for parts in found for group in range(max(parts.values(), default=-1) + 2)]
    return sorted(found, key=lambda parts: -len(set(parts.values())))


def forms(specs: Sequence[Any]) -> List[Form]:
    """The ways in which the arrays of a call may be given that are captured.

    As in the example or call that the spec is of; all as arrays; those of floats as Variables; each alone as a Variable; all as
    Variables; and those of floats as Variables that require no gradient.
    """
    every = list(leaves(list(specs)))
    floats = [k for k, spec in enumerate(every) if spec.dtype.kind == "f"]

    def with_floats(kind: str, which: Sequence[int]) -> Form:
        return tuple([kind if k in which else "array" for k in range(len(every))])
    found = [tuple([spec.given if isinstance(spec, Given) else "array" for spec in every]), with_floats("array", ()),
             with_floats("variable", floats)]
    if 1 < len(floats) <= _MOST_ALONE:
        found += [with_floats("variable", (k,)) for k in floats]
    found += [("variable",) * len(every), with_floats("detached", floats)]
    return list(dict.fromkeys(found))


def sizes_of(sharing: Sharing, small: Sequence[int] = (1,)) -> Iterator[Dict[int, int]]:
    """Numbers for the sizes: all free first, then, since a free size is two or more, some of them one, or another small number.

    Where there are many, those of axes of one number are small together, as the first axes are in a batch of one; and only of a
    few is one 1 where another is 0.
    """
    groups = sorted(set(sharing.values()))
    yield {group: group + 2 for group in groups}
    first = {group: min(axis for (_, axis), other in sharing.items() if other == group) for group in groups}
    together = {group: group if len(groups) <= MOST_ALONE_SMALL else first[group] for group in groups}
    several = sorted(set(together.values()))[:MOST_ALONE_SMALL]
    for numbers in itertools.product((None, *small), repeat=len(several)):
        given = {number for number in numbers if number is not None}
        if given and (len(given) == 1 or len(several) <= _MOST_MIXED):
            chosen = dict(zip(several, numbers))
            sizes = {group: chosen.get(together[group]) for group in groups}
            yield {group: group + 2 if size is None else size for group, size in sizes.items()}


#: Of so many sizes, each is also small by itself.
MOST_ALONE_SMALL = 3
#: Of so many sizes, each is any of the small numbers, whatever the others are.
_MOST_MIXED = 2


def larger_sizes_of(sharing: Sharing) -> List[List[Dict[int, int]]]:
    """Larger numbers for the sizes, from small to large, but for those of first axes; and then for all.

    For images that must not be too small.
    """
    return [[{group: least + k for group, k in places.items()} | small for least in _LARGER] for places, small in _divided(sharing)]


def multiples_of(sharing: Sharing) -> List[List[Dict[int, int]]]:
    """Multiples of powers of two for the sizes, from small to large, but for those of first axes; and then for all.

    For networks that halve images and double them again.
    """
    return [[{group: (2 * k + 3) * factor for group, k in places.items()} | small for factor in _FACTORS]
            for places, small in _divided(sharing)]


def _divided(sharing: Sharing) -> List[Tuple[Dict[int, int], Dict[int, int]]]:
    """Sizes that are not those of first axes, and small numbers for the others; and then all, and none."""
    first = {group for (_, axis), group in sharing.items() if axis == 0}
    places = {group: k for k, group in enumerate(sorted(set(sharing.values())))}
    others = {group: k for group, k in places.items() if group not in first}
    ways = [(others, {group: 2 + places[group] for group in first})] if first and others else []
    return [*ways, (places, {})] if places else []


#: What sizes are taken to be at least, one after the other.
_LARGER = (4, 8, 16, 32, 64, 128, 256)
#: What sizes are taken to be multiples of, one after the other.
_FACTORS = (2, 4, 8, 16, 32, 64, 128)


def examples(specs: Sequence[Any], form: Form, sharing: Sharing, sizes: Mapping[int, int]) -> Tuple[Any, ...]:
    """Arguments as the specs describe them, of zeros."""
    counter = itertools.count()

    def made(spec: Any) -> Any:
        if isinstance(spec, InputSpec):
            number = next(counter)
            return _GIVEN[form[number]](np.zeros(_shape(spec, number, sharing, sizes), spec.dtype), spec)
        if isinstance(spec, (tuple, list)):
            return type(spec)([made(part) for part in spec])
        return {key: made(part) for key, part in spec.items()} if isinstance(spec, dict) else spec
    return tuple([made(spec) for spec in specs])


def fits_in_memory(specs: Sequence[Any], sharing: Sharing, sizes: Mapping[int, int]) -> bool:
    """Whether arrays of such sizes are small enough to be made up."""
    return all(spec.dtype.itemsize * math.prod(_shape(spec, number, sharing, sizes)) <= _MOST_BYTES
               for number, spec in enumerate(leaves(list(specs))))


def _shape(spec: InputSpec, number: int, sharing: Sharing, sizes: Mapping[int, int]) -> List[int]:
    return [sizes[sharing[number, axis]] if n is None else n for axis, n in enumerate(spec.shape)]


#: Of one array.  Nothing reads or writes what it holds, so that this is no memory that is in use.
_MOST_BYTES = 1 << 28


# Of calls that were made ---------------------------------------------------------------------------------------------


def specs_of(outcome: Outcome, first: int) -> Optional[List[Any]]:
    """What the arguments of a captured call looked like, from the one of this number on; None where guards do not tell."""
    if outcome.keywords:
        return None
    guards: Dict[Source, List[Guard]] = {}
    parts: Dict[Source, List[Source]] = {}
    for guard in outcome.guards:
        if guard.source is not None:
            guards.setdefault(guard.source, []).append(guard)
    for source in guards:
        if isinstance(source, Item):
            parts.setdefault(source.parent, []).append(source)
    roots = [source for source in guards if isinstance(source, Argument) and source.key >= first]
    try:
        return [_spec(source, guards, parts) for source in sorted(roots, key=lambda source: source.key)]
    except LookupError:
        return None


def _spec(source: Source, guards: Mapping[Source, List[Guard]], parts: Mapping[Source, List[Source]]) -> Any:
    """Raises LookupError where the guards do not tell."""
    found: Dict[type, Any] = {type(guard): guard for guard in guards.get(source, ())}
    array = found.get(VariableMatch) or found.get(ArrayMatch)
    if array is not None:
        form = "array" if isinstance(array, ArrayMatch) else "variable" if array.requires_grad else "detached"
        return Given([None if isinstance(n, Dim) else n for n in array.shape], array.dtype, form)
    expected: Dict[type, Any] = {kind: guard.expected for kind, guard in found.items() if hasattr(guard, "expected")}
    if type(expected.get(EqualsMatch)) in (bool, int, float, str):
        return expected[EqualsMatch]
    if IdentityMatch in expected and expected[IdentityMatch] in (None, True, False):
        return expected[IdentityMatch]
    kind, inner = expected.get(TypeMatch), {part.key: part for part in parts.get(source, ())}
    if kind in (tuple, list) and expected.get(LengthMatch) == len(inner):
        return kind([_spec(inner[key], guards, parts) for key in sorted(inner)])
    if kind is dict and set(expected.get(KeysMatch, (None,))) == set(inner):
        return {key: _spec(inner[key], guards, parts) for key in expected[KeysMatch]}
    raise LookupError(source.describe())
