"""Updates as C functions: one for all of one form, which goes through the arrays piece by piece, while they are in the cache."""
from __future__ import annotations

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
from .partition import supported
from .scalars import SCALARS, scalar_type

#: So many elements are computed, looked at, and stored.
_PIECE = 1024

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

    def rest(self, first: int, *operands: Any) -> None:
        """Update all elements from one on with NumPy, which says what there is to say; also arrays that C does not take."""
        if self._rest is None:
            self._rest = bound(emit_update(self.graph, self.targets))
        pieces = [_piece(x, first) if isinstance(x, np.ndarray) and x.ndim else x for x in operands]
        self._rest(*pieces)
        for k in self.targets:
            if not np.shares_memory(pieces[k], operands[k]):
                operands[k][...] = pieces[k].reshape(operands[k].shape)


def _piece(array: np.ndarray, first: int) -> np.ndarray:
    return array.reshape(-1)[first:]


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
                checks.append(f"dy_take_array(given[{at}], {int(value in filled)}, &p[{place[value]}])")
            else:
                kind = _KINDS[value.type.kind]
                slot = f"&d[{counts['float']}]" if kind == "float" else f"&n[{counts['int'] + counts['bool']}]"
                counts[kind] += 1
                checks.append(f"dy_take_{kind}(given[{at}], {slot})")
        stores = "\n".join(
            f"            memcpy(p[{place[value]}] + first * {value.dtype.itemsize}, made + {8 * _PIECE * at}, "
            f"(size_t)(count * {value.dtype.itemsize}));" for at, value in enumerate(filled))
        tests = "\n            && ".join(checks)
        return f"""
PyObject *{self.name}(PyObject *self, PyObject *const *args, intptr_t args_count)
{{
    char made[{8 * _PIECE * len(filled)}] __attribute__((aligned(64)));
    for (intptr_t at = 0; at < args_count; at += {len(inputs)}) {{
        PyObject *const *const given = args + at;
        char *p[{len(self.arrays)}];
        int64_t n[{counts['int'] + counts['bool'] + 1}], first = 0;
        double d[{counts['float'] + 1}];
        const int64_t size = dy_size(given[{self.targets[0]}]);
        const int taken = {tests};
        for (; taken && first < size; first += {_PIECE}) {{
            const int64_t count = size - first < {_PIECE} ? size - first : {_PIECE};
            dy_clear_float_flags();
            {self.name}_piece(p, n, d, first, count, made);
            if (dy_float_flags())
                break;
{stores}
        }}
        if (first < size && !dy_leave_rest(self, given, {len(inputs)}, first))
            return 0;
    }}
    return dy_none();
}}
"""


def _number(node: Node, operands: Sequence[str], result: str) -> List[str]:
    return SCALARS[node.op.name](node, operands, result)
