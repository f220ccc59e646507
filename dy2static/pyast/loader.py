"""Makes a tree a Python function again, with the user's file and lines, any globals and any cells."""

from __future__ import annotations

import itertools
import linecache
import operator
import sys
import types
import weakref
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import gast

from dy2static.errors import InternalError
from dy2static.pyast.parser import RESERVED, reporting_depth
from dy2static.pyast.source import future_flags
from dy2static.pyast.trees import written
from dy2static.threads.quiet import quiet

_FACTORY = "_dy_factory"
_STAGED = "_dy_staged"

#: The module that had a file when it was looked for.
_names: Dict[str, str] = {}

#: How many modules there were when none had a file: such files are looked for again after further imports.
_missing: Dict[str, int] = {}
_MOST_MISSING = 1024


class LoadedFunction:
    """The compiled form of one converted function; ``instantiate`` binds it."""

    def __init__(self, code: types.CodeType):
        self.code = code

    def instantiate(
        self,
        globals: Dict[str, Any],
        cells: Mapping[str, Any],
        dy: Any,
        like: types.FunctionType,
    ) -> types.FunctionType:
        """A new function with these ``globals`` (used as they are, also a subclass of dict) and ``dy`` as ``_dy``.

        ``cells`` has a cell for every free variable of the original function.  Defaults, annotations, names
        and docstring are those of ``like``.
        """
        closure = tuple(
            types.CellType(dy) if name == RESERVED else self._cell(name, cells)
            for name in self.code.co_freevars
        )
        made = types.FunctionType(self.code, globals, like.__name__, like.__defaults__, closure)
        made.__kwdefaults__ = like.__kwdefaults__ and dict(like.__kwdefaults__)
        made.__annotations__ = dict(like.__annotations__)
        made.__qualname__, made.__module__, made.__doc__ = like.__qualname__, like.__module__, like.__doc__
        return made

    def _cell(self, name: str, cells: Mapping[str, Any]) -> Any:
        if name not in cells:
            raise InternalError(f"no cell for the free variable {name!r} of {self.code.co_name}")
        return cells[name]


def load(tree: gast.FunctionDef, function: types.FunctionType) -> LoadedFunction:
    """Compile ``tree``, the converted form of ``function``.

    File name, lines and ``__future__`` imports are those of that function.

    Nothing is executed: the code object is taken out of a compiled module that surrounds the function with
    what it needs, a scope that has its free variables and ``_dy``, and a class of the right name for
    ``__private`` names and ``super()``.
    """
    original = function.__code__
    with reporting_depth(getattr(tree, "origin", None)), quiet():
        module: Any = written(_surround(tree, original.co_freevars))
        code: Any = compile(module, original.co_filename, "exec", future_flags(original), dont_inherit=True)
    around = [_FACTORY] if tree.class_name is None else [_FACTORY, tree.class_name]
    for name in around + [_STAGED]:
        code = next(
            const for const in code.co_consts if isinstance(const, types.CodeType) and const.co_name == name
        )
    is_global = tree.class_name is not None and tree.class_name not in original.co_freevars
    path = ".".join(([] if is_global else [_FACTORY, "<locals>"]) + around[1:] + [_STAGED])
    qualname = getattr(original, "co_qualname", function.__qualname__)      # not the name that a decorator gave it
    return LoadedFunction(_renamed(code, path, qualname, original.co_name))


def _surround(tree: gast.FunctionDef, free: Tuple[str, ...]) -> gast.Module:
    """A module with the function in a class (if it was in one) in a function that has its free variables."""
    args = tree.args
    bare = gast.arguments(
        args.args,
        args.posonlyargs,
        args.vararg,
        args.kwonlyargs,
        [None] * len(args.kwonlyargs),
        args.kwarg,
        [],
    )
    staged = gast.FunctionDef(_STAGED, bare, tree.body, [], None, None, [])
    body: List[gast.AST] = [gast.copy_location(staged, tree)]
    if tree.class_name is not None:
        body = [gast.copy_location(gast.ClassDef(tree.class_name, [], [], body, [], []), tree)]
        if tree.class_name not in free:
            body.insert(
                0, gast.Global([tree.class_name])
            )  # where the function reads that name, it is not this class
    names = [RESERVED] + [name for name in free if name not in (RESERVED, "__class__")]
    params = [gast.Name(name, gast.Param(), None, None) for name in names]
    factory = gast.FunctionDef(
        _FACTORY, gast.arguments(params, [], None, [], [], None, []), body, [], None, None, []
    )
    return gast.Module([gast.copy_location(factory, tree)], [])


def _renamed(code: types.CodeType, path: str, qualname: str, name: Optional[str] = None) -> types.CodeType:
    """``code`` with the names its functions had before, outermost ``path`` becoming ``qualname``.

    The compiler writes qualified names into the code objects (3.11) or, before that, next to them as
    constants.
    """

    def restored(text: str) -> str:
        return qualname + text[len(path) :] if text == path or text.startswith(path + ".") else text

    consts = tuple(
        _renamed(const, path, qualname)
        if isinstance(const, types.CodeType)
        else restored(const)
        if isinstance(const, str)
        else const
        for const in code.co_consts
    )
    changes: Dict[str, Any] = {"co_consts": consts}
    if hasattr(code, "co_qualname"):
        changes["co_qualname"] = restored(code.co_qualname)
    if name is not None:
        changes["co_name"] = name
    return code.replace(**changes)


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code objects in a code object, outer ones first."""
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield const
            yield from codes_in(const)


class Places(NamedTuple):
    """Where lines of generated text come from: one file of the user's, and a line of it for each line of the text."""

    file: str
    lines: Sequence[int]


#: What begins the names of the files of generated code; the last constant of code that has a file of the user's is such a name.
_GENERATED = "<dy2static"


def is_generated(code: types.CodeType) -> bool:
    """Whether code was generated, also where it has the user's file and lines."""
    return code.co_filename.startswith(_GENERATED) or is_placed(code)


def is_placed(code: types.CodeType) -> bool:
    """Whether code was generated and has a file of the user's."""
    last = code.co_consts[-1] if code.co_consts else None
    return type(last) is str and last.startswith(_GENERATED)


def text_of(code: types.CodeType) -> str:
    """The name under which `linecache` has the text of generated code."""
    return code.co_consts[-1] if is_placed(code) else code.co_filename


def line_in_text(code: types.CodeType, instruction: int, line: int) -> int:
    """The line in its text where generated code is.  instruction, line: those of a frame or of a traceback."""
    if not is_placed(code):
        return line
    return next(itertools.islice(code.co_positions(), instruction // 2, None))[2] or 0


def _placed(code: types.CodeType, places: Places) -> types.CodeType:
    """The code at the user's lines, with the lines that it has as columns.  The instructions are the same."""
    table, line = bytearray(), places.lines[0]
    for number, ranges in itertools.groupby(code.co_lines(), operator.itemgetter(2)):     # a line has many, one after the other
        length = sum([end - start for start, end, _ in ranges])
        if number is None:
            first = rest = b""
        else:
            column = _unsigned(number + 1)
            rest = b"\0\0" + column + column          # no further line, on one line, from the column to it
            first = rest if places.lines[number - 1] == line else _signed(places.lines[number - 1] - line) + rest[1:]
            line = places.lines[number - 1]
        for left in range(length // 2, 0, -8):        # an entry for each eight instructions
            table.append((0xF8 if number is None else 0xF0) | min(left, 8) - 1)
            table += first
            first = rest
    return code.replace(co_filename=places.file, co_firstlineno=places.lines[0], co_linetable=bytes(table),
                        co_consts=(*code.co_consts, code.co_filename))


def _signed(number: int) -> bytes:
    return _unsigned(-number << 1 | 1 if number < 0 else number << 1)


def _unsigned(number: int) -> bytes:
    """A number as Python's tables of locations have it: six bits in each byte, the lowest first."""
    found = bytearray()
    while number > 63:
        found.append(number & 63 | 64)
        number >>= 6
    return bytes((*found, number))


def _can_be_placed(places: Places) -> bool:
    """Whether the places may be those of code: they may come from a file."""
    fits = 0 < min(places.lines) and max(places.lines) < 1 << 30 and "\0" not in places.file
    return fits and sys.version_info >= (3, 11)


def _in_file(code: types.CodeType, filename: str) -> types.CodeType:
    """The same code of the same text under another name."""
    if code.co_filename == filename:
        return code
    constants = [_in_file(x, filename) if isinstance(x, types.CodeType) else x for x in code.co_consts]
    return code.replace(co_filename=filename, co_consts=tuple(constants))


def module_of(file: str) -> str:
    """The name of the module that has this file; that of the program where none has it."""
    count = len(sys.modules)                            # a program may have imported thousands
    for names in ((_names.get(file, "__main__"),), sys.modules if _missing.get(file) != count else ()):
        for name in tuple(names):
            if getattr(sys.modules.get(name), "__dict__", {}).get("__file__") == file:
                _names[file] = name
                return name
    if len(_missing) >= _MOST_MISSING:
        _missing.clear()
    _missing[file] = count
    return "__main__"


def compile_text(
    source: str, filename: str, namespace: Mapping[str, Any], places: Optional[Places] = None,
    keep: Optional[Callable[[str, Callable[[], types.CodeType]], types.CodeType]] = None
) -> Dict[str, Any]:
    """What the definitions in ``source`` give, run in a copy of ``namespace``.

    The text is kept in `linecache` under ``filename``, which need not be a file: tracebacks and pdb show it.

    places: the file and the lines that its frames shall have, for warnings that NumPy gives there.  Nobody else
    shall take them for the user's: `is_generated` tells them apart, and `line_in_text` their lines in ``source``.

    keep: ``keep(source, make)`` gives the code, which it may have from another file of the same text; ``make()`` compiles it.
    """
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    result = dict(namespace)
    is_at_lines = places is not None and _can_be_placed(places)
    if is_at_lines:
        result["__name__"] = module_of(places.file)
    def make() -> types.CodeType:
        return compile(source, filename, "exec", dont_inherit=True)
    exec(make() if keep is None else _in_file(keep(source, make), filename), result)
    for name, made in result.items():
        if name not in namespace and isinstance(made, types.FunctionType):
            made.__code__ = _placed(made.__code__, places) if is_at_lines else made.__code__
            weakref.finalize(made, linecache.cache.pop, filename, None).atexit = False
    return result
