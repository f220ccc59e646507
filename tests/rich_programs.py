"""Random model code with the constructs that `staged_programs` lacks: comprehensions, try, with, match, walrus, del, …"""
import itertools
import sys

import breaks
from staged_programs import Program


class RichProgram(Program):
    """A staged program, each third of whose expressions and statements is of a rarer kind."""

    def __init__(self, seed, lists=False, broken=0):
        for attempt in itertools.count():
            self.serial = 0
            super().__init__(f"{seed} {attempt}", lists)
            try:
                compile(self.text, "program", "exec")
            except SyntaxError:                 # a `:=` where Python allows none
                continue
            if broken:
                self.text = breaks.insert(self.text, seed, broken)
            return

    def new(self, stem):
        """A name that nothing else has."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def V(self, depth=0):
        if depth > 1 or not self.chance(0.3):
            return super().V(depth)
        v, k = self.V(depth + 1), self.new("t")
        return self.pick(
            lambda: f"sum([{k} * {self.R(2)} for {k} in ({v}, {self.V(2)})], {self.V(2)})",
            lambda: f"sum(({k} for {k} in ({v}, {self.V(2)}) if {self.test(2)}), {self.V(2)})",
            lambda: f"[{v}, *({self.V(2)},)][{self.pick('-1', '0', self.I(2) + ' % 2')}]",
            lambda: f"({v}, {self.V(2)})[int({self.A(2)}.argmax()) % 2]",
            lambda: f"{{'p': {v}, 'q': {self.V(2)}}}[{self.pick(repr('p'), repr('q'))}]",
            lambda: f"(lambda {k}, k={self.R(2)}: {k} * k)({v})",
            lambda: f"helper(*({v},), **{{'k': {self.I(2)}}})",
            lambda: f"(({k} := {v}) + {k})",
            lambda: f"next({k} for {k} in [{v}, {self.V(2)}])",
            lambda: f"F.concat([{v}[1:], {self.V(2)}[:1]], axis=0)",
            lambda: f"[{k} for {k} in [{v}, {self.V(2)}] for _ in range(2)][1]")()

    def I(self, depth=0):
        if depth > 1 or not self.chance(0.2):
            return super().I(depth)
        k = self.new("t")
        return self.pick(lambda: f"len([{k} for {k} in box.items if {self.test(2)}])", lambda: f"len({{1, {self.I(2)} % 2}})",
                         lambda: f"({k} := {self.I(2)})", lambda: f"len('%3d' % {self.I(2)})", lambda: "len(f'{box.n:>{3}}')",
                         lambda: f"sum({k} for {k} in (1, {self.I(2)}))", lambda: f"min({self.I(2)}, 2)",
                         lambda: f"int({self.A(1)}.argmax())", lambda: f"abs({self.I(2)})")()

    def test(self, depth=0):
        if depth > 1 or not self.chance(0.2):
            return super().test(depth)
        k = self.new("t")
        return self.pick(lambda: f"({k} := {self.R(2)}) > 0", lambda: f"{self.I(2)} in (0, 1, {self.I(2)})",
                         lambda: f"({self.test(2)} and ({k} := {self.R(2)}) < {self.R(2)})",
                         lambda: f"(box.h is not None and {self.test(2)})", lambda: f"({self.test(2)}) is True",
                         lambda: f"any([{self.test(2)}, {self.test(2)}])", lambda: f"isinstance({self.R(2)}, float)")()

    def statement(self, depth, level):
        if not self.chance(0.3):
            return super().statement(depth, level)
        self.size -= 1
        flat = [self.unpack, self.shrink, self.fail, self.inner]
        nested = [self.try_, self.with_, self.generator] + [self.match] * (sys.version_info >= (3, 10))
        if self.size < 0 or level > 2 or self.chance(0.4):
            return self.pick(*flat)(depth)
        return self.pick(*nested)(depth, level + 1)

    def unpack(self, depth):
        self.add(depth, self.pick(f"u, *rest = {self.V(1)}, {self.V(1)}, 1", f"(u, (v, i)) = {self.V(1)}, ({self.V(1)}, {self.I(1)})",
                                  f"u, v = {self.V(1)}, {self.V(1)}", f"v = u = {self.V(1)}"))
        self.bound.add("u")

    def shrink(self, depth):
        k = self.new("d")
        self.add(depth, f"{k} = {{'a': {self.V(1)}, 'b': {self.I(1)}}}")
        self.add(depth, self.pick(f"del {k}['a']", f"{k}['c'] = {k}.pop('a')", f"{k}.update(b=2)", f"del {k}"))

    def fail(self, depth):
        self.add(depth, self.pick(f"assert {self.test()}, 'no'", f"if {self.test()}: raise ValueError({self.I(1)})",
                                  f"assert {self.I(1)} < 9", f"r = {self.R(1)} / int({self.test(1)})",
                                  f"i = {self.I(1)} % ({self.I(1)} - 1)"))

    def inner(self, depth):
        k = self.new("g")
        self.add(depth, f"def {k}(z, k={self.R(1)}):")
        self.add(depth + 1, f"if {self.test(1)}:")
        self.add(depth + 2, f"return z * {self.R(1)}")
        self.add(depth + 1, "return z * k")
        self.add(depth, f"u = {k}({self.V(1)})")
        self.bound.add("u")

    def try_(self, depth, level):
        before = set(self.bound)
        self.add(depth, "try:")
        self.block(depth + 1, level)
        self.bound = set(before)
        catches = self.chance(0.7)
        if catches:
            self.add(depth, f"except {self.pick('ValueError', '(ValueError, AssertionError)', 'ArithmeticError', 'Exception')} as error:")
            self.add(depth + 1, "print(type(error).__name__)")
            self.block(depth + 1, level)
            self.bound = set(before)
        if not catches or self.chance(0.3):
            self.add(depth, "finally:")
            loops, self.loops, early, self.early = self.loops, 0, self.early, False
            self.block(depth + 1, level)
            self.loops, self.early = loops, early
        self.bound = before

    def with_(self, depth, level):
        before = set(self.bound)
        self.add(depth, "with " + self.pick("chainer.using_config('train', False)", "chainer.no_backprop_mode()",
                                            "chainer.using_config('train', True)",
                                            "Scope()", "Scope()", "Scope(ValueError, ArithmeticError)") + ":")
        self.block(depth + 1, level)
        self.bound = before

    def generator(self, depth, level):
        before, k = set(self.bound), self.new("t")
        self.add(depth, f"for {k} in ({k} * {self.R(2)} for {k} in ({self.V(1)}, {self.V(1)})):")
        self.add(depth + 1, f"u = {k}")
        self.bound.add("u")
        self.body(depth, level)
        self.bound = before

    def match(self, depth, level):
        before, k = set(self.bound), self.new("m")
        self.add(depth, f"match {self.pick(self.I(1), f'({self.I(1)}, {self.I(1)})', self.test(1), self.R(1))}:")
        for pattern in self.random.sample(["0 | 1", f"({k}, 1)", f"[0, {k}]", "True", f"float({k}) if {k} > 0", f"int() as {k}"], 2):
            self.add(depth + 1, f"case {pattern}:")
            self.block(depth + 2, level)
            self.bound = set(before)
        self.add(depth + 1, "case _:")
        self.block(depth + 2, level)
        self.bound = before
