"""What a command is about: ``module:function`` and ``--input x=32x784:float32``, as a compiled function and its arguments."""
from __future__ import annotations

import ast
import importlib.util
import os
import pkgutil
import re
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import chainer
import click
import numpy as np

from dy2static.api import to_static
from dy2static.errors import SignatureError
from dy2static.pyast.source import misfit_of
from dy2static.static_function import BoundStaticFunction, StaticFunction, entry_point

FORMS = ("x=32x784:float32 (sizes:dtype; 32x784 is float32), t=32:int32<10 (whole numbers below 10), n=3 (a number, text, list), "
         "x=@array.npy")
_ARRAY = re.compile(r"(?P<sizes>\d+(x\d+)*)?:(?P<dtype>[a-z]+\d*)(<(?P<below>\d+))?|(?P<of_floats>\d+(x\d+)+)")
_NAMED = re.compile(r"(?P<name>[^\W\d]\w*)=(?P<value>.*)", re.DOTALL)


class Call(NamedTuple):
    """A compiled function and the arguments of one call.  eager: the same as it was written."""

    compiled: Any
    eager: Callable[..., Any]
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.eager.__qualname__


def target_argument(command: Any) -> Any:
    """A command with the argument TARGET."""
    return click.argument("target")(command)


def inputs_option(command: Any) -> Any:
    """A command with the option --input."""
    return click.option("--input", "-i", "inputs", multiple=True, metavar="[NAME=]VALUE",
                        help=f"An argument of the call; without a name, the next in order: {FORMS}. "
                             "Arrays are random, with seed 0.")(command)


def call_of(target: str, inputs: Sequence[str]) -> Call:
    """The call that a command line describes.  Raises `SignatureError` and `click.BadParameter`."""
    compiled, eager = compiled_of(target)
    args, kwargs = arguments_of(inputs)
    misfit = misfit_of(eager, args, kwargs)
    if misfit is not None:
        is_unbound = isinstance(eager, types.FunctionType) and eager.__code__.co_varnames[:1] == ("self",)
        raise SignatureError(f"{target} cannot be called with these inputs: {misfit}",
                             hint="name a method of an object, or a Link" if is_unbound else
                             f"give its arguments by --input: {FORMS}")
    return Call(compiled, eager, args, kwargs)


def compiled_of(target: str) -> Tuple[Any, Callable[..., Any]]:
    """The compiled function that ``module:name`` names, and the function as it was written.

    Raises `SignatureError`, also for an object that is not a function.
    """
    found = named(target)
    if isinstance(found, chainer.Link):
        found = getattr(found, entry_point(type(found)))
    if isinstance(found, (StaticFunction, BoundStaticFunction)):
        return found, found.python_function
    compiled = None if isinstance(found, type) or not callable(found) else to_static(found)
    if not isinstance(compiled, (StaticFunction, BoundStaticFunction)):
        raise SignatureError(f"{target} is no function of Python's, and no Link: {type(found).__name__}")
    return compiled, compiled.python_function


def named(target: str) -> Any:
    """What ``module:name.name`` or ``file.py:name`` names; a Link of a class of Links.  Raises `SignatureError`."""
    place, colon, name = target.rpartition(":")
    if not colon or not name or not place:
        raise SignatureError(f"{target!r} names no function", hint="write package.module:name or path/to/file.py:name")
    found: Any = _module(place)
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [other for other in vars(found) if not other.startswith("_") and callable(getattr(found, other))]
            raise SignatureError(f"there is no {target}", hint=f"there is {', '.join(known) or 'nothing to call'}") from None
    if isinstance(found, type) and issubclass(found, chainer.Link):
        try:
            return found()
        except TypeError as error:
            raise SignatureError(f"{name} cannot be made without arguments: {error}", hint="name an instance of it") from None
    return found


def _module(place: str) -> Any:
    if place.endswith(".py"):
        if not os.path.isfile(place):
            raise SignatureError(f"there is no file {place}")
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        spec: Any = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())                 # the command `dy2static` does not look there, `python -m` does
    try:
        return pkgutil.resolve_name(f"{place}:")
    except ModuleNotFoundError as error:
        if not place.startswith(error.name or "\0"):
            raise                                       # something that the module imports
        raise SignatureError(f"there is no module {place}", hint="run this in the folder that has it, or name a file") from None


def arguments_of(inputs: Sequence[str]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Positional and named arguments from the texts of ``--input``.  Raises `click.BadParameter`."""
    args: List[Any] = []
    kwargs: Dict[str, Any] = {}
    random = np.random.RandomState(0)
    for text in inputs:
        named = _NAMED.fullmatch(text)
        if named is None:
            args.append(_value(text, random))
        else:
            kwargs[named["name"]] = _value(named["value"], random)
    return tuple(args), kwargs


def _value(text: str, random: np.random.RandomState) -> Any:
    array = _ARRAY.fullmatch(text)
    if array is not None:
        return _random_array(array, text, random)
    if text.startswith("@"):
        try:
            found = np.load(text[1:])
            if not isinstance(found, np.ndarray):
                raise ValueError("it holds several; save one by numpy.save")
            return found
        except (OSError, ValueError, EOFError) as error:
            raise click.BadParameter(f"{text[1:]} cannot be read as an array: {error}", param_hint="--input") from None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise click.BadParameter(f"{text!r} is neither an array nor a value; these are: {FORMS}", param_hint="--input") from None


def _random_array(found: Any, text: str, random: np.random.RandomState) -> np.ndarray:
    try:
        dtype = np.dtype(found["dtype"] or np.float32)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "biufc":
        raise click.BadParameter(f"there is no dtype {found['dtype']!r} of numbers ({text})", param_hint="--input")
    sizes = found["sizes"] or found["of_floats"]
    shape = tuple(map(int, sizes.split("x"))) if sizes else ()
    if found["below"] or dtype.kind in "iu":
        try:
            drawn = random.randint(0, int(found["below"] or 2), shape, dtype if dtype.kind in "iu" else int)
        except ValueError as error:
            raise click.BadParameter(f"no {dtype} is below {found['below']} ({text}): {error}", param_hint="--input") from None
        return np.asarray(drawn).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(random.rand(*shape) < 0.5)
    return np.asarray(random.uniform(-1, 1, shape)).astype(dtype)
