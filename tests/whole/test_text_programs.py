"""Steps of text classification and of translation: converters, lists of sequences, encoders, greedy decoding."""
import against_eager
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

EOS = 1
CPU = chainer.get_device("@numpy")


@chainer.dataset.converter()
def convert(batch, device=None, with_label=True):
    def all_sent(arrays):
        if device is None:
            return arrays
        xp = chainer.backend.get_array_module(*arrays)
        ends = list(np.cumsum([len(a) for a in arrays[:-1]], dtype=np.int32))
        return device.xp.split(device.send(xp.concatenate(arrays, axis=0)), ends)
    if not with_label:
        return all_sent([x for x, _ in batch])
    return {"xs": all_sent([x for x, _ in batch]), "ys": all_sent([y for _, y in batch])}


def embedded(embed, xs, dropout=0.0):
    """The sequences embedded, as one array and apart again."""
    ends = np.cumsum([len(x) for x in xs][:-1])
    return F.split_axis(F.dropout(embed(F.concat(xs, axis=0)), ratio=dropout), ends, 0)


def in_a_block(embed, xs):
    """The sequences embedded as an image of one column, filled up."""
    block = chainer.dataset.convert.concat_examples(xs, padding=-1)
    return F.transpose(embed(block), (0, 2, 1))[:, :, :, None]


class Layers(chainer.ChainList):
    def __init__(self, count, units):
        super().__init__(*[L.Linear(units, units) for _ in range(count)])

    def forward(self, x):
        for i, link in enumerate(self.children()):
            x = F.relu(link(F.dropout(x, ratio=0.3)))
        return x


class Recurrent(chainer.Chain):
    """The last state over each sequence."""

    def __init__(self, cell):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(9, 6)
            self.encoder = cell(1, 6, 6, 0.2)
        self.out_units = 6

    def forward(self, xs):
        states = [None] * (2 if isinstance(self.encoder, L.NStepLSTM) else 1)
        last, *_ = self.encoder(*states, embedded(self.embed, xs, 0.2))
        assert last.shape == (1, len(xs), self.out_units)
        return last[-1]


class Convolutional(chainer.Chain):
    """Maxima over windows of two widths."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(9, 6, ignore_label=-1)
            self.of_three = L.Convolution2D(6, 3, ksize=(3, 1), pad=(2, 0), nobias=True)
            self.of_four = L.Convolution2D(6, 3, ksize=(4, 1), pad=(3, 0), nobias=True)
            self.layers = Layers(2, 6)
        self.out_units = 6

    def forward(self, xs):
        block = in_a_block(self.embed, xs)
        found = [F.max(link(block), axis=2) for link in (self.of_three, self.of_four)]
        return self.layers(F.relu(F.concat(found, axis=1))[:, :, 0])


class Bag(chainer.Chain):
    """The mean over each sequence."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(9, 6, ignore_label=-1)
            self.layers = Layers(1, 6)
        self.out_units = 6

    def forward(self, xs):
        lengths = self.xp.array([len(x) for x in xs], np.int32)[:, None, None]
        return self.layers((F.sum(in_a_block(self.embed, xs), axis=2) / lengths)[:, :, 0])


class Classifier(chainer.Chain):
    def __init__(self, encoder):
        super().__init__()
        with self.init_scope():
            self.encoder = encoder
            self.output = L.Linear(encoder.out_units, 3)

    def forward(self, xs, ys):
        truths, outputs = F.concat(ys, axis=0), self.predict(xs)
        loss = F.softmax_cross_entropy(outputs, truths)
        chainer.report({"loss": loss, "accuracy": F.accuracy(outputs, truths)}, self)
        return loss

    def predict(self, xs, softmax=False, argmax=False):
        outputs = self.output(F.dropout(self.encoder(xs), ratio=0.2))
        if softmax:
            return F.softmax(outputs).array
        elif argmax:
            return self.xp.argmax(outputs.array, axis=1)
        return outputs


class Translator(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed_x, self.embed_y = L.EmbedID(9, 5), L.EmbedID(9, 5)
            self.encoder, self.decoder = L.NStepLSTM(1, 5, 5, 0.1), L.NStepLSTM(1, 5, 5, 0.1)
            self.W = L.Linear(5, 9)
        for embed in (self.embed_x, self.embed_y):
            embed.W.array[...] *= 3                     # the words differ, and some sentences end early

    def forward(self, xs, ys):
        xs = [x[::-1] for x in xs]
        eos = self.xp.array([EOS], np.int32)
        ys_in, ys_out = [F.concat([eos, y], axis=0) for y in ys], [F.concat([y, eos], axis=0) for y in ys]
        hx, cx, _ = self.encoder(None, None, embedded(self.embed_x, xs))
        _, _, os = self.decoder(hx, cx, embedded(self.embed_y, ys_in))
        truths = F.concat(ys_out, axis=0)
        loss = F.sum(F.softmax_cross_entropy(self.W(F.concat(os, axis=0)), truths, reduce="no")) / len(xs)
        chainer.report({"loss": loss}, self)
        chainer.report({"perp": self.xp.exp(loss.array * len(xs) / truths.shape[0])}, self)
        return loss

    def words(self, xs, most):
        with chainer.no_backprop_mode(), chainer.using_config("train", False):
            h, c, _ = self.encoder(None, None, embedded(self.embed_x, [x[::-1] for x in xs]))
            ys, result = self.xp.full(len(xs), EOS, np.int32), []
            for i in range(most):
                h, c, ys = self.decoder(h, c, F.split_axis(self.embed_y(ys), len(xs), 0))
                ys = self.xp.argmax(self.W(F.concat(ys, axis=0)).array, axis=1).astype(np.int32)
                result.append(ys)
        return chainer.get_device("@numpy").send(self.xp.concatenate([y[None, :] for y in result]).T)

    def translate(self, xs, most=3):
        outs = []
        for y in self.words(xs, most):
            inds = np.argwhere(y == EOS)
            if len(inds) > 0:
                y = y[:inds[0, 0]]
            outs.append(y)
        return outs


def classification(model, batch, device):
    return model(**convert(batch, device))


def prediction(model, batch, device):
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        xs = convert(batch, device, with_label=False)
        return model.predict(xs, softmax=True), model.predict(xs, argmax=True)


def translation(model, batch, device):
    return model.translate([device.send(x) for x, _ in batch])


def batch(seed, sizes):
    state = np.random.RandomState(seed)
    return [(state.randint(2, 9, n).astype("i"), state.randint(0, 3, m).astype("i")) for n, m in sizes]


LABELLED, PAIRS = [(3, 1), (4, 1), (2, 1)], [(2, 1), (3, 2), (2, 3)]


@pytest.mark.parametrize("make, step, sizes", (
    (lambda: Classifier(Recurrent(L.NStepLSTM)), classification, LABELLED), (lambda: Classifier(Recurrent(L.NStepGRU)), prediction, LABELLED),
    (lambda: Classifier(Convolutional()), classification, LABELLED), (lambda: Classifier(Bag()), classification, LABELLED),
    (lambda: Classifier(Bag()), prediction, LABELLED), (Translator, classification, PAIRS),
    (Translator, translation, PAIRS)), ids=("lstm", "gru, predicting", "cnn", "bag", "bag, predicting", "seq2seq", "translating"))
def test_text(make, step, sizes):
    def program(compile):
        model = make()
        return compile(lambda batch, device: step(model, batch, device)), model
    calls = [lambda seed=seed: ((batch(seed, sizes), CPU), {}) for seed in range(2)]
    against_eager.check(program, calls, rounds=1, strict=True, compiled=True, backend="numpy")
