"""Completes words by beam search with a small character model, trained and decoded through compiled loops.

    python examples/beam_search.py [--epochs 30] [--quick]

A recurrent network learns the words of the descriptions that come with scikit-learn's datasets (nothing is downloaded),
letter by letter, in batches of words of different lengths.  Beam search then finds the most likely ends of a given
beginning: it keeps the best few, extends each by every letter, keeps the best of these, and stops as soon as all that it
keeps are complete.  Both loops depend on values: training stops at the end of the longest word of a batch, decoding when
every beam has ended.  Eager and compiled decoding are compared word by word.
"""
import argparse
import re
import time

from dy2static import to_static
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from sklearn import datasets

ALPHABET = "_abcdefghijklmnopqrstuvwxyz"          # the first letter ends a word
END = 0
LONGEST = 16


def words():
    """The words of the descriptions, as often as they occur: (N, LONGEST) int32, and their lengths with the end: (N,)."""
    bunches = [datasets.load_iris(), datasets.load_wine(), datasets.load_breast_cancer(), datasets.load_diabetes(),
               datasets.load_digits(), datasets.load_linnerud()]
    text = " ".join(bunch.DESCR for bunch in bunches).lower()
    found = [word for word in re.findall(r"\b[a-z]+\b", text) if 2 < len(word) < LONGEST]
    lengths = np.array([len(word) + 1 for word in found])
    return np.stack([encode(word, LONGEST) for word in found]), lengths


def encode(word, length):
    """The letters as numbers, filled up with the end: (length,) int32."""
    return np.array([ALPHABET.index(letter) for letter in word.ljust(length, ALPHABET[END])], np.int32)


def decode(letters):
    return "".join(ALPHABET[i] for i in letters if i != END)


class Speller(chainer.Chain):
    """A gated recurrent network over letters."""

    def __init__(self, n_units=96):
        super().__init__()
        self.n_units = n_units
        with self.init_scope():
            self.embed = L.EmbedID(len(ALPHABET), n_units)
            self.gates = L.Linear(2 * n_units, 2 * n_units)
            self.candidate = L.Linear(2 * n_units, n_units)
            self.out = L.Linear(n_units, len(ALPHABET))

    def step(self, h, letter):
        """(the next state: (N, n_units), log probabilities of the next letter: (N, 27)).  letter: (N,) int32"""
        e = self.embed(letter)
        z, r = F.split_axis(F.sigmoid(self.gates(F.concat([e, h]))), 2, axis=1)
        h = (1 - z) * h + z * F.tanh(self.candidate(F.concat([e, r * h])))
        return h, F.log_softmax(self.out(h))

    def forward(self, x, lengths):
        """The mean loss per letter of a batch of words.  x: (N, LONGEST) int32, lengths: (N,) int"""
        n = len(x)
        h = chainer.Variable(np.zeros((n, self.n_units), np.float32))
        letter = np.full(n, END, np.int32)
        loss, i = 0.0, 0
        while i < lengths.max():
            h, log_p = self.step(h, letter)
            letter = x[:, i]
            there = (i < lengths).astype(np.float32)
            loss = loss - F.sum(F.select_item(log_p, letter) * there)
            i += 1
        return loss / lengths.sum()


def complete(model, beginning, beams=4):
    """(the most likely words with that beginning, best first: (beams, LONGEST) int32, log probabilities, letters read).

    beginning: (n,) int32
    """
    h = chainer.Variable(np.zeros((1, model.n_units), np.float32))
    h, log_p = model.step(h, np.full(1, END, np.int32))
    for letter in beginning:
        h, log_p = model.step(h, np.full(1, letter, np.int32))
    best = log_p.array[0].argsort()[::-1][:beams].astype(np.int32)
    score = log_p.array[0][best]
    found = np.zeros((beams, LONGEST), np.int32)
    found[:, :len(beginning)] = beginning
    found[:, len(beginning)] = best
    h = F.broadcast_to(h, (beams, model.n_units))
    ended = best == END
    i = len(beginning) + 1
    after_end = np.where(np.arange(len(ALPHABET)) == END, 0, -np.inf).astype(np.float32)
    while i < LONGEST and not ended.all():
        h, log_p = model.step(h, found[:, i - 1])
        extended = score[:, None] + np.where(ended[:, None], after_end, log_p.array)
        kept = extended.ravel().argsort()[::-1][:beams]
        score = extended.ravel()[kept]
        parent, letter = kept // len(ALPHABET), (kept % len(ALPHABET)).astype(np.int32)
        found = found[parent]
        found[:, i] = letter
        h = h[parent]
        ended = letter == END
        i += 1
    return found, score, i


def train(epochs, batchsize=64):
    """A model that has read all words ``epochs`` times."""
    np.random.seed(0)
    model = to_static(Speller(), strict=True)
    optimizer = chainer.optimizers.Adam(alpha=0.003).setup(model)
    x, lengths = words()
    started = time.perf_counter()
    for epoch in range(epochs):
        order = np.random.permutation(len(x) // batchsize * batchsize)
        losses = []
        for i in np.split(order, len(order) // batchsize):
            loss = model(x[i], lengths[i])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(float(loss.array))
        if epoch in (0, 1, 4, 9, 19, epochs - 1):
            print(f"epoch {epoch + 1:<4}loss per letter {sum(losses) / len(losses):.3f}")
    print(f"{len(x)} words, {time.perf_counter() - started:.1f} s; {model.forward.cache_info()}")
    return model


def main():
    """Train, complete some words eagerly and compiled, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="four epochs")
    options = parser.parse_args()
    model = train(4 if options.quick else options.epochs)
    compiled = to_static(complete, strict=True)
    ways = {"eager": complete, "compiled": compiled}
    beginnings = [encode(word, len(word)) for word in ("cla", "pre", "mea", "sam", "att", "dis")]
    seconds = dict.fromkeys(ways, 0)
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        compiled(model, beginnings[0])                # the first call compiles
        for beginning in beginnings:
            results = {}
            for name, function in ways.items():
                started = time.perf_counter()
                results[name] = function(model, beginning)
                seconds[name] += time.perf_counter() - started
            (found, score, i), (found_2, score_2, i_2) = results.values()
            assert (found == found_2).all() and np.allclose(score, score_2, atol=1e-4) and i == i_2
            print(f"{decode(beginning)} ({i:>2} letters):  "
                  + ", ".join(f"{decode(word)} {np.exp(p):.2f}" for word, p in zip(found_2, score_2)))
    print("eager and compiled decoding agree")
    print(f"decoding: {seconds['eager'] / seconds['compiled']:.1f} times as fast; {compiled.cache_info()}")


if __name__ == "__main__":
    main()
