"""Trains a model eagerly and compiled, from equal seeds, and compares everything after every step."""
import contextlib
import io
import random
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence

import chainer
import numpy as np
from against_eager import Picture, Values

from dy2static import to_static
from dy2static.static_function import StaticFunction

ZOO: Dict[str, "Model"] = {}

#: The sizes of batches, step by step, while `train` lets them vary; empty otherwise.
_BATCHES: List[int] = []

#: What `whole` makes of updates; empty where these are not compiled themselves.
_WHOLE: List[Callable] = []

#: Calls of NumPy that run as they are.
NUMPY = ("numpy_call", "checked_call", "sized_call")


class Model(NamedTuple):
    """``make(compile)`` gives ``(step, roots)``: ``step(k)`` is one step of training, and ``roots`` are the links and
    optimizers whose state is compared after it.  What `step` returns is compared, too.
    """

    make: Callable
    steps: int
    warm: int
    tolerance: float


class Report(NamedTuple):
    """What became of a model.

    problems: where eager and compiled differ.  nodes, opaque, host, numpy: of all its programs, without those that store
    what was written before a host call looks.  segments: the
    FunctionNodes that one call of each compiled function makes.  captures: of all steps; recaptures: after warming up.
    """

    problems: List[str]
    nodes: int
    opaque: int
    host: int
    numpy: int
    segments: List[int]
    captures: int
    recaptures: int

    @property
    def lowered(self) -> int:
        return self.nodes - self.opaque - self.host - self.numpy


def model(name: str, steps: int = 6, warm: int = 4, tolerance: float = 1e-4) -> Callable:
    """Put a model into the zoo.  warm: the steps after which nothing may be captured any more."""
    def add(make: Callable) -> Callable:
        ZOO[name] = Model(make, steps, warm, tolerance)
        return make
    return add


def large(name: str, **options: Any) -> Callable:
    """Put a model into the zoo that takes long: one program to train and one to evaluate, a step each, and once more."""
    return model(name, steps=2, warm=1, tolerance=1e-3, **options)


def whole(update: Callable) -> Callable:
    """Mark what a step of training does from the data on: `whole_steps` says what becomes of it."""
    return _WHOLE[-1](lambda *args: update(*args)) if _WHOLE else update


@contextlib.contextmanager
def whole_steps(compile: Callable) -> Iterator[None]:
    """Models that are made inside have their updates compiled whole by this function: forward, backward and optimizer."""
    _WHOLE.append(compile)
    try:
        yield
    finally:
        _WHOLE.pop()


def batch(k: int, usual: int) -> int:
    """The number of samples in step k of a model whose batches have this size as a rule."""
    return _BATCHES[k] if _BATCHES else usual


def train_with_sizes(entry: Model, sizes: Sequence[int]) -> Report:
    """Train a model both ways with batches of these sizes, one for each step."""
    _BATCHES[:] = sizes
    try:
        return train(entry._replace(steps=len(sizes)))
    finally:
        del _BATCHES[:]


def train(entry: Model, **options: Any) -> Report:
    """Train a model both ways.  options: of `to_static`."""
    statics: List[StaticFunction] = []

    def compile(target: Any) -> Any:
        made = to_static(target, strict=True, **options)
        statics.append(made if isinstance(made, StaticFunction) else _static_of(made))
        return made
    eager, _ = _observations(entry, lambda target: target, [])
    compiled, captures = _observations(entry, compile, statics)
    problems = [f"step {k}: {line}" for k, pair in enumerate(zip(eager, compiled))
                for line in _differences(*pair, f"step {k}", entry.tolerance * (1 + k))]
    counts = [static.stats() for static in statics]
    total = {name: sum(count.get(name, 0) for count in counts) for name in ("nodes", "stores", "opaque", "host_call", *NUMPY)}
    segments = [max([program.counts["segments"] for program in static.dispatcher.programs], default=0) for static in statics]
    return Report(problems, total["nodes"] - total["stores"], total["opaque"], total["host_call"],
                  sum(total[name] for name in NUMPY), segments, captures[-1], captures[-1] - captures[entry.warm - 1])


def _static_of(made: Any) -> StaticFunction:
    if isinstance(made, chainer.Link):
        return next(vars(type(made))[name] for name in ("__call__", "forward") if name in vars(type(made)))
    return made.static


def _observations(entry: Model, compile: Callable, statics: List[StaticFunction]) -> Any:
    random.seed(3)
    np.random.seed(3)
    step, roots = entry.make(compile)
    found, captures = [], []
    for k in range(entry.steps):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = step(k)
        kind, keys, position, has_gauss, gauss = np.random.get_state()
        found.append((Picture().of([result, roots]), out.getvalue(), keys.tobytes(), position, has_gauss, gauss,
                      random.getstate()))
        captures.append(sum(static.cache_info().captures for static in statics))
    return found, captures


def _differences(a: Any, b: Any, path: str, tolerance: float) -> List[str]:
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        return [line for i, (x, y) in enumerate(zip(a, b)) for line in _differences(x, y, f"{path}.{i}", tolerance)]
    if isinstance(a, Values) and isinstance(b, Values):
        return [] if _are_close(a.array, b.array, tolerance) else [f"{path}: eager {a!r}\n    compiled {b!r}"]
    return [] if a == b else [f"{path}: eager {a!r}\n    compiled {b!r}"]


def _are_close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    """Of floats: close in proportion to the largest element (or 0.01), since sums of any order are equal only up to that."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    largest = float(np.max(np.abs(a), initial=0, where=np.isfinite(a)))
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * max(largest, 0.01), equal_nan=True))
