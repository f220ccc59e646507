"""What is known of Python's operators, of its builtins, and of functions and modules of its standard library."""
from __future__ import annotations

import builtins
import collections
import copy
import functools
import itertools
import logging
import operator
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet

import chainer

from .table import members, named, read


@dataclass(frozen=True)
class Operator:
    """A function of `operator` that has a symbol.

    kind: "binary", "comparison" or "unary".  in_place: the function that does the same into its first operand, element by element.
    """

    function: Callable[..., Any]
    symbol: str
    kind: str
    in_place: Any = None

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__


OPERATORS = (
    Operator(operator.add, "+", "binary", operator.iadd), Operator(operator.sub, "-", "binary", operator.isub),
    Operator(operator.mul, "*", "binary", operator.imul), Operator(operator.truediv, "/", "binary", operator.itruediv),
    Operator(operator.floordiv, "//", "binary", operator.ifloordiv), Operator(operator.mod, "%", "binary", operator.imod),
    Operator(operator.pow, "**", "binary", operator.ipow), Operator(operator.matmul, "@", "binary"),
    Operator(operator.lshift, "<<", "binary", operator.ilshift), Operator(operator.rshift, ">>", "binary", operator.irshift),
    Operator(operator.and_, "&", "binary", operator.iand), Operator(operator.or_, "|", "binary", operator.ior),
    Operator(operator.xor, "^", "binary", operator.ixor),
    Operator(operator.lt, "<", "comparison"), Operator(operator.le, "<=", "comparison"), Operator(operator.gt, ">", "comparison"),
    Operator(operator.ge, ">=", "comparison"), Operator(operator.eq, "==", "comparison"), Operator(operator.ne, "!=", "comparison"),
    Operator(operator.neg, "-", "unary"), Operator(operator.pos, "+", "unary"), Operator(operator.invert, "~", "unary"))


def symbols(*kinds: str) -> Dict[Callable[..., Any], str]:
    """The operators of some kinds, and how they are written."""
    return {row.function: row.symbol for row in OPERATORS if row.kind in kinds}


#: What writes into its first operand, and the function that gives what is written.
IN_PLACE: Dict[Callable[..., Any], Callable[..., Any]] = {
    row.in_place: row.function for row in OPERATORS if row.in_place is not None}

#: Functions of ``operator``.
OPERATOR_FUNCTIONS = read("""
saved follows sure: abs add and_ eq ge gt invert le lt mul ne neg not_ or_ pos sub xor
saved follows sure sizes: contains
saved follows: floordiv inv lshift matmul mod pow rshift truediv
saved sizes: getitem
saved: concat iadd iand ifloordiv ilshift imatmul imod imul index ior ipow irshift is_ is_not isub itruediv ixor setitem truth
""")

#: Builtins.
BUILTINS = read("""
pure saved numbers follows sure: abs
pure saved numbers: round
pure saved follows sure leaves: bool float
pure saved follows leaves: int
pure saved sizes leaves: len
pure saved text leaves: str
pure saved: enumerate list max min reversed sorted sum tuple zip
pure inspects leaves: isinstance
pure leaves: range
leaves: complex type
pure: all any dict
saved numbers: divmod pow
saved text leaves: repr
saved host impure leaves: print
text: ascii format
inspects leaves: getattr hasattr
inspects: callable
host impure frames: eval exec locals
host impure leaves: id
host impure: __import__ globals input open
host: compile
impure: delattr setattr
frames_bare inspects: dir vars
""")

#: Functions of ``math``, besides those that NumPy has, too; all may be in a file.
MATH = read("""
follows: ceil floor isfinite isinf isnan
""")

#: Methods of texts and containers.
METHODS = read("""
saved reads text: format join
reads text: lower strip upper
text: capitalize casefold center expandtabs ljust lstrip removeprefix removesuffix replace rjust rstrip swapcase title
    translate zfill
reads: array count endswith get index items keys split startswith values
""")

#: Functions of ``random`` and methods of its generators: they all draw.
RANDOM = read("""
saved items: choice choices sample
saved: betavariate expovariate gammavariate gauss lognormvariate normalvariate paretovariate randint random randrange triangular
    uniform vonmisesvariate weibullvariate
refused: shuffle
state: getstate seed setstate
""")

#: Functions of ``inspect`` and ``asyncio``.
INSPECT = read("""
inspects: isasyncgenfunction isbuiltin isclass iscoroutinefunction isfunction isgeneratorfunction ismethod ismodule isroutine
""")
ASYNCIO = read("inspects: iscoroutinefunction")

FUNCTOOLS = read("calls: reduce")
ITERTOOLS = read("calls: accumulate dropwhile filterfalse groupby starmap takewhile")
LOGGING = read("silent: critical debug error exception info log warning")
TIME = read("""
clock: monotonic perf_counter process_time time
silent: sleep
""")


def builtin(mark: str) -> FrozenSet[Any]:
    """The builtins with a mark."""
    return frozenset(found for _, found in members(builtins, mark, BUILTINS))


#: What is given to these to call is called by C code.
CALLING: FrozenSet[Any] = frozenset((map, filter, *(
    found for owner, table in ((functools, FUNCTOOLS), (itertools, ITERTOOLS)) for _, found in members(owner, "calls", table))))

#: Modules whose C code takes functions as any other object, and calls none of them, but for what may call.
KEEPING_MODULES = ("builtins", "collections", "itertools", "math", "operator", "_operator", "types")
MAY_CALL: FrozenSet[Any] = CALLING | {max, min, sorted, iter, property, classmethod, staticmethod, collections.defaultdict}

#: Functions written in Python that call none of those that they are given.
KEEPING: FrozenSet[Any] = frozenset((
    chainer.using_config, copy.copy, copy.deepcopy, functools.update_wrapper, functools.wraps))

#: Functions that give the time, and those that log.
CLOCKS = tuple(found for _, found in members(time, "clock", TIME))
LOGGING_CALLS = tuple(found for _, found in members(logging, "silent", LOGGING))

#: Names of functions and methods that log, and the levels of those that have one of their own.
LOGGED = named("silent", LOGGING)
LOG_LEVELS = {name: getattr(logging, name.upper()) for name in LOGGED if hasattr(logging, name.upper())}

#: Names of functions and methods of ``logging`` that change no levels.
LEAVING_LEVELS = LOGGED | frozenset(("getLogger", "isEnabledFor", "getEffectiveLevel", "hasHandlers"))

#: Functions that ask whether something is a function, a method, a class or a module, by the modules that define them.
KIND_QUESTIONS = {"inspect": named("inspects", INSPECT), "asyncio.coroutines": named("inspects", ASYNCIO)}

#: Names by which code of Python's own is known to do more than to compute.
IMPURE = named("impure", BUILTINS)

#: Instructions that change something, or read what is not looked at where a function is judged by its code.
CHANGING = ("STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_GLOBAL", "DELETE_ATTR", "DELETE_SUBSCR",
            "IMPORT_NAME", "LOAD_NAME")

#: Modules of the standard library whose functions only compute.
PURE_MODULES = frozenset("""
    math operator _operator builtins functools _functools itertools collections _collections collections.abc _collections_abc copy
    dataclasses typing string re textwrap numbers statistics fractions decimal types abc _abc keyword enum bisect _bisect heapq
    _heapq cmath contextlib copyreg numpy warnings_registry
    """.split())

#: Those of them whose functions compute with numbers.
NUMBER_MODULES = frozenset(("math", "operator", "_operator"))

#: Modules with classes whose class methods look at the clock or the system.
CLOCK_MODULES = frozenset(("datetime", "_datetime", "_pydatetime", "pathlib", "pathlib._local", "uuid"))
