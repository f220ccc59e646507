"""The programs of a loaded model that take given arguments."""
from __future__ import annotations

from typing import Any, List, Sequence

from ..call_specs import leaves
from ..errors import ExportError
from ..record.inputs import ArrayInput, Input, VariableInput
from ..record.outcome import Outcome
from ..record.places import place_of


def fitting(outcomes: Sequence[Outcome], specs: Sequence[Any]) -> List[Outcome]:
    """Of the programs of a loaded model those for arrays like these, the most general first.

    Raises `ExportError` where there is none.
    """
    wanted = [(spec.shape, spec.dtype) for spec in leaves(specs)]

    def fits(outcome: Outcome) -> bool:
        shapes = [(item.value.shape, item.value.dtype) for item in _given(outcome)]
        return len(shapes) == len(wanted) and all(
            a == b and len(shape) == len(sizes) and all(n is None or not isinstance(m, int) or n == m for n, m in zip(sizes, shape))
            for (shape, a), (sizes, b) in zip(shapes, wanted))
    found = [outcome for outcome in outcomes if fits(outcome)]
    if not found:
        raise ExportError("the loaded model has no program for such arguments",
                          hint="export arrays of the shapes and dtypes that it was saved for")
    return sorted(found, key=lambda outcome: -sum(not isinstance(n, int) for item in _given(outcome) for n in item.value.shape))


def _given(outcome: Outcome) -> List[Input]:
    """The arrays among the arguments of a loaded model, in their order."""
    places = [(place_of(item.source), item) for item in outcome.inputs if isinstance(item, (ArrayInput, VariableInput))]
    return [item for place, item in sorted([(place, item) for place, item in places if place is not None],
                                           key=lambda pair: (pair[0].argument, pair[0].number))]
