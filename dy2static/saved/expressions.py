"""Arithmetic as lists: ``["+", ["*", 2, "n"], 1]`` for ``2 * n + 1``, of sizes and of numbers that a call computes with."""
from __future__ import annotations

import ast
import operator
import re
from typing import Any, Callable, Dict, Mapping, Set

from ..errors import LoadError, SaveError
from ..ir.dims import Dim, Size
from ..ir.size_bounds import maximum

#: What a value may be called.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: What the symbol of a size may be called: it is a name in generated code.  ``_from5`` says that it is no less than 5,
#: ``_upto64`` that it is no more than 64.
SYMBOL = re.compile(r"(?:length|size)_(?:(?!_from|_upto)[a-z0-9_]){1,40}(?:_from[0-9]{1,9})?(?:_upto[0-9]{1,9})?")

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Div: "/", ast.Mod: "%", ast.Pow: "**",
           ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not"}
_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_OF_ONE, _OF_TWO = frozenset(_UNARY.values()), frozenset([*_BINARY.values(), *_COMPARED.values()])
_OF_SIZES: Dict[str, Callable[..., Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv}

#: Deeper ones are not taken.
_DEEPEST = 40


def parsed(text: str) -> Any:
    """The lists of an expression of ours.  Raises `SaveError` for one of another kind."""
    return _lists(ast.parse(text, mode="eval").body, text)


def _lists(node: ast.expr, text: str) -> Any:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return [_BINARY[type(node.op)], _lists(node.left, text), _lists(node.right, text)]
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return [_UNARY[type(node.op)], _lists(node.operand, text)]
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        return [_COMPARED[type(node.ops[0])], _lists(node.left, text), _lists(node.comparators[0], text)]
    if isinstance(node, ast.Compare) and len(node.ops) == 2 and all(type(op) in _COMPARED for op in node.ops):
        ends = [node.left, *node.comparators]           # of an interval
        return ["&", *[[_COMPARED[type(op)], _lists(a, text), _lists(b, text)] for op, a, b in zip(node.ops, ends, ends[1:])]]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return ["call", node.func.id, *[_lists(argument, text) for argument in node.args]]
    raise SaveError(f"the expression {text} cannot be written into a file")


def size_of(lists: Any, depth: int = 0) -> Size:
    """The size that lists stand for.  Raises `LoadError`."""
    if type(lists) is int:
        return lists
    if type(lists) is str and SYMBOL.fullmatch(lists):
        return Dim(lists)
    if type(lists) is list and len(lists) > 1 and depth < _DEEPEST:
        if lists[:2] == ["call", "max"] and len(lists) > 2:
            return maximum(*[size_of(part, depth + 1) for part in lists[2:]])
        parts = [size_of(part, depth + 1) for part in lists[1:]]
        if lists[0] == "-" and len(parts) == 1:
            return -parts[0]
        if type(lists[0]) is str and lists[0] in _OF_SIZES and len(parts) == 2:
            try:
                return _OF_SIZES[lists[0]](*parts)
            except ZeroDivisionError:
                pass
    raise LoadError(f"{str(lists)[:80]} is not a size")


def text_of(lists: Any, numbers: Set[str], functions: Mapping[str, Any], depth: int = 0) -> str:
    """The expression as text again, made of nothing but arithmetic on these numbers and calls of these functions."""
    if type(lists) is bool or type(lists) is int:
        return repr(lists)
    if type(lists) is float and lists - lists == 0:
        return repr(lists)
    if type(lists) is str and lists in numbers:
        return lists
    if type(lists) is list and depth < _DEEPEST and len(lists) > 1 and type(lists[0]) is str:
        if lists[0] == "call" and type(lists[1]) is str and (lists[1] in functions or lists[1] == "abs"):
            return f"{lists[1]}({', '.join([text_of(part, numbers, functions, depth + 1) for part in lists[2:]])})"
        parts = [text_of(part, numbers, functions, depth + 1) for part in lists[1:]]
        if len(parts) == 2 and lists[0] in _OF_TWO:
            return f"({parts[0]} {lists[0]} {parts[1]})"
        if len(parts) == 1 and lists[0] in _OF_ONE:
            return f"({lists[0]} {parts[0]})"
    raise LoadError(f"{str(lists)[:80]} is not an expression over numbers")
