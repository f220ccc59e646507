"""How a C function gets its inputs and hands over its outputs: ``p`` has pointers, ``n`` ints, ``d`` floats."""
from __future__ import annotations

import itertools
import math
from types import MappingProxyType
from typing import Collection, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ...ir.c_forms import c_type
from ...ir.dims import Size
from ...ir.graph import Graph, Value
from ...ir.types import Extent, Stack, Tensor
from ...runtime.native_values import has_marks
from ..loops.layout import place_of
from ..memory_planner import Buffer
from ..run_sizes import name_of, new_variables
from .call_list import CallList, Where, runs_of
from .draws import graph_draws
from .extents import is_grown
from .function import SWEEP, FunctionEmitter
from .lists import is_list, nbytes
from .outline import IDENTIFIER
from .scalars import enters_as_array, scalar_type
from .standalone import SIZE

#: A function with more pointers than these has none of them in variables: so many that live so long take the compiler seconds.
_MOST_POINTERS = 64
#: A name, its C type, and where it leads.
_Pointer = Tuple[str, str, Where]


class _Arguments:
    """The next element of each array of arguments."""

    def __init__(self) -> None:
        self._pointers, self._ints, self._floats = itertools.count(), itertools.count(), itertools.count()
        self.pointers = 0

    def pointer(self) -> int:
        self.pointers = next(self._pointers) + 1
        return self.pointers - 1

    def int(self) -> str:
        return f"n[{next(self._ints)}]"

    def number(self, value: Value) -> str:
        """That of a number of Python's."""
        return f"d[{next(self._floats)}]" if value.type.kind == "py_float" else self.int()


class _Body(NamedTuple):
    """What a function consists of.

    pointers: the variables that lead to memory.  head: the lines in front of the others.  macros: names of numbers in memory.
    table: the text in front of the function.
    """

    pointers: Sequence[_Pointer]
    head: Sequence[str]
    lines: List[str]
    macros: Mapping[str, str] = MappingProxyType({})
    table: str = ""


class Signature:
    """Reads the inputs in front of the lines of a function, and writes what leaves behind them."""

    def __init__(self, graph: Graph, out: FunctionEmitter):
        self.graph, self.out = graph, out
        self.arguments = _Arguments()
        self.head: List[str] = []
        self.pointers: List[_Pointer] = []
        self.entered: Dict[str, Tuple[str, Where]] = {}     # numbers in arrays, by the lines of the head that read them
        self.copied: List[Tuple[Value, str]] = []           # outputs that are made elsewhere, and where they go
        self.runs: List[range] = []                         # of lines that become a table
        self.numbers: Optional[Buffer] = None               # the memory of cells, if there is a table
        self.restored = ""                                  # the state of the generator as it was

    # What enters

    def enter(self) -> None:
        """Give the inputs their names, and look at the sizes."""
        for value in self.graph.inputs:
            self._input(value)
        if graph_draws(self.graph):
            self.out.generator, self.restored = self.out.variable("generator"), self.out.variable("before")
            self.head.append(f"dy_generator *const {self.out.generator} = (dy_generator *)(uintptr_t){self.arguments.int()};")
            if self.out.standalone is None:
                self.head.append(f"const dy_generator {self.restored} = *{self.out.generator};")
        if self.out.standalone is not None:
            self.head.append(f"dy_heap *const heap = (dy_heap *)(uintptr_t){self.arguments.int()};")
        for symbol in self.out.sizes.made:
            self.out.names.take(name_of(symbol), "const int64_t")
        self.head += new_variables(self.out.sizes.found, lambda: self.out.names.fresh("dim_part", "const int64_t"))
        for test in self.out.sizes.known_by():
            failed = 1 if self.out.standalone is None else self.out.standalone.number(SIZE)
            self.head.append(f"if ({test}) return {failed};")

    def _input(self, value: Value) -> None:
        out, arguments = self.out, self.arguments
        if enters_as_array(value.type):
            type = c_type(value.dtype)
            pointer = self._declared(value.name, f"const {type} *", arguments.pointer())
            if value.ndim:
                out.put_at(value, pointer)
            else:
                line = f"const {type} {out.local(value)} = {pointer}[0];"
                self.head.append(line)
                self.entered[line] = out.local(value), self.pointers[-1][2]
        elif is_list(value) or isinstance(value.type, Stack):
            type = "dy_list" if is_list(value) else "dy_stack"
            name = out.variable(value.name)
            out.rename(value, name)
            marked = is_list(value) and has_marks(value.type)
            constant = "" if marked else "const "
            self.head.append(f"{constant}{type} {name} = {{p[{arguments.pointer()}], {arguments.int()}, 0}};")
            if marked:
                self.head.append(f"{name}.there = {name}.data + {name}.count * {nbytes(value.type)};")
        elif isinstance(value.type, Extent):
            name = out.names.take(name_of(value.type.symbol), "const int64_t")
            self.head.append(f"const int64_t {name} = {arguments.int()};")
        else:
            self.head.append(f"const {scalar_type(value.type)} {out.local(value)} = {arguments.number(value)};")

    def bind_outputs(self, made: Collection[Value], bases: Mapping[Value, Value]) -> None:
        """Let arrays that leave be made in the memory of the caller.

        made: the values that this can be said of.  bases: such values by those that are all of them in another shape.
        """
        for value in self.graph.outputs:
            if enters_as_array(value.type) and not is_grown(value, self.out.sizes.made):
                pointer = self._declared(f"out_{value.name}", f"{c_type(value.dtype)} *", self.arguments.pointer())
                base = bases.get(value, value)
                if not self.out.has_memory(base) and base in made:
                    self.out.put_at(base, pointer)
                else:
                    self.copied.append((value, pointer))
        self.scratch = self.arguments.pointers

    def _declared(self, hint: str, type: str, pointer: int) -> str:
        name = self.out.variable(hint, type)
        self.pointers.append((name, type, Where(pointer, 0)))
        return name

    # What leaves

    def leave(self) -> None:
        """Hand over what is not there yet."""
        out = self.out
        for value, pointer in self.copied:
            out.copy(place_of(value), out.place(value), pointer)
        if out.standalone is None:
            self._find_runs()
        if out.memory.buffers:
            self.arguments.pointer()                           # else there is no scratch memory among the arguments
        for value in self.graph.outputs:
            self._output(value)
        leaving = {out.local(value) for value in self.graph.outputs if isinstance(value.type, Stack)}
        out.lines([f"dy_stack_free(&{name});" for name in out.stacks if name not in leaving])

    def _find_runs(self) -> None:
        """Find the calls that become a table, and take memory for the numbers that they give."""
        out = self.out
        known = {*[name for name, _, _ in self.pointers], *[name for name, _ in self.entered.values()],
                 *[buffer.name for buffer in out.memory.buffers]}
        known.update([name for cell in out.cells.values() for name in (cell.name, cell.pointer)])
        self.runs = runs_of(out.text.lines, out.parts.calls, known, out.cells)
        if self.runs and out.cells:
            self.numbers = out.memory.buffer("numbers", len(out.cells), np.dtype(np.int64))
            self.numbers.first = 0

    def _output(self, value: Value) -> None:
        out, arguments = self.out, self.arguments
        if isinstance(value.type, Stack):
            name, item = out.local(value), value.type.elem
            out.line(f"p[{arguments.pointer()}] = {name}.data;")
            out.line(f"{arguments.int()} = {name}.count * {math.prod(item.shape) * item.dtype.itemsize};")
        elif isinstance(value.type, Extent):
            out.line(f"{arguments.int()} = {name_of(value.type.symbol)};")
        elif is_list(value) or is_grown(value, out.sizes.made):
            self._given(value, f"p[{arguments.pointer()}]", arguments.int())
        elif not enters_as_array(value.type):
            out.line(f"{arguments.number(value)} = {out.scalar(value)};")

    def _given(self, value: Value, pointer: str, size: str) -> None:
        """Memory for the caller, with the items of a list or an array whose size was found here."""
        out = self.out
        marks = is_list(value) and has_marks(value.type)
        bytes_ = f"{out.local(value)}.count * {nbytes(value.type)}" if is_list(value) else value.type.size * value.dtype.itemsize
        new = "dy_block_new(" if out.standalone is None else "dy_heap_take(heap, "
        out.line(f"{size} = {bytes_}{f' + {out.local(value)}.count' if marks else ''};")
        out.line(f"if (!({pointer} = {new}{size}))) goto bail;")
        if is_list(value):
            out.line(f"memcpy({pointer}, {out.local(value)}.data, {bytes_});")
            if marks:
                out.line(f"dy_list_marks((char *){pointer} + {bytes_}, {out.local(value)});")
            return
        type = f"{c_type(value.dtype)} *"
        name = out.variable("grown", type)
        out.line(f"{type}const {name} = ({type}){pointer};")
        out.copy(place_of(value), out.place(value), name)

    # The whole

    def text(self, function: str) -> Tuple[str, int, Size]:
        """The text of the function, how many bytes of scratch memory it takes, and at most how many it asks for when it begins."""
        out = self.out
        none = "{0}" if out.standalone is None else "{.heap = heap}"
        block = out.memory.block(out.standalone is None)
        size, offsets = out.memory.arranged()
        pointers = [*self.pointers, *((buffer.name, f"{buffer.type} *", Where(self.scratch, at))
                                      for buffer, at in zip(out.memory.buffers, offsets))]
        body = _Body(pointers, self.head, out.text.lines) if not self.runs else self._with_table(function, pointers)
        are_many = len(body.pointers) > _MOST_POINTERS
        head = [f"static int {function}(char **restrict p, int64_t *n, double *d)", "{"]
        head += [f"    char *const scratch = p[{self.scratch}];"] if out.memory.buffers else []
        for name, type, where in body.pointers:
            source = f"(scratch + {where.nbytes})" if where.pointer == self.scratch else f"p[{where.pointer}]"
            head.append(f"#define {name} (({type}){source})" if are_many else f"    {type}const {name} = ({type}){source};")
        head += [f"#define {name} {text}" for name, text in body.macros.items()]
        head += [f"    {line}" for line in (*body.head, *self._declarations(none))]
        sweep = f"dy_lists_sweep(&{out.storages}, (dy_list *const[]){{{', '.join(f'&{x}' for x in out.lists)}}}, {len(out.lists)});"
        lines = [line.replace(SWEEP, sweep) if SWEEP in line else line for line in body.lines]
        lines = [*[f"    {line}" for line in block.lines], *lines]
        if out.standalone is not None:
            lines = [*self._unread(lines), *out.standalone.placed(lines)]
        tail = [f"    {line}" if line != "bail:" else line
                for line in self._ends(any("goto bail" in line for line in lines), block.room)]
        ends = [f"#undef {name}" for name in (*[name for name, _, _ in body.pointers if are_many], *body.macros)]
        return body.table + "\n".join([*head, *lines, *tail, "}", *ends]) + "\n", size, block.nbytes

    def _with_table(self, function: str, pointers: List[_Pointer]) -> _Body:
        """The function with a table in place of long runs of calls, and of what it names only what is still read."""
        out, numbers, cells = self.out, {}, []
        places = {name: where for name, _, where in pointers}
        for index, cell in enumerate(out.cells.values()):
            where = places[self.numbers.name]
            cells.append((cell.pointer, f"{cell.type} *", Where(where.pointer, where.nbytes + 8 * index)))
            numbers[cell.name] = Where(where.pointer, where.nbytes + 8 * index)
        numbers.update(self.entered.values())
        places.update({name: where for name, _, where in cells}, **numbers)
        types = {**out.names.types, **{cell.name: f"const {cell.type}" for cell in out.cells.values()}}
        table = CallList(function, places, types)
        lines = table.replaced(out.text.lines, self.runs, out.parts.calls, out.cells)
        read = set(IDENTIFIER.findall("\n".join([*lines, *[line for line in self.head if line not in self.entered]])))
        head = [line for line in self.head if line not in self.entered or self.entered[line][0] in read]
        read.update(IDENTIFIER.findall("\n".join(head)))
        macros = {cell.name: f"(*{cell.pointer})" for cell in out.cells.values() if cell.name in read}
        read.update([cell.pointer for cell in out.cells.values() if cell.name in read])
        return _Body([pointer for pointer in (*pointers, *cells) if pointer[0] in read], head, lines, macros, table.text)

    def _unread(self, lines: List[str]) -> List[str]:
        """Lines that say of variables in front of these that nothing reads them."""
        read = set(IDENTIFIER.findall("\n".join(lines)))
        inputs = [name_of(value.type.symbol) if isinstance(value.type, Extent) else self.out.local(value)
                  for value in self.graph.inputs if not (isinstance(value.type, Tensor) and value.ndim)]
        return [f"    (void){name};" for name in (*(name for name, _, _ in self.pointers), *inputs) if name not in read]

    def _declarations(self, none: str) -> List[str]:
        """Variables of the whole function.  none: the initialiser of what has taken no memory yet."""
        out = self.out
        found = [f"dy_stack {name} = {none};" for name in out.stacks]
        found += [f"int64_t {name_of(symbol)} = 0;" for symbol in out.sizes.made]
        found += [f"dy_list {name} = {{0}};" for name in out.lists]
        found += [f"dy_storages {out.storages} = {none};"] if out.lists else []
        found += [f"dy_room {room.name}_room = {none}; {room.type} *{room.name} = 0;" for room in out.memory.rooms]
        return found if out.standalone is None else [*found, "int failed = 0;", "(void)p, (void)n, (void)d;"]

    def _ends(self, bails: bool, block: str) -> List[str]:
        """The end of the function: the results, and the error exit if any line jumps to it (``bails``).

        block: the working memory that is taken when the function begins, if there is some.
        """
        out = self.out
        if out.standalone is not None:                          # the arena is the caller's
            return ["(void)heap;", *(["bail:"] if bails else []), "return failed;"]
        free = [f"dy_room_free(&{room.name}_room);" for room in out.memory.rooms]
        free += [f"dy_working_give(&{block});"] if block else []
        free += [f"dy_lists_free(&{out.storages});"] if out.lists else []
        back = [f"*{out.generator} = {self.restored};"] if out.generator else []
        lines = list(free)
        if out.generator:
            lines += ["if (dy_float_flags()) {", *back, "    return 1;", "}"]
        lines.append("return 0;")
        if bails or out.generator:
            lines += ["bail:", *back, *(f"dy_stack_free(&{name});" for name in out.stacks), *free, "return 1;"]
        return lines
