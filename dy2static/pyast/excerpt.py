"""One definition of a file parsed on its own: what most functions need, at the cost of their own lines only."""

from __future__ import annotations

import ast
import types
from typing import Any, Iterator, Mapping, Optional, Sequence, Tuple, Union

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]

#: So many lines that could be the first one after the definition are tried.
_TRIALS = 6


def excerpt(
    code: types.CodeType, qualname: str, lines: Sequence[str], namespace: Mapping[str, Any]
) -> Optional[Tuple[Function, Optional[str], ast.Module]]:
    """The ``def`` that begins at the line of ``code``, the class around it, and a module that holds both.

    lines: of the file, with their ends.  namespace: the globals of the function; calls of what is imported compile
    differently.  None where the lines alone do not tell, as for lambdas and functions in functions.
    """
    path = qualname.split(".")
    if path[-1] != code.co_name or "<locals>" in path or code.co_freevars not in ((), ("__class__",)):
        return None
    class_name = path[-2] if len(path) > 1 else None
    imported = sorted(
        name for name in _names(code) if isinstance(namespace.get(name), types.ModuleType) and name.isidentifier()
    )
    around = f"class {class_name}:" if class_name is not None else "if 1:"
    for block in _blocks(lines, code.co_firstlineno - 1):
        is_indented = block[0][:1] in (" ", "\t")
        if class_name is not None and not is_indented or is_indented and code.co_firstlineno == 1:
            return None
        # on its own lines; where in the module the imports stand makes no difference
        empty = "\n" * (code.co_firstlineno - 1 - is_indented)
        head = [empty, around + "\n"] if is_indented else [empty]
        try:
            module = ast.parse("".join([*head, *block, "\n", *(f"import {name}\n" for name in imported)]))
        except (SyntaxError, RecursionError, MemoryError):  # too deep for the parser, too
            continue
        first: Any = module.body[0]
        node = first.body[0] if is_indented else first
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != code.co_name:
            return None
        return node, class_name, module
    return None


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)


def _blocks(lines: Sequence[str], first: int) -> Iterator[Sequence[str]]:
    """What the definition may be, from its first line to one that is indented no deeper; a string or a bracket may
    make that line part of it."""
    if first >= len(lines):
        return
    indent = len(lines[first]) - len(lines[first].lstrip())
    seen, trials = False, 0
    for end in range(first, len(lines)):
        text = lines[end].lstrip()
        if seen and text and not text.startswith("#") and len(lines[end]) - len(text) <= indent:
            yield lines[first:end]
            trials += 1
            if trials == _TRIALS:
                return
        seen = seen or text.startswith(("def ", "async "))
    if seen:
        yield lines[first:]
