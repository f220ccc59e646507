"""Chainer's PTB example of static graphs: an unrolled LSTM language model, on the words of Python's documentation.

    python examples/static_graph/ptb.py [--iterations 60] [--unit 100] [--quick]

The chain takes the words of ``--bproplen`` steps as a list and gives a list of results; its two LSTM layers keep their
state from call to call, which `chainer.static_graph` cannot.  It trains with the decorator and without it from the same
seed: truncated back-propagation through time, gradients clipped.  The text is the docstrings of the standard library.
"""
import argparse
import ast
import pathlib
import re
import statistics
import time

from dy2static import static_graph
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

MODULES = ("argparse", "datetime", "difflib", "fractions", "heapq", "inspect", "random", "shutil", "statistics", "textwrap")


class RNNForLMSlice(chainer.Chain):
    """One step: the words that follow, by two LSTM layers.  x: (N,) int32"""

    def __init__(self, n_vocab, n_units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units)
            self.l1 = L.LSTM(n_units, n_units)
            self.l2 = L.LSTM(n_units, n_units)
            self.l3 = L.Linear(n_units, n_vocab)
        for param in self.params():
            param.array[...] = np.random.uniform(-0.1, 0.1, param.shape)

    def reset_state(self):
        self.l1.reset_state()
        self.l2.reset_state()

    def __call__(self, x):
        h0 = self.embed(x)
        h1 = self.l1(F.dropout(h0))
        h2 = self.l2(F.dropout(h1))
        return self.l3(F.dropout(h2))


class RNNForLMUnrolled(chainer.Chain):
    """All steps of a call."""

    def __init__(self, n_vocab, n_units):
        super().__init__()
        with self.init_scope():
            self.rnn = RNNForLMSlice(n_vocab, n_units)

    @static_graph
    def __call__(self, words):
        """A list of (N, n_vocab) float32.  words: a list of (N,) int32"""
        outputs = []
        for ind in range(len(words)):
            outputs.append(self.rnn(words[ind]))
        return outputs


def read_words():
    """The words of the documentation, as numbers: (length,) int32."""
    folder = pathlib.Path(statistics.__file__).parent
    texts = []
    for module in MODULES:
        tree = ast.parse((folder / f"{module}.py").read_text(encoding="utf-8"))
        nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef))]
        texts += [ast.get_docstring(node) or "" for node in nodes]
    words = re.findall(r"[a-z]+|[.,:;]", " ".join(texts).lower())
    known = {word: number for number, word in enumerate(sorted(set(words)))}
    return np.array([known[word] for word in words], "i")


def train(args, use_static_graph):
    """Train; the perplexities of ten iterations each, and the seconds of an iteration."""
    np.random.seed(0)
    chainer.config.use_static_graph = use_static_graph
    text = read_words()
    streams = text[:len(text) // args.batchsize * args.batchsize].reshape(args.batchsize, -1)
    model = RNNForLMUnrolled(int(text.max()) + 1, args.unit)
    optimizer = chainer.optimizers.SGD(lr=1.0).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(5))
    losses, seconds, at = [], [], 0
    for _ in range(args.iterations):
        if at + args.bproplen + 1 > streams.shape[1]:
            at = 0
            model.rnn.reset_state()
        words = [streams[:, at + i] for i in range(args.bproplen)]
        labels = [streams[:, at + i + 1] for i in range(args.bproplen)]
        at += args.bproplen
        start = time.perf_counter()
        loss = 0
        for y, label in zip(model(words), labels):
            loss += F.softmax_cross_entropy(y, label)
        model.cleargrads()
        loss.backward()
        loss.unchain_backward()
        optimizer.update()
        seconds.append(time.perf_counter() - start)
        losses.append(float(loss.array) / args.bproplen)
    model.rnn.reset_state()
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        model([streams[:, i] for i in range(args.bproplen)])        # another schedule: without dropout
    return [float(np.exp(np.mean(losses[i:i + 10]))) for i in range(0, len(losses), 10)], np.median(seconds), model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batchsize", type=int, default=20)
    parser.add_argument("--bproplen", type=int, default=10)
    parser.add_argument("--iterations", type=int, default=60)
    parser.add_argument("--unit", type=int, default=100)
    parser.add_argument("--quick", action="store_true", help="a few iterations of a small network")
    args = parser.parse_args()
    if args.quick:
        args.iterations, args.unit, args.bproplen = 20, 16, 5
    written, slow, _ = train(args, False)
    perplexities, fast, model = train(args, True)
    for number, (one, other) in enumerate(zip(written, perplexities)):
        print(f"iterations from {10 * number}: perplexity {one:.3f} as written, {other:.3f} with static graphs")
    print(f"an iteration: {slow * 1e3:.1f} ms as written, {fast * 1e3:.1f} ms with static graphs: {slow / fast:.2f} times as fast")
    print(f"schedules: {len(model.schedule_manager.schedules)}")


if __name__ == "__main__":
    main()
