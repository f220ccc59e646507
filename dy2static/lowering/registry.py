"""The table from FunctionNode classes to their lowerings."""
from __future__ import annotations

import functools
import math
from importlib.util import find_spec
from typing import Any, Callable, Dict, Optional, Set, Tuple, Type

import chainer
import numpy as np
from chainer.function import FunctionAdapter

from ..ir.building import constant
from ..ir.dims import Dim, less
from ..ir.graph import Value
from ..ir.op import OPS
from ..ir.types import Scalar, Tensor

#: ``lowering(node, *values) -> Value | tuple of Values | None``: emits ops for one application of ``node`` (its
#: attributes are static, or symbolic where a captured number or array was stored in them).  None declines.  What callers
#: read from the node afterwards it stores there, as a value.
Lowering = Callable[..., Any]

LOWERINGS: Dict[Type[chainer.FunctionNode], Lowering] = {}

#: The attributes with arrays that forward changes in place, and that backward does not read.
STATE: Dict[Type[chainer.FunctionNode], Tuple[str, ...]] = {}


#: The attributes with functions of the user's that forward calls.
CALLED: Dict[Type[chainer.FunctionNode], Tuple[str, ...]] = {}

#: The classes with such attributes whose forward may fail before it changes them.
MAY_FAIL: Set[Type[chainer.FunctionNode]] = set()


def lowers(*classes: Type[chainer.FunctionNode], state: Tuple[str, ...] = (), calls: Tuple[str, ...] = (),
           may_fail: bool = False) -> Callable[[Lowering], Lowering]:
    """Register a lowering for FunctionNode classes (exactly these, not their subclasses).

    state: the attributes with arrays that it changes in place (``array *= 2``), where there are any.  may_fail: whether it
    may raise before it does.  calls: the attributes with functions that it calls; during a capture they take and give arrays
    of the graph.
    """
    def register(lowering: Lowering) -> Lowering:
        for cls in classes:
            if cls in LOWERINGS:
                raise ValueError(f"{cls.__name__} has a lowering already")
            LOWERINGS[cls], STATE[cls], CALLED[cls] = lowering, state, calls
        if may_fail:
            MAY_FAIL.update(classes)
        return lowering
    return register


def lowers_to(op: str, *classes: Type[chainer.FunctionNode]) -> None:
    """Register the lowering of functions that an op does as it is: its values, and its gradients, are theirs."""
    lowers(*classes)(lambda node, *xs: OPS[op](*xs))


def is_state(array: Any, like: Value) -> bool:
    """Whether an attribute holds an array of the graph, of floats in this shape, that a lowering can change."""
    return is_captured(array) and array.type.shape == like.shape and array.dtype.kind == "f"


def is_captured(array: Any) -> bool:
    """Whether this stands for an array while a capture runs."""
    return hasattr(array, "capture") and isinstance(getattr(array, "type", None), Tensor)


def beside(array: Any, value: Value) -> Any:
    """The value as an array that can be computed with as with the one in an attribute."""
    return type(array)(array.capture, value)


#: Modules of functions that take any number as NumPy does.
_TAKING_ANY = tuple(f"chainer.functions.{name}" for name in ("math.basic_math", "math.clip", "activation.clipped_relu"))
#: The package of those that only put a number into arrays, which may be an infinity.
_FILLING = "chainer.functions.array."


def _is_extreme(attribute: Any, fills: bool) -> bool:
    """Whether an attribute is a number for which NumPy takes another dtype than for others, or that is not finite.

    False for numbers and sizes that only the run knows.  fills: it is put into arrays, where an infinity is no other number.
    """
    if isinstance(attribute, Dim) or not is_number(attribute) or getattr(attribute, "text", "") is None:
        return False
    if fills and attribute in (math.inf, -math.inf):
        return False
    return not abs(attribute) < (2 ** 63 if isinstance(attribute, int) else 3e38)


def lowering_of(node: chainer.FunctionNode) -> Optional[Lowering]:
    """The lowering of a node's class, or None; for an old-style Function, which it gets itself, of that.

    None, too, for extreme hyperparameters: the function computes with them itself.
    """
    module = type(node).__module__
    fills = module.startswith(_FILLING)
    if module not in _TAKING_ANY and any([_is_extreme(attribute, fills) for attribute in node.__dict__.values()]):
        return None
    if not isinstance(node, FunctionAdapter):
        return LOWERINGS.get(type(node))
    lowering = LOWERINGS.get(type(node.function))
    return None if lowering is None else functools.partial(_old_style, lowering)


def _old_style(lowering: Lowering, node: FunctionAdapter, *xs: Value) -> Any:
    """The ops of an old-style Function, whose gradients cannot be differentiated."""
    message = f'cannot twice-differentiate an old style Function "{node.label}"'
    return lowering(node.function, *[OPS["once_differentiable"](x, message=message) if x.dtype.kind == "f" else x
                                     for x in xs])


def state_of(node: chainer.FunctionNode) -> Tuple[str, ...]:
    """The attributes with arrays that the lowering of a node changes in place."""
    return STATE.get(type(node.function if isinstance(node, FunctionAdapter) else node), ())


def symbolic_value(attribute: Any) -> Optional[Value]:
    """The graph value in an attribute that holds a captured number or array; None for a plain Python value.

    Without backprop nothing keeps the array, which may be written afterwards.
    """
    if is_captured(attribute) and not chainer.config.enable_backprop:
        return attribute.now()          # type: ignore[no-any-return]
    value = getattr(attribute, "value", None)
    return value if isinstance(value, Value) else None


def has_scipy() -> bool:
    """Without SciPy, Chainer takes slower functions, or says that it cannot."""
    return find_spec("scipy") is not None


def is_number(attribute: Any) -> bool:
    """Whether the attribute is a number; it may differ from call to call: `varies`."""
    return isinstance(attribute, (int, float, np.number, np.bool_))


def varies(*attributes: Any) -> bool:
    """Whether one of these is a number that differs from call to call, or that only the run knows: `number` gives its value."""
    return any(is_number(attribute) and hasattr(attribute, "capture") for attribute in attributes)


def may_be_input(attribute: Any, dtype: np.dtype) -> bool:
    """Whether an attribute varies, and arrays of this dtype hold numbers like it: half precision makes NumPy take a wider one."""
    return varies(attribute) and dtype.itemsize > 2


def are_ints(*attributes: Any) -> bool:
    """Whether the attributes are integers known now, or sizes."""
    return all(isinstance(attribute, (int, np.integer, Dim)) for attribute in attributes)


def size_of(x: Value) -> int:
    """The number of elements of an array."""
    return math.prod(x.shape)


def number_of(size: Any) -> Value:
    """A size as a 0-d array of float64."""
    if isinstance(size, int):
        return constant(size, np.float64)
    return OPS["scalar_to_tensor"](OPS["dimension"](size=size), dtype=np.dtype(np.float64))


def divisor(size: Any, dtype: np.dtype) -> Any:
    """A size to divide by: a number, or as a 0-d array of this dtype where only the run knows it."""
    return float(size) if isinstance(size, int) else OPS["cast"](number_of(size), dtype=dtype)


def are_there(*xs: Value) -> bool:
    """Whether no array is empty, whatever the sizes are that only the run knows."""
    return all(less(0, n) for x in xs for n in x.shape)


def array_in(attribute: Any, shape: Optional[Tuple[Any, ...]] = None, dtype: Any = None) -> Optional[Value]:
    """The array in an attribute as a value without gradient; None if it is none, or not of this shape and dtype."""
    if is_captured(attribute):
        value = OPS["stop_gradient"](attribute.now())
    elif type(attribute) is np.ndarray:
        value = constant(attribute)
    else:
        return None
    return value if shape in (None, value.shape) and dtype in (None, value.dtype) else None


def known_array(attribute: Any) -> Optional[np.ndarray]:
    """The array in an attribute if its contents are known now."""
    if is_captured(attribute):
        return attribute.capture.known.get(attribute.now())
    return attribute if type(attribute) is np.ndarray else None


def number(attribute: Any, dtype: np.dtype) -> Optional[Value]:
    """An attribute as a 0-d array of ``dtype``, cast as ``dtype.type(attribute)`` casts; None if it is no number."""
    value = symbolic_value(attribute)
    if value is None:
        return constant(dtype.type(attribute)) if is_number(attribute) else None
    if isinstance(value.type, Scalar):
        return OPS["scalar_to_tensor"](value, dtype=dtype)
    if isinstance(value.type, Tensor) and value.ndim == 0:
        return value if value.dtype == dtype else OPS["cast"](value, dtype=dtype)
    return None


def ints(attribute: Any) -> Optional[Tuple[int, ...]]:
    """An attribute that is an int or a sequence of ints, as a tuple; None if it is anything else."""
    items = attribute if isinstance(attribute, (tuple, list)) else (attribute,)
    return tuple(item.plain if isinstance(item, Dim) else int(item) for item in items) if are_ints(*items) else None


def are_fixed(*shapes: Any) -> bool:
    """Whether these tuples are there and hold only numbers that are known now."""
    return all(shape is not None and all(isinstance(n, (int, np.integer)) for n in shape) for shape in shapes)


def numbers_of_windows(sizes: Any, kernel: Any, stride: Any, pad: Any, dilate: Any, cover_all: Any) -> Optional[Tuple[int, ...]]:
    """How many windows there are along each axis; None for what is not known now or an error of Chainer's."""
    if not are_ints(*sizes) or not are_fixed(kernel, stride, pad, dilate) or not isinstance(cover_all, (bool, int)):
        return None
    if not len(sizes) == len(kernel) == len(stride) == len(pad) == len(dilate):
        return None
    if min((*kernel, *stride, *dilate), default=0) < 1 or min(pad) < 0:
        return None
    counts = tuple((n + 2 * p - (k - 1) * d - 1 + (s - 1 if cover_all else 0)) // s + 1
                   for n, k, s, p, d in zip(sizes, kernel, stride, pad, dilate))
    return counts if all(less(0, n) for n in counts) else None


def label_to_ignore(label: Any, dtype: np.dtype) -> Optional[Value]:
    """``ignore_label`` as a constant in the dtype of the labels; None if that dtype cannot hold it."""
    if not isinstance(label, (int, np.integer)) or dtype.kind not in "iu":
        return None
    return constant(label, dtype) if np.iinfo(dtype).min <= label <= np.iinfo(dtype).max else None
