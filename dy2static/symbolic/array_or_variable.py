"""What a run has as an array or as a Variable, by a decision on array values: functions of Chainer's take either."""
from __future__ import annotations

from typing import Any, NoReturn

import chainer
import numpy as np

from .values import SymbolicVariable

#: Attributes that are the same of both.
_ALIKE = frozenset(("shape", "ndim", "size", "dtype"))

#: Methods that Python itself calls on what it makes and forgets; all others tell arrays from Variables.
_OF_PYTHON = frozenset(("__new__", "__init__", "__del__", "__class__", "__getattribute__", "__getattr__", "__init_subclass__",
                        "__subclasshook__", "__class_getitem__"))


class ArrayOrVariable:
    """An array or a Variable of one shape and dtype.  Where code asks which of them it is, the decision is settled first.

    _variable: stands for it where a function of Chainer's is applied.  _words: what to say.
    """

    __slots__ = ("_variable", "_words")

    def __init__(self, variable: SymbolicVariable, words: str):
        object.__setattr__(self, "_variable", variable)
        object.__setattr__(self, "_words", words)

    def __getattribute__(self, name: str) -> Any:
        return getattr(variable_of(self)._data[0], name) if name in _ALIKE else _settle(self)


def variable_of(item: Any) -> Any:
    """The Variable that stands for such an item where a function of Chainer's is applied; others as they are."""
    return object.__getattribute__(item, "_variable") if type(item) is ArrayOrVariable else item


def _settle(item: ArrayOrVariable, *_: Any) -> NoReturn:
    """Stop the capture, so that what follows is captured once for each side of the decision."""
    variable = variable_of(item)
    decision = variable.__dict__["decision"]
    variable.capture.abort(object.__getattribute__(item, "_words"), hint="let both branches give the same kind of value",
                           because=variable, at=None if decision is None else decision[0].open.get(decision[1]))


_SPECIAL = [name for name in {*dir(np.ndarray), *dir(chainer.Variable)}.difference(_OF_PYTHON) if name.startswith("__") and
            (name == "__hash__" or callable(getattr(np.ndarray, name, None)) or callable(getattr(chainer.Variable, name, None)))]
for _name in _SPECIAL:
    setattr(ArrayOrVariable, _name, _settle)
