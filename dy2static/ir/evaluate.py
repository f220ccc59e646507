"""Runs the text of a NumPy template by walking its tree, so that the interpreter needs no generated code."""
from __future__ import annotations

import ast
import functools
import operator
from typing import Any, Callable, Dict

import numpy as np

_OPERATORS: Dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.Not: operator.not_, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.Invert: operator.invert,
}
#: The names a template may use besides its operands.
BUILTINS: Dict[str, Any] = {f.__name__: f for f in (abs, bool, float, int, len, max, slice)}
BUILTINS["np"] = np


def evaluate(text: str, names: Dict[str, Any]) -> Any:
    """The value of an expression over these names, NumPy as ``np`` and a few builtins."""
    return _value(_parse(text, "eval").body, names)     # type: ignore[attr-defined]


def execute(text: str, names: Dict[str, Any]) -> None:
    """Run statements: calls, and assignments to parts of an array."""
    for statement in _parse(text, "exec").body:         # type: ignore[attr-defined]
        value = _value(statement.value, names)
        if isinstance(statement, ast.Assign):
            (target,) = statement.targets
            _value(target.value, names)[_value(target.slice, names)] = value    # type: ignore[attr-defined]


@functools.lru_cache(maxsize=4096)
def _parse(text: str, mode: str) -> ast.AST:
    return ast.parse(text, mode=mode)


def _value(node: Any, names: Dict[str, Any]) -> Any:
    return _RULES[type(node)](node, names)


def _call(node: ast.Call, names: Dict[str, Any]) -> Any:
    keywords = {keyword.arg: _value(keyword.value, names) for keyword in node.keywords}
    return _value(node.func, names)(*(_value(arg, names) for arg in node.args), **keywords)    # type: ignore[arg-type]


def _slice(node: ast.Slice, names: Dict[str, Any]) -> slice:
    return slice(*(None if part is None else _value(part, names) for part in (node.lower, node.upper, node.step)))


_RULES: Dict[type, Callable[[Any, Dict[str, Any]], Any]] = {
    ast.Constant: lambda node, names: node.value,
    ast.Name: lambda node, names: names[node.id] if node.id in names else BUILTINS[node.id],
    ast.Attribute: lambda node, names: getattr(_value(node.value, names), node.attr),
    ast.Call: _call,
    ast.Subscript: lambda node, names: _value(node.value, names)[_value(node.slice, names)],
    ast.Slice: _slice,
    ast.Tuple: lambda node, names: tuple(_value(item, names) for item in node.elts),
    ast.List: lambda node, names: [_value(item, names) for item in node.elts],
    ast.BinOp: lambda node, names: _OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names)),
    ast.UnaryOp: lambda node, names: _OPERATORS[type(node.op)](_value(node.operand, names)),
    ast.Compare: lambda node, names: _OPERATORS[type(node.ops[0])](
        _value(node.left, names), _value(node.comparators[0], names)),
}
