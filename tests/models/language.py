"""Language models: words and letters one after the other."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers

from models.training import batch, model, whole


class CharRNN(chainer.Chain):
    """The language model of Chainer's PTB example: two stateful LSTMs with dropout."""

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

    def forward(self, x):
        h0 = self.embed(x)
        h1 = self.l1(F.dropout(h0))
        h2 = self.l2(F.dropout(h1))
        return self.l3(F.dropout(h2))


def letters(k, n_vocab=11):
    """The ones of call k, of which a step has five, and those that follow."""
    rng, n = np.random.RandomState(k), batch(k // 5, 3)
    return rng.randint(0, n_vocab, n).astype(np.int32), rng.randint(0, n_vocab, n).astype(np.int32)


@model("char RNN, stateful LSTM, truncated", warm=3)
def char_rnn(compile):
    """Five calls, then backward through all of them, then the history is cut off, as in the PTB example."""
    rnn = CharRNN(11, 6)
    net = L.Classifier(rnn)
    net.compute_accuracy = False
    net = compile(net)
    optimizer = optimizers.SGD(lr=1.0).setup(net)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(5))

    @whole
    def update(pairs):
        loss = 0
        for x, t in pairs:
            loss += net(x, t)
        net.cleargrads()
        loss.backward()
        loss.unchain_backward()
        optimizer.update()
        return loss

    def step(k):
        if k == 3 or batch(k, 3) != batch(max(k - 1, 0), 3):
            rnn.reset_state()
        loss = update([letters(5 * k + i) for i in range(5)])
        return loss, rnn.l1.h, rnn.l2.c
    return step, [net, optimizer]


@model("char RNN, unrolled inside")
def char_rnn_inside(compile):
    """The whole update of truncated back-propagation in one compiled function."""
    net = L.Classifier(CharRNN(11, 6))
    net.compute_accuracy = False
    optimizer = optimizers.Adam().setup(net)

    @compile
    def loss_of(xs, ts):
        loss = 0
        net.predictor.reset_state()
        for x, t in zip(xs, ts):
            loss += net(x, t)
        return loss / len(xs)
    update = whole(optimizer.update)

    def step(k):
        xs, ts = zip(*[letters(5 * k + i) for i in range(5)])
        update(loss_of, xs, ts)
        return net.predictor.l1.h
    return step, [net, optimizer]


class ContinuousBoW(chainer.Chain):
    def __init__(self, n_vocab, n_units, loss_func):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, initialW=chainer.initializers.Uniform(1. / n_units))
            self.loss_func = loss_func

    def forward(self, x, contexts):
        e = self.embed(contexts)
        h = F.sum(e, axis=1) * (1. / contexts.shape[1])
        return self.loss_func(h, x)


class SkipGram(chainer.Chain):
    def __init__(self, n_vocab, n_units, loss_func):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, initialW=chainer.initializers.Uniform(1. / n_units))
            self.loss_func = loss_func

    def forward(self, x, contexts):
        e = self.embed(contexts)
        batch_size, n_context, n_units = e.shape
        x = F.broadcast_to(x[:, None], (batch_size, n_context))
        e = F.reshape(e, (batch_size * n_context, n_units))
        x = F.reshape(x, (batch_size * n_context,))
        return self.loss_func(e, x)


class SoftmaxCrossEntropyLoss(chainer.Chain):
    def __init__(self, n_in, n_out):
        super().__init__()
        with self.init_scope():
            self.out = L.Linear(n_in, n_out, initialW=0)

    def forward(self, x, t):
        return F.softmax_cross_entropy(self.out(x), t)


COUNTS = [7, 3, 9, 1, 4, 2, 8, 5]


def word2vec(compile, kind, loss_func):
    net = compile(kind(len(COUNTS), 5, loss_func))
    optimizer = optimizers.Adam().setup(net)
    update = whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        n = batch(k, 6)
        x, contexts = rng.randint(0, 8, n).astype(np.int32), rng.randint(0, 8, (n, 4)).astype(np.int32)
        update(net, x, contexts)
    return step, [net, optimizer]


def negative_sampling():
    loss_func = L.NegativeSampling(5, COUNTS, 3)
    loss_func.W.array[...] = np.random.uniform(-0.5, 0.5, loss_func.W.shape)
    return loss_func


def hierarchical_softmax():
    tree = L.BinaryHierarchicalSoftmax.create_huffman_tree(dict(enumerate(COUNTS)))
    loss_func = L.BinaryHierarchicalSoftmax(5, tree)
    return loss_func


@model("word2vec: SkipGram, negative sampling")
def skip_gram_negative(compile):
    return word2vec(compile, SkipGram, negative_sampling())


@model("word2vec: CBOW, negative sampling")
def cbow_negative(compile):
    return word2vec(compile, ContinuousBoW, negative_sampling())


@model("word2vec: SkipGram, hierarchical softmax")
def skip_gram_hierarchical(compile):
    return word2vec(compile, SkipGram, hierarchical_softmax())


@model("word2vec: CBOW, softmax")
def cbow_softmax(compile):
    return word2vec(compile, ContinuousBoW, SoftmaxCrossEntropyLoss(5, 8))
