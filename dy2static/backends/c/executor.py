"""Native regions at run time: the built-in function of a region, and what runs where it declines."""
from __future__ import annotations

import os
import zlib
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from ...ir.graph import Graph, Value
from ...ir.packing import pack, unpack
from ...ir.sizes_read import made_symbols
from ...ir.types import Extent, Stack, Tensor
from ...ir.types import List as ListType
from ...native import compiler, library, tuning, working
from ...passes.in_place import Update
from ...runtime.clocks import NativeClock
from ...runtime.native_values import as_array, as_items, as_number, as_stack, grown, list_bytes, pushed
from ...runtime.traceback import show_user_line
from ...threads.locks import cached_property
from ..compiled_calls import Conversion
from ..updates import alike, form
from . import draws, entering
from .alike_regions import AlikeRegions
from .emit import CFunction, write
from .extents import is_grown
from .headers import headers
from .outline import Parts, numbered
from .scalars import enters_as_array
from .tuned_layouts import Declined, declined, operands, tuned_layout
from .updates import UpdateRegion

_PYTHON = '#include "dy2static_python.h"\n'
#: The loops that matter say themselves that they are to be vectorised; -O3 takes five times as long to compile.
_FLAGS = ("-O2",)

_KINDS = {"py_int": "int", "py_bool": "bool", "py_float": "float"}


def _whole(parts: Sequence[str], functions: Sequence[str], clock: str = "") -> str:
    text = "\n".join([*parts, *functions])
    return f"{_PYTHON}{headers(text)}{clock}\n{text}"


def _comment(places: Iterable[Tuple[str, int]]) -> str:
    found = [f"{os.path.basename(file)}:{line}".replace("*/", "") for file, line in places]
    return f"/* {', '.join(dict.fromkeys(found))} */\n" if found else ""


class Shared:
    """A C text of the regions of some functions: compiled at once, and what is equal in them only once.

    All functions are there before the text is asked for.
    """

    def __init__(self) -> None:
        self.parts = Parts()
        self.functions: List[Union[Region, UpdateRegion]] = []
        self.alike: AlikeRegions[Region] = AlikeRegions()

    @cached_property
    def source(self) -> str:
        """The whole text.  It names no lines, and nothing of the user's: functions that do the same have the same library."""
        parts = self.parts.texts
        text = numbered("\0".join([*parts, *[each.text for each in self.functions]]), self.parts.own).split("\0")
        return _whole(text[:len(parts)], text[len(parts):])


class Bundle:
    """The regions of one function in a C text.

    shared: that text, if other functions are in it, too; `start` is called when all of them are.
    """

    def __init__(self, clock: Optional[NativeClock] = None, shared: Optional[Shared] = None) -> None:
        self._shared = Shared() if shared is None else shared
        self.parts = self._shared.parts
        self.regions: List[Region] = []
        self.updates: List[UpdateRegion] = []
        self.clock = clock
        self._nodes = 0
        self._builds: List[compiler.Build] = []

    def __getstate__(self) -> Dict[str, Any]:
        """What another process needs to go on from here; a text that is shared is with each of its functions."""
        kept = {name: getattr(self, name) for name in ("regions", "updates", "clock", "_nodes")}
        return {**kept, "parts": self.parts.used_in(self._functions()), "source": zlib.compress(self.source.encode(), 1)}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        source = zlib.decompress(state.pop("source")).decode()
        vars(self).update(state, source=source, _builds=[])

    def add(self, graph: Graph, fallback: Callable[[Graph], Tuple[Callable, Any]], layout: Optional[str] = None) -> "Region":
        """The region of one more graph, which is that of an equal graph if there is one; layout: as of `Region`.

        Not with a clock, which counts for each region, nor with a layout.
        """
        def made() -> "Region":
            region = Region(graph, fallback, len(self._shared.functions), self.parts, self.clock, layout)
            self._shared.functions.append(region)
            return region
        region = self._shared.alike.of(graph, made) if self.clock is None and layout is None else made()
        if region not in self.regions:
            self.regions.append(region)
        self._nodes += region.nodes
        return region

    def add_updates(self, updates: Sequence[Update], numbers: Sequence[int]) -> None:
        """These updates, a function for each form."""
        for members in alike([updates[k] for k in numbers], form):
            which = tuple([numbers[k] for k in members])
            self.updates.append(UpdateRegion(updates[which[0]], which, len(self._shared.functions)))
            self._shared.functions.append(self.updates[-1])

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compile."""
        return not self.regions and not self.updates

    @property
    def nodes(self) -> int:
        """How many nodes there are in the regions, and in the updates."""
        updates = sum(len(region.graph.nodes) * len(region.members) for region in self.updates)
        return self._nodes + updates

    def clear(self) -> None:
        """There is nothing to compile any more."""
        self.regions.clear()
        self.updates.clear()

    @cached_property
    def source(self) -> str:
        """The whole text: that of `Shared`, or with a clock, which is for one function, that of this function."""
        return self._shared.source if self.clock is None else _whole(self.parts.texts, self._functions(), self.clock.header)

    @property
    def readable(self) -> str:
        """The text of its regions, with the user's lines before the functions that they became."""
        used, clock = self.parts.used_in(self._functions()), "" if self.clock is None else self.clock.header
        parts = [f"{_comment(places)}{text}" for text, places in zip(used.texts, used.places) if text]
        return _whole(parts, self._functions(), clock)

    def _functions(self) -> List[str]:
        return [region.text for region in (*self.regions, *self.updates)]

    def start(self) -> None:
        """Begin to compile the text, and the libraries that it calls.  Raises `native.failures.NoCompiler`."""
        source = self.source
        called = [start() for mark, start in library.CALLED.items() if f"{mark}\n" in source]
        self._builds = [*filter(None, called), compiler.start(source, _FLAGS)]

    def ready(self) -> bool:
        """Whether `build` has nothing to wait for, once the text has been started."""
        return bool(self._builds) and all([build.ready() for build in self._builds])

    def build(self) -> None:
        """Give all regions their functions, and make those of the updates; starts the text if that has not been done.

        Raises `native.failures.NoCompiler`, `BuildFailed` or `NotSupported`.
        """
        if not self._builds:
            self.start()
        built = self._builds[-1].library()
        for region in self.regions:
            region.working = working.User(built) if region.function.sized else None
            decline = region.decline if self.clock is None else self.clock.declining(region.decline, region.graph.nodes)
            if region.draws:
                native = library.bind(built, f"call_{region.number}", draws.declining)
                region.call = draws.drawing(native, decline, region.count)
            else:
                region.call = library.bind(built, f"call_{region.number}", decline)
        self.update_calls = tuple([region.bind(built) for region in self.updates])
        if self.clock is not None:
            self.clock.bind(built)


class Region:
    """One graph as a C function, and how it is called: ``call(inputs..., arrays of outputs..., scratch)``.

    It gives the outputs that are no arrays: None, the one, or a tuple.  Stacks and lists enter as arrays and leave as objects
    with the buffer protocol: see `runtime.native_values`.  grown: the outputs that are arrays but leave as such objects, because
    their size is found here.  entering, given: see `CompiledCall`.  count: how many inputs.  nodes: how many nodes.

    fallback: makes the same function of NumPy calls, ``function(inputs...) -> outputs`` with the user's lines.
    layout: that of its images; none: the one of the estimate, or the fastest one, as settings say.
    working: keeps its working memory of free sizes between calls.
    """

    call: Callable[..., Any]
    working: Optional[working.User]

    def __init__(self, graph: Graph, fallback: Callable[[Graph], Tuple[Callable, Any]], number: int, parts: Parts,
                 clock: Optional[NativeClock] = None, layout: Optional[str] = None):
        self._graph: Optional[Graph] = graph
        self._packed = b""
        self.number, self.count, self.nodes = number, len(graph.inputs), len(list(graph.walk()))
        if layout is None:
            layout = tuned_layout(graph, lambda name: _trial(graph, name))
        self.function: CFunction = write(graph, f"run_{number}", parts, clock, layout=layout)
        self._make_fallback = fallback
        self._fallback: Optional[Tuple[Callable, Any]] = None
        self.draws = draws.graph_draws(graph)
        self.inputs = (*map(_kind, graph.inputs), *(["int"] if self.draws else ()))
        made = [symbol for node in graph.nodes for symbol, _, _ in made_symbols(node)]
        self.grown = frozenset([k for k, value in enumerate(graph.outputs) if is_grown(value, made)])
        kinds = ["stack" if k in self.grown else _kind(value) for k, value in enumerate(graph.outputs)]
        self.outputs = (*(k for k in kinds if k == "array"), *(["array"] if self.function.scratch else ()),
                        *(k for k in kinds if k != "array"))
        self.entering = tuple(map(_entering, graph.inputs))
        self.given = {k: _leaving(value, k in self.grown) for k, (value, kind) in enumerate(zip(graph.outputs, kinds))
                      if kind != "array"}

    def __getstate__(self) -> Dict[str, Any]:
        """What another process needs to go on from here; its graph, which is hardly ever asked for, as bytes."""
        state = {name: part for name, part in vars(self).items() if name not in ("call", "working")}
        return {**state, "_graph": None, "_packed": self._packed or pack(self.graph), "_fallback": None}

    @property
    def graph(self) -> Graph:
        """What it computes."""
        if self._graph is None:
            self._graph = unpack(self._packed)
        return self._graph

    @property
    def scratch(self) -> int:
        """As `CompiledRegion.scratch`."""
        return self.function.scratch

    @property
    def text(self) -> str:
        """The function, and what Python calls around it."""
        inputs = self.graph.inputs
        return self.function.text + library.wrapper(f"call_{self.number}", self.inputs, self.outputs, run=f"run_{self.number}",
                                                    types=entering.declared(inputs), sizes=entering.sizes(inputs))

    def decline(self, *args: Any) -> Any:
        """What the built-in function does not do: arrays that are not contiguous are copied, else NumPy computes it."""
        count = self.count
        inputs = [_contiguous(x) if isinstance(x, np.ndarray) else x for x in args[:count]]
        if any(a is not b for a, b in zip(inputs, args)):
            return self.call(*inputs, *args[count:])
        entering.require(self.graph.inputs, inputs)
        inputs = [list(x) if isinstance(value.type, ListType) and isinstance(value.type.elem, Tensor) else
                  x.tolist() if isinstance(value.type, ListType) else x for value, x in zip(self.graph.inputs, inputs)]
        return self._hand_over(self.by_numpy(*inputs), args[count:])

    def by_numpy(self, *inputs: Any) -> Tuple[Any, ...]:
        """What its graph gives by NumPy calls."""
        if self._fallback is None:
            self._fallback = self._make_fallback(self.graph)
        function, origins = self._fallback
        try:
            return function(None, *inputs)
        except Exception as error:
            raise show_user_line(error, function.__code__, origins)     # noqa: B904  the same error, with one more entry

    def _hand_over(self, results: Sequence[Any], arrays: Sequence[np.ndarray]) -> Any:
        others: List[Any] = []
        waiting = iter(arrays)
        for k, (value, result) in enumerate(zip(self.graph.outputs, results)):
            if k in self.grown:
                others.append(bytearray(np.ascontiguousarray(result).tobytes()))
            elif isinstance(value.type, ListType):
                others.append(list_bytes(result, value.type))
            elif enters_as_array(value.type):
                next(waiting)[...] = result
            elif isinstance(value.type, Stack):
                others.append(bytearray(np.ascontiguousarray(as_stack(result, value.type)).tobytes()))
            else:
                others.append(result)
        return None if not others else others[0] if len(others) == 1 else tuple(others)


def _trial(graph: Graph, layout: str) -> tuning.Call:
    """A call of a region whose images are in this layout, on arrays of numbers; it gives 1 if native code does not compute it.

    Raises as `Bundle.start` and `Bundle.build`.
    """
    bundle = Bundle()
    region = bundle.add(graph, declined, layout)
    bundle.start()
    bundle.build()
    arrays = [*operands(graph), *[tuning.memory(*v.shape, dtype=v.dtype) for v in graph.outputs]]
    if region.scratch:
        arrays.append(tuning.memory(region.scratch, dtype=np.uint8))

    def call() -> int:
        try:
            region.call(*arrays)
        except Declined:
            return 1
        return 0
    return call


def _entering(value: Value) -> Optional[Conversion]:
    """What a value passes on its way into native code."""
    if isinstance(value.type, Stack):
        return Conversion("as_stack", as_stack, (("stack_type", value.type),))
    if isinstance(value.type, ListType):
        return Conversion("as_array", as_array, (("list_type", value.type),))
    is_number = enters_as_array(value.type) and not isinstance(value.type, Tensor)
    return Conversion("as_number", as_number, (("number_dtype", value.dtype),)) if is_number else None


def _leaving(value: Value, is_grown: bool) -> Optional[Conversion]:
    """What a result passes that is no array when native code gives it."""
    if is_grown:
        return Conversion("grown", grown, (("grown_dtype", value.dtype), ("shape", value.shape)))
    if isinstance(value.type, ListType):
        return Conversion("as_items", as_items, (("list_type", value.type),))
    return Conversion("pushed", pushed, (("stack_type", value.type),)) if isinstance(value.type, Stack) else None


def _kind(value: Value) -> str:
    if enters_as_array(value.type):
        return "array"
    if isinstance(value.type, Extent):
        return "int"
    return "stack" if isinstance(value.type, (Stack, ListType)) else _KINDS[value.type.kind]


def _contiguous(array: np.ndarray) -> np.ndarray:
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative and type(array) is np.ndarray:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", subok=False)
