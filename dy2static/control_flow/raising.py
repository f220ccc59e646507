"""Exceptions under a decision: the host makes them again when the program runs."""
from __future__ import annotations

import copyreg
import dis
import sys
import types
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy as np
from chainer.utils.type_check import InvalidType

from ..capture_context import CaptureContext
from ..heap.aborts import CaptureAborted
from ..heap.locations import OURS, is_user_code
from ..heap.wording import names_ours
from ..ir.building import Builder
from ..ir.size_needed import SizeNeeded
from ..ir.types import Scalar
from ..runtime import dy
from ..symbolic.lists import StagedList
from ..symbolic.values import SymbolicArray

#: What built-in exceptions hold beside arguments and attributes; of others that hold more, subclasses are not made again.
_STATE = {SystemExit: ("code",), StopIteration: ("value",), ImportError: ("msg", "name", "path", "name_from"),
          NameError: ("name",), AttributeError: ("name", "obj"),
          OSError: ("errno", "strerror", "filename", "filename2")}


#: In `co_flags`, of the code of a generator function.
GENERATOR = 0x20


class Left(Exception):
    """Code of the user's raised an exception that is no `Exception`, as `SystemExit`."""


#: Instructions of Python's that fail on numbers and containers that are what they are on this way through the function.
_FAILING = {ZeroDivisionError: ("BINARY_", "INPLACE_"), IndexError: ("BINARY_SUBSCR",), KeyError: ("BINARY_SUBSCR",)}

#: What Python says of None where code takes items of it or goes through them: in a capture, nothing else is None.
_OF_NONE = frozenset([("'NoneType' object is not subscriptable",), ("'NoneType' object is not iterable",),
                      ("cannot unpack non-iterable NoneType object",)])


def is_raised(error: BaseException) -> bool:
    """Whether a ``raise`` statement made the exception, or Python for plain operands; others may come from what is symbolic."""
    if type(error) is RuntimeError and isinstance(error.__cause__, StopIteration):      # Python's, of a generator that raised it
        return is_raised(error.__cause__)
    step = _innermost(error)
    if step is None:
        return False
    code = step.tb_frame.f_code
    if code.co_code[step.tb_lasti] == dis.opmap["RAISE_VARARGS"]:
        return not (error.args and type(error.args[0]) is str and error.args[0].startswith("exceptions must derive"))
    if type(error) is AttributeError:
        return _lacks_attribute(error, code)
    if not all(type(part) in (str, int) for part in error.args):
        return False
    instruction = dis.opname[code.co_code[step.tb_lasti]]
    if type(error) is TypeError:
        return error.args in _OF_NONE and (is_user_code(code) or code.co_filename == dy.item.__code__.co_filename)
    by_python = (is_user_code(code) or code is dy.item.__code__) and instruction.startswith(_FAILING.get(type(error), ("none",)))
    return by_python or type(error) is IndexError and code is StagedList.__getitem__.__code__


def _lacks_attribute(error: AttributeError, code: types.CodeType) -> bool:
    """Whether Python said that None, or a number, string or type of NumPy's that is what it is here, has no such attribute."""
    if getattr(error, "name", None) is None or code.co_filename.startswith(OURS):           # None before Python 3.10
        return False
    found: Any = error.obj                              # type: ignore[attr-defined]
    return type(found) in (type(None), bool, int, float, str) or type(found) is type and issubclass(found, np.number)


def handled(capture: CaptureContext, error: BaseException) -> None:
    """Stop the capture where an ``except`` block may look at a message that names what stands for an object of the user's."""
    seen: List[BaseException] = []
    waiting: List[Optional[BaseException]] = [error]
    while waiting:
        found = waiting.pop()
        if found is not None and not any(found is other for other in seen):
            seen.append(found)
            waiting += [found.__cause__, found.__context__]
            if any(type(part) is str and (names_ours(part) or _may_mean_a_scalar(capture, found, part)) for part in found.args):
                capture.abort(f"{type(found).__name__} is handled, whose message names the type of a value that only the run knows",
                              hint="handle it outside of the compiled function, or test the values before")


def _may_mean_a_scalar(capture: CaptureContext, error: BaseException, text: str) -> bool:
    """Whether a message would be another one for a NumPy scalar: the class of what stands for it is that of arrays.

    What a scalar says when it is iterated over depends on what asks for its items.
    """
    step = _innermost(error)
    if step is not None and step.tb_frame.f_code is SymbolicArray.__iter__.__code__:
        return True
    return "numpy.ndarray" in text and _has_scalars(capture.builder)


def _has_scalars(builder: Optional[Builder]) -> bool:
    """Whether there are NumPy scalars among the values that a graph has made so far."""
    while builder is not None:
        made = [value for node in builder.nodes for value in node.outputs]
        if any(isinstance(value.type, Scalar) for value in (*builder.inputs, *made)):
            return True
        builder = builder.outer
    return False


def is_of_user_code(error: BaseException) -> bool:
    """Whether code of the user's raised the exception: one that stops the capture is ours, Ctrl-C comes from outside."""
    if isinstance(error, Exception):
        return True
    if isinstance(error, (CaptureAborted, SizeNeeded)) or not is_raised(error):
        return False
    return is_user_code(_innermost(error).tb_frame.f_code)


def is_in_generator() -> bool:
    """Whether code of a generator of the user's is being run."""
    frame: Optional[types.FrameType] = sys._getframe()
    while frame is not None and not (frame.f_code.co_flags & GENERATOR and is_user_code(frame.f_code)):
        frame = frame.f_back
    return frame is not None


def raised_in(error: BaseException) -> Optional[types.CodeType]:
    """The code whose ``raise`` statement made an exception that may stop a capture from outside; None for all others."""
    return _innermost(error).tb_frame.f_code if is_of_user_code(error) else None


def can_be_made(error: BaseException, handling: Optional[BaseException]) -> bool:
    """Whether `make_error` can make the exception again, with its cause and with those that were handled when it was raised.

    It must consist of arguments and attributes.  handling: what is handled where the function is called.
    """
    seen: Dict[int, BaseException] = {}
    waiting = [error]
    while waiting:
        made = waiting.pop()
        if not _is_told_by_parts(made) or seen.setdefault(id(made), made) is not made:
            return False
        waiting += [part for part in _behind(made, handling) if part is not None and id(part) not in seen]
    return not _leads_to_itself(error, handling)


def _leads_to_itself(error: BaseException, handling: Optional[BaseException], inside: Tuple[int, ...] = ()) -> bool:
    if id(error) in inside:
        return True
    return any(part is not None and _leads_to_itself(part, handling, (*inside, id(error))) for part in _behind(error, handling))


def _behind(error: BaseException, handling: Optional[BaseException]) -> Tuple[Optional[BaseException], ...]:
    """The cause of an exception, and the one that was handled when it was raised."""
    return error.__cause__, context_of(error, handling)


def context_of(error: BaseException, handling: Optional[BaseException]) -> Optional[BaseException]:
    """The exception that code of the user's handled when this one was raised; None outside of all such code."""
    around = error.__context__
    while around is not None and around is not handling:
        caught_by = around.__traceback__
        ours = caught_by is not None and caught_by.tb_frame.f_code.co_filename.startswith(OURS)
        if not (ours or isinstance(around, CaptureAborted)):
            return around
        around = around.__context__
    return None


def _is_told_by_parts(error: BaseException) -> bool:
    """Whether the arguments and attributes of an exception are all that it holds."""
    if type(error) is InvalidType:
        return all(type(part) is str for part in (error.expect, error.actual, *error.args))
    if any(type(part) is str and names_ours(part) for part in error.args):
        return False
    base = built_in_base(type(error))
    plain = base.__basicsize__ == BaseException.__basicsize__ or issubclass(base, tuple(_STATE))
    return plain or type(error) is base and not error.__dict__


def built_in_base(cls: type) -> type:
    """The class of Python's own that a class of exceptions is derived from."""
    return next(base for base in cls.__mro__ if base.__module__ == "builtins")


def parts_of(error: BaseException, handling: Optional[BaseException]) -> Tuple[Any, ...]:
    """What `make_error` takes to make the exception again; the exceptions behind it come last."""
    cls, behind = type(error), _behind(error, handling)
    suppressed, attributes, state = error.__suppress_context__, None, None
    if cls is InvalidType:
        args = error.expect, error.actual, *error.args
    else:
        args, base = error.args, built_in_base(cls)
        if cls is not base or error.__dict__ or base is AttributeError:
            names = next((names for known, names in _STATE.items() if issubclass(base, known)), ())
            attributes = dict(error.__dict__)
            state = dict(_held(error, (*names, *copyreg._slotnames(cls))))      # type: ignore[attr-defined]
    if behind == (None, None) and not state:
        return cls, args, attributes, suppressed
    return cls, args, attributes, suppressed, state, *behind


def _held(error: BaseException, names: Iterable[str]) -> Iterator[Tuple[str, Any]]:
    """What an exception holds under these names, which are not its attributes."""
    for name in names:
        try:
            found = object.__getattribute__(error, name)
        except AttributeError:                          # a slot that nothing was put into
            continue
        if found is not None or name not in _OF_PYTHON:
            yield name, found


#: What Python itself keeps in exceptions: each is None until something is put there.
_OF_PYTHON = frozenset(name for names in _STATE.values() for name in names)


def _innermost(error: BaseException) -> Any:
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return step
