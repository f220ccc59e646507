"""Whether a failure at the user's running line would be caught, or cleaned up after, by code of the user's.

A program does not run ``except``, ``finally`` and ``__exit__`` when one of its nodes fails, so such nodes must not be
captured under them.
"""
from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import gc
import linecache
import sys
import types
from typing import Any, List, NamedTuple, Optional, Tuple

from chainer import Reporter

from ..errors import Location
from ..threads.quiet import quiet
from .locations import is_standard, is_user_file
from .object_shadows import ShadowBase, class_of
from .ownership import is_library

#: Context managers that only change settings of Chainer.
_SETTINGS = ("using_config", "no_backprop_mode", "force_backprop_mode", "init_scope", "using_device")

#: In `co_flags`, of the code of functions.
_OF_FUNCTION = 0x1

#: References to the dict of a frame's names that nobody got from ``locals()``: the frame's, one of our own, and that of the count.
_OF_FRAME_ONLY = 3


class Block(NamedTuple):
    """The body of a ``try`` or ``with``: its lines, the context managers of a ``with``, and the name of the function it is in."""

    first: int
    last: int
    managers: Tuple[Any, ...] = ()
    function: str = ""


def is_protected(entry: types.CodeType, has_generators: bool) -> bool:
    """Whether a frame between here and the function that ``entry`` is the code of runs inside such a block.

    has_generators: whether there may be a generator that waits inside of one: it is ended where an exception leaves the frame
    that holds it.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not entry:
        if _is_inside(frame) or has_generators and any(_is_inside(waiting.gi_frame) for waiting in _generators_of(frame)):
            return True
        frame = frame.f_back
    return False


def leaves_generators(error: BaseException) -> bool:
    """Whether the traceback of an exception holds generators that wait inside such a block: they end when it is forgotten."""
    step = error.__traceback__
    while step is not None:
        if any(_is_inside(waiting.gi_frame) for waiting in _generators_of(step.tb_frame)):
            return True
        step = step.tb_next
    return False


def _is_inside(frame: Optional[types.FrameType]) -> bool:
    """Whether a frame is at a line of a block that cleans up, or catches."""
    if frame is None:                                   # of a generator that has ended
        return False
    file, decorates = frame.f_code.co_filename, _is_contextlib(frame)
    if not decorates and not _may_be_users(file):
        return False
    return any(block.first <= frame.f_lineno <= block.last and not _is_harmless(block, frame)
               for block in _blocks(file) if block.managers or not decorates)


def _generators_of(frame: types.FrameType) -> List[types.GeneratorType]:
    """The generators that local names of a frame stand for, or that iterators hold that they stand for."""
    names = frame.f_locals
    waiting, seen, found = [item for item in names.values() if _is_iterator(item)], set(), []
    if type(names) is dict and frame.f_code.co_flags & _OF_FUNCTION and sys.getrefcount(names) <= _OF_FRAME_ONLY:
        names.clear()                                   # before Python 3.13 the frame would keep what it held
    while waiting:
        item = waiting.pop()
        if id(item) not in seen:
            seen.add(id(item))
            found += [item] if type(item) is types.GeneratorType else []
            waiting += [part for part in gc.get_referents(item) if type(part) is tuple or _is_iterator(part)]
    return found


def _is_contextlib(frame: types.FrameType) -> bool:
    """Whether a frame runs code of contextlib.  Its globals are not asked: those of converted code note what is read of them."""
    return frame.f_code.co_filename == contextlib.__file__


def _is_iterator(item: Any) -> bool:
    return type(item).__module__ in ("builtins", "itertools") and hasattr(type(item), "__next__")


#: Methods of which Python itself catches some exceptions: the end of items, and what there is not.
_ASKED = {IndexError: ("__getitem__",), TypeError: ("__len__", "__length_hint__")}


def is_caught_by_python(error: BaseException, entry: types.CodeType) -> bool:
    """Whether Python or its library may catch an exception from functions of the user's that it calls.

    entry: the code of the function below which these run.
    """
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not entry:
        code, file = frame.f_code, _file_of(frame)
        if is_user_file(file):
            by_name = any(code.co_name in names for kind, names in _ASKED.items() if isinstance(error, kind))
            if by_name or isinstance(error, StopIteration) or isinstance(error, AttributeError) and _may_give_attribute(code):
                return True
        elif is_standard(file) and _catches(frame, file, error):
            return True
        frame = frame.f_back
    return False


def _may_give_attribute(code: types.CodeType) -> bool:
    """Whether code may be that of a property, of which `getattr`, `hasattr` and ``__getattr__`` catch AttributeError."""
    return code.co_argcount <= 1 or code.co_name in ("__getattr__", "__getattribute__", "__get__")


def _file_of(frame: Any) -> str:
    """The file of the code that a frame runs, also if that is a part of the interpreter."""
    file = frame.f_code.co_filename
    return frame.f_globals.get("__file__", file) if file.startswith("<frozen ") else file


def _catches(frame: Any, file: str, error: BaseException) -> bool:
    """Whether a frame is in a ``try`` of a file that catches the exception."""
    for tried in _tries_in(_Text(linecache.getlines(file))):
        if tried.body[0].lineno <= frame.f_lineno <= _last(tried.body):
            names = [name for handler in tried.handlers for name in _names_in(handler.type)]
            kinds = [frame.f_globals.get(name, getattr(builtins, name, BaseException)) for name in names]
            if any(isinstance(kind, type) and isinstance(error, kind) for kind in kinds):
                return True
    return False


def _names_in(expression: Optional[ast.expr]) -> List[str]:
    """The names of exceptions; "" for what is none."""
    parts = expression.elts if isinstance(expression, ast.Tuple) else [expression]
    return ["BaseException" if part is None else getattr(part, "id", "") for part in parts]


@functools.lru_cache(maxsize=64)
def _tries_in(text: "_Text") -> Tuple[ast.Try, ...]:
    try:
        return tuple([node for node in ast.walk(ast.parse("".join(text.lines))) if isinstance(node, ast.Try)])
    except (SyntaxError, ValueError, RecursionError):
        return ()


def may_be_caught(place: Location) -> bool:
    """Whether a failure at this place, or at one of its callers, would be caught or cleaned up after, as far as the lines tell."""
    return any(block.first <= line.line <= block.last and _is_in(line, block) and not _changes_settings(block)
               for line in (place, *place.callers) if _may_be_users(line.file) for block in _blocks(line.file))


def _is_in(line: Location, block: Block) -> bool:
    """Whether a line in the text of a block runs in it: the block may only make the function, which another place calls."""
    return block.function in ("", line.function.rpartition(".")[2])


def _changes_settings(block: Block) -> bool:
    """Whether it is a ``with`` that only changes settings of Chainer."""
    return bool(block.managers) and all(isinstance(expression, ast.Call) and _last_name(expression.func) in _SETTINGS
                                        for expression in block.managers)


def _last_name(expression: ast.expr) -> str:
    return getattr(expression, "attr", getattr(expression, "id", ""))


def _may_be_users(file: str) -> bool:
    """Whether a file is the user's; text that was compiled under a made-up name may be."""
    return is_user_file(file) or file.startswith("<") and bool(linecache.getlines(file))

#: Where statements hold statements.
_STATEMENTS = ("body", "handlers", "orelse", "finalbody", "cases")


def _blocks(file: str) -> Tuple[Block, ...]:
    return _blocks_in(_Text(linecache.getlines(file)))


class _Text:
    """The lines of a file as `linecache` holds them: another list after the file has changed."""

    def __init__(self, lines: List[str]):
        self.lines = lines

    def __hash__(self) -> int:
        return id(self.lines)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Text) and self.lines is other.lines


@functools.lru_cache(maxsize=256)
def _blocks_in(text: _Text) -> Tuple[Block, ...]:
    try:
        with quiet():
            tree = ast.parse("".join(text.lines))
    except (SyntaxError, ValueError, RecursionError):
        return (Block(1, sys.maxsize),)
    found: List[Block] = []
    waiting: List[Tuple[Any, str]] = [(tree, "")]
    while waiting:
        node, function = waiting.pop(0)
        function = node.name if isinstance(node, ast.FunctionDef) else function
        for field in _STATEMENTS:                       # in expressions there are none
            waiting += [(inner, function) for inner in getattr(node, field, ())]
        if isinstance(node, ast.With):
            managers = tuple(item.context_expr for item in node.items)
            found.append(Block(_entered(node), _last(node.body), managers, function))
        elif type(node).__name__ in ("Try", "TryStar"):
            body = node.body + (node.orelse + [s for h in node.handlers for s in h.body] if node.finalbody else [])
            found.append(Block(node.body[0].lineno, _last(body), (), function))
    return tuple(found)


def _entered(node: ast.With) -> int:
    """The line from which on a manager may have been entered: where there are several, or a target that is no name, the head's."""
    is_sure = len(node.items) == 1 and isinstance(node.items[0].optional_vars, (type(None), ast.Name))
    return node.body[0].lineno if is_sure else node.lineno


def _last(body: List[ast.stmt]) -> int:
    return max(getattr(statement, "end_lineno", statement.lineno) for statement in body)


def _is_harmless(block: Block, frame: Any) -> bool:
    """Whether all managers are a library's, like ``chainer.using_config``: programs never enter those."""
    return bool(block.managers) and all(_is_library_manager(expression, frame) for expression in block.managers)


def _is_reporter(item: Any) -> bool:
    """Whether an object is a reporter of Chainer's own, or its shadow."""
    return (class_of(item) if issubclass(type(item), ShadowBase) else type(item)) is Reporter


def _is_library_manager(expression: Any, frame: Any) -> bool:
    if _is_contextlib(frame):                           # a manager that decorates a function
        manager = frame.f_locals.get("self")
        return is_library(getattr(getattr(manager, "func", type(manager)), "__module__", None) or "")
    names: List[str] = []
    step = expression.func if isinstance(expression, ast.Call) else expression
    while isinstance(step, ast.Attribute):
        names.append(step.attr)
        step = step.value
    if not isinstance(step, ast.Name):
        return False
    for space in (frame.f_locals, frame.f_globals, vars(builtins)):
        if step.id in space:
            found = space[step.id]
            break
    else:
        return False
    for name in reversed(names):
        if not isinstance(found, types.ModuleType) and not issubclass(type(found), ShadowBase):
            return is_library(getattr(type(found), "__module__", "")) and name == "init_scope"
        if name == "scope" and _is_reporter(found):
            return True
        found = getattr(found, name, None)
    if _is_reporter(found):
        return True
    module = getattr(found, "__module__", None) or ""
    return is_library(module) and module != "contextlib" and getattr(found, "__name__", type(found).__name__) != "errstate"
