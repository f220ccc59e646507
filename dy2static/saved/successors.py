"""The state of a model after a call that was only captured, so that the calls that follow can be captured, too."""
from __future__ import annotations

import copy
from typing import Any, Dict, Mapping, NamedTuple, Optional, Set, Tuple

import chainer
import numpy as np

from ..input_spec import Axis
from ..ir.dims import Dim
from ..ir.graph import Value
from ..ir.shapes import evaluate_shape
from ..ir.types import Scalar, Tensor
from ..record.builds import Build, FromValue, FromVariable, Number
from ..record.guards import IdentityMatch, KeyAbsent
from ..record.outcome import Outcome
from ..record.paths import Argument, Attribute, InstanceDict, Item, Source
from ..record.variables import EscapingVariable
from ..record.writes import DeleteItem, SetItem, Write


class Successor(NamedTuple):
    """A model after a call: a copy, whose arrays have the right shapes and no contents.  free: axes of them that are free."""

    instance: Any
    free: Set[Axis]


def successor_of(outcome: Outcome, instance: Any, sizes: Mapping[str, int]) -> Optional[Successor]:
    """The model after a call, where that leaves something of another kind behind; None where it does not, or that is unknown.

    sizes: numbers for the symbols of the capture.
    """
    if len(outcome.ends) != 1 or not _changes_kind(outcome):
        return None
    made = _Successor(instance, sizes)
    try:
        for write in outcome.ends[0].writes:
            if isinstance(write, (SetItem, DeleteItem)):
                made.write(write)
    except (LookupError, AttributeError, TypeError):
        return None
    return Successor(made.instance, made.free)


def _changes_kind(outcome: Outcome) -> bool:
    """Whether a call writes where it has found None, or nothing, or an array of another shape."""
    written = {(write.container, write.key): write.built for write in outcome.ends[0].writes if isinstance(write, SetItem)}
    for guard in outcome.guards:
        if isinstance(guard, KeyAbsent) and (guard.source, guard.expected) in written:
            return True
        if isinstance(guard, IdentityMatch) and guard.expected is None and isinstance(guard.source, Item):
            built = written.get((guard.source.parent, guard.source.key))
            if isinstance(built, (FromVariable, FromValue)):
                return True
    return False


class _Successor:
    """A copy of a model, on which writes are done."""

    def __init__(self, instance: Any, sizes: Mapping[str, int]):
        self.instance, self.sizes = copy.deepcopy(instance), sizes
        self.free: Set[Axis] = set()
        self._made: Dict[int, Any] = {}

    def write(self, write: Write) -> None:
        """Do one write.  Raises LookupError, AttributeError or TypeError where that cannot be."""
        container = self.at(write.container)
        if isinstance(write.built, Number):
            return                                      # any number will do: it is an input
        if isinstance(write, DeleteItem):
            del container[write.key]
        else:
            path = (Item.word, write.key) + write.container.path()
            container[write.key] = self.built(write.built, path)       # type: ignore[arg-type]

    def at(self, source: Source) -> Any:
        """What the copy has at the end of a path.  Raises LookupError where that is not in it."""
        if isinstance(source, Argument) and source.key == 0:
            return self.instance
        if not isinstance(source, (InstanceDict, Item, Attribute)):
            raise LookupError(source.describe())        # closures and globals are not copied
        return source.read(self.at(source.parent))

    def built(self, build: Build, path: Tuple) -> Any:
        """The object of a build, for this place in the model.  Raises LookupError where only a run can make it."""
        if id(build) not in self._made:
            self._made[id(build)] = build.evaluate(_Place(self, path))
        return self._made[id(build)]

    def array(self, value: Value, path: Tuple) -> Any:
        """An array without contents, or a number."""
        if isinstance(value.type, Scalar):
            return value.dtype.type(0) if value.type.kind == "numpy" else value.dtype.type(0).item()
        if not isinstance(value.type, Tensor):
            raise LookupError(str(value.type))
        self.free |= {(path, axis) for axis, n in enumerate(value.shape) if isinstance(n, Dim)}
        return np.zeros(evaluate_shape(value.shape, self.sizes), value.dtype)


class _Place(NamedTuple):
    """A place in a model after a call, for the objects that builds make for it."""

    successor: _Successor
    path: Tuple

    def at(self, source: Source) -> Any:
        return self.successor.at(source)

    def array(self, value: Value) -> Any:
        return self.successor.array(value, self.path)

    def variable(self, record: EscapingVariable) -> Any:
        return chainer.Variable(self.array(record.value), requires_grad=record.requires_grad)

    def part(self, build: Build, key: Any) -> Any:
        return self.successor.built(build, (Item.word, key) + self.path)
