"""Updates as kernels: one launch for all updates of one form, which finds its arrays in a table."""
from __future__ import annotations

import itertools
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from ....ir.devices import HOST
from ....ir.graph import Graph, Node, Value
from ....ir.types import Scalar, Tensor
from ....native.device_kernels import Kernel, kernel_of
from ....native.launcher import MOST_WORDS
from ....passes.in_place import Update
from ....runtime.devices import current_stream
from ...updates import UpdateCall, flat
from ..text.dtypes import constant, expression, loaded, memory_type, register_type
from .region import Device

#: Threads of a block, and the elements that it updates.
THREADS, _ELEMENTS = 256, 1024

#: Bytes that a thread loads at a time, and most elements.
_BYTES, _MOST = 16, 4

#: Stores words in a table.  They are arguments of the launch.
STORE = Kernel("store_table", f"""struct dy_table {{ int64_t begin, count, words[{MOST_WORDS}]; }};

extern "C" __global__ void __launch_bounds__(128) store_table(int64_t *table, const dy_table given)
{{
    for (int64_t k = threadIdx.x; k < given.count; k += 128) table[given.begin + k] = given.words[k];
}}
""")

#: Numbers of Python that become floats of arrays: as NumPy makes them, they are doubles first.
_NUMBERS = ("py_float", "py_int", "py_bool")


def takes(update: Update) -> bool:
    """Whether a kernel computes an update."""
    graph = update.graph
    return all(map(_is_operand, graph.inputs)) and all(map(_has_form, graph.nodes))


def _is_operand(value: Value) -> bool:
    if isinstance(value.type, Scalar):
        return value.type.kind in _NUMBERS
    return isinstance(value.type, Tensor) and value.type.device != HOST and memory_type(value.dtype) is not None


def _has_form(node: Node) -> bool:
    if node.op.name in ("constant", "broadcast_to"):
        return True
    if memory_type(node.outputs[0].dtype) is None:
        return False
    if node.op.name == "scalar_to_tensor":
        number = node.inputs[0].type
        return isinstance(number, Scalar) and number.kind in _NUMBERS and node.outputs[0].dtype.kind == "f"
    return node.op.kind == "elementwise" and expression(node, ["x"] * len(node.inputs)) is not None


class UpdateRegion:
    """The kernel of some updates of one form.

    graph: what an update computes.  members: which updates these are.  are_numbers: which of the operands of each are numbers.

    The table has words of 64 bits: the number of updates; the number of the first block of each, and of all blocks; how many
    elements each has; then a row for each update: its operands, which are addresses or numbers.
    """

    def __init__(self, update: Update, members: Tuple[int, ...]):
        self.graph, self.members, self._targets = update.graph, members, update.targets
        self.are_numbers = [isinstance(v.type, Scalar) for v in update.graph.inputs]
        self.kernel = kernel_of("update", THREADS, _text(flat(update.graph), update.targets))

    def bind(self, device: Device, module: Mapping[str, Any]) -> UpdateCall:
        """The function that launches the kernel.  module: the functions of all kernels on the device."""
        self._device, self._function = device, module[self.kernel.name]
        self._table: Tuple[Any, Any] = None, None
        return UpdateCall(self._call, self.members)

    def _call(self, *operands: Any) -> None:
        """Update all arrays in one launch; those that are not contiguous are copied, and written back."""
        count = len(self.are_numbers)
        with self._device.current():
            held = [x if is_number else self._device.contiguous(x)
                    for x, is_number in zip(operands, itertools.cycle(self.are_numbers))]
            head = head_of([operands[first + self._targets[0]].size for first in range(0, len(operands), count)])
            if blocks_of(head):
                words = [word(self._device, x, is_number) for x, is_number in zip(held, itertools.cycle(self.are_numbers))]
                self._launch(np.array([*head, *words], np.int64), blocks_of(head))
            for first in range(0, len(operands), count):
                for k in self._targets:
                    if held[first + k] is not operands[first + k]:
                        operands[first + k][...] = held[first + k]

    def _launch(self, table: np.ndarray[Any, Any], blocks: int) -> None:
        key, there = (table.tobytes(), current_stream()), self._table
        if key != there[0]:                                            # with the same arrays and numbers, it is there already
            there = self._table = key, self._device.upload(table)      # another thread may replace it before the launch
        self._device.launch(self._function, blocks, THREADS, [self._device.address(there[1])])


def head_of(sizes: Sequence[int]) -> List[int]:
    """The words of a table that come before its rows.  sizes: how many elements each update has."""
    return [len(sizes), *itertools.accumulate([-(-size // _ELEMENTS) for size in sizes], initial=0), *sizes]


def blocks_of(head: Sequence[int]) -> int:
    """How many blocks these updates have."""
    return int(head[head[0] + 1])


def word(device: Device, operand: Any, is_number: bool) -> int:
    """An operand as a word of a table: the bits of a double, or the address of an array."""
    return int(np.float64(operand).view(np.int64)) if is_number else device.address(operand)


def _converted(value: Value, number: str) -> str:
    """A double as an element of an array."""
    return f"dy_rounded({number})" if value.dtype == np.float16 else f"({register_type(value.dtype)}){number}"


def _text(graph: Graph, targets: Sequence[int]) -> str:
    """The kernel of one form, without its name: a thread updates several elements at a time, which it loads and stores together."""
    arrays = {at: value for at, value in enumerate(graph.inputs) if isinstance(value.type, Tensor) and value.ndim}
    width = max(1, min(_MOST, _BYTES // max(value.dtype.itemsize for value in arrays.values())))
    texts: Dict[Value, str] = {}
    head: List[str] = []
    for at, value in enumerate(graph.inputs):
        slot, texts[value] = f"row[{at}]", f"x{at}"
        if isinstance(value.type, Scalar):
            head.append(f"const double x{at} = *(const double *)&{slot};")
        elif value.ndim:
            type = f"{'' if at in targets else 'const '}{memory_type(value.dtype)} *"
            head.append(f"{type}const p{at} = ({type}){slot};")
        else:
            element = loaded(f"*(const {memory_type(value.dtype)} *){slot}", value.dtype)
            head.append(f"const {register_type(value.dtype)} x{at} = {element};")
    loads = [line for at, value in arrays.items()
             for line in (f"{memory_type(value.dtype)} e{at}[{width}];", f"dy_load(e{at}, p{at} + k, left);")]
    body = [f"const {register_type(value.dtype)} x{at} = {loaded(f'e{at}[e]', value.dtype)};" for at, value in arrays.items()]
    for number, node in enumerate(graph.nodes):
        (value,) = node.outputs
        operands = [texts[v] for v in node.inputs]
        if node.op.name == "constant":
            texts[value] = constant(np.asarray(node.attrs["value"]).item(), value.dtype)
        elif node.op.name == "broadcast_to":
            texts[value] = operands[0]
        else:
            texts[value] = f"v{number}"
            text = _converted(value, operands[0]) if node.op.name == "scalar_to_tensor" else expression(node, operands)
            (body if value.ndim else head).append(f"const {register_type(value.dtype)} v{number} = {text};")
    body += [f"e{at}[e] = {texts[value]};" for at, value in zip(targets, graph.outputs)]
    stores = [f"dy_store(p{at} + k, e{at}, left);" for at in targets]
    lines, before, inner, behind = ("\n".join([" " * depth + line for line in part])
                                    for depth, part in ((4, head), (8, loads), (12, body), (8, stores)))
    return f"""(const int64_t *__restrict__ table)
{{
    const int64_t count = table[0], *const firsts = table + 1;
    int64_t low = 0, high = count;
    while (high - low > 1) {{
        const int64_t middle = (low + high) / 2;
        if (firsts[middle] <= (int64_t)blockIdx.x) low = middle; else high = middle;
    }}
    const int64_t size = firsts[count + 1 + low], *const row = firsts + 2 * count + 1 + low * {len(graph.inputs)};
    const int64_t begin = ((int64_t)blockIdx.x - firsts[low]) * {_ELEMENTS};
    const int64_t end = begin + {_ELEMENTS} < size ? begin + {_ELEMENTS} : size;
{lines}
    for (int64_t k = begin + threadIdx.x * {width}; k < end; k += {THREADS * width}) {{
        const int left = (int)(end - k);
{before}
        #pragma unroll
        for (int e = 0; e < {width}; ++e) {{
{inner}
        }}
{behind}
    }}
}}
"""
