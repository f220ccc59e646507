"""Texts that change from call to call, and what is made of them before a run: expressions, like those over numbers."""
from __future__ import annotations

import operator
import types
from typing import Any, Callable, Iterator, Tuple, Union

from ..capture_context import CaptureContext
from ..heap.right_operands import ask_right_first
from ..heap.stand_ins import stands_for
from ..ir.graph import Value


class SymbolicText:
    """A text, or bytes, of the caller's, or what Python makes of such: an expression (``text``).

    hint: what it is in the call that is being captured.  Where Python needs the text itself (a key, a loop over it, code that is
    not converted), the expression is fixed to it, under a guard; a question about it is fixed to the answer.
    """

    __slots__ = ("capture", "text", "hint")

    def __init__(self, capture: CaptureContext, text: str, hint: Union[str, bytes]):
        self.capture, self.text, self.hint = capture, text, hint

    @property
    def value(self) -> Value:
        """The text in the graph."""
        return self.capture.inputs.text_value(self.text)

    @property
    def python_type(self) -> type:
        """The type that Python code sees."""
        return type(self.hint)

    @property
    def __class__(self) -> type:
        return type(self.hint)

    def fix(self) -> Any:
        """The text itself, with a guard."""
        self.capture.expressions.guard(self.text, self.hint)
        return self.hint

    def __bool__(self) -> bool:
        return self.capture.texts.call(bool, (self,))

    def __len__(self) -> int:
        return self.capture.texts.call(len, (self,)).fix()

    def __contains__(self, part: Any) -> bool:
        return self.capture.texts.call(operator.contains, (self, part), pattern="({1} in {0})")

    def __hash__(self) -> int:
        return hash(self.fix())

    def __str__(self) -> str:
        return str(self.fix())

    def __repr__(self) -> str:
        return repr(self.fix())

    def __format__(self, spec: str) -> str:
        return format(self.fix(), spec)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fix())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"'{self.python_type.__name__}' object has no attribute {name!r}")
        return TextMethod(self, name) if callable(getattr(self.hint, name)) else getattr(self.fix(), name)

    def __copy__(self) -> "SymbolicText":
        return self

    def __deepcopy__(self, memo: Any) -> "SymbolicText":
        return self

    def __reduce__(self) -> Any:
        return type(self.hint), (self.fix(),)


class TextMethod:
    """A method of a `SymbolicText`."""

    __slots__ = ("owner", "__name__")

    def __init__(self, owner: SymbolicText, name: str):
        self.owner, self.__name__ = owner, name

    def fix(self) -> Any:
        """The method of the text itself."""
        return getattr(self.owner.fix(), self.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.__name__ == "join" and len(args) == 1:
            args = (tuple(args[0]),)
        return self.owner.capture.texts.call(getattr(self.owner.python_type, self.__name__), (self.owner, *args), kwargs)


def _operator(function: Callable, pattern: str, is_reflected: bool = False) -> Callable:
    def operation(self: SymbolicText, other: Any) -> Any:
        operands = (other, self) if is_reflected else (self, other)
        return self.capture.texts.call(function, operands, pattern=pattern)
    return operation


def _install_operators() -> None:
    for name, symbol in (("add", "+"), ("mul", "*"), ("mod", "%"), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="),
                         ("eq", "=="), ("ne", "!=")):
        function, pattern = getattr(operator, name), f"({{0}} {symbol} {{1}})"
        setattr(SymbolicText, f"__{name}__", _operator(function, pattern))
        if symbol in "+*%":
            setattr(SymbolicText, f"__r{name}__", _operator(function, pattern, is_reflected=True))
    SymbolicText.__getitem__ = _operator(operator.getitem, "{0}[{1}]")          # type: ignore[attr-defined]


_install_operators()
stands_for(SymbolicText, str)
stands_for(TextMethod, types.BuiltinFunctionType)


class TextKeyed(dict):
    """A dict that was made with texts as keys which are expressions (``pairs``).

    To store it, give it back and hand it over, the keys need not be known.  Whoever reads it fixes them; it is not changed.
    """

    def __init__(self, capture: CaptureContext, pairs: Tuple[Tuple[Any, Any], ...]):
        super().__init__()
        self.capture, self.pairs, self.is_read = capture, pairs, False

    @property
    def __class__(self) -> type:
        return dict

    def _known(self) -> dict:
        if not self.is_read:
            self.is_read = True
            dict.update(self, {fixed(key): value for key, value in self.pairs})
        return dict(dict.items(self))

    def _changed(self, *_: Any, **__: Any) -> Any:
        self.capture.abort("a dict whose keys are texts that change from call to call is changed")

    __setitem__ = __delitem__ = pop = popitem = setdefault = update = clear = __ior__ = _changed   # type: ignore[assignment]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (self._known(),)


def _reader(name: str) -> Callable:
    return lambda self, *args: getattr(dict, name)(self._known(), *args)


for _name in ("__getitem__", "__contains__", "__iter__", "__len__", "__eq__", "__ne__", "__or__", "__ror__", "__reversed__",
              "__repr__", "keys", "values", "items", "get", "copy"):
    setattr(TextKeyed, _name, _reader(_name))
ask_right_first(TextKeyed, dict, ("__eq__", "__ne__", "__or__"))


def fixed(item: Any) -> Any:
    """The item, and if it is a tuple its parts, with the texts and numbers themselves where it has expressions."""
    if type(item) is tuple:
        return tuple([fixed(part) for part in item])
    if type(item) is slice:
        return slice(*[fixed(part) for part in (item.start, item.stop, item.step)])
    return item.fix() if type(item) in (SymbolicText, TextMethod) or is_expression(item) else item


def is_expression(item: Any) -> bool:
    """Whether this is a text or number of which an expression is known."""
    return hasattr(type(item), "python_type") and item.text is not None

