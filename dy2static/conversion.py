"""Source to source for one function: parse, transform, load; kept while its code lives, and on disk for later processes."""
from __future__ import annotations

import difflib
import functools
import logging
import sys
import types
import weakref
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

import gast

from . import config, transformers
from .errors import SignatureError
from .ir.digest import digest
from .native import kept
from .options import did_you_mean
from .pyast.loader import LoadedFunction, codes_in, load
from .pyast.parser import definition_of, parse
from .pyast.printer import lines_of, unparse
from .pyast.scopes import walk
from .pyast.source import text_of_file
from .pyast.trees import copy_of, first_line
from .threads.locks import lock

log = logging.getLogger("dy2static")


class Converted(NamedTuple):
    """The converted form of a function: the code that runs, and its tree, unless the code is another process's."""

    loaded: LoadedFunction
    tree: Optional[gast.FunctionDef] = None


#: By the identity of code objects: equal ones may come from two files.
_converted: Dict[int, Converted] = {}

#: How to make the trees of functions that have no text of their own: parts of others.  By the identity of code objects.
_made: Dict[int, Callable[[], gast.FunctionDef]] = {}

#: Python 3.11 counts the depth of trees per process, not per thread: two conversions at once confuse it.
_lock = lock()


def tree_of(function: types.FunctionType) -> gast.FunctionDef:
    """The definition of a function, as `parser.parse` describes it; the caller may change it.

    Raises SourceNotFoundError and UnsupportedSyntaxError.
    """
    make = _made.get(id(function.__code__))
    return parse(function) if make is None else make()


def load_made(make: Callable[[], gast.FunctionDef], function: types.FunctionType) -> LoadedFunction:
    """The compiled form of a function that is made of pieces of another one, and that can be converted like it."""
    loaded = load(make(), function)
    code = loaded.code
    _made[id(code)] = make
    weakref.finalize(code, _made.pop, id(code), None).atexit = False
    return loaded


def load_around(tree: gast.FunctionDef, function: types.FunctionType) -> LoadedFunction:
    """The compiled form of a changed function that stays Python; the functions in it can be converted."""
    loaded = load(tree, function)
    classes = {method: node.name for node in walk(*tree.body) if isinstance(node, gast.ClassDef) for method in node.body}
    inner: Dict[Tuple[str, int], List[gast.AST]] = {}
    for node in walk(*tree.body):
        if isinstance(node, gast.FunctionDef):
            inner.setdefault((node.name, first_line(node)), []).append(node)
        elif isinstance(node, gast.Lambda):
            inner.setdefault(("<lambda>", node.lineno), []).append(node)
    for code in codes_in(loaded.code):
        nodes = inner.get((code.co_name, code.co_firstlineno), ())
        if len(nodes) == 1:                             # of several lambdas on one line, it is not known which this is
            node = nodes[0]
            _made[id(code)] = functools.partial(_inner, node, tree, classes.get(node, tree.class_name))
            weakref.finalize(code, _made.pop, id(code), None).atexit = False
    return loaded


def _inner(node: gast.AST, around: gast.FunctionDef, class_name: Optional[str]) -> gast.FunctionDef:
    """The definition of a function in another one, as `parser.parse` describes it."""
    made = copy_of(node)
    is_lambda = isinstance(made, gast.Lambda)
    if is_lambda:
        made = definition_of(made)
    made.decorator_list, made.is_lambda, made.class_name = [], is_lambda, class_name
    made.postponed = around.postponed
    for name in ("names", "bound", "deleted", "keywords", "attributes"):
        setattr(made, name, set(getattr(around, name)))
    made.names.add(made.name)
    return made


def source_of(function: types.FunctionType) -> str:
    """The transformed source of a function.

    Raises SourceNotFoundError and UnsupportedSyntaxError.
    """
    tree = _conversion_of(function).tree
    if tree is None:
        with _lock:
            tree = transformers.apply(transformers.PIPELINE, tree_of(function))
    return unparse(tree)


def _conversion_of(function: types.FunctionType) -> Converted:
    """The conversion of a function, made on first use."""
    code = function.__code__
    found = _converted.get(id(code))
    if found is not None:
        return found
    with _lock:
        key = _key_of(function)
        found = _kept(key)
        if found is None:
            tree = transformers.apply(transformers.PIPELINE, tree_of(function), _log_after(function))
            found = Converted(load(tree, function), tree)
            _keep(key, found.loaded)
        _converted[id(code)] = found
    weakref.finalize(code, _converted.pop, id(code), None).atexit = False
    if config.VERBOSITY.value >= 2:
        log.warning("converted %s (%s:%d)", function.__qualname__, code.co_filename, code.co_firstlineno)
    return found


def _key_of(function: types.FunctionType) -> str:
    """The hash of everything that a conversion is made from; "" where it is not kept.

    The code that runs is a part of it, and the text of its file: as long as both are the same, the one is of the other.
    """
    code, gast_version = function.__code__, getattr(gast, "__version__", None)
    if gast_version is None or id(code) in _made or config.CODE_LEVEL.value or not kept.is_wanted():
        return ""
    text = text_of_file(function)
    if text is None:
        return ""
    return digest((kept.version(), sys.version, sys.flags.optimize, gast_version, function.__qualname__, code, text))


def _kept(key: str) -> Optional[Converted]:
    """What an earlier process has made under this key."""
    code = kept.kept_code(key) if key else None
    return None if code is None else Converted(LoadedFunction(code))


def _keep(key: str, loaded: LoadedFunction) -> None:
    """Keep the code of a conversion for later processes."""
    if key:
        kept.keep_code(key, loaded.code)


def converted_codes() -> Set[types.CodeType]:
    """The code of all functions that are converted."""
    return {found.loaded.code for found in list(_converted.values())}


def convert(function: types.FunctionType) -> LoadedFunction:
    """The compiled form of a function's conversion.

    Raises SourceNotFoundError and UnsupportedSyntaxError.
    """
    return _conversion_of(function).loaded


def levels_of(given: Any) -> Tuple[str, ...]:
    """What was asked for: names of transformers and numbers in lower case, ``all``, ``last``, ``diff``.

    given: one, several in a list, or a text of several with commas.
    Raises `SignatureError` for a level that names no transformer.
    """
    names = [transformer.__name__ for transformer in transformers.PIPELINE]
    known = {name.lower() for name in (*names, *_LEVELS)} | {str(k) for k in range(1, len(names) + 1)}
    several = given if isinstance(given, (list, tuple, set)) else str(given).split(",")
    asked = [str(level).strip() for level in several if str(level).strip()]
    for level in asked:
        if level.lower() not in known:
            is_number = level.lstrip("-").isdigit()
            raise SignatureError(f"{level} is not a transformer: there are {', '.join(names)}, numbers from 1 to {len(names)}, "
                                 f"and {' and '.join(_LEVELS[:2])}",
                                 hint='"last" is the source that is compiled' if is_number else
                                      did_you_mean(level, (*names, *_LEVELS)))
    return tuple([level.lower() for level in asked])


_LEVELS = ("all", "last", "diff")


def _check_environment() -> None:
    try:
        levels_of(config.CODE_LEVEL.value)
    except SignatureError as error:
        config.CODE_LEVEL.ignore(f"{config.CODE_LEVEL.name} is ignored: {error.args[0]}")


_check_environment()


class Stage(NamedTuple):
    """One transformer of a conversion: its place in the pipeline (from 1), its name, and the source around it.

    lines: the user's line for each line of the source after it on which a statement begins.
    """

    number: int
    name: str
    before: str
    after: str
    lines: Mapping[int, int] = {}

    def is_wanted(self, levels: Sequence[str]) -> bool:
        """Whether these levels (names, numbers, ``all``, ``last``) ask for this one."""
        last = self.number == len(transformers.PIPELINE)
        return "all" in levels or self.name.lower() in levels or str(self.number) in levels or (last and "last" in levels)

    def text(self, diff: bool = False) -> str:
        """The source after the transformer, or what it changed."""
        if not diff:
            return self.after
        lines = difflib.unified_diff(self.before.splitlines(), self.after.splitlines(), "before", self.name, lineterm="")
        return "\n".join(lines) or "(no change)"


def stages_of(function: types.FunctionType) -> List[Stage]:
    """Every step of a conversion, made again for this.

    Raises SourceNotFoundError and UnsupportedSyntaxError.
    """
    found: List[Stage] = []
    with _lock:
        tree = tree_of(function)
        texts = [unparse(tree)]

        def after(transformer: Any, tree: gast.FunctionDef) -> None:
            texts.append(unparse(tree))
            found.append(Stage(len(found) + 1, transformer.__name__, *texts[-2:], lines_of(tree, texts[-1])))
        transformers.apply(transformers.PIPELINE, tree, after)
    return found


def _log_after(function: types.FunctionType) -> Any:
    levels = levels_of(config.CODE_LEVEL.value)
    if not levels:
        return lambda transformer, tree: None
    diff = "diff" in levels
    texts = [unparse(tree_of(function))]

    def after(transformer: Any, tree: gast.FunctionDef) -> None:
        texts.append(unparse(tree))
        stage = Stage(len(texts) - 1, transformer.__name__, *texts[-2:])
        if stage.is_wanted(levels):
            log.warning("After transformer %d '%s' of %s:\n%s", stage.number, stage.name, function.__qualname__,
                        stage.text(diff))
    return after
