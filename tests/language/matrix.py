"""Programs made of the constructs: each inside each."""
import builtins
import itertools
import linecache
import random
import re
import textwrap

import chainer
import numpy as np

from language.constructs import BLOCKS, DECISIONS, SIMPLE

HEAD = '''
import contextlib

import chainer
import chainer.functions as F
import numpy as np

counter = 0


class Box:
    def __init__(self, x):
        self.h, self.n = x, 0
        self.items = [x * 0.5, x * 0.25]
        self.d = {"a": x * 0.75, "k": 1}


class Within:
    def __init__(self, box):
        self.box = box

    def __enter__(self):
        self.box.n += 1
        return self

    def __exit__(self, kind, error, trace):
        self.box.n += 10
        return kind is KeyError


@contextlib.contextmanager
def contextmanager(box):
    box.n += 1
    try:
        yield box
    finally:
        box.n += 10


def scale(v, by, plus=0):
    return v * by + plus


def decide(v):
    if float(v.array.sum()) > 0:
        return v * 2
    return -v


box = Box(chainer.Parameter(np.array([0.3, -0.4, 0.6])))
'''
_serial = itertools.count()


def program(*names, decision="array"):
    """The text of ``f(x, y, n)`` that has the named constructs each inside the one before."""
    choose = random.Random(" ".join(names) + decision)
    text = "BODY"
    for depth, name in enumerate(names):
        snippet = (BLOCKS.get(name) or SIMPLE[name]).strip("\n")
        snippet = re.sub(r"\bT\b", lambda _: f"({choose.choice(DECISIONS[decision])})", snippet)
        snippet = re.sub(r"\b([a-z]+)_\b", rf"\g<1>{depth}", snippet)
        text = _fill(text, snippet)
    text = re.sub(r"\bBODY\b", "h = h * 1.25", text)
    if "global counter" in text:
        text = text.replace("global counter", "pass").replace("nonlocal h, c", "nonlocal h, c; global counter")
        text = "global counter\n" + text
    text = "h, c, log = x * 0.5, 0, []\n" + text + "\nreturn h, c, log, box.h"
    text = textwrap.indent(text, "    ")
    return HEAD + "\n\ndef f(x, y, n):\n" + text + "\n"


def _fill(text, snippet):
    """``text`` with ``snippet`` in place of its BODY, at its depth."""
    return re.sub(r"^( *)BODY$", lambda m: textwrap.indent(snippet, m.group(1)), text, flags=re.M)


def make(text):
    """What `against_eager.check` takes: the function of a text, made anew, and the objects it writes to."""
    file = f"language_program_{next(_serial)}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    code = builtins.compile(text, file, "exec", dont_inherit=True)

    def made(compile):
        names = {"__name__": "program", "chainer": chainer, "F": chainer.functions, "np": np}
        exec(code, names)
        return compile(names["f"]), [names.get("box"), names.get("log")]
    return made


def pairs():
    """Every construct inside every block, as names."""
    return [(outer, inner) for outer in BLOCKS for inner in itertools.chain(BLOCKS, SIMPLE)]


def variables(seed, requires_grad=True):
    rng = np.random.RandomState(seed)
    return tuple(chainer.Variable(rng.uniform(-1, 1, 3), requires_grad=requires_grad) for _ in range(2))


CALLS = [lambda seed=seed, n=n: (*variables(seed), n) for seed, n in ((0, 2), (1, 0), (2, 2), (3, 1), (4, 2))]
