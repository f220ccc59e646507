"""The arrays that go into a captured call and come out of it, and what they are called."""
from __future__ import annotations

from typing import Any, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..input_spec import InputSpec
from ..ir.graph import Value
from ..record.builds import Build, Choice
from ..record.inputs import ArrayInput, VariableInput
from ..record.outcome import Outcome
from ..record.paths import Source
from ..record.places import Place, place_of
from .named_program import NamedProgram, Target


class Interface:
    """Inputs and outputs of one captured call.

    names: of the positional parameters.  specs: an `InputSpec`, or lists of them, for each, as far as there are any.
    rest: of ``*args``.  by_name: of parameters that only go by name.
    """

    def __init__(self, outcome: Outcome, names: Sequence[str], specs: Sequence[Any] = (), rest: str = "args",
                 by_name: Sequence[str] = ()):
        self.outcome, self._names, self._specs = outcome, tuple(names), tuple(specs)
        self._rest, self._by_name = rest, tuple(by_name)
        self._arrays = self._found()

    @property
    def inputs(self) -> List[InputSpec]:
        """An `InputSpec` for each array among the arguments, in order; ``xs[0]`` is the name of one in a list."""
        return [spec for _, spec in self._arrays]

    @property
    def outputs(self) -> List[Target]:
        """The arrays of the results, in order: of lists, tuples and dicts as deep as they go."""
        return _targets(self.outcome)

    def program(self, function: Any, bound: int = 0, **rest: Any) -> NamedProgram:
        """The function as a program.  bound: so many arguments, the first ones, are not fed.  rest: as `NamedProgram` has it."""
        feeds = {}
        for place, spec in self._arrays:
            argument = self._argument(place)
            feeds.setdefault(spec.name if not place.keys else argument, argument)
        more = [name for name in feeds.values() if name not in self._names and name not in self._by_name]
        parameters = [*self._names, *[name for name in more if name.endswith("]")]]
        keywords = [*self._by_name, *[name for name in more if not name.endswith("]")]]
        return NamedProgram(function, parameters[bound:], keywords, feeds, self.inputs, self.outputs, **rest)

    def _found(self) -> List[Tuple[Place, InputSpec]]:
        """Where each array is, in the order of the arguments, and what it is like."""
        found = []
        for item in self.outcome.inputs:
            place = place_of(item.source) if isinstance(item, (VariableInput, ArrayInput)) else None
            if place is not None:
                found.append((place, InputSpec(_shape(item.value), item.value.dtype, self._name(place),
                                               stop_gradient=not item.requires_grad)))
        return sorted(found, key=lambda pair: (self._index(pair[0]), pair[0].number))

    def _index(self, place: Place) -> int:
        """The number of the argument."""
        if isinstance(place.argument, int):
            return place.argument
        return self._names.index(place.argument) if place.argument in self._names else 1 << 16     # behind all others

    def _argument(self, place: Place) -> str:
        """What the argument is called: ``rest[0]`` the first in ``*rest``."""
        if isinstance(place.argument, str):
            return place.argument
        after = place.argument - len(self._names)
        return self._names[place.argument] if after < 0 else f"{self._rest}[{after}]"

    def _name(self, place: Place) -> str:
        index = self._index(place)
        spec = self._specs[index] if index < len(self._specs) else None
        for key in place.keys:
            spec = spec[key] if isinstance(spec, (tuple, list, dict)) else None
        return getattr(spec, "name", None) or self._argument(place) + "".join([f"[{key!r}]" for key in place.keys])


def _shape(value: Value) -> Tuple[Optional[int], ...]:
    return tuple([n if isinstance(n, int) else None for n in value.shape])


def _targets(outcome: Outcome) -> List[Target]:
    inputs = {item.source: item.value for item in outcome.inputs if item.source is not None}
    result = next((end.result for end in outcome.ends if end.result is not None), None)
    found: List[Target] = []
    names = set()
    for path, value, shape in () if result is None else _leaves(result, (), inputs):
        keys = [str(key) for key in path if isinstance(key, str)]
        name = ".".join(keys) or value.name
        name = name if name not in names else next(f"{name}_{k}" for k in range(1, len(names) + 2) if f"{name}_{k}" not in names)
        names.add(name)
        found.append(Target(name, shape, value.dtype, path))
    return found


def _leaves(build: Build, path: Tuple, inputs: Mapping[Source, Value]) -> Iterator[Tuple[Tuple, Value, Tuple]]:
    """The values in a result, where they are, and their shapes."""
    value = build.graph_value(inputs)
    if value is not None and hasattr(value.type, "shape"):
        yield path, value, _shape(value)
    if isinstance(build, Choice):
        yield from _chosen([list(_leaves(part, path, inputs)) for _, part in build.options])
    for key, part in build.items().items():
        yield from _leaves(part, (*path, key), inputs)


def _chosen(options: Sequence[Sequence[Tuple]]) -> Iterator[Tuple]:
    """What one of several may give: the leaves of the first that has any; sizes in which others differ are open."""
    for path, value, shape in next(filter(None, options), ()):
        others = [other for leaves in options for place, _, other in leaves if place == path and len(other) == len(shape)]
        yield path, value, tuple([n if all(other[axis] == n for other in others) else None for axis, n in enumerate(shape)])
