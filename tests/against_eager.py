"""Runs the same program eagerly and compiled, and says where anything a user could see differs.

A program is a factory: ``make(compile)`` builds fresh objects and gives ``(function, roots)``, where ``compile`` is
``to_static`` or the identity and ``roots`` are the objects whose state is compared after every call.
"""
import collections
import contextlib
import gc
import io
import random
import types
import warnings

import chainer
import numpy as np

from dy2static import to_static
from dy2static.errors import FallbackWarning
from dy2static.static_function import BoundStaticFunction, StaticFunction

#: Per dtype character: relative and absolute tolerance.
TOLERANCE = {"e": (2e-2, 2e-3), "f": (2e-5, 2e-6), "d": (1e-9, 1e-11)}

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice, np.dtype)


class Picture:
    """What objects look like: structure, types, values, and which of them are the same object or share memory."""

    def __init__(self, with_graph=True):
        self.seen, self.kept, self.arrays, self.with_graph = {}, [], [], with_graph

    def of(self, item):
        """Nested tuples; arrays stay arrays (wrapped), to be compared within a tolerance."""
        if isinstance(item, _ATOMS):
            return type(item).__name__, repr(item)
        if isinstance(item, np.generic):
            return "scalar", item.dtype.char, Values(np.asarray(item))
        if isinstance(item, (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, StaticFunction,
                             np.random.RandomState)):
            return type(item).__name__.replace("StaticFunction", "function"), getattr(item, "__qualname__", "")
        if isinstance(item, BoundStaticFunction):
            return "method", item.__func__.__qualname__, self.of(item.__self__)
        if type(item) is tuple and all(isinstance(part, _ATOMS) for part in item):
            return "constants", tuple(map(self.of, item))
        if id(item) in self.seen:
            return "seen", self.seen[id(item)]
        self.seen[id(item)] = len(self.seen)
        self.kept.append(item)
        return (_plain_name(type(item)),) + self._parts(item)

    def _parts(self, item):
        if isinstance(item, np.ndarray):
            shared = tuple(i for i, other in enumerate(self.arrays) if np.shares_memory(item, other))
            self.arrays.append(item)
            return item.shape, item.dtype.char, item.flags.writeable, shared, Values(item)
        if isinstance(item, chainer.Variable):
            # what requires no gradient has a creator eagerly, and none compiled
            connected = item.requires_grad and item.dtype.kind == "f" and item.creator is not None
            graph = (item.requires_grad, connected) if self.with_graph else ()
            return graph, item.name, self.of(item.array), self.of(item.grad_var)
        if isinstance(item, types.MethodType):
            return item.__func__.__qualname__, self.of(item.__self__)
        if isinstance(item, types.CellType):
            try:
                return self.of(item.cell_contents),
            except ValueError:
                return "empty",
        if isinstance(item, dict):
            return tuple((self.of(k), self.of(v)) for k, v in item.items())
        if isinstance(item, (set, frozenset)):
            return tuple(sorted(map(repr, item)))
        if isinstance(item, (list, tuple, collections.deque)):
            return tuple(self.of(part) for part in item) + self._attributes(item)
        return self._attributes(item)

    def _attributes(self, item):
        found = dict(getattr(item, "__dict__", {}))
        for cls in type(item).__mro__:
            for name in cls.__dict__.get("__slots__", ()):
                if name not in ("__dict__", "__weakref__") and hasattr(item, name):
                    found[name] = getattr(item, name)
        if isinstance(item, chainer.Link):
            found.pop("_device", None)
        return tuple((name, self.of(value)) for name, value in found.items())


class Values:
    """An array by value."""

    def __init__(self, array):
        self.array = np.array(array)

    def __eq__(self, other):
        if not isinstance(other, Values):
            return NotImplemented
        a, b = self.array, other.array
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not a.dtype.hasobject and a.tobytes() == b.tobytes():
            return True
        if a.dtype.char not in TOLERANCE:
            return bool(np.array_equal(a, b))
        rtol, atol = TOLERANCE[a.dtype.char]
        with np.errstate(all="ignore"):
            signs = np.signbit(a[a == 0]).tolist() == np.signbit(b[a == 0]).tolist() if np.array_equal(a == 0, b == 0) else True
            return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)) and signs

    def __repr__(self):
        return repr(self.array)


def _plain_name(cls):
    return cls.__qualname__


def _random_state():
    kind, keys, position, has_gauss, gauss = np.random.get_state()
    return hash(keys.tobytes()), position, has_gauss, gauss, hash(random.getstate())


def floats_in(item, found=None, seen=None):
    """The Variables in a result that a backward can start from, each once."""
    found, seen = ([], set()) if found is None else (found, seen)
    if id(item) in seen:
        return found
    seen.add(id(item))
    if isinstance(item, chainer.Variable):
        if item.array is not None and item.dtype.kind == "f" and item.requires_grad:
            found.append(item)
    elif isinstance(item, (list, tuple)):
        for part in item:
            floats_in(part, found, seen)
    elif isinstance(item, dict):
        for part in item.values():
            floats_in(part, found, seen)
    elif hasattr(item, "__dict__") and not isinstance(item, (type, chainer.Link, types.FunctionType, types.ModuleType)):
        floats_in(vars(item), found, seen)
    return found


def weighted_sum(variables):
    """A scalar that depends on every element of the Variables, each with a weight of its own."""
    total = None
    for k, y in enumerate(variables):
        weights = np.cos(np.arange(y.size, dtype="d") + k).reshape(y.shape).astype(y.dtype)
        part = chainer.functions.sum(y * weights)
        part = chainer.functions.cast(part, "d")
        total = part if total is None else total + part
    return total


def observe(function, args, kwargs, roots, backward=True):
    """One call and, where possible, one backward: everything that can be seen of it."""
    out, result, error = io.StringIO(), None, None
    with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out):
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
        except Exception as raised:
            error = type(raised).__name__, str(raised)
    said = tuple((w.category.__name__, str(w.message)) for w in warned if not issubclass(w.category, FallbackWarning))
    seen = Picture().of([args, kwargs, result, roots])
    found = {"error": error, "output": out.getvalue(), "warnings": said, "random": _random_state(),
             "config": repr(sorted(chainer.config._local.__dict__.items())), "seen": seen}
    if backward and error is None:
        found["gradients"] = _gradients(result, args, kwargs, roots)
    return found, result


def _gradients(result, args, kwargs, roots):
    starts = floats_in(result)
    if not starts:
        return None
    total = weighted_sum(starts)
    if total.creator is not None:
        total.backward()
    return Picture().of([args, kwargs, result, roots])


def differences(eager, compiled):
    """Lines that say where two observations differ."""
    return [line for key in eager for line in _compare(eager[key], compiled.get(key), key)]


def _compare(a, b, path):
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        return [line for i, (x, y) in enumerate(zip(a, b)) for line in _compare(x, y, f"{path}.{i}")]
    return [] if a == b else [f"{path}: eager {a!r}\n    compiled {b!r}"]


def run(make, calls, compile, backward=True, between=None):
    """The observations of a series of calls, and the function.  ``calls``: per call, a function that gives args, or
    (args, kwargs); it is given the roots, and may change them first."""
    random.seed(7)
    np.random.seed(7)
    made = make(compile)
    function, roots = made if isinstance(made, tuple) else (made, None)
    observations = []
    for number, call in enumerate(calls):
        given = call(roots) if call.__code__.co_argcount > len(call.__defaults__ or ()) else call()
        args, kwargs = given if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict) else (given, {})
        observations.append(observe(function, args, kwargs, roots, backward)[0])
        _clear(roots)
        if between is not None:
            between(number, roots)
    return observations, function


def _clear(roots):
    for item in roots if isinstance(roots, (list, tuple)) else (roots.values() if isinstance(roots, dict) else [roots]):
        if isinstance(item, chainer.Link):
            item.cleargrads()


def check(make, calls, rounds=2, backward=True, compiled=None, **options):
    """Assert that a program behaves the same, eagerly and compiled, over ``rounds`` times the calls.

    compiled: True if no call may fall back; False if every call must; None if both will do.  Gives the function.
    """
    calls = list(calls) * rounds
    eager, _ = run(make, calls, lambda f, **_: f, backward)
    made = []

    def compile(target, **more):
        made.append(to_static(target, **options, **more))
        return made[-1]
    found, function = run(make, calls, compile, backward)
    if not any(observation["error"] for observation in eager):
        infos = [getattr(type(m), "forward", m) if isinstance(m, chainer.Link) else m for m in made]
        reasons = [r for m in infos if hasattr(m, "dispatcher") for r in m.dispatcher.fallback.refused.values()]
        reasons = [r for r in reasons if r.startswith("its guards do not") or _is_ours(r)]
        assert not reasons, reasons
    problems = [f"call {i}: {line}" for i, pair in enumerate(zip(eager, found)) for line in differences(*pair)]
    assert not problems, "\n".join(problems[:8])
    if compiled is not None:
        infos = [getattr(type(m), "forward", m) if isinstance(m, chainer.Link) else m for m in made]
        stats = [m.stats() for m in infos if hasattr(m, "stats")]
        if compiled:
            reasons = [r for m in infos for r in m.dispatcher.fallback.refused.values()]
            assert not any(s["fallbacks"] for s in stats) and not reasons and any(s["captures"] for s in stats), (stats, reasons)
        else:
            whole = [m.cache_info().captures for m in infos if hasattr(m, "stats")]
            assert not any(whole) and any(s["refused"] or s["cuts"] for s in stats), stats
    gc.collect(1)   # not all: the sources of ten thousand programs are kept
    return made[0] if made else function


def _is_ours(reason):
    """Whether a call fell back because of what looks like a mistake in the compiler."""
    kinds = ("AttributeError", "NameError", "AssertionError", "UnboundLocalError", "RecursionError")
    return reason.startswith(tuple(f"compiling it raised {kind}" for kind in kinds)) or "unhashable" in reason


class Box:
    """An object with attributes and nothing else."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def programs(namespace):
    """The factories that a test module defines: its functions whose first parameter is ``compile``."""
    return [made for made in namespace.values() if isinstance(made, types.FunctionType)
            and made.__module__ == namespace["__name__"] and made.__code__.co_varnames[:1] == ("compile",)]


def variable(*shape, seed=0, dtype="f", requires_grad=True, low=-1.0, high=1.0):
    """A Variable of reproducible values."""
    return chainer.Variable(array(*shape, seed=seed, dtype=dtype, low=low, high=high), requires_grad=requires_grad)


def signs(*more, count=3):
    """Calls with a Variable of positive, negative and mixed contents.  more: functions that make further arguments."""
    return [lambda low=low, high=high, k=k: (variable(count, seed=k, low=low, high=high), *[m() for m in more])
            for k, (low, high) in enumerate(((0.1, 1), (-1, -0.1), (-1, 1), (-0.2, 1.2)))]


def array(*shape, seed=0, dtype="f", low=-1.0, high=1.0):
    """An array of reproducible values."""
    return np.asarray(np.random.RandomState(seed).uniform(low, high, shape)).astype(dtype)
