"""Loops whose condition is a value of the device, as one node of a CUDA graph: the host does not wait for it in each turn.

A ``while`` is such a loop if its test is one region, its body is one region, and all that it carries are arrays of known sizes, and
numbers that each turn sets to the same (which of several Variables a name stands for).  It is one call: the state is copied to
working memory, a graph repeats the body while the test holds, and the state is copied to the results.  Where there can be no such
graph, the same steps are launched turn by turn, and the host reads the condition.
"""
from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from .... import config
from ....errors import BackendError
from ....ir.devices import HOST
from ....ir.graph import Graph, Node, Value
from ....ir.types import Tensor
from ....native.announce import announce
from ....native.device_kernels import Kernel
from ....native.failures import Refused
from ....native.launcher import OF_LIBRARIES
from ....ops.control import loop_of
from ...compiled_calls import NATIVE, Conversion, is_native
from ...memory_planner import aligned
from ..program.steps import Convolve, Copy, DeviceFunction, Loop, Step
from .launching import InC, Run, Words, runs, words
from .region import Device, DeviceRegion

#: Sets the condition of a loop.  The driver knows the function that it calls.
CONDITION = Kernel("set_condition", """
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

extern "C" __global__ void __launch_bounds__(1) set_condition(const bool *condition, unsigned long long handle)
{
    cudaGraphSetConditional(handle, *condition);
}
""")


def loops_on_device(graph: Graph) -> Graph:
    """The divided graph with a native node in the place of each loop that can be one call.  Its region is the loop alone."""
    def changed(node: Node) -> Node:
        if not _is_taken(node):
            return replace(node, regions=tuple(map(loops_on_device, node.regions))) if node.regions else node
        inputs = tuple(dict.fromkeys([*loop_of(node).state, *_read(node)]))
        return Node(NATIVE, inputs, node.outputs, {"region": Graph(inputs, node.outputs, (node,), "loop")}, (), node.loc)
    return graph.with_(nodes=tuple(map(changed, graph.nodes)))


def _is_taken(node: Node) -> bool:
    if node.op.name != "while_":
        return False
    loop, natives = loop_of(node), [[inner for inner in region.nodes if is_native(inner)] for region in node.regions]
    if loop.pushed or loop.counted or not all(len(found) == 1 and set(found[0].inputs) <= set(region.inputs)
                                              for found, region in zip(natives, node.regions)):
        return False
    (test,), (body,) = natives
    arrays = [value for value in loop.next if isinstance(value.type, Tensor)]
    numbers = _numbers(loop.body)
    condition = test.outputs[0].type
    return (len(set(arrays)) == len(arrays) > 0 and set(body.outputs) == set(arrays)
            and set(loop.next) <= {*arrays, *numbers} and len(loop.body.nodes) == 1 + len(numbers)
            and node.regions[0].nodes == (test,) and test.outputs == node.regions[0].outputs
            and isinstance(condition, Tensor) and condition.dtype == np.bool_ and all(map(_is_known, (*arrays, *test.outputs))))


def _numbers(graph: Graph) -> Dict[Value, Any]:
    """The numbers of the program's text in a graph."""
    return {value: node.attrs["value"] for node in graph.nodes if node.op.name == "py_constant" for value in node.outputs}


def _is_known(value: Value) -> bool:
    return isinstance(value.type, Tensor) and value.type.device != HOST and all(isinstance(n, int) and n > 0 for n in value.shape)


def _read(node: Node) -> List[Value]:
    """The invariants that the regions of a loop read."""
    carried = len(loop_of(node).state)
    read = {region.inputs.index(value) for region in node.regions for value in _native(region).inputs}
    return [operand for k, operand in enumerate(node.inputs) if k >= carried and k in read]


def _native(region: Graph) -> Node:
    return next(node for node in region.nodes if is_native(node))


def parts_of(graph: Graph) -> Tuple[Graph, ...]:
    """The regions of a loop that is one call, test and body; none where a graph is something else."""
    return tuple([_native(region).attrs["region"] for node in graph.nodes if node.op.name == "while_" for region in node.regions])


class LoopRegion:
    """A loop on a device: ``call(inputs..., arrays of outputs..., scratch)``, as `CompiledCall` wants it.

    Pointers are numbered: inputs, outputs that are arrays, what is carried, what the body makes of it, the condition, what that was
    before the first turn, scratch of test and body.
    """

    def __init__(self, graph: Graph, test: DeviceRegion, body: DeviceRegion):
        (node,) = graph.nodes
        loop, outputs = loop_of(node), node.outputs
        arrays = [k for k, value in enumerate(outputs) if isinstance(value.type, Tensor)]
        made = _numbers(loop.body)
        self._numbers = [(graph.inputs.index(loop.state[k]), made[loop.next[k]]) for k in range(len(outputs)) if k not in arrays]
        self.given: Mapping[int, Optional[Conversion]] = {k: None for k in range(len(outputs)) if k not in arrays}
        assert isinstance(test.function, DeviceFunction) and isinstance(body.function, DeviceFunction), "all sizes are known"
        self._functions = test.function, body.function
        self._test, self._body, self._state = test, body, arrays
        self._count, self._carried = len(graph.inputs), len(arrays)
        self.entering: Sequence[Optional[Conversion]] = (None,) * self._count
        self._arrays = self._count + self._carried
        self._condition = self._arrays + 2 * self._carried
        sizes = [*[outputs[k].nbytes for k in arrays] * 2, 1, 1]
        self._first_scratch = len(sizes), len(sizes) + len(test.function.pieces)
        begins = [0, *itertools.accumulate(map(aligned, sizes))]
        self._scratch = begins[-1], begins[-1] + aligned(test.function.scratch)
        self._pieces = [*begins[:-1], *[self._scratch[0] + begin for begin in test.function.pieces],
                        *[self._scratch[1] + begin for begin in body.function.pieces]]
        self.scratch = self._scratch[1] + aligned(body.function.scratch)
        self._sizes = sizes[:self._carried]
        self._states = [graph.inputs.index(loop.state[k]) for k in arrays]
        self._pointers = [self._pointers_of(graph, node, which) for which in range(2)]

    def _pointers_of(self, graph: Graph, node: Node, which: int) -> List[int]:
        """The numbers of the arrays of a region: 0 is the test, 1 the body."""
        region = node.regions[which]
        numbers: Dict[Value, int] = {}
        for k, value in enumerate(region.inputs):
            if k in self._state:
                numbers[value] = self._arrays + self._state.index(k)
            elif node.inputs[k] in graph.inputs:
                numbers[value] = graph.inputs.index(node.inputs[k])
        if which == 0:
            numbers[region.outputs[0]] = self._condition
        else:
            numbers.update((region.outputs[k], self._arrays + self._carried + n) for n, k in enumerate(self._state))
        call = _native(region)
        return [numbers[value] for value in (*call.inputs, *call.outputs)]

    def load(self, device: Device, module: Mapping[str, Any]) -> None:
        """Let the loop be launched on a device.  module: the kernels of test and body there."""
        self._device, self._whole = device, None
        self._enter = self._copying([(self._arrays + k, state) for k, state in enumerate(self._states)])
        self._advance = self._copying([(self._arrays + k, self._arrays + self._carried + k) for k in range(self._carried)])
        self._leave = self._copying([(self._count + k, self._arrays + k) for k in range(self._carried)])
        inside = self._inside(device, module)
        launcher = device.launcher()
        if launcher is None or inside is None or not config.gpu_graphs():
            return
        try:
            module = {**module, **device.load([CONDITION])}
        except BackendError as reason:
            if Refused.stands(reason):
                raise
            announce("loops", f"the host waits for a GPU in each turn of a loop: {reason}")
            return
        test, body = inside
        copies = [Copy(self._arrays + k, 0, self._arrays + self._carried + k, 0, size) for k, size in enumerate(self._sizes)]
        advance = self._words(copies, range(self._arrays + len(self._pieces)), device, module)
        assert advance is not None, "the launcher copies"
        repeated = [*body, *advance, *test]
        used = dict.fromkeys([self._condition, *[number for one in repeated for number in one.pointers]])
        set_condition = device.handle(module[CONDITION.name])
        loop = Words("while", list(used), [set_condition, *[word for one in repeated for word in one.flat()]])
        first = self._words([Copy(self._condition + 1, 0, self._condition, 0, 1)], range(self._condition + 2), device, module)
        steps = [(Loop(), one) for one in (*test, *(first or ()), loop)]
        self._whole = InC(self._arrays, self._pieces, device, launcher, module, steps)
        self._whole.needs_products = any(one.kind in OF_LIBRARIES for one in repeated)

    def _inside(self, device: Device, module: Mapping[str, Any]) -> Optional[Tuple[List[Words], List[Words]]]:
        """The words of the steps of test and body; None where the launcher cannot do all of them."""
        found = []
        for function, pointers, first in zip(self._functions, self._pointers, self._first_scratch):
            numbers = [*pointers, *[self._arrays + first + k for k in range(len(function.pieces))]]
            made = self._words(function.steps, numbers, device, module)
            if made is None or any(isinstance(step, Convolve) for step in function.steps):
                return None
            found.append(made)
        return found[0], found[1]

    def _words(self, steps: Sequence[Step], numbers: Sequence[int], device: Device,
               module: Mapping[str, Any]) -> Optional[List[Words]]:
        """The words of steps whose pointers have these numbers here; None where the launcher does not do all of them."""
        launcher = device.launcher()
        found = [words(step, device, module) for step in steps]
        if launcher is None or any(one is None or one.kind not in launcher.kinds for one in found):
            return None
        return [one._replace(pointers=[numbers[number] for number in one.pointers]) for one in found if one is not None]

    def _copying(self, pairs: Sequence[Tuple[int, int]]) -> List[Run]:
        """What copies the state from one place to another; pairs of pointers: to, from."""
        copies = tuple([Copy(to, 0, source, 0, size) for (to, source), size in zip(pairs, self._sizes)])
        return runs(DeviceFunction((), copies, self._arrays, tuple(self._pieces), self.scratch), self._device, {})

    def call(self, *given: Any) -> Any:
        """Run the loop."""
        device = self._device
        numbers = {k for k, _ in self._numbers}
        held = [x if k in numbers else device.contiguous(x) for k, x in enumerate(given[:self._count])] + [*given[self._count:]]
        addresses = [0 if k in numbers else device.address(x) for k, x in enumerate(held)]
        for run in self._enter:
            run(addresses)
        is_replayed = self._whole is not None and self._replayed(self._whole, addresses)
        has_run = not is_replayed and self._turns(addresses)
        for run in self._leave:
            run(addresses)
        if not self._numbers:
            return None
        has_run = has_run or is_replayed and self._read(addresses, self._condition + 1)
        found = tuple([last if has_run else given[k] for k, last in self._numbers])
        return found[0] if len(found) == 1 else found

    def _read(self, addresses: Sequence[int], number: int) -> bool:
        """A truth value of the device, when it is there."""
        place = addresses[-1] + self._pieces[number - self._arrays]
        return bool(self._device.download(self._device.view(place, (1,), (1,), np.dtype(np.bool_)))[0])

    def _replayed(self, whole: InC, addresses: Sequence[int]) -> bool:
        """Run the loop as a graph; whether that was done.  What fails has changed no state."""
        if whole.region(self._device.place(whole.needs_products), addresses) is None:
            return True
        if whole.region.counts.failures:
            announce("loops", "the host waits for a GPU in each turn of a loop: the driver makes no CUDA graph of it")
        return False

    def _turns(self, addresses: Sequence[int]) -> bool:
        """Run the loop turn by turn; whether there was a turn."""
        *arrays, scratch = addresses
        everything = [*arrays, *[scratch + begin for begin in self._pieces]]
        test, body = [[*[everything[number] for number in pointers], *([scratch + begin] if function.pieces else [])]
                      for function, pointers, begin in zip(self._functions, self._pointers, self._scratch)]
        for turn in itertools.count():
            for run in self._test.runs:
                run(test)
            if not self._read(addresses, self._condition):
                return turn > 0
            for run in self._body.runs:
                run(body)
            for run in self._advance:
                run(addresses)
        raise AssertionError
