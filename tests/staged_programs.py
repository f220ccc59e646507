"""Random model code whose decisions depend on array values: every construct inside every other."""
import builtins
import itertools
import linecache
import random

import breaks
import chainer
import chainer.functions as F
import numpy as np

_serial = itertools.count()

_HEAD = '''
class Box:
    def __init__(self, x):
        self.h, self.n, self.r, self.flag = x, 0, 0.5, False
        self.items = [x * 0.5, x * 0.25]
        self.d = {"a": x * 0.75, "k": 1}
        self.same = self.items


box = Box(start)


def helper(v, k):
    if float(v.array.sum()) > k * 0.5 - 0.7:
        return F.tanh(v)
    return v * 0.5


def touch(v):
    box.n += 1
    if v.array[0] > 0.1:
        box.h = F.sin(v)
        box.d["a"] = v
    return box.h


class Scope:
    def __init__(self, *swallows):
        self.swallows = swallows

    def __enter__(self):
        box.n += 1
        return box.r

    def __exit__(self, kind, error, trace):
        box.flag = kind is None
        box.n += 1
        return kind is not None and issubclass(kind, self.swallows)
'''


class Program:
    """The text of a function ``f(x, y, s)`` and of what it uses; equal seeds give equal texts.

    Kinds of names: V Variables, A arrays, I ints, R floats, B bools.  With ``lists``, the programs also grow a list of
    Variables and write into an array of their own.  broken: how often there are breaks (see `breaks`).
    """

    NAMES = {"V": ("x", "y", "u", "v", "w"), "A": ("p", "q"), "I": ("i", "j"), "R": ("r", "s"), "B": ("b", "c")}

    def __init__(self, seed, lists=False, broken=0):
        self.random = random.Random(seed)
        chance = self.random.random
        self.lines, self.bound, self.loops, self.counter = [], {"x", "y", "s"}, 0, 0
        self.nonlocals, self.inside = chance() < 0.2, False
        self.early, self.rare = chance() < 0.4, chance() < 0.25
        self.unbound = chance() < 0.3
        self.simple_result = chance() < 0.5
        self.size = self.random.randint(3, 11)
        self.lists = lists
        if lists:
            self.add(1, self.pick("out = []", "out = [x]", "out = [x * 0.5, y]"))
            self.add(1, "own = np.zeros(3) if s > 0 else y.array.copy()" if self.chance(0.5) else "own = y.array * 0.5")
        for name in ("u", "p", "i", "r", "b", "j", "v"):
            if chance() < 0.7:
                self.assign(1, name)
        if self.nonlocals:
            self.function()
        for _ in range(self.random.randint(1, 4)):
            self.statement(1, 0)
        self.add(1, self.result())
        self.text = _HEAD + "\n\ndef f(x, y, s):\n" + "\n".join(self.lines) + "\n"
        if broken:
            self.text = breaks.insert(self.text, seed, broken)

    def make(self, compile):
        """The function and the object it writes to, anew."""
        file = f"/random/staged_{next(_serial)}.py"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        start = chainer.Parameter(np.array([0.3, -0.4, 0.6], "d"))
        names = {"F": F, "np": np, "chainer": chainer, "start": start, "__name__": "staged_program", **breaks.NAMES}
        exec(builtins.compile(self.text, file, "exec"), names)
        return compile(names["f"]), [names["box"], start]

    # --- names and expressions ------------------------------------------------------------------------------------------

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    def name(self, kind):
        """A name that is bound, most of the time; None if there is none."""
        bound = [n for n in self.NAMES[kind] if n in self.bound]
        if self.unbound and self.NAMES[kind] and self.chance(0.08):
            return self.pick(*self.NAMES[kind])
        return self.pick(*bound) if bound else None

    def V(self, depth=0):
        name = self.name("V")
        if depth > 1:
            return name
        make = self.pick(
            lambda: name, lambda: name, lambda: "box.h", lambda: f"F.tanh({self.V(depth + 1)})",
            lambda: f"({self.V(depth + 1)} * {self.V(depth + 1)})", lambda: f"({self.V(depth + 1)} + {self.V(depth + 1)})",
            lambda: f"{self.V(depth + 1)} * {self.R(depth + 1)}", lambda: f"F.sin({self.V(depth + 1)})",
            lambda: f"helper({self.V(depth + 1)}, {self.I(depth + 1)})", lambda: f"touch({self.V(depth + 1)})",
            lambda: f"({self.V(depth + 1)} if {self.test(depth + 1)} else {self.V(depth + 1)})",
            lambda: f"box.items[{self.pick(0, 1, -1)}]", lambda: "box.d['a']", lambda: f"box.{self.pick('same', 'items')}[0]",
            *[lambda: f"chainer.Variable({self.A(depth + 1)})", lambda: f"F.dropout({self.V(depth + 1)}, 0.5)",
              lambda: f"F.absolute({self.V(depth + 1)})", lambda: "start", lambda: "box.h.reshape(3)"] * self.rare,
            *[lambda: f"F.sum(F.stack([{self.V(2)}] + out), axis=0)", lambda: f"(out[-1] if out else {self.V(2)})",
              lambda: f"sum(out, {self.V(2)})", lambda: f"F.stack(out or [{self.V(2)}])[-1]"] * self.lists)
        return make()

    def A(self, depth=0):
        name = self.name("A")
        make = self.pick(lambda: f"{self.V(2)}.array", lambda: name or f"{self.V(2)}.array",
                         *[lambda: f"({self.A(depth + 1)} + {self.A(depth + 1)})",
                           lambda: f"np.maximum({self.A(depth + 1)}, {self.R(2)})"] * (depth < 2),
                         *[lambda: "own", lambda: "own[::-1]"] * self.lists)
        return make()

    def I(self, depth=0):
        name = self.name("I") or "box.n"
        make = self.pick(lambda: name, lambda: str(self.random.randint(-1, 3)), lambda: "box.n", lambda: "box.d['k']",
                         *[lambda: "len(out)"] * 2 * self.lists,
                         *[lambda: f"({self.I(depth + 1)} + 1)", lambda: f"({self.I(depth + 1)} - {self.I(depth + 1)})",
                           lambda: f"int({self.A(1)}.sum() > 0)",
                           lambda: f"({self.I(2)} if {self.test(depth + 1)} else {self.I(2)})"] * (depth < 2))
        return make()

    def R(self, depth=0):
        name = self.name("R")
        make = self.pick(lambda: name, lambda: f"{self.random.uniform(-1, 1):.3f}", lambda: "box.r",
                         *[lambda: f"float({self.A(1)}.sum())", lambda: f"({self.R(depth + 1)} * 0.5)",
                           lambda: f"float({self.A(1)}[1])"] * (depth < 2))
        return make()

    def test(self, depth=0):
        threshold = f"{self.random.uniform(-0.8, 0.8):.3f}"
        simple = [lambda: f"float({self.A(1)}.sum()) > {threshold}", lambda: f"{self.A(1)}[0] < {self.A(1)}[1]",
                  lambda: f"{self.A(1)}.sum() < {threshold}", lambda: f"{self.V(2)}.array.max() > {threshold}",
                  lambda: f"{self.name('B') or 'box.flag'}", lambda: f"{self.I(1)} > {self.I(1)}",
                  lambda: f"{self.R(1)} < {threshold}", lambda: "np.random.rand() < 0.5" if self.rare else "box.n % 2 == 0"]
        nested = [lambda: f"({self.test(depth + 1)} and {self.test(depth + 1)})",
                  lambda: f"({self.test(depth + 1)} or {self.test(depth + 1)})", lambda: f"not {self.test(depth + 1)}",
                  lambda: f"{threshold} < float({self.A(1)}.sum()) < {self.R(1)}"]
        return self.pick(*simple, *(nested if depth < 2 else []))()

    # --- statements -------------------------------------------------------------------------------------------------------

    def add(self, depth, text):
        self.lines.append("    " * depth + text)

    def expression(self, name):
        kind = next(kind for kind, names in self.NAMES.items() if name in names)
        return self.test() if kind == "B" and self.chance(0.7) else "False" if kind == "B" else getattr(self, kind)()

    def assign(self, depth, name=None):
        name = name or self.pick(*[n for names in self.NAMES.values() for n in names])
        if name == "c" and self.chance(0.3):
            self.add(depth, f"c = {self.name('B') or 'True'}")
        else:
            self.add(depth, f"{name} = {self.expression(name)}")
        self.bound.add(name)

    def statement(self, depth, level):
        self.size -= 1
        simple = [self.assign] * 4 + [self.write] * 3 + [self.augment, self.output]
        if self.nonlocals and not self.inside:
            simple.append(lambda depth: self.add(depth, f"{self.pick('u', 'v')} = inner({self.V(1)})") or self.bound.update("u"))
        if level and (self.early or self.loops):
            simple += [self.leave] * 2
        nested = [self.if_] * 4 + [self.for_, self.while_]
        if self.size < 0 or level > 2 or self.chance(0.4):
            self.pick(*simple)(depth)
        else:
            self.pick(*nested)(depth, level + 1)

    def block(self, depth, level):
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth, level)

    def write(self, depth):
        texts = [f"box.h = {self.V()}", f"box.n = {self.I()}", "box.n += 1", f"box.r = {self.R()}", f"box.flag = {self.test()}",
                 f"box.items[{self.pick(0, 1)}] = {self.V()}", f"box.d['a'] = {self.V()}", f"box.d['k'] = {self.I()}",
                 f"box.same[1] = {self.V()}"]
        if self.rare:
            texts += [f"box.items.append({self.V()})", f"box.d['new'] = {self.V()}", "box.items = [x, y]", "box.extra = y",
                      "box.same, box.items = box.items, box.same", f"box.d = {{'a': {self.V()}, 'k': {self.I()}}}"]
        if self.lists:
            texts += [f"out.append({self.V()})"] * 8 + ["out = out[-2:]", f"out = [{self.V(1)}]", f"out += [{self.V(1)}]"]
            texts += [f"own[{self.pick('0', ':2', '...', 'own > 0.2')}] {self.pick('=', '+=')} {self.R(1)}",
                      f"own[:] = {self.A(1)}", f"own *= {self.R(1)}", "own = own.copy()"]
        text = self.pick(*texts)
        ends = "if len(box.items) < 9: " * (text.startswith("box.items.append") and self.loops > 0)
        self.add(depth, ends + text)

    def augment(self, depth):
        kind = self.pick("V", "I", "R")
        name = self.name(kind)
        if name is None:
            self.add(depth, "pass")
        elif kind == "V":
            self.add(depth, f"{name} = {name} + {self.V(1)}")
        else:
            self.add(depth, f"{name} += {getattr(self, kind)(1)}")

    def output(self, depth):
        self.add(depth, f"print('{len(self.lines)}', {self.pick(self.I(1), self.name('B') or 'box.flag', 'box.n')})")

    def leave(self, depth):
        ways = [self.result()] * self.early * (not self.inside) + ["break", "continue"] * bool(self.loops)
        if not ways:
            return self.assign(depth)
        self.add(depth, f"if {self.test()}:")
        if self.chance(0.4):
            self.write(depth + 1)
        self.add(depth + 1, self.pick(*ways))

    def result(self):
        if self.lists and self.chance(0.5):
            return f"return {self.V()}, {self.pick('out', 'F.stack([x, *out])', 'len(out), own', 'own.copy()')}, {self.I(2)}"
        if self.simple_result:
            return f"return {self.V()}, {self.V()}, {self.I(2)}"
        return f"return {self.V()}, {self.name('V')}, {self.I()}, {self.R(1)}, bool({self.test(1)}), box.h"

    def if_(self, depth, level):
        before = set(self.bound)
        self.add(depth, f"if {self.test()}:")
        self.block(depth + 1, level)
        while self.chance(0.3):
            self.bound = set(before)
            self.add(depth, f"elif {self.test()}:")
            self.block(depth + 1, level)
        if self.chance(0.6):
            after, self.bound = self.bound, set(before)
            self.add(depth, "else:")
            self.block(depth + 1, level)
            self.bound &= after
        else:
            self.bound = before

    def for_(self, depth, level):
        before = set(self.bound)
        target, values = self.pick(("i", f"range({self.random.randint(0, 3)})"), ("v", "[x, y]"), ("w", "box.items"),
                                   ("i, v", "enumerate([x, y, box.h])"))
        self.add(depth, f"for {target} in {values}:")
        self.bound.update(target.split(", "))
        self.body(depth, level)
        self.bound = before

    def while_(self, depth, level):
        before = set(self.bound)
        self.counter += 1
        count = f"n{self.counter}"
        self.add(depth, f"{count} = 0")
        self.add(depth, f"while {count} < {self.random.randint(1, 3)} and {self.test()}:" if self.chance(0.7)
                 else f"while {self.test()}:")
        self.add(depth + 1, f"{count} += 1")
        if " and " not in self.lines[-2]:
            self.add(depth + 1, f"if {count} > 3:")
            self.add(depth + 2, "break")
        elif not self.lines[-2].strip().startswith(f"while {count}"):
            self.add(depth + 1, f"if {count} > 3:")
            self.add(depth + 2, "break")
        self.body(depth, level)
        self.bound = before

    def body(self, depth, level):
        self.loops += 1
        self.block(depth + 1, level)
        self.loops -= 1
        if self.chance(0.15):
            self.add(depth, "else:")
            self.block(depth + 1, level)

    def function(self):
        """A function inside that writes a name of the outer one."""
        self.add(1, "u = v = x")
        self.add(1, "r = 0.25")
        self.bound.update("uvr")
        self.add(1, "def inner(w):")
        self.add(2, "nonlocal u, r")
        before, self.bound, self.inside = set(self.bound), self.bound | {"w"}, True
        names, self.NAMES = self.NAMES, {"V": ("u", "w"), "A": (), "I": (), "R": ("r",), "B": ()}
        self.size += 2
        for _ in range(2):
            self.add(2, f"if {self.test()}:")
            self.assign(3)
        self.add(2, "return u")
        self.NAMES, self.bound, self.inside = names, before, False


def inputs(seed, requires_grad=True):
    """Arguments of such a program: two Variables of three numbers, and a float."""
    rng = np.random.RandomState(seed)
    x, y = (chainer.Variable(rng.uniform(-1, 1, 3), requires_grad=r) for r in (True, requires_grad))
    return x, y, float(rng.uniform(-1, 1))


#: Calls that every program is asked to serve.
CALLS = [lambda seed=seed: inputs(seed) for seed in range(4)] + [lambda: inputs(9, False)]
