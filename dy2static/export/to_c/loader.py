"""Exported models called from Python by ctypes: for tests, and to look at what a model gives before it leaves."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...ir.shapes import evaluate_shape
from .entry import Entry, Field
from .interface import CODES

_NO_MEMORY = next(number for name, number, _ in CODES if name == "NO_MEMORY")
_MOST_BYTES = 1 << 32
_NUMBERS = {"int64_t": ctypes.c_int64, "double": ctypes.c_double, "bool": ctypes.c_bool}


class Failed(RuntimeError):
    """A model gave another code than 0.  code: the number."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


class Loaded:
    """A model in a shared object: called with the arrays of the arguments, it gives those of the results.

    library: of ctypes.  weights: the bytes of the file of weights; None for those in the source.  They may be updated in place.
    """

    def __init__(self, entry: Entry, library: ctypes.CDLL, weights: Optional[np.ndarray] = None):
        self.entry, self.library = entry, library
        self._run, self._message = self._function(entry.called), self._function(f"{entry.name}_message", ctypes.c_char_p)
        self._bytes = self._function(f"{entry.stem}_arena_bytes", ctypes.c_size_t)
        self.weights = None if weights is None else aligned(weights)
        self._model = ctypes.c_void_p()
        size = 0 if self.weights is None else self.weights.nbytes
        init = self._function(f"{entry.name}_init")
        self._checked(init(ctypes.byref(self._model), _address(self.weights), ctypes.c_size_t(size)))
        self.arena = np.empty(0, np.uint8)

    def _function(self, name: str, gives: Any = ctypes.c_int) -> Any:
        function = getattr(self.library, name)
        function.restype = gives
        return function

    def _checked(self, code: int) -> None:
        if code:
            raise Failed(code, self.message(code))

    def message(self, code: int) -> str:
        """What a code means."""
        return self._message(code).decode()

    def random(self, seed: int) -> Any:
        """The state of random numbers behind a seed."""
        state = (ctypes.c_uint64 * 320)()
        self._function(f"{self.entry.name}_seed", None)(state, ctypes.c_uint32(seed))
        return state

    def arena_bytes(self, *sizes: int) -> int:
        """The size of the arena for such free sizes."""
        return self._bytes(*map(ctypes.c_int64, sizes))

    def __call__(self, *arrays: Any, random: Any = None) -> Tuple[Any, ...]:
        """The results of a call.  Raises `Failed`."""
        sizes = self._sizes(arrays)
        arguments, held = self._arguments(arrays, sizes, random)
        results, outputs = self._results(sizes)
        need = self.arena_bytes(*sizes.values())
        while True:
            if self.arena.nbytes < need:
                self.arena = aligned(np.empty(need, np.uint8))
            code = self._run(ctypes.byref(self._model), arguments, ctypes.byref(results), _address(self.arena),
                             ctypes.c_size_t(self.arena.nbytes))
            if code != _NO_MEMORY or not self.entry.grows or need > _MOST_BYTES:
                break
            need = 4 * self.arena.nbytes + 65536
        del held
        self._checked(code)
        return tuple([_taken(field, results, outputs.get(field.name)) for field in self.entry.results])

    def repeated(self, *arrays: Any, random: Any = None) -> Callable[[], None]:
        """The same call without arguments, in the arena at hand and with results that are discarded: for measurements."""
        sizes = self._sizes(arrays)
        (arguments, held), (results, outputs) = self._arguments(arrays, sizes, random), self._results(sizes)
        given = (ctypes.byref(self._model), arguments, ctypes.byref(results), _address(self.arena),
                 ctypes.c_size_t(self.arena.nbytes))

        def call(held: Any = (held, outputs)) -> None:
            self._checked(self._run(*given))
        return call

    def update(self, results: Sequence[np.ndarray], rate: float) -> None:
        """Take gradients, times the rate, from the weights.  results: of a call of ``NAME_backward``."""
        members = [(f.name, ctypes.c_void_p, r.ctypes.data) for f, r in zip(self.entry.results, results)]
        update = self._function(f"{self.entry.name}_update")
        self._checked(update(_address(self.weights), ctypes.byref(_structure(members)), ctypes.c_double(rate)))

    def _sizes(self, arrays: Sequence[Any]) -> Dict[str, int]:
        return {symbol: np.shape(arrays[size.argument])[size.axis] for symbol, (_, size) in self.entry.sizes.items()}

    def _arguments(self, arrays: Sequence[Any], sizes: Dict[str, int], random: Any) -> Tuple[Any, List[Any]]:
        members: List[Tuple[str, Any, Any]] = [
            (name, ctypes.c_int64, sizes[symbol]) for symbol, (name, _) in self.entry.sizes.items()]
        held: List[Any] = []
        for field, given in zip(self.entry.arguments, arrays):
            if field.is_array:
                array = np.ascontiguousarray(given, field.value.dtype)
                held.append(array)
                members.append((field.name, ctypes.c_void_p, array.ctypes.data))
            else:
                members.append((field.name, _NUMBERS[field.type], given))
        if self.entry.draws:
            members.append(("random", ctypes.c_void_p, ctypes.addressof(random)))
        return ctypes.byref(_structure(members)), held

    def _results(self, sizes: Dict[str, int]) -> Tuple[Any, Dict[str, np.ndarray]]:
        members: List[Tuple[str, Any, Any]] = []
        outputs: Dict[str, np.ndarray] = {}
        numbers = {symbol: sizes[symbol] // free.factor for symbol, (_, free) in self.entry.sizes.items()}
        for field in self.entry.results:
            if field.grown:
                members += [(field.name, ctypes.c_void_p, None), (f"{field.name}_shape", ctypes.c_int64 * field.ndim, None)]
            elif field.is_array:
                outputs[field.name] = np.empty(evaluate_shape(field.value.shape, numbers), field.value.dtype)
                members.append((field.name, ctypes.c_void_p, outputs[field.name].ctypes.data))
            else:
                members.append((field.name, _NUMBERS[field.type], None))
        return _structure(members), outputs


def _structure(members: Sequence[Tuple[str, Any, Any]]) -> Any:
    kind = type("Members", (ctypes.Structure,), {"_fields_": [(name, type_) for name, type_, _ in members]})
    return kind(**{name: value for name, _, value in members if value is not None})


def _taken(field: Field, results: Any, output: Optional[np.ndarray]) -> Any:
    if output is not None:
        return output
    found = getattr(results, field.name)
    if not field.grown:
        return found
    shape = tuple(getattr(results, f"{field.name}_shape"))
    size = int(np.prod(shape)) * field.value.dtype.itemsize
    return np.frombuffer(ctypes.string_at(found, size), field.value.dtype).reshape(shape)


def aligned(array: np.ndarray) -> np.ndarray:
    """The same bytes from a multiple of 64 on."""
    if array.ctypes.data % 64 == 0 and array.dtype == np.uint8 and array.ndim == 1:
        return array
    held = np.empty(array.nbytes + 64, np.uint8)
    begin = -held.ctypes.data % 64
    held[begin:begin + array.nbytes] = array.reshape(-1).view(np.uint8)
    return held[begin:begin + array.nbytes]


def _address(array: Optional[np.ndarray]) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.ctypes.data)
