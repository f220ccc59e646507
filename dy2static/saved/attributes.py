"""What attributes of nodes in a file may be.

Rules of ops trust their attributes to be what captures make, and generated code has them in its text: each is of the kind that
its name says here before anything else looks at it.
"""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, Tuple

import numpy as np

from ..errors import LoadError
from ..ir.dims import Dim
from ..ir.types import Dynamic, Extent, Never, Scalar, Stack, Tensor, Token, Union
from ..ir.types import List as ListType
from ..ops.gradient_rules import is_rule
from ..runtime.host_calls import EmptyCall
from .expressions import SYMBOL

#: Sizes and places are below that.
_LARGEST = 1 << 48

_TYPES = (Tensor, Scalar, ListType, Stack, Extent, Union, Never, Dynamic, Token)

Test = Callable[[Any], bool]


def _is_int(value: Any) -> bool:
    return type(value) is int and -_LARGEST < value < _LARGEST


def _is_size(value: Any) -> bool:
    return _is_int(value) or isinstance(value, Dim)


def _is_positive(value: Any) -> bool:
    return _is_size(value) and (isinstance(value, Dim) or value > 0)


def _is_number(value: Any) -> bool:
    return type(value) in (bool, int, float) or isinstance(value, (np.number, np.bool_))


def _is_type(value: Any) -> bool:
    return isinstance(value, _TYPES)


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _or_none(test: Test) -> Test:
    return lambda value: value is None or test(value)


def _tuple_of(test: Test) -> Test:
    return lambda value: type(value) is tuple and all(map(test, value))


def _either(*tests: Test) -> Test:
    return lambda value: any(test(value) for test in tests)


def _text(pattern: str) -> Test:
    known = re.compile(pattern)
    return lambda value: type(value) is str and known.fullmatch(value) is not None


def _is_a(*kinds: Any) -> Test:
    return lambda value: isinstance(value, kinds)


def _is_of(length: int, test: Test) -> Test:
    return lambda value: type(value) is tuple and len(value) == length and test(value)


_is_flag, _is_dtype, _letters, _word = _is_a(bool), _is_a(np.dtype), _text("[A-Za-z]*"), _text("[a-z_]+")
_ints, _sizes = _tuple_of(_is_int), _tuple_of(_is_size)
_slice = _is_of(3, _tuple_of(_or_none(_is_size)))
_basic = _either(_or_none(_is_size), _slice)
_index = _tuple_of(_either(_basic, _text("at")))
_window = _is_of(2, lambda value: value[0] == "at" and _is_int(value[1]) and value[1] > 0)


def _is_extent(value: Any) -> bool:
    return type(value) is tuple and len(value) == 3 and type(value[0]) is str and SYMBOL.fullmatch(value[0]) is not None \
        and _is_int(value[1]) and _is_int(value[2])


def _is_setting(value: Any) -> bool:
    """One of the keyword arguments of `numpy.pad`: its name, and numbers or a word."""
    plain = _either(_is_number, _word)
    return type(value) is tuple and len(value) == 2 and _word(value[0]) and \
        _either(plain, _tuple_of(_either(plain, _tuple_of(plain))))(value[1])


#: By the names of attributes.
KINDS: Dict[str, Test] = {
    **dict.fromkeys(("transa", "transb", "transc", "keepdims", "inverse", "counted", "runs", "cached", "closed", "finite", "stable",
                     "weighted", "mean", "gate", "is_last", "is_whole"),
                    _is_flag),
    **dict.fromkeys(("slope", "alpha", "beta", "exponent", "cap", "base", "low", "high", "delta", "margin", "k", "n", "scale",
                     "rmax", "dmax", "fill", "ignored", "value", "least", "greatest"), _is_number),
    **dict.fromkeys(("start", "stop", "step"), _either(_is_number, _is_size)),
    **dict.fromkeys(("x_min", "x_max", "eps", "order"), _or_none(_is_number)),
    **dict.fromkeys(("by", "reads", "tag", "offset", "count", "number"), _is_int),
    **dict.fromkeys(("shape", "sizes"), _sizes),
    **dict.fromkeys(("kernel", "stride", "dilate"), _or_none(_tuple_of(_is_positive))),     # NumPy's views trust them
    **dict.fromkeys(("inputs",), _tuple_of(_letters)),
    **dict.fromkeys(("output", "letters"), _letters),
    **dict.fromkeys(("mode", "function"), _word),
    **dict.fromkeys(("exception", "error"), _is_error),
    **dict.fromkeys(("type", "elem"), _is_type),
    "axes": _or_none(_ints), "axis": _or_none(_either(_is_int, _ints)), "carried": _or_none(_is_int), "dtype": _or_none(_is_dtype),
    "extent": lambda value: isinstance(value, Dim) and SYMBOL.fullmatch(str(value)) is not None,
    "extents": _tuple_of(_is_extent), "given": _text("[<>]*"), "groups": _is_positive,
    "index": _index, "keywords": _tuple_of(_is_setting),
    "message": _text(r"(?s).*"), "op": _text("[<>=!]=|[<>]"),
    "device": _text(""), "pad": _or_none(_sizes), "place": _text(""), "ratio": _tuple_of(_or_none(_is_int)),
    "refuse": _or_none(_is_a(EmptyCall)), "size": _either(_is_size, _sizes), "types": _tuple_of(_is_type),
    "width": _tuple_of(_is_of(2, _sizes)),
}

#: Of ops for which an attribute of this name is something else.
_OF_OPS: Dict[Tuple[str, str], Test] = {
    ("constant", "value"): _is_a(np.ndarray),
    # backends make these: no file has one
    **{("select", name): lambda value: False for name in ("begin", "end")},
    **{(op, name): lambda value: False for op in ("conv_blocks", "conv_transpose_blocks")
       for name in ("scale", "shift", "residual", "relu")},
    ("by_rule", "rule"): is_rule, ("by_rule", "given"): _or_none(_is_number),
    ("list_stack", "size"): _or_none(_is_size),
    ("list_array", "size"): _or_none(_is_size),
    ("from_blocks", "channels"): _is_positive, ("join_blocks", "channels"): _tuple_of(_is_positive),
    ("join_blocks", "order"): _tuple_of(_is_int),
    **{(op, "index"): _is_int for op in ("list_part", "list_alone")},
    **{(op, "index"): _tuple_of(_basic) for op in ("getitem", "scatter_slice")},
    **{(op, "index"): _tuple_of(_either(_basic, _text("at"), _window)) for op in ("getitem_at", "scatter_at")}}


def check(op: str, name: str, value: Any) -> None:
    """Raise `LoadError` unless an attribute is one of its kind."""
    test = _OF_OPS.get((op, name)) or KINDS.get(name)
    if test is None or not test(value):
        raise LoadError(f"the attribute {name} of {op} cannot be {str(value)[:60]}")
