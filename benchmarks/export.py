"""Exported models: size of the file, seconds to write it, and time per call in onnxruntime beside ours and eager Chainer's.

    python benchmarks/export.py [--models ResNet50 LSTM ...] [--programs] [--zoo]

One thread each, side by side in one process; weights are random, results are compared.  ``--programs FILE``: the small
programs of a conformance file are exported and run instead; ``--zoo``: what is compiled of the models of tests/models, for
inference.  Both print what is refused, and why.
"""
import argparse
import collections
import contextlib
import importlib.util
import io
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "DY2STATIC_THREADS"):
    os.environ.setdefault(name, "1")

import dy2static  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402
from dy2static.errors import Dy2StaticError, ExportError  # noqa: E402
from dy2static.export.captured import exported  # noqa: E402
from dy2static.export.to_onnx import proto  # noqa: E402
from dy2static.export.to_onnx.door import model_of_program  # noqa: E402
from dy2static.export.to_onnx.writer import Options  # noqa: E402
from timing import seconds_per_call  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "examples" / "digits"), str(ROOT / "examples"), str(ROOT / "tests")]

#: What is exported: draws as operators, checks that fail.
OPTIONS = Options(17, random=True, checks="fail")


class MLP(chainer.Sequential):
    def __init__(self):
        super().__init__(L.Linear(784, 1000), F.relu, L.Linear(1000, 1000), F.relu, L.Linear(1000, 10))


class ResNet50(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.base = L.ResNet50Layers(pretrained_model=None)

    def forward(self, x):
        return self.base(x, layers=["prob"])["prob"]


class LanguageModel(chainer.Chain):
    """Two layers of LSTM over a text, a step of a `for` for each word."""

    def __init__(self, words=2000, units=200):
        super().__init__()
        self.units = units
        with self.init_scope():
            self.embed = L.EmbedID(words, units)
            self.l1, self.l2 = L.StatelessLSTM(units, units), L.StatelessLSTM(units, units)
            self.out = L.Linear(units, words)

    def forward(self, text):
        zeros = np.zeros((text.shape[1], self.units), "f")
        h1, c1, h2, c2, scores = zeros, zeros, zeros, zeros, []
        for word in text:
            c1, h1 = self.l1(c1, h1, self.embed(word))
            c2, h2 = self.l2(c2, h2, h1)
            scores.append(F.log_softmax(self.out(h2)))
        return F.stack(scores)


class Attention(chainer.Chain):
    """Attention with several heads."""

    def __init__(self, units, heads):
        super().__init__()
        self.heads = heads
        with self.init_scope():
            self.q, self.k, self.v, self.o = (L.Linear(units, units, nobias=True) for _ in range(4))

    def split(self, x, link):
        batch, length, units = x.shape
        y = link(x, n_batch_axes=2).reshape((batch, length, self.heads, units // self.heads))
        return y.transpose((0, 2, 1, 3))

    def forward(self, x, memory, mask=None):
        q, k, v = self.split(x, self.q), self.split(memory, self.k), self.split(memory, self.v)
        weights = F.matmul(q, k, transb=True) * (q.shape[3] ** -0.5)
        if mask is not None:
            weights = F.where(np.broadcast_to(mask, weights.shape), weights, np.full(weights.shape, -1e9, "f"))
        y = F.matmul(F.softmax(weights, axis=3), v).transpose((0, 2, 1, 3))
        return self.o(y.reshape(x.shape), n_batch_axes=2)


class Block(chainer.Chain):
    def __init__(self, units, heads, has_memory):
        super().__init__()
        with self.init_scope():
            self.attention = Attention(units, heads)
            self.other = Attention(units, heads) if has_memory else None
            self.norms = chainer.ChainList(*[L.LayerNormalization(units) for _ in range(3)])
            self.wide, self.narrow = L.Linear(units, 4 * units), L.Linear(4 * units, units)

    def norm(self, k, x):
        return self.norms[k](x.reshape((-1, x.shape[2]))).reshape(x.shape)

    def forward(self, x, memory=None, mask=None):
        x = x + self.attention(self.norm(0, x), self.norm(0, x), mask)
        if memory is not None:
            x = x + self.other(self.norm(1, x), memory)
        return x + self.narrow(F.relu(self.wide(self.norm(2, x), n_batch_axes=2)), n_batch_axes=2)


class Transformer(chainer.Chain):
    """An encoder, and a decoder that takes the best word of each step until all sentences have ended."""

    def __init__(self, words=1000, units=128, heads=4, layers=2, longest=20):
        super().__init__()
        self.longest = longest
        with self.init_scope():
            self.embed, self.place = L.EmbedID(words, units), L.EmbedID(64, units)
            self.encoder = chainer.ChainList(*[Block(units, heads, False) for _ in range(layers)])
            self.decoder = chainer.ChainList(*[Block(units, heads, True) for _ in range(layers)])
            self.out = L.Linear(units, words)

    def embedded(self, words):
        places = self.place(np.arange(words.shape[1], dtype="i"))
        return self.embed(words) + F.broadcast_to(places, (*words.shape, places.shape[1]))

    def forward(self, source):
        memory = self.embedded(source)
        for block in self.encoder:
            memory = block(memory)
        batch = source.shape[0]
        target = np.zeros((batch, self.longest), np.int32)
        causal = np.tri(self.longest, dtype=bool)
        ended = np.zeros(batch, bool)
        i = 0
        while i < self.longest - 1 and not ended.all():
            h = self.embedded(target)
            for block in self.decoder:
                h = block(h, memory, causal)
            word = self.out(h[:, i]).array.argmax(axis=1).astype(np.int32)
            target[:, i + 1] = np.where(ended, 1, word)
            ended = np.logical_or(ended, word == 1)
            i += 1
        return target, i


def _reader():
    from read_rows import Reader
    return Reader(), (np.random.rand(16, 8, 8).astype("f"),)


def _beams():
    import beam_search
    model = beam_search.Speller()

    def complete(beginning):
        return beam_search.complete(model, beginning)
    return complete, (beam_search.encode("con", 3),)


def _random(shape):
    return np.random.uniform(-1, 1, shape).astype("f")


#: ``make()`` gives what is exported, and its arguments.
MODELS = {
    "MLP, 64 rows": lambda: (MLP(), (_random((64, 784)),)),
    "ResNet50, one image": lambda: (ResNet50(), (_random((1, 3, 224, 224)),)),
    "LSTM language model, 20 x 8 words": lambda: (LanguageModel(), (np.random.randint(0, 2000, (20, 8)).astype("i"),)),
    "Transformer, greedy decoding, 4 sentences": lambda: (Transformer(), (np.random.randint(2, 1000, (4, 12)).astype("i"),)),
    "read_rows.py, 16 images": _reader,
    "beam_search.py, 4 beams": _beams,
}


def leaves(x):
    """The arrays and numbers in a result or in arguments."""
    if isinstance(x, (list, tuple)):
        return [leaf for part in x for leaf in leaves(part)]
    if isinstance(x, dict):
        return [leaf for part in x.values() for leaf in leaves(part)]
    return [x.array] if isinstance(x, chainer.Variable) else [np.asarray(x)] if np.isscalar(x) or isinstance(x, np.ndarray) else []


def session(model):
    """A session of onnxruntime with one thread."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def fed(program, opened, args):
    """What a session is given."""
    known = {node.name for node in opened.get_inputs()}
    return {part.name: array for part, array in zip(program.arguments, leaves(args)) if part.name in known}


def difference(found, expected):
    """The largest difference of floats.  Raises AssertionError for results of other shapes, dtypes or numbers."""
    found = [array for item in found for array in (item if isinstance(item, list) else [item])]     # lists are sequences
    while len(found) < len(expected):                       # constants are no outputs
        pairs = enumerate(zip(expected, [*found, None]))
        expected.pop(next(k for k, (a, b) in pairs if b is None or a.ndim == 0 and (a.shape, a.dtype) != (b.shape, b.dtype)))
    assert len(found) == len(expected), (len(found), len(expected))
    worst = 0.0
    for actual, wanted in zip(found, expected):
        assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(actual, wanted, rtol=1e-4, atol=1e-5)
        if actual.size and actual.dtype.kind == "f":
            worst = max(worst, float(np.nanmax(np.abs(actual - wanted), initial=0)))
    return worst


def row(name, make):
    """One line of the table."""
    np.random.seed(0)
    target, args = make()
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        eager = target(*args)
        started = time.perf_counter()
        program = exported(target, args)
        model = model_of_program(program, OPTIONS)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            proto.write(model, path)
            seconds, size = time.perf_counter() - started, os.path.getsize(path)
            opened = session(path)
        inputs = fed(program, opened, args)
        worst = difference(opened.run(None, inputs), leaves(eager))
        compiled = dy2static.to_static(target, backend="c")
        ours = compiled if compiled is not None else target
        times = seconds_per_call([lambda: opened.run(None, inputs), lambda: ours(*args)], blocks=15, block_seconds=0.05)
    onnx, here = (1e3 * t for t in times)
    print(f"| {name} | {size / 1e6:.2f} MB | {seconds:.2f} s | {len(model.graph.node)} | {onnx:.3f} ms | {here:.3f} ms | "
          f"{here / onnx:.2f} | {worst:.0e} |", flush=True)


# Many small programs --------------------------------------------------------------------------------------------


class Tally:
    """Counts of what was exported and compared, and the reasons for the rest."""

    def __init__(self):
        self.counts, self.worst, self.reasons = collections.Counter(), 0.0, collections.Counter()

    def add(self, name, run):
        """Export and compare once; print what is refused."""
        try:
            self.worst = max(self.worst, run())
            self.counts["equal"] += 1
        except Dy2StaticError as error:
            self.counts["refused"] += 1
            self.reasons[_kind(str(error.args[0]))] += 1
            print(f"{name}: {str(error.args[0]).splitlines()[0]}")
        except AssertionError as error:
            self.counts["DIFFERENT"] += 1
            print(f"{name}: DIFFERENT {str(error)[:300]!r}")

    def show(self, what):
        """Print the totals."""
        print(f"{what}: {dict(self.counts)}, largest difference {self.worst:.1e}")
        for reason, count in self.reasons.most_common():
            print(f"  {count:3} {reason}")


def _kind(text):
    for part in ("changes state between calls", "runs in Python", "what arrays hold decides", "not initialised",
                 "gives back no array", "raises", "cannot be written in ONNX"):
        if part in text:
            return part
    return text.splitlines()[0][:80]


def compare(target, args, expected):
    """Export for these arguments, run, and compare."""
    try:
        program = exported(target, args)
    except ExportError as error:
        if "changes state" not in error.args[0]:
            raise
        program = exported(target, args, state=True)
        if any(argument.name.startswith("state/") for argument in program.arguments):
            raise
    model = model_of_program(program, OPTIONS)
    proto.checked(model)
    opened = session(model.SerializeToString())
    found = opened.run(None, fed(program, opened, args))
    draws = any(node.op.kind == "effect" and node.op.name.startswith("random") for node in program.graph.walk())
    given = [array for result, array in zip(program.results, found) if not result.name.startswith("next/")]
    if draws:                                               # other numbers: only shapes can be compared
        assert [array.shape for array in given] == [array.shape for array in leaves(expected)]
        return 0.0
    return difference(given, leaves(expected))


def programs(path):
    """All programs of a file of cases, each with its first input that eager takes."""
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    import conformance
    spec = importlib.util.spec_from_file_location("cases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tally = Tally()
    for case in module.C:
        target, owner = case.build(conformance.identity_to_static)
        if case.prepare:
            case.prepare(owner)
        for make in case.inputs:
            given = make()
            args = given.args if isinstance(given, conformance.Call) else given

            again = make()
            again = again.args if isinstance(again, conformance.Call) else again
            with chainer.using_config("train", False), chainer.no_backprop_mode():
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        expected = target(*again)
                except Exception as error:                  # that is what this input shows
                    tally.counts["eager raises"] += 1
                    print(f"{case.name}: eager raises {type(error).__name__}")
                    continue
                tally.add(case.name, lambda: compare(target, args, expected))   # noqa: B023 (called at once)
    tally.show("programs")


def zoo():
    """What is compiled of each model of the zoo, in test mode, for the arguments of the first step."""
    from models.zoo import ZOO
    tally = Tally()
    for name, entry in ZOO.items():
        calls = []
        np.random.seed(0)
        random.seed(0)
        step, _ = entry.make(lambda target, calls=calls: _recording(target, calls))
        step(0)
        seen = set()
        for target, args, restore in calls:
            restore()
            if id(target) not in seen:
                seen.add(id(target))

                def run(target=target, args=args):
                    with chainer.using_config("train", False), chainer.no_backprop_mode():
                        return compare(target, args, target(*args))
                try:
                    tally.add(name, run)
                except Exception as error:                  # eager needs gradients, or a mode of its own
                    print(f"{name}: eager raises {type(error).__name__} in test mode")
    tally.show("models")


def _recording(target, calls):
    """The target, whose calls are noted."""
    if not isinstance(target, chainer.Link):
        def called(*args):
            calls.append((target, args, lambda: None))
            return target(*args)
        return called
    method = "forward" if hasattr(target, "forward") else "__call__"
    real = getattr(target, method)

    def forward(*args):
        calls.append((target, args, lambda: target.__dict__.pop(method, None)))
        return real(*args)
    object.__setattr__(target, method, forward)
    return target


def main():
    """Print the table, or the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=None)
    parser.add_argument("--programs", metavar="FILE")
    parser.add_argument("--zoo", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.programs or given.zoo:
        if given.programs:
            programs(given.programs)
        if given.zoo:
            zoo()
        return
    print("| model | file | export | nodes | onnxruntime | dy2static, c | ratio | difference |\n|---|---|---|---|---|---|---|---|")
    for name, make in MODELS.items():
        if given.models is None or any(part in name for part in given.models):
            row(name, make)


if __name__ == "__main__":
    main()
