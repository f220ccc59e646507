"""What this package asks of CuPy exists in CuPy 14.2 and 13.6, with the parameters that are passed."""
import ast
from pathlib import Path

import pytest
from cupy_double_arrays import names_of

import dy2static

PACKAGE = Path(dy2static.__file__).parent

#: How our modules write CuPy; Chainer's names for classes of its.
ROOTS = {"cuda.cupy": "cupy", "self._cupy": "cupy", "cupy": "cupy", "cuda.cupyx": "cupyx", "cuda.Device": "cupy.cuda.Device",
         "cuda.ndarray": "cupy.ndarray"}

#: What modules ask of objects: the text of the object in a module -> its class.
OBJECTS = {
    "native/device.py": {"module": "cupy.cuda.function.Module", "function": "cupy.cuda.function.Function",
                         "self._device": "cupy.cuda.Device", "array": "cupy.ndarray", "array.data": "cupy.cuda.MemoryPointer",
                         "memory.data": "cupy.cuda.MemoryPointer", "self._cupy.cuda.get_current_stream()": "cupy.cuda.Stream",
                         "begin": "cupy.cuda.Event", "end": "cupy.cuda.Event", "stream": "cupy.cuda.Stream",
                         "graph": "cupy.cuda.graph.Graph"},
    "backends/cupy/library.py": {"memory": "cupy.ndarray", "memory.data": "cupy.cuda.MemoryPointer"},
    "backends/cupy/memory.py": {"cuda.cupy.get_default_memory_pool()": "cupy.cuda.MemoryPool"},
    "runtime/devices.py": {"cuda.cupy.cuda.get_current_stream(number)": "cupy.cuda.Stream", "device.device": "cupy.cuda.Device"},
    "ops/transfers.py": {"cupy.cuda.get_current_stream(waiting.id)": "cupy.cuda.Stream", "event": "cupy.cuda.Event"},
    "check_gpu/speed.py": {"begin": "cupy.cuda.Event", "end": "cupy.cuda.Event", "stream": "cupy.cuda.Stream",
                           "stream.end_capture()": "cupy.cuda.graph.Graph", "cupy.cuda.Device()": "cupy.cuda.Device",
                           "cupy.cuda.Stream.null": "cupy.cuda.Stream"},
}


def asked(path):
    """The names of CuPy's in a module, spelled as CuPy has them, each with its call, if it is called."""
    roots = {**ROOTS, **OBJECTS.get(path.relative_to(PACKAGE).as_posix(), {})}
    tree = ast.parse(path.read_text())
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        text = ast.unparse(node)
        root = max((root for root in roots if text.startswith(root + ".")), key=len, default=None)
        if root is not None and id(node) not in inner:
            yield roots[root] + text[len(root):], calls.get(id(node))


@pytest.mark.parametrize("version", [14, 13], ids=["14.2", "13.6"])
def test_our_modules_use_what_cupy_has(version):
    names, seen = names_of(version), set()
    for path in PACKAGE.rglob("*.py"):
        for name, call in asked(path) if "cupy" in path.read_text() else ():
            seen.add(name)
            assert name in names, f"{path.name}: CuPy has no {name}"
            listed = names[name]
            if call is not None and listed is not None:
                passed = [keyword.arg for keyword in call.keywords]
                assert set(passed) <= set(listed) or listed[-1].startswith("**"), f"{path.name}: {name} takes no {passed}"
                assert any("*" in word for word in listed) or len(call.args) <= len(listed), f"{path.name}: {name} takes {listed}"
    assert {"cupy.cuda.UnownedMemory", "cupy.cuda.function.Module.load", "cupy.cuda.Stream.ptr", "cupy.cuda.MemoryPointer.ptr",
            "cupy.cuda.memory.OutOfMemoryError", "cupy.cuda.Device.compute_capability"} <= seen
