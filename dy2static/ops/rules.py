"""Type rules and canonical attributes that several ops share."""
from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Tuple

import numpy as np

from ..ir.dims import Dim, equal
from ..ir.shapes import same_shape, show
from ..ir.types import Scalar, Shape, Tensor, Type


def same_as_input(x: Tensor, *_: Any, **attrs: Any) -> Tensor:
    """The result has the shape and dtype of the first operand."""
    return x


def elementwise(ufunc: Callable[..., Any]) -> Callable[..., Tensor]:
    """Operands of one shape and one dtype; the result has the dtype that the NumPy function gives for it."""
    def infer(*xs: Tensor, **attrs: Any) -> Tensor:
        one_shape(*xs)
        one_dtype(*xs)
        return Tensor(xs[0].shape, result_dtype(ufunc, *(x.dtype for x in xs)))
    return infer


@functools.lru_cache(maxsize=None)
def result_dtype(ufunc: Callable[..., Any], *dtypes: np.dtype) -> np.dtype:
    """The dtype the running NumPy gives; raises NumPy's TypeError if the function does not take these."""
    with np.errstate(all="ignore"):
        return ufunc(*(np.ones(1, dtype) for dtype in dtypes)).dtype


def compared(*xs: Tensor, **attrs: Any) -> Tensor:
    """Operands of one shape and one dtype; the result is bool."""
    one_shape(*xs)
    one_dtype(*xs)
    return Tensor(xs[0].shape, np.dtype(bool))


def one_shape(*xs: Tensor) -> None:
    """Raise ValueError unless all operands are known to have one shape."""
    for x in xs[1:]:
        if x.shape != xs[0].shape and not same_shape(xs[0].shape, x.shape):
            raise ValueError(f"shapes differ: {' '.join(show(t.shape) for t in xs)}")


def one_dtype(*xs: Tensor) -> None:
    """Raise TypeError unless all operands have one dtype."""
    if any([x.dtype != xs[0].dtype for x in xs]):
        raise TypeError(f"dtypes differ: {', '.join(x.dtype.name for x in xs)}")


def need_dtype(x: Tensor, kinds: str, what: str) -> None:
    """Raise TypeError unless the dtype's kind is one of ``kinds``."""
    if x.dtype.kind not in kinds:
        raise TypeError(f"{what} cannot be {x.dtype.name}")


def need_statistics(axis: Tuple[int, ...], wholes: Sequence[Tensor], statistics: Sequence[Tensor]) -> None:
    """Raise ValueError unless ``wholes`` have one shape and ``statistics`` that of the axes that are not reduced."""
    shape = wholes[0].shape
    if len(set(axis)) != len(axis) or not all(0 <= i < len(shape) for i in axis):
        raise ValueError(f"there are no axes {axis} of {len(shape)}")
    one_shape(*wholes)
    one_shape(Tensor(tuple([n for i, n in enumerate(shape) if i not in axis]), wholes[0].dtype), *statistics)


def normal_axis(axis: int, ndim: int) -> int:
    """The axis counted from the front.  Raises ValueError outside the array, as NumPy's AxisError is one."""
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return int(axis) % ndim


def normal_axes(axis: Any, ndim: int) -> Tuple[int, ...]:
    """An ``axis`` argument (None, an int or several) as a sorted tuple of axes counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    axes = [normal_axis(a, ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,))]
    if len(set(axes)) < len(axes):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(axes))


def of_floats(*types: Any) -> bool:
    """Whether all operands are arrays of one dtype of floats."""
    return all(isinstance(t, Tensor) and t.dtype == types[0].dtype and t.dtype.kind == "f" for t in types)


def of_filled_floats(*types: Any) -> bool:
    """The same, where the first operand has elements."""
    return of_floats(*types) and 0 not in types[0].shape


def canonical_axis(x: Tensor, *_: Any, axis: int, **attrs: Any) -> Dict[str, Any]:
    """``axis`` counted from the front of the first operand."""
    return {"axis": normal_axis(axis, x.ndim)}


def canonical_axes(x: Tensor, *_: Any, axis: Any, **attrs: Any) -> Dict[str, Any]:
    """``axis`` as a sorted tuple; ``keepdims`` as a bool."""
    canonical = {"axis": normal_axes(axis, x.ndim)}
    return {**canonical, "keepdims": bool(attrs["keepdims"])} if "keepdims" in attrs else canonical


def canonical_dtype(*_: Any, dtype: Any, **attrs: Any) -> Dict[str, Any]:
    """``dtype`` as a `numpy.dtype`."""
    return {"dtype": np.dtype(dtype)}


def canonical_shape(*_: Any, shape: Any, **attrs: Any) -> Dict[str, Any]:
    """``shape`` as a tuple of sizes, NumPy integers as ints; ``dtype`` as a `numpy.dtype`."""
    canonical: Dict[str, Any] = {"shape": sizes(shape)}
    if "dtype" in attrs:
        canonical["dtype"] = np.dtype(attrs["dtype"])
    return canonical


def sizes(shape: Any) -> Shape:
    """A shape argument (one size or a sequence) as a tuple of ints and `Dim` values."""
    shape = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(n.plain if isinstance(n, Dim) else int(n) for n in shape)


def reduced(shape: Sequence[Any], axes: Tuple[int, ...], keepdims: bool) -> Shape:
    """The shape after reducing over ``axes``."""
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def sum_axes(shape: Sequence[Any], target: Sequence[Any]) -> Optional[Tuple[int, ...]]:
    """The axes to sum over to undo a broadcast from ``target`` to ``shape``; None if it was none."""
    lead = len(shape) - len(target)
    if lead < 0:
        return None
    axes = list(range(lead))
    for i, (n, m) in enumerate(zip(shape[lead:], target), start=lead):
        if equal(n, m):
            continue
        if m != 1:
            return None
        axes.append(i)
    return tuple(axes)


def need_tensor(*xs: Any) -> None:
    """Raise TypeError for operands that are not arrays."""
    for x in xs:
        if not isinstance(x, Tensor):
            raise TypeError(f"an array is needed, not {x}")


def need_scalar(*xs: Any) -> None:
    """Raise TypeError for operands that are not numbers."""
    for x in xs:
        if not isinstance(x, Scalar):
            raise TypeError(f"a number is needed, not {x}")


def c_by_kind(floats: Optional[str], ints: Optional[str] = None,
              bools: Optional[str] = None) -> Callable[..., Optional[str]]:
    """The C form of an op that has one template per kind of its first operand."""
    def template(types: Sequence[Type], result: Type, attrs: Mapping[str, Any]) -> Optional[str]:
        return {"f": floats, "i": ints, "u": ints, "b": bools}.get(types[0].dtype.kind)     # type: ignore[union-attr]
    return template
