"""Products of matrices as cuBLAS is asked for them: in the order of columns, a stack with one stride."""
from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from ....ir.dims import Size, not_below
from .sizes import settled
from .steps import Matrices, Product

#: The types of cuBLAS (``cudaDataType``), by the letters of NumPy's dtypes.
_TYPES = {"f": 0, "d": 1, "e": 2}

#: Sizes are ints of C.
_MOST = 2 ** 31 - 1


def is_expressible(shape: Sequence[Size], strides: Sequence[Size]) -> bool:
    """Whether cuBLAS can read a matrix, or a stack of them, where it is."""
    return _layout(shape, strides) is not None and _step(shape[:-2], strides[:-2]) is not None


def _layout(shape: Sequence[Size], strides: Sequence[Size]) -> Optional[Tuple[int, Size]]:
    """Whether the elements of a column stand side by side (1), or those of a row (0), and how far columns, or rows, are apart."""
    (rows, columns), (down, across) = shape[-2:], strides[-2:]
    if (across == 1 or columns == 1) and (not_below(down, columns) or rows == 1):
        return 0, down if rows != 1 else columns
    if (down == 1 or rows == 1) and (not_below(across, rows) or columns == 1):
        return 1, across if columns != 1 else rows
    return None


def _step(shape: Sequence[Size], strides: Sequence[Size]) -> Optional[Size]:
    """What is between two matrices of a stack; None where that is not the same everywhere."""
    axes = [(n, stride) for n, stride in zip(shape, strides) if n != 1]
    is_even = all(outer == stride * n for (_, outer), (n, stride) in zip(axes, axes[1:]))
    if not is_even or not all(not_below(stride, 0) for _, stride in axes):
        return None
    return axes[-1][1] if axes else 0


def words_of(step: Product) -> Optional[List[int]]:
    """A product as words for the launcher, behind its pointers (right, left, out); None where cuBLAS cannot be asked for it.

    The result ``(rows, columns)`` is, in the order of columns, the product of the right operand and the left one.
    """
    count = 1
    for n in step.out.shape[:-2]:
        count *= settled(n)
    rows, columns, inner = map(settled, (*step.out.shape[-2:], step.left.shape[-1]))
    left, right = _operand(step.left), _operand(step.right)
    if step.out.dtype.char not in _TYPES or left is None or right is None:
        return None
    (turn_left, wide_left, step_left), (turn_right, wide_right, step_right) = left, right
    if count > 1 and not step_right and not turn_left and step_left == rows * wide_left:
        rows, count = rows * count, 1                                     # one large matrix with the same right operand
    found = [_TYPES[step.out.dtype.char], turn_right, turn_left, columns, rows, inner,
             _begin(step.right), wide_right, step_right, _begin(step.left), wide_left, step_left,
             _begin(step.out), columns, rows * columns, count]
    return found if max(rows, columns, inner, wide_left, wide_right, count) <= _MOST else None


def _operand(matrices: Matrices) -> Optional[Tuple[int, int, int]]:
    """The layout of a matrix, and what is between two of a stack."""
    shape, strides = [[settled(n) for n in numbers] for numbers in (matrices.shape, matrices.strides)]
    layout, step = _layout(shape, strides), _step(shape[:-2], strides[:-2])
    return None if layout is None or step is None else (layout[0], settled(layout[1]), settled(step))


def _begin(matrices: Matrices) -> int:
    """How many bytes from its pointer a matrix begins."""
    return settled(matrices.offset) * int(matrices.dtype.itemsize)
