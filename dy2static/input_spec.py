"""What arguments look like before there are any: `InputSpec`."""
from __future__ import annotations

import difflib
import re
import reprlib
import types
from typing import Any, Dict, Iterator, Optional, Sequence, Set, Tuple, Union

import numpy as np

from .errors import SignatureError

#: An axis of an array of the caller's: its path, as `record.paths.Source.path` has it, and the number of the axis.
Axis = Tuple[Tuple[Any, ...], int]


#: The names of dtypes that mistyped ones may stand for.
_DTYPES = tuple([np.dtype(char).name for char in "?bhilqBHILQefd"])


class InputSpec:
    """The shape and dtype of one array or Variable among the arguments.

    shape: for each axis an int, None (or -1) for any size, or a name: any size, which is the same wherever the name stands in the
        specs of a call.
    dtype: a NumPy dtype or its name.
    name: the name in messages, and of the input of a saved model.
    stop_gradient: if True, a saved model computes no gradient for this input.

    Raises `SignatureError` for an invalid shape, dtype or name.
    """

    def __init__(self, shape: Sequence[Union[int, str, None]], dtype: Any = "float32", name: Optional[str] = None,
                 stop_gradient: bool = False):
        if not isinstance(shape, (tuple, list)):
            raise SignatureError(f"the shape of an InputSpec is a tuple or list, not {type(shape).__name__}")
        if not all(n is None or (n.isidentifier() if isinstance(n, str) else isinstance(n, (int, np.integer)) and n >= -1)
                   for n in shape):
            raise SignatureError(f"the shape of an InputSpec holds sizes, names of sizes and None, not {tuple(shape)}")
        self.shape = tuple(None if n is None or isinstance(n, str) or n == -1 else int(n) for n in shape)
        self.size_names = tuple(n if isinstance(n, str) else None for n in shape)
        try:
            self.dtype = np.dtype(dtype)
        except TypeError as error:
            near = difflib.get_close_matches(dtype, _DTYPES, 1) if isinstance(dtype, str) else []
            raise SignatureError(f"the dtype of an InputSpec is one of NumPy's, or its name, not {dtype!r}",
                                 hint=f'"{near[0]}"?' if near else None) from error
        if not isinstance(name, (str, type(None))):
            raise SignatureError(f"the name of an InputSpec is a text, not {name!r}")
        self.name, self.stop_gradient = name, bool(stop_gradient)

    @classmethod
    def from_tensor(cls, tensor: Any, name: Optional[str] = None) -> "InputSpec":
        """A spec of the shape and dtype of a Variable or array."""
        return cls(tensor.shape, tensor.dtype, name or getattr(tensor, "name", None))

    @classmethod
    def from_numpy(cls, ndarray: np.ndarray[Any, Any], name: Optional[str] = None) -> "InputSpec":
        """A spec of the shape and dtype of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    @classmethod
    def from_text(cls, text: str) -> "InputSpec":
        """A spec from a string, such as ``image=Nx3x224x224:float32``.

        A capital letter or ``?`` is any size.  The name and the dtype may be left out.  ``n=:int64`` is an array of no axes.

        >>> InputSpec.from_text("image=Nx3x224x224:float32").shape
        (None, 3, 224, 224)

        Raises `SignatureError` for any other text.
        """
        found = re.fullmatch(r"(?:([A-Za-z_]\w*)=)?((?:\d+|[A-Z]|\?)(?:x(?:\d+|[A-Z]|\?))*|)(?::(\w+))?", text)
        if found is None:
            raise SignatureError(f"{text!r} says no input", hint="write one as name=Nx784:float32")
        name, shape, dtype = found.groups()
        return cls([int(part) if part.isdigit() else None for part in shape.split("x") if part], dtype or "float32", name)

    def batch(self, batch_size: Optional[int]) -> "InputSpec":
        """Put an axis of this size (None: any) in front of the shape; returns the spec itself."""
        self.shape, self.size_names = InputSpec((batch_size, *self.shape)).shape, (None, *self.size_names)
        return self

    def unbatch(self) -> "InputSpec":
        """Take away the first axis of the shape; returns the spec itself.

        Raises `SignatureError` if there is no axis.
        """
        if not self.shape:
            raise SignatureError("an InputSpec without axes has no batch")
        self.shape, self.size_names = self.shape[1:], self.size_names[1:]
        return self

    def _key(self) -> Tuple[Any, ...]:
        return self._named_shape(), self.dtype, self.name, self.stop_gradient

    def _named_shape(self) -> Tuple[Union[int, str, None], ...]:
        return tuple(name or n for n, name in zip(self.shape, self.size_names))

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (f"InputSpec(shape={self._named_shape()}, dtype={self.dtype.name}, name={self.name}, "
                f"stop_gradient={self.stop_gradient})")


def free_axes(specs: Sequence[Any], names: Sequence[str]) -> Set[Axis]:
    """The axes that the specs of positional arguments leave free.  names: of these arguments; a leading ``self`` has no spec."""
    return {(path, axis) for path, spec in _paths(specs, names) for axis, n in enumerate(spec.shape) if n is None}


def check_arguments(specs: Sequence[Any], names: Sequence[str], args: Sequence[Any], kwargs: Dict[str, Any]) -> None:
    """Raise `SignatureError` for arguments that are not as specified."""
    skip = _skip(names)
    for place, spec in enumerate(specs, skip):
        name = names[place] if place < len(names) else f"argument {place}"
        if place < len(args):
            _check(spec, args[place], name)
        elif name in kwargs:
            _check(spec, kwargs[name], name)


def check_count(specs: Sequence[Any], function: types.FunctionType) -> None:
    """Raise `SignatureError` if there are more specs than positional arguments, or fewer than a call of the function needs.

    Also for what is no spec.
    """
    _check_kind(list(specs))
    code = function.__code__
    names = code.co_varnames[:code.co_argcount]
    skip, needed = _skip(names), len(names) - len(function.__defaults__ or ())
    if specs and len(specs) < needed - skip:
        raise SignatureError(f"input_spec has none for {', '.join(names[skip + len(specs):needed])} of {function.__qualname__}",
                             hint="give one for each argument without a default, in their order")
    if len(specs) > len(names) - skip and not code.co_flags & _VARARGS:
        taken = names[skip:]
        count = "no arguments" if not taken else f"{len(taken)} argument{'s' * (len(taken) > 1)}: {', '.join(taken)}"
        raise SignatureError(f"input_spec has {len(specs)} specs, and {function.__qualname__} takes {count}",
                             hint="give one spec for each argument; the specs of a list or dict stand in a list or dict")


def _check_kind(spec: Any) -> None:
    if isinstance(spec, (tuple, list, dict)):
        for part in spec.values() if isinstance(spec, dict) else spec:
            _check_kind(part)
    elif not (spec is None or isinstance(spec, (InputSpec, bool, int, float, str)) or _is_array(spec)):
        raise SignatureError(f"an input_spec holds InputSpecs, arrays, Variables and plain values, not {type(spec).__name__}")


def _is_shape(spec: Any) -> bool:
    return bool(spec) and not isinstance(spec, dict) and all(n is None or type(n) is int for n in spec)


def _is_array(spec: Any) -> bool:
    return hasattr(spec, "shape") and hasattr(spec, "dtype")


#: The flag of the code of functions with ``*args``.
_VARARGS = 0x04


def _skip(names: Sequence[str]) -> int:
    return int(bool(names) and names[0] == "self")


def _paths(specs: Sequence[Any], names: Sequence[str]) -> Iterator[Tuple[Tuple[Any, ...], InputSpec]]:
    for place, spec in enumerate(specs, _skip(names)):
        yield from _within(spec, ("arg", place))
        if place < len(names):
            yield from _within(spec, ("kwarg", names[place]))


def _within(spec: Any, path: Tuple[Any, ...]) -> Iterator[Tuple[Tuple[Any, ...], InputSpec]]:
    if isinstance(spec, InputSpec):
        yield path, spec
    elif isinstance(spec, (tuple, list, dict)):
        for key, part in (spec.items() if isinstance(spec, dict) else enumerate(spec)):
            yield from _within(part, ("item", key, *path))


def _check(spec: Any, given: Any, name: str) -> None:
    if not isinstance(spec, InputSpec) and _is_array(spec):
        spec = InputSpec(spec.shape, spec.dtype)
    if isinstance(spec, InputSpec):
        shape, dtype = getattr(given, "shape", None), getattr(given, "dtype", None)
        fits = shape is not None and len(shape) == len(spec.shape) and dtype == spec.dtype and \
            all(n is None or n == m for n, m in zip(spec.shape, shape))
        if not fits:
            found = f"{dtype} {tuple(shape)}" if shape is not None else type(given).__name__
            hint = ("give an array or a Variable" if shape is None else "None stands for an axis of any size" if dtype == spec.dtype
                    else f"convert it: astype({str(spec.dtype)!r})")
            raise SignatureError(f"{name} is {found}, where input_spec has {spec.dtype} {spec.shape}", hint=hint)
    elif isinstance(spec, (tuple, list, dict)):
        if not isinstance(given, (dict if isinstance(spec, dict) else (tuple, list))) or len(given) != len(spec):
            raise SignatureError(f"{name} is not what input_spec has: {type(spec).__name__} of {len(spec)}",
                                 hint=f"did you mean InputSpec({reprlib.repr(spec)})?" if _is_shape(spec) else None)
        for key, part in (spec.items() if isinstance(spec, dict) else enumerate(spec)):
            _check(part, given[key], f"{name}[{key!r}]")
    elif spec is not None and (type(given) is not type(spec) or given != spec):
        found = reprlib.repr(given) if isinstance(given, (bool, int, float, str)) else type(given).__name__
        raise SignatureError(f"{name} is {found}, where input_spec has {spec!r}")
