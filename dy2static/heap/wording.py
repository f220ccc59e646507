"""What refusals say: the user's words for what our stand-ins are, what the user called, and a way out."""
from __future__ import annotations

import os
import re
import sys
from typing import Any, Optional, Tuple

import chainer

from .locations import OURS, is_user_code

#: Files and folders of Chainer's with what belongs around a compiled function, not into it.
_AROUND = tuple(os.path.join(os.path.dirname(os.path.abspath(chainer.__file__)), name) for name in (
    "training", "datasets", "iterators", "serializer.py", "serializers",
    "gradient_check.py", "backprop_utils.py"))

#: What to do about a string or a number that is another one in nearly every call.
TEXTS = "use the string outside of the function, with its result: as a key, in a message, as a name"
NUMBERS = ("use few different numbers, or move what depends on the number out of the function; a `while` on values of "
           "arrays runs any number of times")

#: Ways out, by words of the reason; the first that fits is given where nothing better is known.
_HINTS = (
    ("not initialized yet", "call the function once: the first call makes its array, and later calls are compiled"),
    ("which is no array", "give an array or a Variable"),
    ("need not match", "compute them by one mask or one number, or keep the line out of the compiled function"),
    ("compiling it raised", "an eager call does not raise it: keep this line out of the compiled function"),
    ("a string that must be known", TEXTS),
    ("a number that must be known", NUMBERS),
    ("another one in nearly every call", "read it outside of the compiled function"),
    ("please report it", "set DY2STATIC_VERBOSITY=4 for what to report"),
    ("its guards do not hold", "please report it"),
    ("hooks are registered", "call it without them"),
    ("known at run time only", "use it in conditions outside of the compiled function, or return it"),
    ("unchained", "unchain it before that, or outside of the compiled function"),
    ("with a gradient", "take its gradient outside of the compiled function"),
    ("inside the compiled function", "do it outside of the compiled function"),
    ("type generator", "return a list, or decorate the function that computes one item"),
    ("leaves the compiled function", "return and store Variables, arrays, numbers, and lists, dicts and plain objects of them"),
    ("when an exception is raised", "raise before it is stored, or store a copy"),
    ("raised under a decision", "raise it by a `raise` statement, of a class that holds only arguments and attributes"),
    ("placeholder", "keep it out of the compiled function if it works on your arrays"),
    ("in place", "compute a new array instead"),
    ("is changed later", "change it before it is given away or stored, or give away a copy"),
    ("not compiled", "use Variables, arrays and numbers, or objects that existed before the call"),
    ("loop on array values", "give what the loop changes its final kind, shape and dtype before the loop"),
    ("a list whose length depends on array values",
     "append to it, read items and slices, iterate over it, or convert it to an array"),
    ("on array values", "do the same on both sides of the decision, or decide outside of the compiled function"),
    ("depends on the contents of an array",
     "compute it outside of the compiled function, or with a function whose result always has one shape"),
    ("random", "draw with `np.random` and `chainer.functions`, and set seeds outside of the compiled function"),
    ("of class ", "use an attribute of an object, or a global variable"),
    ("class ", "use a plain class that is defined outside of the compiled function"),
    ("gradient", "take it outside of the compiled function"),
)
#: The reason where what a capture does not know was given to a function that computes.
UNKNOWN = "the result of a call that is not compiled, or an object of another library, is used in a computation"

#: The reason where a gradient would leave the function, or the compiled part of it.
REACHES = "reaches what was computed before"
BEFORE_CALL = f"a gradient inside the compiled function {REACHES} the call"

#: The reason where an operation fails for some sizes.
UNSURE_SIZES = "sizes that only the run knows need not match"

#: The names of sizes that only the run knows.
_SIZES = re.compile(r"\b(size|length)_n?\d")

_DEFAULT = "keep it out of the compiled function"

#: What our classes stand for.
_WORDS = {"SymbolicScalar": "number", "SymbolicObject": "object", "BoundHostMethod": "method", "ShadowModule": "module"}
_NAMES = re.compile(r"(?:dy2static\.[\w.]+\.)?\b(" + "|".join(_WORDS) + r")\b")


def hint_for(reason: str) -> str:
    """A way out, where the one who refused gave none."""
    return next((hint for words, hint in _HINTS if words in reason), _DEFAULT)


def before_line(line: str) -> Tuple[str, str]:
    """The reason and the way out where a gradient reaches what was computed before a line that runs as Python."""
    return f"a gradient {REACHES} {line}, which runs as Python", f"move {line} after this one, or out of the compiled function"


def names_ours(text: str) -> bool:
    """Whether the text of an exception names a class of ours where the user knows another one."""
    return "dy2static." in text or _NAMES.search(text) is not None


def in_users_words(text: str) -> str:
    """The text of an exception without names of ours."""
    return _NAMES.sub(lambda found: _WORDS[found.group(1)], text)


def reason_of(error: Exception) -> str:
    """Why a call is not compiled, where the capture raised what an eager call does not raise."""
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if "SymbolicObject" in text or "BoundHostMethod" in text:
        return UNKNOWN
    return UNSURE_SIZES if _SIZES.search(text) else f"compiling it raised {in_users_words(text)}"


def raised_in_capture(error: Exception) -> Tuple[str, str]:
    """The reason and the way out where a capture raised, and no eager call has shown yet whose mistake that is."""
    return reason_of(error), "a call that raises it shows where; if it raises nothing, keep this line out of the compiled function"


def type_name(item: Any) -> str:
    """The name of the user's type that an object has or stands for."""
    cls = getattr(type(item), "_dy2static_class", type(item))
    if cls.__module__.startswith("dy2static."):
        cls = next((base for base in cls.__mro__[:-1] if not base.__module__.startswith("dy2static.")), cls)
    return _WORDS.get(cls.__name__, cls.__name__.rpartition(".")[2])


def a_type(item: Any) -> str:
    """`type_name` with its article: an int, a list."""
    name = type_name(item)
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def called_around() -> Optional[str]:
    """The function that the user's running line called, if it is one of Chainer's that belong around a compiled function."""
    frame, called = sys._getframe(1), None
    while frame is not None and not is_user_code(frame.f_code):
        if not frame.f_code.co_filename.startswith(OURS):
            called = frame.f_code
        frame = frame.f_back
    if called is None or not called.co_filename.startswith(_AROUND):
        return None
    return called.co_name
