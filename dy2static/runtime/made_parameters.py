"""Parameters that a compiled call makes: Chainer's own calls, which draw initial values as they do eagerly."""
from __future__ import annotations

import copy
from typing import Any, Dict, List, Tuple

import chainer
import numpy as np
from chainer.initializers import Constant, generate_array


def make_parameter(args: Tuple, kwargs: Dict[str, Any]) -> List[Any]:
    """A Parameter, and its array if it has one."""
    return _with_array(chainer.Parameter(*map(_made, args), **{name: _made(item) for name, item in kwargs.items()}))


def copy_parameter(parameter: chainer.Parameter, deep: bool) -> List[Any]:
    """A copy of a Parameter, and its array if it has one."""
    return _with_array(copy.deepcopy(parameter) if deep else copy.copy(parameter))


def make_array(initializer: Any, shape: Any, dtype: Any) -> List[np.ndarray]:
    """An array that an initializer has filled."""
    return [generate_array(_made(initializer), shape, np, dtype)]


def initialize(parameter: chainer.Parameter, shape: Any) -> List[Any]:
    """Initialize a Parameter.  Gives its array."""
    parameter.initialize(shape)
    return [parameter.array]


def rename(parameter: chainer.Parameter, name: Any) -> List[Any]:
    """Give a Parameter a name."""
    parameter.name = name
    return []


def cleargrad(parameter: chainer.Parameter) -> List[Any]:
    """Clear the gradient of a Parameter."""
    parameter.cleargrad()
    return []


def _with_array(parameter: chainer.Parameter) -> List[Any]:
    return [parameter] if parameter.array is None else [parameter, parameter.array]


def _made(item: Any) -> Any:
    """An argument itself; of what is given as (`Constant`, its value, its dtype), the initializer."""
    return Constant(*item[1:]) if type(item) is tuple and item[:1] == (Constant,) else item
