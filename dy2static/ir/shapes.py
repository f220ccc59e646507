"""Shapes of sizes that may not be known yet: compared, broadcast, evaluated and shown."""
from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

from .dims import Size, equal, evaluate


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> Optional[bool]:
    """Whether two shapes are equal: True, False, or None when that depends on the symbols."""
    if len(a) != len(b):
        return False
    answers = [equal(m, n) for m, n in zip(a, b)]
    return False if False in answers else None if None in answers else True


def evaluate_shape(shape: Sequence[Size], bindings: Mapping[str, int]) -> Tuple[int, ...]:
    """A shape of ints from a shape of sizes."""
    return tuple(evaluate(size, bindings) for size in shape)


def broadcast_shapes(a: Sequence[Size], b: Sequence[Size],
                     assume: Optional[Callable[[Size, Size], None]] = None) -> Tuple[Size, ...]:
    """The shape NumPy broadcasting gives.  Raises ValueError where the shapes do not fit.

    Where only the run can tell, ``assume(m, n)`` is told that both must turn out equal; without it that is a
    ValueError too.
    """
    rank = max(len(a), len(b))
    result: List[Size] = []
    for m, n in zip((1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)):
        same = equal(m, n)
        if same or n == 1:
            result.append(m)
        elif m == 1:
            result.append(n)
        elif same is None and assume is not None:
            assume(m, n)
            result.append(m if isinstance(m, int) else n)
        else:
            raise ValueError(f"operands could not be broadcast together with shapes {show(a)} {show(b)}")
    return tuple(result)


def show(shape: Sequence[Size]) -> str:
    """A shape as NumPy prints it in its messages: ``(3,4)``, ``(n,)``."""
    return f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def with_axes(shape: Tuple[Any, ...], axes: int) -> Tuple[Any, ...]:
    """The shape with at least so many axes, as ``np.atleast_1d``, ``atleast_2d`` and ``atleast_3d`` give it."""
    if len(shape) >= axes:
        return shape
    if axes < 3 or not shape:
        return (1,) * (axes - len(shape)) + shape
    return (*((1,) * (2 - len(shape))), *shape, 1)
