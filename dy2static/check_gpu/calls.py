"""Programs on CuPy arrays: every op as calls against NumPy, and small models, with kernels too, against eager mode."""
from __future__ import annotations

import contextlib
import functools
import io
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any, Callable, List, Sequence, Tuple

import chainer
import chainer.links as L
import numpy as np
from chainer.backends import cuda

from ..api import to_static
from ..backends.cupy.backend import CUPY
from ..errors import FallbackWarning
from ..ir.graph import Graph
from ..ir.op import OPS
from ..ir.types import Tensor
from ..native.process import Process
from . import samples
from .checks import Checks
from .models import MODELS

#: The folder of a checkout with the stand-in for CuPy.
_STAND_IN = Path(__file__).resolve().parent.parent.parent / "tests" / "gpu"

_DTYPES = (None, "float64", "int32", "bool")

#: How far losses and gradients may be from those of eager mode, of their largest element: sums are made in another order.
_TOLERANCE = 2e-5


def check(checks: Checks, quick: bool) -> None:
    """Check all, on the current device."""
    for dtype in _DTYPES[:1] if quick else _DTYPES:
        failed, count = checks.failed, 0
        for op in OPS.values():
            for name, graph, operands in samples.graphs(op, dtype, 2 if quick else 100):
                expected = samples.meaning(graph, operands)
                if (expected is not None and all(isinstance(v.type, Tensor) for v in (*graph.inputs, *graph.outputs))
                        and not _is_undefined(graph, operands)):
                    checks.check(f"{name} as calls of CuPy", _difference(graph, operands, expected, draws=op.effect))
                    count += 1
        print(f"programs of CuPy calls, {dtype or 'their own dtypes'}: {count} graphs, {checks.failed - failed} failed", flush=True)
    for name in MODELS:
        _check(checks, f"{name} as calls of CuPy", lambda: _trained(name, "numpy"))                 # noqa: B023  called at once
        _check(checks, f"{name} as kernels and calls of CuPy", lambda: _trained(name, "c"))         # noqa: B023
        _check(checks, f"steps of {name} as kernels and calls of CuPy", lambda: _stepped(name))     # noqa: B023
    _check(checks, "a loop whose condition is on the GPU", _looped)


def _check(checks: Checks, name: str, problem: Callable[[], str]) -> None:
    with checks.guarded(name):
        checks.check(name, problem())


def _is_undefined(graph: Graph, operands: Sequence[Any]) -> bool:
    """Whether CuPy does not define what a graph gives: which of several items that are put at one place stays there."""
    if graph.nodes[0].op.name != "put":
        return False
    indices = [np.asarray(x) % graph.inputs[0].shape[0] for v, x in zip(graph.inputs, operands) if v.dtype.kind == "i"]
    return any(len(np.unique(x)) < x.size for x in indices if x.ndim == 1)


def _difference(graph: Graph, operands: Sequence[Any], expected: Sequence[Any], draws: bool) -> str:
    made = CUPY.compile(graph, name="sample", escaping=set(graph.outputs))
    try:
        results = made.call(made.make_arena and made.make_arena(), *map(cuda.cupy.asarray, operands))
    except Exception as error:                           # whatever the library raises is what is to be found
        return f"{type(error).__name__}: {error}"
    sent = graph.nodes[0].op.places                      # to the host, in the samples
    if any(isinstance(x, cuda.ndarray) == sent for x in results):
        return "a result is on another device"
    found = [cuda.to_cpu(x) for x in results]
    return samples.difference(graph, found, found if draws else expected)


def _made(name: str) -> Tuple[chainer.Link, Sequence[Any]]:
    """A model on the first device, and the operands of a call."""
    make, given = MODELS[name]
    np.random.seed(0)
    model = L.Classifier(make())
    device = chainer.get_device("@cupy:0")
    model.to_device(device)
    return model, [device.send(x) for x in given(np.random.RandomState(0))]


def _reset(model: chainer.Link) -> None:
    """Let recurrent links begin anew."""
    for link in model.links():
        if hasattr(link, "reset_state"):
            link.reset_state()


def _stepped(name: str) -> str:
    """How the parameters of a model differ from those of eager mode after six compiled steps of training."""
    found: List[List[np.ndarray]] = []
    for decorated in (lambda step: step, functools.partial(to_static, backend="c")):
        model, operands = _made(name)
        optimizer = chainer.optimizers.MomentumSGD(0.1).setup(model)

        def step(*operands: Any) -> None:
            loss = model(*operands)                      # noqa: B023  called in this round only
            model.cleargrads()                           # noqa: B023
            loss.backward()
            optimizer.update()                           # noqa: B023
        run = decorated(step)
        for _ in range(6):
            _reset(model)
            run(*operands)
        found.append([cuda.to_cpu(parameter.array) for _, parameter in sorted(model.namedparams())])
    if not run.stats()["programs"]:
        return "it is not compiled"
    worst = distance(list(zip(*found)))
    return "" if worst < _TOLERANCE else f"parameters differ by {worst:.1e} of their largest element"


def _while(x: Any) -> Any:
    """Halve an array until its sum is small."""
    while x.sum() > 1:
        x = x * 0.5
    return x


def _looped() -> str:
    """How a compiled loop differs from eager mode, or why the host has to wait for the device in each of its turns."""
    static = to_static(_while, backend="c")
    arrays = [cuda.cupy.asarray(np.full((5, 7), number, np.float32)) for number in (3, 3, 1, 40, 0)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        same = all(np.array_equal(cuda.to_cpu(static(x)), cuda.to_cpu(_while(x))) for x in arrays)
    said = [str(one.message) for one in found if issubclass(one.category, FallbackWarning)]
    return said[0] if said else "" if same else "other numbers"


def _trained(name: str, backend: str) -> str:
    """How loss and gradients of a model differ from those of eager mode."""
    model, operands = _made(name)
    found: List[List[Any]] = []
    compiled = to_static(model.forward, backend=backend)
    for function in (model.forward, compiled):
        _reset(model)
        model.cleargrads()
        loss = function(*operands)
        loss.backward()
        found.append([loss.array, *[parameter.grad for _, parameter in sorted(model.namedparams())]])
    if [x is None for x in found[0]] != [x is None for x in found[1]]:
        return "other parameters have a gradient"
    pairs = [(cuda.to_cpu(a), cuda.to_cpu(b)) for a, b in zip(*found) if a is not None]
    if not compiled.stats()["programs"]:
        return "it is not compiled"
    worst = distance(pairs)
    return "" if worst < _TOLERANCE else f"loss and gradients differ by {worst:.1e} of their largest element"


def distance(pairs: Sequence[Tuple[np.ndarray, np.ndarray]]) -> float:
    """The largest difference within a pair of arrays, as a part of the largest element of its first array.

    Arrays whose elements are tiny beside those of the other pairs are rounding, such as the gradient of a bias in front of batch
    normalization, which is zero in exact arithmetic.  Their differences count as parts of 1e-3 of the largest element of all.
    """
    sizes = [float(np.abs(a).max()) for a, _ in pairs]
    floor = max(1e-3 * max(sizes), 1e-6)
    return max(float(np.abs(a - b).max()) / max(size, floor) for (a, b), size in zip(pairs, sizes))


def emulated(checks: Checks, quick: bool) -> None:
    """Check all on the stand-in for CuPy, in another process; it is only in a checkout."""
    if not _STAND_IN.is_dir():
        print("programs of CuPy calls: not checked, the stand-in for CuPy is only in a checkout")
        return
    folders = [str(_STAND_IN), str(_STAND_IN.parent.parent)]
    text = (f"import sys\nsys.path[:0] = {folders}\nimport cupy_double\ncupy_double.install()\n"
            f"from dy2static.check_gpu import calls\nimport emulated_double\nemulated_double.use()\ncalls.main({quick})\n")
    process = Process([sys.executable, "-W", "ignore", "-"], text, "")
    while not process.is_over():
        time.sleep(0.1)
    _, said = process.result()
    count(checks, said)


def main(quick: bool) -> None:
    """Check all on this process's CuPy.  The first line that is printed is ``N passed, M failed``."""
    checks, said = Checks(), io.StringIO()
    with contextlib.redirect_stdout(said):
        check(checks, quick)
    print(f"{checks.passed} passed, {checks.failed} failed\n{said.getvalue()}")      # only the first 2,000 characters arrive


def count(checks: Checks, said: str) -> None:
    """Add the checks of another process, which has printed this."""
    found = re.match(r"(\d+) passed, (\d+) failed\n", said)
    if found is None:
        checks.check("programs of CuPy calls", said.strip() or "nothing was said")
        return
    checks.passed, checks.failed = checks.passed + int(found[1]), checks.failed + int(found[2])
    print(said[found.end():].strip(), flush=True)
