"""The source of a function, found from its code object and checked against it."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import types
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from dy2static.errors import Location, SourceNotFoundError
from dy2static.pyast import timed_cells
from dy2static.pyast.excerpt import excerpt
from dy2static.threads.quiet import quiet

Definition = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda]
_Entry = Tuple[Definition, Optional[str], int]  # with the class around it, and its top-level statement

# the low bits are other flags of code objects (the flag of `nested_scopes` also means: a nested function)
FUTURE_FLAGS = (
    functools.reduce(
        lambda flags, name: flags | getattr(__future__, name).compiler_flag, __future__.all_feature_names, 0
    )
    & ~0xFFF
)

_POSITIONS = "co_linetable" if hasattr(types.CodeType, "co_linetable") else "co_lnotab"
_HINT = (
    "put the function in a file (or a notebook cell); functions typed at a prompt, made by exec, "
    "or written in C run eagerly"
)
_NO_FILES = ("<string>", "<stdin>")  # Python 3.13 knows the text of one piece of code under such a name
_HINT_CHANGED = "the file was edited after it was imported, or code was changed on import; restart Python"


class Source(NamedTuple):
    """Where one function was written, and its text.

    ``text`` is the dedented source of exactly this code object, decorators included; ``node`` its own syntax
    tree, shared, not to be changed; ``class_name`` the class around it, which mangles ``__private`` names.
    """

    file: str
    first_line: int
    text: str
    name: str
    code: types.CodeType
    node: Definition
    class_name: Optional[str]
    lines: Tuple[str, ...]


def future_flags(code: types.CodeType) -> int:
    """The ``from __future__`` imports that ``code`` was compiled under, as flags for ``compile``."""
    return code.co_flags & FUTURE_FLAGS


def misfit_of(function: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[str]:
    """Why a function does not take these arguments, in Python's words; None where it does."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        return str(error)
    return None


def by_position(function: Any, given: Sequence[Tuple[Optional[str], Any]]) -> Tuple[Any, ...]:
    """Arguments by position: those with the name of a parameter are its own, others the next in order; defaults stand between them.

    Raises TypeError, in Python's words, where the function does not take them.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    names = {parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD}
    named = [(name, value) for name, value in given if name in names]
    if len(named) > len(dict(named)):
        raise TypeError("the same argument is given twice")
    bound = signature.bind(*[value for name, value in given if name not in names], **dict(named))
    while parameters and parameters[-1].name not in bound.arguments:
        parameters.pop()
    for parameter in parameters:
        bound.arguments.setdefault(parameter.name, parameter.default)
    return bound.args


def fetch(function: Any) -> Source:
    """Find the source of ``function`` from its code object; wrappers are never looked through.

    The definition found at the code object's line is compiled and must give the same bytecode, so that an
    edited file never silently stands for other code than what runs.

    Raises SourceNotFoundError.
    """
    code = getattr(function, "__code__", None)
    name = getattr(function, "__qualname__", None) or repr(function)
    if not isinstance(code, types.CodeType):
        raise SourceNotFoundError(f"{name} has no Python source: it is {_kind(function)}", hint=_HINT)
    found_text = False
    for text in _texts(function, code):
        found_text = True
        with quiet():
            found = _alone(function, code, text) or _file(code.co_filename, text, future_flags(code)).find(code)
        if found is not None:
            node, class_name = found
            lines = tuple(text.splitlines())
            return Source(
                code.co_filename,
                code.co_firstlineno,
                _text(node, lines),
                code.co_name,
                code,
                node,
                class_name,
                lines,
            )
    if found_text and code.co_filename not in _NO_FILES:
        raise SourceNotFoundError(
            f"the source found for {name} is not the code that runs",
            at=Location(code.co_filename, code.co_firstlineno, 0, name),
            hint=_HINT_CHANGED,
        )
    raise SourceNotFoundError(
        f"the source of {name} cannot be read: no file {code.co_filename!r}", hint=_HINT
    )


def _alone(
    function: types.FunctionType, code: types.CodeType, text: str
) -> Optional[Tuple[Definition, Optional[str]]]:
    """What `_File.find` gives, from the lines of the definition only; None if they do not compile to ``code``."""
    found = excerpt(code, function.__qualname__, text.splitlines(True), function.__globals__)
    if found is None:
        return None
    node, class_name, module = found
    try:
        made = compile(module, code.co_filename, "exec", future_flags(code), dont_inherit=True)
    except (SyntaxError, RecursionError):  # an edited file may parse and yet not compile; trees compile less deep than text
        return None
    return (node, class_name) if any(_same(code, inner) for inner in _nested(made)) else None


def _kind(function: Any) -> str:
    if isinstance(function, type):
        return "a class"
    if isinstance(
        function, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)
    ):
        return "a function written in C"
    return f"an object of type {type(function).__name__}"


def text_of_file(function: types.FunctionType) -> Optional[str]:
    """The text of the file in which a function is looked for first; None where there is no such file."""
    code = function.__code__
    return None if code.co_filename.startswith("<") else next(_texts(function, code), None)


def _texts(function: Any, code: types.CodeType) -> Iterator[str]:
    """The texts the module may come from: its file, then what its loader, which may have edited it, shows."""
    namespace = getattr(function, "__globals__", {})
    linecache.checkcache(code.co_filename)
    text = "".join(linecache.getlines(code.co_filename, namespace))
    if text:
        yield text
    if code.co_filename == timed_cells.FILE:
        yield from timed_cells.timed_texts()
    get_source = getattr(namespace.get("__loader__"), "get_source", None)
    if get_source is None or namespace.get("__file__") != code.co_filename:
        return
    try:
        loaded = get_source(namespace.get("__name__"))
    except (ImportError, OSError, SyntaxError):
        return
    if loaded and loaded != text:
        yield loaded


def _text(node: Definition, lines: Tuple[str, ...]) -> str:
    if isinstance(node, ast.Lambda):
        return ast.get_source_segment("\n".join(lines), node) or ""
    block = lines[_first_line(node) - 1 : node.end_lineno]
    indent = block[0][: len(block[0]) - len(block[0].lstrip())]
    return "\n".join(line[len(indent) :] if line.startswith(indent) else line for line in block) + "\n"


def _first_line(node: ast.AST) -> int:
    decorators = getattr(node, "decorator_list", None)
    return decorators[0].lineno if decorators else node.lineno  # type: ignore[attr-defined]


@functools.lru_cache(maxsize=64)
def _file(name: str, text: str, flags: int) -> "_File":
    return _File(name, text, flags)


class _File:
    """One parsed source file, searched by line, compiled one top-level statement at a time."""

    def __init__(self, name: str, text: str, flags: int):
        self.name, self.text, self.flags = name, text, flags
        self.codes: Dict[int, List[types.CodeType]] = {}
        self.lambdas: Dict[ast.AST, Optional[types.CodeType]] = {}
        try:
            self.statements = ast.parse(text, name).body
        except SyntaxError:
            self.statements = []

    def find(self, code: types.CodeType) -> Optional[Tuple[Definition, Optional[str]]]:
        """The definition that compiles to ``code``, and the name of the class around it."""
        candidates = [
            entry
            for entry in self._defined_at(code.co_firstlineno)
            if getattr(entry[0], "name", "<lambda>") == code.co_name
        ]
        if len(candidates) == 1:
            node, class_name, index = candidates[0]
            if any(_same(code, other) for other in self._compiled(index)):
                return node, class_name
            return None
        return self._find_lambda(code, candidates)

    def _defined_at(self, line: int) -> List[_Entry]:
        """The definitions that begin on a line."""
        return [
            (node, class_name, index)
            for index, statement in enumerate(self.statements)
            if _is_around(statement, line)
            for node, class_name in _definitions(statement, line)
            if _first_line(node) == line
        ]

    def _find_lambda(
        self, code: types.CodeType, candidates: List[_Entry]
    ) -> Optional[Tuple[Definition, Optional[str]]]:
        """Tell lambdas that begin on one line apart: by their bytecode, then by the columns it carries."""
        bare = code.replace(co_firstlineno=1)
        same = [
            entry
            for entry in candidates
            if _same(bare, self._alone_at(code.co_firstlineno, entry, candidates))
        ]
        spans = list(_columns(code))
        inside = [entry[:2] for entry in same if all(_contains(entry[0], span) for span in spans)]
        # columns of a lambda lie in those around it too: take the one that begins last
        return max(inside, key=lambda entry: (entry[0].lineno, entry[0].col_offset), default=None)

    def _compiled(self, index: int) -> List[types.CodeType]:
        if index not in self.codes:
            try:
                self.codes[index] = list(_nested(self._compile(self.statements, index)))
            except SyntaxError:  # an edited file may parse and yet not compile
                self.codes[index] = []
        return self.codes[index]

    def _alone_at(self, line: int, entry: _Entry, candidates: List[_Entry]) -> Optional[types.CodeType]:
        node = entry[0]
        if node not in self.lambdas:
            self.lambdas[node] = self._compiled_alone(line, entry, candidates)
        return self.lambdas[node]

    def _compiled_alone(self, line: int, entry: _Entry, candidates: List[_Entry]) -> Optional[types.CodeType]:
        """The code of one of several lambdas of a line: compiled in its place, but on a line of its own."""
        index = entry[2]
        number = [other for other in candidates if other[2] == index].index(entry)
        statements = ast.parse(self.text, self.name).body
        chosen = [
            node
            for node, _ in _definitions(statements[index], line)
            if isinstance(node, ast.Lambda) and node.lineno == line
        ][number]
        chosen.lineno = chosen.end_lineno = marker = len(self.text) + 2
        for code in _nested(self._compile(statements, index)):
            if code.co_firstlineno == marker:
                return code.replace(co_firstlineno=1)
        return None

    def _compile(self, statements: List[ast.stmt], index: int) -> types.CodeType:
        """One top-level statement, with the imports: calls of imported names compile differently."""
        kept = [
            statement
            for number, statement in enumerate(statements)
            if number == index
            or not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
        # a notebook cell may await at its top level
        flags = self.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        try:
            return compile(ast.Module(kept, []), self.name, "exec", flags, dont_inherit=True)
        except RecursionError:  # compiling a tree gives up earlier than compiling text
            return compile(self.text, self.name, "exec", flags, dont_inherit=True)


def _is_around(node: ast.AST, line: int) -> bool:
    """Whether a node has a line in it; those that do not tell may have."""
    end = getattr(node, "end_lineno", None)
    return end is None or _first_line(node) <= line <= end


def _definitions(statement: ast.AST, line: int) -> Iterator[Tuple[Definition, Optional[str]]]:
    """The functions in a statement around a line, outer before inner, left to right, with the class around them."""
    pending: List[Tuple[ast.AST, Optional[str]]] = [(statement, None)]
    while pending:
        node, class_name = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node, class_name
        in_class = node.body if isinstance(node, ast.ClassDef) else []
        pending += reversed(
            [
                (child, node.name if child in in_class else class_name)  # type: ignore[attr-defined]
                for child in ast.iter_child_nodes(node)
                if _is_around(child, line)
            ]
        )


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


def _same(running: types.CodeType, compiled: Optional[types.CodeType]) -> bool:
    """Whether two code objects do the same: equal but for file name and columns."""
    if compiled is None or (running.co_name, running.co_firstlineno) != (
        compiled.co_name,
        compiled.co_firstlineno,
    ):
        return False
    if any(name.startswith("@py") for name in running.co_names):
        return _same_but_for_asserts(running, compiled)
    return _bare(running) == _bare(compiled)


def _bare(code: types.CodeType) -> types.CodeType:
    """``code`` without columns, which a .pyc may lack; ``replace`` drops what the interpreter specialised."""
    consts = tuple(_bare(const) if isinstance(const, types.CodeType) else const for const in code.co_consts)
    without: Dict[str, Any] = {_POSITIONS: b""}
    return code.replace(co_consts=consts, **without)


def _same_but_for_asserts(running: types.CodeType, compiled: types.CodeType) -> bool:
    """pytest rewrites ``assert`` on import: then only names and signature can be compared."""
    count = compiled.co_argcount + compiled.co_kwonlyargcount
    return (
        running.co_argcount,
        running.co_kwonlyargcount,
        running.co_freevars,
        running.co_varnames[:count],
    ) == (
        compiled.co_argcount,
        compiled.co_kwonlyargcount,
        compiled.co_freevars,
        compiled.co_varnames[:count],
    ) and set(compiled.co_names) <= set(running.co_names) | {"AssertionError"}


def _columns(code: types.CodeType) -> Iterator[Tuple[int, int, int, int]]:
    """Where the instructions of ``code`` come from: (line, end line, column, end column)."""
    for position in getattr(code, "co_positions", tuple)():
        if None not in position and position[2:] != (0, 0):
            yield position


def _contains(node: Definition, span: Tuple[int, int, int, int]) -> bool:
    line, end_line, column, end_column = span
    return (node.lineno, node.col_offset) <= (line, column) and (end_line, end_column) <= (
        node.end_lineno,
        node.end_col_offset,
    )
