"""Texts made from symbolic values: the host makes them at every run, for `print`, messages and results."""
from __future__ import annotations

import operator
from typing import Any, Callable, Dict, Mapping, Tuple

import chainer
import numpy as np

from ..capture_context import CaptureContext
from ..ir.types import Dynamic
from ..runtime.functions import format_value, join
from ..threads.quiet import quiet
from .abstract_eval import stand_in
from .host_objects import SymbolicObject
from .known_texts import SymbolicText, TextKeyed, is_expression
from .size_trials import without_sizes
from .sizes import Shape
from .values import SymbolicArray, SymbolicScalar, SymbolicVariable, is_symbolic

#: Of what is a part of texts, what can be asked for its text: nobody else's code runs.
_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic)


class _Unlike(Exception):
    """There is nothing like a value."""


def _like(item: Any) -> Any:
    """Something of the same type, with other contents.  Raises `_Unlike`."""
    kind = type(item)
    if kind is SymbolicScalar:
        return item.python_type()
    if kind is SymbolicArray and all(type(n) is int for n in item.shape):
        return stand_in(item.type, 0)
    if isinstance(item, SymbolicVariable):
        return chainer.Variable(_like(item._data[0]))
    if kind is SymbolicText:
        return item.hint
    if kind in (tuple, dict):
        return tuple(map(_like, item)) if kind is tuple else {key: _like(part) for key, part in item.items()}
    if isinstance(item, _PLAIN):
        return item
    raise _Unlike


def check_format(function: Callable, args: Tuple, kwargs: Mapping[str, Any]) -> None:
    """Raise what a function that formats raises for values of these types, whatever they are: as eagerly, right here."""
    try:
        given = _like(args), _like(dict(kwargs))
    except _Unlike:
        return
    with quiet():                                       # the run will warn
        function(*given[0], **given[1])


def text_of_run(capture: CaptureContext, function: Callable, args: Tuple, name: str = "") -> SymbolicObject:
    """What a function that gives a text, and only computes, gives in each run."""
    if function in (format_value, operator.mod):
        check_format(function, args, {})
    found = capture.host.call(function, args, {}, (Dynamic(),), name=name)
    return SymbolicObject(capture, found.value, is_text=True)


def is_unknown_error(value: Any) -> bool:
    """Whether a value is an exception whose text is known at run time only."""
    return isinstance(value, BaseException) and any(is_symbolic(part) for part in value.args)


def with_numbers(value: Any) -> Any:
    """The value with numbers of the graph for sizes that are not known, if it is a size or a shape."""
    return tuple(map(without_sizes, value)) if type(value) is Shape else without_sizes(value)


def _is_unknown(capture: CaptureContext, value: Any) -> bool:
    """Whether the text of a value is known at run time only."""
    if type(value) is SymbolicScalar:
        return value.text is None
    if type(value) is tuple:
        return any(type(part) is SymbolicScalar and part.text is None for part in value)
    return type(value) in (SymbolicArray, SymbolicObject) and getattr(value, "value", None) not in capture.known or \
        isinstance(value, SymbolicVariable) or is_unknown_error(value)


def format_(capture: CaptureContext, value: Any, spec: str = "", conversion: str = "") -> Any:
    """``f"{value!conversion:spec}"``."""
    if type(value) is SymbolicText and value.python_type is str and not spec and conversion in ("", "s"):
        return value
    value = with_numbers(value)
    unknown = _is_unknown(capture, value)
    if not unknown and (is_expression(value) and type(spec) is str or is_expression(spec)):
        return capture.texts.call(format_value, (value, spec, conversion))
    if not unknown:
        return NotImplemented
    return text_of_run(capture, format_value, (value, spec, conversion), name="format")


def fstring(capture: CaptureContext, *parts: Any) -> Any:
    """The parts of an f-string as one text."""
    if not any(_is_unknown(capture, part) for part in parts):
        return capture.texts.call(join, parts) if any(map(is_expression, parts)) else NotImplemented
    return text_of_run(capture, join, parts, name="fstring")


def percent(capture: CaptureContext, template: str, values: Any) -> Any:
    """``template % values``."""
    values = tuple(map(with_numbers, values)) if type(values) is tuple else with_numbers(values)
    given: Tuple = values if type(values) is tuple else tuple(values.values()) if type(values) is dict else (values,)
    if not any(_is_unknown(capture, value) for value in given):
        return capture.texts.call(operator.mod, (template, values), pattern="({} % {})") if any(map(is_expression, given)) \
            else NotImplemented
    return text_of_run(capture, operator.mod, (template, values), name="percent")


def dict_(capture: CaptureContext, *pairs: Tuple[Any, Any]) -> Any:
    """A dict with keys some of which are expressions that give a text."""
    constant = [key for key, _ in pairs if type(key) is not SymbolicText]
    if not all(type(key) in (str, bytes, int, float, bool, type(None)) for key in constant) or len(set(constant)) < len(constant):
        return NotImplemented
    return TextKeyed(capture, pairs) if len(constant) < len(pairs) else NotImplemented


#: What takes over the functions of `dy` that make texts, and dicts with such keys.
HANDLERS: Dict[str, Callable[..., Any]] = {"format_": format_, "fstring": fstring, "percent": percent, "dict_": dict_}
