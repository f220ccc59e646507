"""Indices with arrays in them: where the axes of what they pick come from."""
from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

from ....ir.dims import Size
from ....ir.graph import Value
from ....ir.shapes import broadcast_shapes
from ....ir.template import AT


def shape_together(arrays: Sequence[Value]) -> Tuple[Size, ...]:
    """The shape of arrays of indices together."""
    shape: Tuple[Size, ...] = ()
    for array in arrays:
        shape = broadcast_shapes(shape, array.shape)
    return shape


def first_axis_of_arrays(index: Sequence[Any]) -> int:
    """Where the axes that arrays of indices make stand in what is picked; in front if the arrays are apart in the index."""
    places = [place for place, entry in enumerate(index) if not (entry is None or isinstance(entry, tuple))]
    return places[0] if places[-1] - places[0] < len(places) else 0


def axes_of_arrays(index: Sequence[Any]) -> List[int]:
    """The axes that arrays of indices are for, in their order."""
    return [axis for axis, entry in enumerate([entry for entry in index if entry is not None]) if entry == AT]


def other_axes(index: Sequence[Any], ndim: int, names: Sequence[str]) -> Dict[int, str]:
    """Where what is picked is in an array of so many dimensions: the index along each axis that no array of indices is for.

    names: the indices along the axes of what is picked, without those that arrays of indices make.
    """
    found: Dict[int, str] = {}
    rest, axis = iter(names), 0
    for entry in index:
        if entry is None:
            next(rest)
            continue
        if isinstance(entry, tuple):
            found[axis] = f"{entry[0]} + {next(rest)} * {entry[2]}"
        elif entry != AT:
            found[axis] = str(entry)
        axis += 1
    found.update({axis: next(rest) for axis in range(axis, ndim)})
    return found
