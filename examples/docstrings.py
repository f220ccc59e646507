"""Trains a language model, a stateful LSTM, on Python's own documentation, letter by letter.

    python examples/docstrings.py [--epochs 3] [--quick]

The text is the docstrings of the standard library of the Python that runs this; nothing is downloaded.  Its streams are
read side by side; the LSTM keeps its state from call to call.  After every ``--length`` letters the loss of these goes
back through all the calls, and the history is cut off: truncated back-propagation through time, as in Chainer's own
example.  One call of the compiled function reads one letter of each stream.

The model is trained eagerly and compiled from equal seeds.
"""
import argparse
import ast
import inspect
import pathlib
import time

from dy2static import to_static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

#: Modules of the standard library that every Python has, with much documentation.
MODULES = ("argparse", "collections/__init__", "datetime", "decimal", "difflib", "doctest", "fractions", "functools",
           "heapq", "inspect", "ipaddress", "logging/__init__", "optparse", "pathlib", "pdb", "pickle", "random",
           "shutil", "statistics", "string", "subprocess", "tarfile", "textwrap", "threading", "turtle", "typing",
           "unittest/case", "unittest/mock", "zipfile")


class Language(chainer.Chain):
    """Says what the next letter may be; remembers what it has read."""

    def __init__(self, n_letters, n_units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_letters, n_units, initialW=chainer.initializers.Normal(0.1))
            self.lstm = L.LSTM(n_units, n_units)
            self.out = L.Linear(n_units, n_letters)

    def forward(self, x, t):
        """The loss of one letter of each stream, and the share that was right.  x, t: (streams,) int32"""
        h = self.lstm(F.dropout(self.embed(x), 0.1))
        y = self.out(h)
        return F.softmax_cross_entropy(y, t), F.accuracy(y, t)

    def reset_state(self):
        self.lstm.reset_state()


def docstrings():
    """The docstrings of the standard library, one after the other."""
    home = pathlib.Path(ast.__file__).parent
    files = [home / f"{name}.py" for name in MODULES]
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef
    found = [ast.get_docstring(node) for tree in trees for node in ast.walk(tree) if isinstance(node, kinds)]
    return "\n\n".join(inspect.cleandoc(text) for text in found if text)


def streams_of(text, streams):
    """The letters of the text as numbers, cut into streams, (length, streams) int32, and how many letters there are."""
    letters = {letter: number for number, letter in enumerate(sorted(set(text)))}
    numbers = np.array([letters[letter] for letter in text], np.int32)
    length = len(numbers) // streams
    return np.ascontiguousarray(numbers[:length * streams].reshape(streams, length).T), len(letters)


def test(model, text):
    """(bits per letter, the share of letters that were foreseen)."""
    model.reset_state()
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        found = [model(x, t) for x, t in zip(text[:-1], text[1:])]
    model.reset_state()
    loss, accuracy = [sum(float(pair[k].array) for pair in found) / len(found) for k in (0, 1)]
    return loss / np.log(2), accuracy


def train(compiled, text, n_letters, options):
    """The model, (training loss, bits per letter, accuracy) of every epoch, and the seconds."""
    np.random.seed(0)
    model = Language(n_letters, options.units)
    if compiled:
        to_static(model, strict=True)
    optimizer = chainer.optimizers.Adam(alpha=0.005).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(5))
    tests, text = text[:200], text[200:200 + options.letters]
    log, started = [], time.perf_counter()
    for _ in range(options.epochs):
        model.reset_state()
        losses = []
        for start in range(0, len(text) - options.length, options.length):
            loss = 0
            for x, t in zip(text[start:start + options.length], text[start + 1:]):
                loss += model(x, t)[0]
            model.cleargrads()
            loss.backward()
            loss.unchain_backward()
            optimizer.update()
            losses.append(float(loss.array) / options.length)
        log.append((sum(losses) / len(losses), *test(model, tests)))
    return model, log, time.perf_counter() - started


def main():
    """Train eagerly and compiled, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--letters", type=int, default=2000, help="how many of each stream to learn from")
    parser.add_argument("--length", type=int, default=20, help="how many letters the gradient goes back")
    parser.add_argument("--quick", action="store_true", help="one epoch of fewer letters")
    options = parser.parse_args()
    if options.quick:
        options.epochs, options.letters = 1, 1000
    text, n_letters = streams_of(docstrings(), options.streams)
    print(f"{text.size} letters of documentation, {n_letters} different ones, in {options.streams} streams")
    (_, eager, slow), (model, compiled, fast) = [train(c, text, n_letters, options) for c in (False, True)]
    print(f"  {'':7}{'training loss':^22}{'bits per letter':^22}{'foreseen':^22}")
    print(f"  {'epoch':<7}" + f"{'eager':>10}{'compiled':>10}  " * 3)
    for epoch, (a, b) in enumerate(zip(eager, compiled), 1):
        print(f"  {epoch:<7}" + "".join(f"{x:>10.4f}{y:>10.4f}  " for x, y in zip(a, b)))
    apart = np.abs(np.array(eager) - np.array(compiled)).max(axis=0)
    print(f"largest difference in any epoch: loss {apart[0]:.1e}, bits {apart[1]:.1e}, foreseen {apart[2]:.1e}")
    print(f"training and tests: eager {slow:.2f} s, compiled {fast:.2f} s, {slow / fast:.1f} times as fast")
    print(model.forward.cache_info())


if __name__ == "__main__":
    main()
