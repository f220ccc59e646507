"""The worlds in which sessions run: the same modules twice, once eager and once compiled, under one process's settings."""
import collections
import contextlib
import copy
import gc
import io
import linecache
import random
import re
import signal
import sys
import types
import warnings

import against_eager
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import session_process

import dy2static  # noqa: F401  (before Chainer)
from dy2static import config, to_static
from dy2static.errors import FallbackWarning
from dy2static.heap.aborts import CaptureAborted


class Late(BaseException):
    """A session takes too long."""


_codes = {}


def code_of(text, name, mode="exec"):
    """The code object of a text, whose source Python finds; the same one for the same text."""
    if (text, mode) not in _codes:
        file = f"/sessions/{name}_{len(_codes)}.py"
        linecache.cache[file] = len(text), None, text.splitlines(True), file
        _codes[text, mode] = compile(text, file, mode)
    return _codes[text, mode]


def _module(name, code=None):
    module = types.ModuleType(name)
    module.__file__ = code.co_filename if code is not None else f"/sessions/{name}.py"
    return module


class World:
    """The modules of a session and what its steps know, eager or compiled."""

    def __init__(self, session, process, compile):
        self.compiled = []

        def compiling(target):
            made = compile(target)
            self.compiled.append(made)
            return made

        self.names = {"chainer": chainer, "np": np, "F": F, "L": L, "copy": copy, "gc": gc, **process.names()}
        codes = code_of(session.lib, "session_lib"), code_of(session.main, "session_main")
        self.modules = {name: _module(name, code) for name, code in zip(("session_lib", "session_main"), codes)}
        for name, module in self.modules.items():
            module.FILE = session_process.FILE
            self.names[name[8:]] = module
        header = session.lib.partition("import session_main")[0]
        exec(code_of(header, "session_header"), self.names)
        with self.entered():
            for module, code in zip(self.modules.values(), codes):
                exec(code, module.__dict__)
            main = self.modules["session_main"]
            self.names["f"] = self._target(session.how, main, compiling)

    def _target(self, how, main, compile):
        if how == "function":
            return compile(main.f)
        if how == "decorated":
            main.f = compile(main.f)
            return main.f
        if how == "class":
            return compile(main.Model)()
        model = main.Model()
        return compile(model) if how == "link" else compile(model.forward)

    @contextlib.contextmanager
    def entered(self):
        """Have `import` find the modules of this world."""
        before = {name: sys.modules.get(name) for name in self.modules}
        sys.modules.update(self.modules)
        try:
            yield
        finally:
            for name, module in before.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module

    def roots(self):
        """The values that modules and classes of this world hold, and what is called."""
        found = []
        for module in self.modules.values():
            values = [(k, v) for k, v in module.__dict__.items() if not k.startswith("__") and not isinstance(v, types.ModuleType)]
            classes = [v for _, v in values if issubclass(type(v), type) and v.__dict__.get("__module__") in self.modules]
            attributes = [(c.__name__, k, v) for c in classes for k, v in list(vars(c).items())
                          if isinstance(v, (int, float, str, list, dict, tuple, np.generic)) and not k.startswith("__") and k != "_abc_impl"]
            found.append((sorted([(k, v) for k, v in values if not issubclass(type(v), type)], key=lambda pair: pair[0]),
                          sorted(attributes, key=lambda triple: triple[:2])))
        target = self.names["f"]
        found.append(getattr(target, "__self__", target))
        return found

    def stats(self):
        """Counts over what was compiled."""
        total = {}
        for made in self.compiled:
            static = getattr(made, "forward", made) if isinstance(made, (type, chainer.Link)) else made
            for name, count in (static.stats() if hasattr(static, "stats") else {}).items():
                total[name] = total.get(name, 0) + count
        return total

    def change(self, text):
        """Do a change; what it raised."""
        try:
            with self.entered():
                exec(code_of(text + "\n", "session_change"), self.names)
        except Exception as error:
            return type(error).__name__, clean(str(error))
        return None

    def call(self, step):
        """Do a call; everything that is seen of it, by name."""
        with self.entered():
            args = eval(code_of(f"({step.text})", "session_call", "eval"), self.names)
            within = eval(step.within, self.names) if step.within else contextlib.nullcontext()
            out, result, error, gradients = io.StringIO(), None, None, None
            with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out), within:
                warnings.simplefilter("always")
                try:
                    result = self.names["f"](*args)
                except Exception as raised:
                    error = describe(raised)
                picture = Picture()
                seen = picture.of([args, result, *self.roots()])
                forward = len(warned)
                if error is None and step.order:
                    try:
                        gradients = differentiate(result, picture.kept, step.order)
                    except Exception as raised:
                        gradients = "raised", describe(raised)
                        clear_gradients(picture.kept)
                    if step.order < 0:
                        gradients = gradients, Picture().of([args, result, *self.roots()])
        return {"error": error, "result": seen[1 + 1], "arguments": seen[1], "state": seen[3:], "gradients": gradients,
                "output": clean(out.getvalue()), "warnings": said(warned[:forward]), "gradient warnings": said(warned[forward:])}


def said(warned):
    """Which warnings there were, but for those that a call runs eagerly."""
    return frozenset((w.category.__name__, clean(str(w.message))) for w in warned if not issubclass(w.category, FallbackWarning))


def describe(error):
    """What the user sees of an exception."""
    return type(error).__name__, clean(str(error))


def clean(text):
    return re.sub(r"0x[0-9a-f]{6,}", "0x", text)


def floats_in(item, found):
    """The Variables in a result that a backward can start from, each once."""
    if isinstance(item, chainer.Variable):
        if item.array is not None and item.dtype.kind == "f" and item.requires_grad and not any(item is v for v in found):
            found.append(item)
    elif type(item) in (tuple, list):
        for part in item:
            floats_in(part, found)
    elif type(item) is dict:
        floats_in(list(item.values()), found)
    return found


def clear_gradients(kept):
    """What a backward that failed has left is not compared."""
    for item in kept:
        if isinstance(item, chainer.Variable):
            item.cleargrad()


def differentiate(result, kept, order):
    """Gradients of the result with respect to all leaves that were seen: one order, two, or those of a backward."""
    starts = floats_in(result, [])
    if not starts:
        return None
    total = against_eager.weighted_sum(starts)
    if total.creator is None:
        return None
    if order < 0:
        return total.backward()
    if order > 1:                                       # what is linear must have second gradients, too
        total = total + 0.1 * sum(F.sum(F.cast(y * y, "d")) for y in starts)
    leaves = [v for v in kept if isinstance(v, chainer.Variable) and v.array is not None and v.dtype.kind == "f"
              and v.requires_grad and v.creator is None]
    if not leaves:
        return None
    first = chainer.grad([total], leaves, enable_double_backprop=order > 1)
    there = [g for g in first if g is not None]
    second = []
    if order > 1 and there:
        norm = sum(F.sum(F.cast(g * g, "d")) for g in there)
        second = chainer.grad([norm], leaves) if norm.creator is not None else second
    return tuple(None if g is None else Unsigned(g.array) for g in [*first, *second])


class Unsigned(against_eager.Values):
    """An array by value, whatever the signs of its zeros: they are not promised of gradients."""

    def __init__(self, array):
        self.array = np.array(array + array.dtype.type(0))

    def __eq__(self, other):
        if super().__eq__(other):
            return True
        a, b = self.array, getattr(other, "array", None)
        if b is None or a.shape != b.shape or a.dtype != b.dtype or a.dtype.char not in against_eager.TOLERANCE or not a.size:
            return False
        with np.errstate(all="ignore"):                 # sums of large and small terms are rounded like the large ones
            largest = np.max(np.abs(a), where=np.isfinite(a), initial=0)
            single = max(against_eager.TOLERANCE[char][0] for char in (a.dtype.char, "f"))      # float32 is never far
            return bool(np.allclose(a, b, 0, 5 * single * largest, equal_nan=True))


class Picture(against_eager.Picture):
    """What objects look like, whatever their classes make of looking."""

    def _parts(self, item):
        for kind in (list, tuple, collections.deque):
            if issubclass(type(item), kind):
                return tuple([self.of(part) for part in kind.__iter__(item)]) + self._attributes(item)
        if issubclass(type(item), dict):
            return tuple([(self.of(k), self.of(v)) for k, v in dict.items(item)])
        return super()._parts(item)

    def _attributes(self, item):
        try:
            found = dict(object.__getattribute__(item, "__dict__"))
        except AttributeError:
            found = {}
        for cls in type(item).__mro__:
            for name in cls.__dict__.get("__slots__", ()):
                slot = cls.__dict__.get(name)
                if isinstance(slot, types.MemberDescriptorType):
                    with contextlib.suppress(AttributeError):
                        found[name] = slot.__get__(item)
        if issubclass(type(item), chainer.Link):
            found.pop("_device", None)
        return tuple([(name, self.of(value)) for name, value in found.items()])


def same_settings(a, b):
    """Whether two parts of what `Process.settings` gives are equal."""
    if isinstance(a, dict) and not any(value is not b.get(name, a) for name, value in a.items()) and len(a) == len(b):
        return True
    if isinstance(a, tuple) and len(a) == 5:
        return a[0] == b[0] and np.array_equal(a[1], b[1]) and a[2:] == b[2:]
    return a == b if isinstance(a, tuple) else Picture().of(a) == Picture().of(b)


class Difference:
    """Where the two worlds part: the number of the step, what differs, and how."""

    def __init__(self, number, kind, lines):
        self.number, self.kind, self.lines = number, kind, lines

    def __str__(self):
        return f"step {self.number}: {self.kind}\n" + "\n".join(self.lines[:4])


@contextlib.contextmanager
def time_limit(seconds):
    """Raise `Late` in what takes longer."""
    def late(number, frame):
        raise Late()
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(session, backend, steps=None, counts=None, seconds=20, compile=None):
    """The first `Difference` between the two worlds of a session, or None.

    backend: as for `to_static`; ``"eager"`` has nothing compiled.  counts: a dictionary to which numbers are added.
    compile: what is tested in place of `to_static`.
    """
    if "session_fakes" not in sys.modules:
        sys.modules["session_fakes"] = fakes = _module("session_fakes")
        exec(code_of(session_process.FAKES, "session_fakes"), fakes.__dict__)
    random.seed(7)
    np.random.seed(7)
    process = session_process.Process()
    chainer.config._local.__dict__.clear()
    process.write_file("a")
    try:
        with time_limit(seconds), config.NATIVE_AFTER.set(3), config.BACKGROUND.set(0):
            if compile is None:
                compile = (lambda f: f) if backend == "eager" else (lambda f: to_static(f, backend=backend))
            return _run(session, process, compile, session.steps if steps is None else steps, counts, backend in ("c", "auto"))
    except Late:
        return Difference(-1, "late", ["the session takes too long"])
    finally:
        process.close()


def _run(session, process, compile, steps, counts, native):
    start = process.settings()
    worlds = []
    for how in (lambda f: f, compile):
        process.restore(start)
        try:
            worlds.append(World(session, process, how))
        except Exception as error:
            worlds.append(describe(error))
    if not isinstance(worlds[0], World) or not isinstance(worlds[1], World):
        return None if worlds[0] == worlds[1] else Difference(0, "loading", [f"eager {worlds[0]}", f"compiled {worlds[1]}"])
    try:
        for number, step in enumerate(steps):
            found = _step(worlds, process, number, step, counts, native)
            if found is not None:
                return found
    finally:
        if counts is not None:
            for name, count in worlds[1].stats().items():
                counts[name] = counts.get(name, 0) + count
    return None


def _step(worlds, process, number, step, counts, native):
    if step.kind == "change" and step.text.startswith("!"):
        failed = worlds[0].change(step.text[1:])
        if counts is not None and failed is None:
            counts["changed"] = counts.get("changed", 0) + 1
        return None
    start = process.settings()
    seen, ends = [], []
    for world in worlds:
        process.restore(start)
        try:
            seen.append({"change": world.change(step.text)} if step.kind == "change" else world.call(step))
        except CaptureAborted as stop:                  # a value of a capture has come out of it
            return Difference(number, "escaped", [str(stop)])
        ends.append(process.settings())
    with process.unpatched():
        return _compared(number, step, seen, ends, counts, native)


def _compared(number, step, seen, ends, counts, native):
    for key, eager in seen[0].items():
        if counts is not None and key == "change" and eager is None:
            counts["changed"] = counts.get("changed", 0) + 1
        if counts is not None and key == "error":
            counts["calls"] = counts.get("calls", 0) + 1
            counts["raising"] = counts.get("raising", 0) + (eager is not None)
        if "warnings" in key:
            lines = _compare_warnings(key, eager, seen[1][key])
        else:
            lines = against_eager._compare(eager, seen[1][key], key)
            if lines and native and not _compare_rounded(eager, seen[1][key]):
                lines = []
        if lines:
            return Difference(number, key, lines)
    if step.kind == "call":
        for i, what in enumerate(("config", "config", "generator", "generator")):
            if not same_settings(ends[0][i], ends[1][i]):
                return Difference(number, what, [f"eager {ends[0][i]!r}"[:300], f"compiled {ends[1][i]!r}"[:300]])
    return None


def _compare_rounded(a, b):
    """Whether two pictures differ by more than what native code may round otherwise in single precision."""
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        if len(a) == 2 and a[0] == b[0] and a[0] in ("float", "float64"):
            return not np.isclose(float(a[1]), float(b[1]), 2e-5, 2e-6, equal_nan=True)
        return any([_compare_rounded(x, y) for x, y in zip(a, b)])
    if isinstance(a, against_eager.Values) and isinstance(b, against_eager.Values) and a.array.dtype == b.array.dtype == np.float64:
        return a.array.shape != b.array.shape or not np.allclose(a.array, b.array, 2e-5, 2e-6, equal_nan=True)
    return a != b


def _compare_warnings(key, eager, compiled):
    """Lines that say which warnings are missing or too many; what nobody asked for need not be computed in a backward."""
    if key == "gradient warnings":                      # which operation is the first to meet what, is not promised
        eager, compiled = ({re.sub(" encountered in .*", "", text) for _, text in warned} for warned in (eager, compiled))
    missing = sorted(eager - compiled) if key == "warnings" else []
    return [f"missing: {m}" for m in missing] + [f"too many: {m}" for m in sorted(compiled - eager)]


def reduced(session, backend, found, keep=lambda a, b: a.kind == b.kind):
    """Steps and the difference of a session, as few as still show a difference of the same kind."""
    steps = list(session.steps[:found.number + 1]) if found.number >= 0 else list(session.steps)
    changed = True
    while changed:
        changed = False
        for i in reversed(range(len(steps) - 1)):
            fewer = steps[:i] + steps[i + 1:]
            now = run(session, backend, fewer)
            if now is not None and keep(now, found):
                steps, found, changed = fewer[:now.number + 1] if now.number >= 0 else fewer, now, True
                break
    return steps, found
