"""Products of matrices as cuBLAS is asked for them: in the order of columns, a stack with one stride."""
from __future__ import annotations

import math
from typing import Any, List, Optional, Sequence, Tuple

from ....ir.dims import Size
from ....ir.size_bounds import not_below
from .sizes import Number, settled
from .steps import Matrices, Product

#: The types of cuBLAS (``cudaDataType``), by the letters of NumPy's dtypes.
_TYPES = {"f": 0, "d": 1, "e": 2}

#: Sizes are ints of C.
_MOST = 2 ** 31 - 1


#: How the addresses of a stack are aligned that cuBLAS finds in a table, in bytes: its kernels may load as many at a time.
ALIGNMENT = 16


def is_scattered(matrices: Matrices) -> bool:
    """Whether cuBLAS can read or write the matrices of a stack where they are, if it is given the address of each."""
    numbers = (*matrices.shape, *matrices.strides, matrices.offset)
    if matrices.dtype.char not in _TYPES or not all(isinstance(number, int) for number in numbers):
        return False
    apart = [settled(stride) * matrices.dtype.itemsize for stride in (*matrices.strides[:-2], matrices.offset)]
    return _layout(matrices.shape, matrices.strides) is not None and all(
        distance >= 0 and distance % ALIGNMENT == 0 for distance in apart)


def is_expressible(shape: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether cuBLAS can read a matrix, or a stack of them, where it is."""
    return _layout(shape, strides) is not None and _step(shape[:-2], strides[:-2]) is not None


def _layout(shape: Sequence[Any], strides: Sequence[Any]) -> Optional[Tuple[int, Size]]:
    """Whether the elements of a column stand side by side (1), or those of a row (0), and how far columns, or rows, are apart."""
    (rows, columns), (down, across) = shape[-2:], strides[-2:]
    if (across == 1 or columns == 1) and (not_below(down, columns) or rows == 1):
        return 0, down if rows != 1 else columns
    if (down == 1 or rows == 1) and (not_below(across, rows) or columns == 1):
        return 1, across if columns != 1 else rows
    return None


def _step(shape: Sequence[Any], strides: Sequence[Any]) -> Optional[Size]:
    """What is between two matrices of a stack; None where that is not the same everywhere."""
    axes = [(n, stride) for n, stride in zip(shape, strides) if n != 1]
    is_even = all(outer == stride * n for (_, outer), (n, stride) in zip(axes, axes[1:]))
    if not is_even or not all(not_below(stride, 0) for _, stride in axes):
        return None
    step: Size = axes[-1][1] if axes else 0
    return step


def words_of(step: Product) -> Optional[List[int]]:
    """A product as words for the launcher, behind its pointers (right, left, out); None where cuBLAS cannot be asked for it.

    The result ``(rows, columns)`` is, in the order of columns, the product of the right operand and the left one.
    """
    count = _count(step)
    rows, columns, inner = map(settled, (*step.out.shape[-2:], step.left.shape[-1]))
    left, right, out = _operand(step.left), _operand(step.right), _operand(step.out)
    if step.out.dtype.char not in _TYPES or left is None or right is None or out is None or out[0]:
        return None
    (turn_left, wide_left, step_left), (turn_right, wide_right, step_right), (_, wide_out, step_out) = left, right, out
    if count > 1 and not step_right and not turn_left and (step_left, step_out) == (rows * wide_left, rows * wide_out):
        rows, count = rows * count, 1                                     # one large matrix with the same right operand
    found = [_TYPES[step.out.dtype.char], turn_right, turn_left, columns, rows, inner,
             _begin(step.right), wide_right, step_right, _begin(step.left), wide_left, step_left,
             _begin(step.out), wide_out, step_out, count]
    return found if max(rows, columns, inner, wide_left, wide_right, wide_out, count) <= _MOST else None


def words_of_scattered(step: Product) -> Optional[List[int]]:
    """A product of stacks whose addresses are in a table as words for the launcher; None where cuBLAS cannot be asked for it."""
    rows, columns, inner = map(settled, (*step.out.shape[-2:], step.left.shape[-1]))
    layouts = [_layout(*map(_settled, (matrices.shape, matrices.strides))) for matrices in (step.left, step.right, step.out)]
    left, right, out = layouts
    if step.out.dtype.char not in _TYPES or left is None or right is None or out is None or out[0]:
        return None
    wide = [settled(width) for _, width in (right, left, out)]
    found = [_TYPES[step.out.dtype.char], right[0], left[0], columns, rows, inner, *wide, _count(step)]
    return found if max(found) <= _MOST else None


def _count(step: Product) -> int:
    """How many matrices the result has."""
    return math.prod([settled(n) for n in step.out.shape[:-2]])


def _settled(numbers: Sequence[Number]) -> List[int]:
    return [settled(n) for n in numbers]


def _operand(matrices: Matrices) -> Optional[Tuple[int, int, int]]:
    """The layout of a matrix, and what is between two of a stack."""
    shape, strides = map(_settled, (matrices.shape, matrices.strides))
    layout, step = _layout(shape, strides), _step(shape[:-2], strides[:-2])
    return None if layout is None or step is None else (layout[0], settled(layout[1]), settled(step))


def _begin(matrices: Matrices) -> int:
    """How many bytes from its pointer a matrix begins."""
    return settled(matrices.offset) * int(matrices.dtype.itemsize)
