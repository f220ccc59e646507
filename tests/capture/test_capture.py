"""Random model code, eager against compiled: state, aliasing, numbers, host calls, and failures at random points."""
import functools
import gc
import linecache
import random
import types

import chainer
import chainer.functions as F
import chainer.links as L
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from against_eager import array, check, variable

from dy2static import not_to_static, to_static

_count = [0]


class Program:
    """The text of a method ``forward(self, x, n, *rest)`` of a Chain; equal seeds give equal texts."""

    def __init__(self, seed):
        self.random, self.lines, self.depth = random.Random(seed), [], 1
        self.variables, self.numbers = ["x"], ["n"]
        for _ in range(self.random.randint(4, 14)):
            self.random.choices(self.STATEMENTS, self.WEIGHTS)[0](self)
        results = ", ".join(self.random.sample(self.variables, min(3, len(self.variables))))
        result = self.random.choice([f"{results},", f"[{results}]", f"{{'a': ({results},), 'n': {self.number()}}}", self.variable(),
                                     f"({results}, self.items, self.table)", f"Box(a={self.variable()}, n={self.number()})"])
        self.add(f"return {result}")
        self.text = "def forward(self, x, n, *rest, scale=2.0):\n" + "\n".join(self.lines) + "\n"

    def add(self, line):
        self.lines.append("    " * self.depth + line)

    def variable(self):
        return self.random.choice(self.variables)

    def number(self):
        r = self.random
        return r.choice([r.choice(self.numbers), r.choice(self.numbers), "self.count", "self.table['k']", "LEVEL", "scale", "len(self.items)",
                         f"({r.choice(self.numbers)} + {r.randint(1, 3)})", f"({r.choice(self.numbers)} * 0.5)", str(r.randint(-2, 3)), "1.5",
                         "self.box.n", "type(self).level", "helper_number(n)", "len(rest)", "cell"])

    def fresh(self, names, prefix):
        names.append(f"{prefix}{len(names)}")
        return names[-1]

    def expression(self):
        v, w, n = self.variable(), self.variable(), self.number()
        return self.random.choice([
            f"F.tanh({v})", f"F.relu({v})", f"{v} * {w}", f"{v} + {n}", f"{n} * {v}", f"{v} - {w}", f"self.a({v})", f"self.a({v} * 0.5)", f"F.dropout({v}, 0.3)",
            f"helper({v}, {n})", f"{v} * self.scale", f"{v} + self.W", f"F.sigmoid({v} / 2)", f"F.selu({v})", f"F.identity({v})", f"+{v}",
            f"F.reshape({v}, (2, 3))", f"F.concat([{v}, {w}], axis=0)[:2]", "x * n", f"chainer.Variable({v}.array * 1)", f"{v} * np.float32({self.random.randint(1, 3)})",
            f"self.stored if self.stored is not None else {v}", f"sum(self.items[-2:], {v})", f"F.where({v}.array > 0, {v}, {w})", f"-{v}", f"partial({v})"])

    def assign(self):
        value = self.expression()
        self.add(f"{self.fresh(self.variables, 'v')} = {value}")

    def rebind(self):
        self.add(f"{self.variable()} = {self.expression()}")

    def assign_number(self):
        value = self.random.choice([self.number(), self.number(), "random.random()"])
        self.add(f"{self.fresh(self.numbers, 'm')} = {value}")

    def write(self):
        v, n = self.variable(), self.number()
        self.add(self.random.choice([
            "self.count += 1", f"self.stored = {v}", f"self.items.append({v})", "self.items = self.items[-2:]", "del self.items[:1]", f"self.table['k'] = {n}",
            f"self.table[str({self.random.randint(0, 2)})] = {v}", "self.table.pop('0', None)", f"self.box.n = {n}", "self.alias.n += 1", "self.names.append('a')",
            f"self.extra{self.random.randint(0, 1)} = [{v}, {n}]", "self.items.reverse()", f"self.pair = ({n}, {v})", "self.stored = None", "self.names[0] = 'b'"]))

    def host(self):
        v, n = self.variable(), self.number()
        self.add(self.random.choice([f"print({n}, len(self.items))", f"print({v}.array.shape, {v}.dtype)", "np.random.rand()", f"note({v}.array)" if self.random.random() < 0.2 else f"print({n})",
                                     f"print({v}.array)", "random.random()", "print(self.count, self.names)", f"chainer.report({{'v': F.sum({v})}})"]))

    def fails(self):
        v, n = self.variable(), self.number()
        self.add(self.random.choice([f"F.matmul({v}, {v})", f"1 / ({n} - 3)", f"[][{self.random.randint(0, 1)}]", "fuse()", f"np.linalg.inv({v}.array[:, :2] * n)",
                                     "if n == 3: raise KeyError(n)", "assert n != 3, 'three'", f"{{}}[{n}]", f"picky({n})"]))

    def nested(self):
        kind = self.random.choice(["if n > 1:", "if len(self.items) % 2:", "for _ in range(2):", "with chainer.no_backprop_mode():", "if self.stored is None:",
                                   "with chainer.using_config('train', False):", "try:", "if isinstance(n, float):", "if rest:"])
        self.add(kind)
        self.depth += 1
        for _ in range(self.random.randint(1, 2)):
            self.random.choice([Program.rebind, Program.write, Program.host])(self)
        self.depth -= 1
        if kind == "try:":
            self.add(self.random.choice(["except Exception:", "finally:"]))
            self.depth += 1
            self.write()
            self.depth -= 1

    def closure(self):
        before = self.variable()
        name = self.fresh(self.variables, "v")
        self.add(f"{name}f = lambda y, k={self.number()}: y * k + {self.number()}")
        self.add(f"{name} = {name}f({before})")

    STATEMENTS = [assign, rebind, assign_number, write, host, nested, closure, fails]
    WEIGHTS = [6, 2, 1, 5, 2, 3, 1, 0.4]


class Box:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Model(chainer.Chain):
    level = 1.25

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.a = L.Linear(3, 3, initialW=array(3, 3, seed=1))
            self.W = chainer.Parameter(array(3, seed=2))
        self.count, self.stored, self.items, self.table, self.names = 0, None, [], {"k": 2}, ["x"]
        self.box = self.alias = Box(n=1)
        self.scale = array(3, seed=3)


def environment():
    """The globals of a program: its helpers, host functions that remember what they saw, and a bomb."""
    notes, fuse = [], [9]

    @not_to_static
    def note(value):
        notes.append(value.copy() if isinstance(value, np.ndarray) else value)

    @not_to_static
    def burn():
        fuse[0] -= 1
        if not fuse[0] % 4:
            raise OSError("burnt")

    @not_to_static
    def picky(n):
        if n == 3:
            raise ValueError("three")

    def helper(y, k):
        return F.tanh(y) * k

    def helper_number(n):
        return n * 2 + 1
    space = {"F": F, "np": np, "chainer": chainer, "random": random, "Box": Box, "note": note, "fuse": burn, "picky": picky, "helper": helper,
             "helper_number": helper_number, "partial": functools.partial(F.clip, x_min=-0.5, x_max=0.5), "LEVEL": 0.75, "__name__": "random_program"}
    return space, [notes, fuse]


def make(text):
    """A factory of the program for `check`."""
    _count[0] += 1
    filename = f"random_program_{_count[0]}.py"
    source = "def around(cell):\n" + "".join(f"    {line}\n" for line in text.splitlines()) + "    return forward\n"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    code = compile(source, filename, "exec")

    def factory(compile):
        space, remembered = environment()
        exec(code, space)
        function, model = compile(space["around"](1.5)), Model()
        return types.MethodType(lambda self, *args, **kwargs: function(self, *args, **kwargs), model), [model, remembered]
    return factory


CALLS = [lambda n=n, rest=rest, seed=seed: (variable(2, 3, seed=seed), n) + rest
         for seed, (n, rest) in enumerate([(1, ()), (1, ()), (2, ()), (1.5, ()), (2, (1,)), (3, ()), (2, ()), (0.0, ()), (-0.0, ()), (4, ())])]


def run(seed):
    text = Program(seed).text
    try:
        with np.errstate(all="ignore"):
            check(make(text), CALLS, rounds=1)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}\n{text}\n{error}") from None


@pytest.mark.parametrize("block", range(5))
def test_random_programs(block):
    for seed in range(block * 8, block * 8 + 8):
        run(seed)


@hypothesis.settings(max_examples=12, deadline=None)
@hypothesis.given(st.integers(1000, 10 ** 9))
def test_more_random_programs(seed):
    run(seed)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_afterwards(enabled):
    """A capture and a backward leave it as it was, also where the user's code raises."""
    def fails(x):
        raise ValueError("no")
    (gc.enable if enabled else gc.disable)()
    try:
        x = chainer.Variable(np.ones(3, "f"))
        chainer.functions.sum(to_static(lambda x: x * 2)(x)).backward()
        assert gc.isenabled() == enabled
        with pytest.raises(ValueError):
            to_static(fails)(x)
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
