"""Random Python functions: every construct inside every other, names bound or not, effects, exceptions."""

import random

import breaks


def is_program(text):
    """Whether Python takes it: there may be a nonlocal of what is a parameter, or bound nowhere."""
    try:
        compile(text, "program", "exec")
    except SyntaxError:
        return False
    return True


class Program:
    """The text of a function ``f(a, b, log)``; equal seeds give equal texts.

    broken: how often there are breaks (see `breaks`).
    """

    NAMES = ("a", "b", "c", "d", "e")

    def __init__(self, seed, broken=0):
        self.random = random.Random(seed)
        self.lines = ["def f(a, b, log):"]
        self.in_loop = 0
        self.size = self.random.randint(4, 14)
        self.generator = self.random.random() < 0.1
        # most programs lack what keeps an `if` from being converted
        self.captures, self.deletes, self.catches = (self.random.random() < 0.25 for _ in range(3))
        self.jumps = self.random.random() < 0.5
        self.block(1)
        self.lines.append("    return a, b, " + self.name())
        self.text = "\n".join(self.lines) + "\n"
        if broken and is_program(self.text):
            self.text = breaks.insert(self.text, seed, broken)

    def name(self):
        return self.random.choice(self.NAMES)

    def number(self, depth=0):
        """An expression that is likely a number."""
        if depth > 2:
            return self.random.choice([self.name(), str(self.random.randint(-1, 3))])
        make = self.random.choice(
            [
                lambda: self.name(),
                lambda: self.name(),
                lambda: str(self.random.randint(-1, 3)),
                lambda: f"({self.number(depth + 1)} + {self.number(depth + 1)})",
                lambda: f"({self.number(depth + 1)} and {self.number(depth + 1)})",
                lambda: f"({self.number(depth + 1)} or {self.number(depth + 1)})",
                lambda: f"(not {self.number(depth + 1)})",
                lambda: f"({self.name()} // {self.number(depth + 1)})",
                lambda: f"log({self.number(depth + 1)})",
                lambda: f"({self.name()} := {self.number(depth + 1)})",
                lambda: f"sum([{self.number(depth + 2)} for i in range(2)])",
                lambda: f"({self.name()} < {self.number(depth + 1)} <= {self.number(depth + 1)})",
                lambda: (
                    f"({self.number(depth + 1)} {self.random.choice(['in', 'not in'])} (1, {self.name()}))"
                ),
                lambda: f"({self.name()} is {self.random.choice(['', 'not '])}{self.name()})",
                lambda: f"len(f'{{{self.name()}}} {{{self.number(depth + 2)}!r:>3}}')",
                lambda: (
                    f"({self.number(depth + 1)} if {self.number(depth + 1)} else {self.number(depth + 1)})"
                ),
            ]
            + [
                lambda: f"sum({self.name()} for i in range(2))",
                lambda: f"(lambda x: {self.name()} and x)({self.name()})",
            ]
            * self.captures
        )
        return make()

    def block(self, depth):
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth)

    def add(self, depth, text):
        self.lines.append("    " * depth + text)

    def statement(self, depth):
        self.size -= 1
        simple = [self.assign, self.assign, self.assign, self.augment, self.effect, self.rare]
        nested = [self.if_, self.if_, self.if_, self.for_, self.while_]
        nested += [self.try_, self.with_] * self.catches + [self.function] * self.captures
        self.random.choice(simple if self.size < 0 or depth > 5 else simple + nested)(depth)

    def assign(self, depth):
        if self.random.random() < 0.2:
            self.add(depth, f"{self.name()}, {self.name()} = {self.number()}, {self.number()}")
        else:
            self.add(depth, f"{self.name()} = {self.number()}")

    def augment(self, depth):
        self.add(depth, f"{self.name()} += {self.number()}")

    def effect(self, depth):
        self.add(depth, f"log({self.number()})")

    def rare(self, depth):
        choices = [f"assert {self.number()} != 3", f"assert {self.number()}, {self.number()}", "pass"]
        choices += [f"del {self.name()}"] * self.deletes
        choices += [f"g = lambda: {self.name()}", "log(g())"] * self.captures
        if self.jumps and self.random.random() < 0.6:
            self.add(depth, f"if {self.number()}:")
            self.add(
                depth + 1,
                self.random.choice(
                    [f"return {self.number()}"] + ["break", "continue"] * 2 * bool(self.in_loop)
                ),
            )
            return
        if self.jumps:
            choices += [f"return {self.number()}", f"raise ValueError({self.name()})"]
            choices += ["break", "continue"] if self.in_loop else []
        if self.generator:
            choices += [f"{self.name()} = yield {self.name()}"] * 3
        self.add(depth, self.random.choice(choices))

    def if_(self, depth):
        self.add(depth, f"if {self.number()}:")
        self.block(depth + 1)
        while self.random.random() < 0.3:
            self.add(depth, f"elif {self.number()}:")
            self.block(depth + 1)
        if self.random.random() < 0.5:
            self.add(depth, "else:")
            self.block(depth + 1)

    def for_(self, depth):
        count = self.random.randint(0, 3)
        target, iterable = self.random.choice(
            [
                (self.name(), f"range({count})"),
                (self.name(), f"range({count})"),
                (self.name(), f"map(log, range({count}))"),
                (f"{self.name()}, {self.name()}", f"enumerate(range({count}))"),
                (f"{self.name()}, *{self.name()}", f"[(i, log(i)) for i in range({count})]"),
                (self.name(), f"({self.name()} for i in range({count}))" if self.captures else "(1, 2)"),
                (self.name(), self.number()),
            ]
        )
        self.add(depth, f"for {target} in {iterable}:")
        self.loop_body(depth)

    def while_(self, depth):
        count = f"n{len(self.lines)}"
        self.add(depth, f"{count} = 0")
        tests = [f"{count} < 3 and {self.number()}", f"{count} < 3", "1", "True"]
        self.add(depth, f"while {self.random.choice(tests)}:")
        self.add(depth + 1, f"{count} += 1")
        self.add(depth + 1, f"if {count} > 4:")
        self.add(depth + 2, "break")
        self.loop_body(depth)

    def loop_body(self, depth):
        self.in_loop += 1
        self.block(depth + 1)
        self.in_loop -= 1
        if self.random.random() < 0.2:
            self.add(depth, "else:")
            self.block(depth + 1)

    def try_(self, depth):
        self.add(depth, "try:")
        self.block(depth + 1)
        handled = self.random.random() < 0.8
        if handled:
            kind = self.random.choice(["ZeroDivisionError", "NameError", "Exception", "UnboundLocalError"])
            self.add(depth, f"except {kind}" + self.random.choice(["", f" as {self.name()}"]) + ":")
            self.block(depth + 1)
            if self.random.random() < 0.3:
                self.add(depth, "else:")
                self.block(depth + 1)
        if not handled or self.random.random() < 0.3:
            self.add(depth, "finally:")
            in_loop, self.in_loop = self.in_loop, 0
            self.block(depth + 1)
            self.in_loop = in_loop

    def with_(self, depth):
        kind = self.random.choice(["ZeroDivisionError", "NameError"])
        self.add(depth, f"with suppress({kind})" + self.random.choice(["", f" as {self.name()}"]) + ":")
        self.block(depth + 1)

    def function(self, depth):
        in_loop, self.in_loop = self.in_loop, 0
        generator, self.generator = self.generator, False
        self.add(depth, f"def g({self.random.choice(['', self.name() + '=1'])}):")
        if self.random.random() < 0.3:
            self.add(depth + 1, f"nonlocal {self.random.choice(['c', 'd', 'e'])}")
        self.block(depth + 1)
        self.in_loop, self.generator = in_loop, generator
