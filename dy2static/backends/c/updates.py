"""Updates as C functions: one for all of one form, which goes through the arrays piece by piece, while they are in the cache.

Threads share large arrays.  Where NumPy would say something about a piece, the rest of its share is left to NumPy: what all shares
of an array leave is one call.
"""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

from ...ir.c_forms import c_constant, c_expression, c_type
from ...ir.graph import Graph, Node, Value
from ...ir.types import Scalar, Tensor
from ...native import library
from ...passes.in_place import Update
from ..host.updates import bound, emit_update
from ..updates import UpdateCall, flat
from .names import CNames
from .scalars import SCALARS, scalar_type
from .supported import supported

#: So many elements are computed, looked at, and stored.
_PIECE = 1024

#: Threads share arrays of so many elements, in at most so many shares.
_SHARED, _SHARES = 1 << 15, 16

_KINDS = {"py_int": "int", "py_bool": "bool", "py_float": "float"}


def takes(update: Update) -> bool:
    """Whether C computes an update."""
    graph = update.graph
    if not all(supported(node) and _has_form(node) for node in graph.nodes):
        return False
    return all(isinstance(v.type, Tensor) and c_type(v.dtype) is not None or isinstance(v.type, Scalar) and v.type.kind in _KINDS
               for v in graph.inputs)


def _has_form(node: Node) -> bool:
    """Whether a node is an expression of C, which never asks NumPy."""
    if node.op.name in ("constant", "broadcast_to"):
        return True
    lines = _number(node, ["x"], "y") if node.op.kind == "scalar" else []
    return not any("goto" in line for line in lines) and (node.op.kind in ("elementwise", "scalar"))


class UpdateRegion:
    """The C function of some updates of one form.

    members: which updates these are.  call: takes their operands, one update after the other.
    """

    call: Callable[..., None]

    def __init__(self, update: Update, members: Tuple[int, ...], number: int):
        self.graph, self.targets, self.members, self.number = flat(update.graph), update.targets, members, number
        self.name = f"update_{number}"
        self._rest: Optional[Callable[..., Any]] = None
        self.text = _Text(self.graph, self.targets, self.name).whole()

    def __getstate__(self) -> Dict[str, Any]:
        """What another process needs to go on from here."""
        return {**vars(self), "_rest": None}

    def bind(self, built: library.Library) -> UpdateCall:
        """The function, of the library that was made of the text."""
        return UpdateCall(library.bind(built, self.name, self.rest), self.members)

    def rest(self, address: int, *operands: Any) -> None:
        """Update the elements that C leaves with NumPy, which says what there is to say; also arrays that C does not take.

        address: where the number of spans is, followed by the first element of each and the one behind it.
        """
        if self._rest is None:
            self._rest = bound(emit_update(self.graph, self.targets))
        count = ctypes.c_int64.from_address(address).value
        bounds = list((ctypes.c_int64 * (2 * count + 1)).from_address(address))[1:]
        spans = [slice(*bounds[k:k + 2]) for k in range(0, 2 * count, 2)]
        pieces = [_piece(x, spans) if isinstance(x, np.ndarray) and x.ndim else x for x in operands]
        self._rest(*pieces)
        for k in self.targets:
            if not np.shares_memory(pieces[k], operands[k]):
                _put(operands[k], spans, pieces[k])


def _piece(array: np.ndarray, spans: Sequence[slice]) -> np.ndarray:
    flat_array = array.reshape(-1)
    return flat_array[spans[0]] if len(spans) == 1 else np.concatenate([flat_array[span] for span in spans])


def _put(array: np.ndarray, spans: Sequence[slice], piece: np.ndarray) -> None:
    whole = array.reshape(-1)
    first = 0
    for span in spans:
        behind = first + span.stop - span.start
        whole[span] = piece[first:behind]
        first = behind
    if not np.shares_memory(whole, array):
        array[...] = whole.reshape(array.shape)


class _Text:
    """Writes the function of one form."""

    def __init__(self, graph: Graph, targets: Sequence[int], name: str):
        self.graph, self.targets, self.name = graph, targets, name
        self.names = CNames()
        self.texts: Dict[Value, str] = {}
        self.arrays = [v for v in graph.inputs if isinstance(v.type, Tensor)]
        self.numbers = [v for v in graph.inputs if not isinstance(v.type, Tensor)]

    def whole(self) -> str:
        """The function of a piece, and what Python calls."""
        head, body = self._head(), self._body()
        piece = "\n".join([
            f"static __attribute__((noinline)) void {self.name}_piece(char *const *p, const int64_t *n, const double *d, "
            "const int64_t first, const int64_t count, char *const made)", "{",
            *[f"    {line}" for line in head], "    #pragma omp simd", "    for (int64_t k = 0; k < count; ++k) {",
            *[f"        {line}" for line in body], "    }", "}"])
        return f"{piece}\n{self._wrapper()}"

    def _head(self) -> List[str]:
        """Lines of C that define the pointers to the elements and the numbers."""
        lines, ints, floats = [], 0, 0
        for at, value in enumerate(self.arrays):
            name, type = self._named(value), c_type(value.dtype)
            lines.append(f"const {type} *const {name} = (const {type} *)p[{at}] + first;" if value.ndim else
                         f"const {type} {name} = *(const {type} *)p[{at}];")
        for value in self.numbers:
            name, is_float = self._named(value), value.type.kind == "py_float"
            lines.append(f"const {scalar_type(value.type)} {name} = {f'd[{floats}]' if is_float else f'n[{ints}]'};")
            floats, ints = floats + is_float, ints + (not is_float)
        for at, value in enumerate(self.graph.outputs):
            type = c_type(value.dtype)
            lines.append(f"{type} *restrict const made_{at} = ({type} *)(made + {8 * _PIECE * at});")
        for node in self.graph.nodes:
            (value,) = node.outputs
            if node.op.kind == "scalar":
                lines += _number(node, [self.texts[v] for v in node.inputs], self._named(value))
            elif node.op.name == "constant":
                self.texts[value] = c_constant(np.asarray(node.attrs["value"]).item(), value.dtype)
        return lines

    def _body(self) -> List[str]:
        """What is computed for one element."""
        lines = []
        for node in self.graph.nodes:
            (value,) = node.outputs
            if node.op.name == "broadcast_to":
                self.texts[value] = self.texts[node.inputs[0]]
            elif node.op.kind == "elementwise":
                text = c_expression(node.op, [self._element(v) for v in node.inputs], [v.type for v in node.inputs],
                                    value.type, node.attrs)
                lines.append(f"const {c_type(value.dtype)} {self._named(value)} = {text};")
        return lines + [f"made_{at}[k] = {self.texts[value]};" for at, value in enumerate(self.graph.outputs)]

    def _element(self, value: Value) -> str:
        name = self.texts[value]
        if value not in self.arrays or not value.ndim:
            return name
        return f"(((const uint8_t *){name})[k] != 0)" if value.dtype.kind == "b" else f"{name}[k]"

    def _named(self, value: Value) -> str:
        self.texts[value] = self.names.fresh(f"{value.name}_")
        return self.texts[value]

    def _wrapper(self) -> str:
        """Takes the operands of one update after the other; where NumPy would say something, the rest of an array is its."""
        inputs, filled = self.graph.inputs, [self.graph.inputs[k] for k in self.targets]
        place = {value: at for at, value in enumerate(self.arrays)}
        counts = {"int": 0, "bool": 0, "float": 0}
        checks = []
        for at, value in enumerate(inputs):
            if isinstance(value.type, Tensor):
                checks += [f"dy_take_array(given[{at}], {int(value in filled)}, &p[{place[value]}])",
                           f"dy_holds(given[{at}], {library.letter(value.dtype)}, {'size' if value.ndim else 1})"]
            else:
                kind = _KINDS[value.type.kind]
                slot = f"&d[{counts['float']}]" if kind == "float" else f"&n[{counts['int'] + counts['bool']}]"
                counts[kind] += 1
                checks.append(f"dy_take_{kind}(given[{at}], {slot})")
        stores = "\n".join(
            f"        memcpy(p[{place[value]}] + first * {value.dtype.itemsize}, made + {8 * _PIECE * at}, "
            f"(size_t)(count * {value.dtype.itemsize}));" for at, value in enumerate(filled))
        tests = "\n            && ".join(checks)
        return f"""
struct {self.name} {{ char *const *p; const int64_t *n; const double *d; int64_t step, *ends; }};
static void {self.name}_share(const void *given, int64_t first, int64_t end)
{{
    const struct {self.name} *const all = given;
    char *const *const p = all->p;
    char made[{8 * _PIECE * len(filled)}] __attribute__((aligned(64)));
    int64_t *const reached = all->ends + first / all->step;
    for (; first < end; first += {_PIECE}) {{
        const int64_t count = end - first < {_PIECE} ? end - first : {_PIECE};
        dy_clear_float_flags();
        {self.name}_piece(p, all->n, all->d, first, count, made);
        if (dy_float_flags())
            break;
{stores}
    }}
    dy_clear_float_flags();
    *reached = first < end ? first : end;
}}

PyObject *{self.name}(PyObject *self, PyObject *const *args, intptr_t args_count)
{{
    for (intptr_t at = 0; at < args_count; at += {len(inputs)}) {{
        PyObject *const *const given = args + at;
        char *p[{len(self.arrays)}];
        int64_t n[{counts['int'] + counts['bool'] + 1}], ends[{_SHARES}], spans[{2 * _SHARES + 1}];
        double d[{counts['float'] + 1}];
        const int64_t size = dy_size(given[{self.targets[0]}]), pieces = (size + {_PIECE - 1}) / {_PIECE};
        const int64_t step = size < {_SHARED} ? size : (pieces + {_SHARES - 1}) / {_SHARES} * {_PIECE};
        const int taken = {tests};
        if (taken && size > 0)
            dy_share({self.name}_share, &(struct {self.name}){{p, n, d, step, ends}}, size, step);
        spans[0] = 0;
        for (int64_t first = 0; first < size; first += taken ? step : size) {{
            const int64_t end = taken && first + step < size ? first + step : size, reached = taken ? ends[first / step] : first;
            if (reached < end) {{
                spans[2 * spans[0] + 1] = reached;
                spans[2 * spans[0]++ + 2] = end;
            }}
        }}
        if (spans[0] && !dy_leave_rest(self, given, {len(inputs)}, spans))
            return 0;
    }}
    return dy_none();
}}
"""


def _number(node: Node, operands: Sequence[str], result: str) -> List[str]:
    return SCALARS[node.op.name](node, operands, result)
