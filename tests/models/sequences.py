"""Models of sequences: translation, attention, memory, a Transformer, trees."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers

from models.training import batch, model, whole

UNK, EOS = 0, 1


def sequence_embed(embed, xs):
    """Embed sequences of several lengths with one call."""
    x_len = [len(x) for x in xs]
    x_section = np.cumsum(x_len[:-1])
    ex = embed(F.concat(xs, axis=0))
    return F.split_axis(ex, x_section, 0)


class Seq2seq(chainer.Chain):
    """The translator of Chainer's example: two stacks of `L.NStepLSTM` over lists of sequences."""

    def __init__(self, n_layers, n_source_vocab, n_target_vocab, n_units):
        super().__init__()
        with self.init_scope():
            self.embed_x = L.EmbedID(n_source_vocab, n_units)
            self.embed_y = L.EmbedID(n_target_vocab, n_units)
            self.encoder = L.NStepLSTM(n_layers, n_units, n_units, 0.1)
            self.decoder = L.NStepLSTM(n_layers, n_units, n_units, 0.1)
            self.W = L.Linear(n_units, n_target_vocab)
        self.n_layers, self.n_units = n_layers, n_units

    def forward(self, xs, ys):
        xs = [x[::-1] for x in xs]
        eos = self.xp.array([EOS], np.int32)
        ys_in = [F.concat([eos, y], axis=0) for y in ys]
        ys_out = [F.concat([y, eos], axis=0) for y in ys]
        exs = sequence_embed(self.embed_x, xs)
        eys = sequence_embed(self.embed_y, ys_in)
        batch = len(xs)
        hx, cx, _ = self.encoder(None, None, exs)
        _, _, os = self.decoder(hx, cx, eys)
        concat_os = F.concat(os, axis=0)
        concat_ys_out = F.concat(ys_out, axis=0)
        loss = F.sum(F.softmax_cross_entropy(self.W(concat_os), concat_ys_out, reduce="no")) / batch
        chainer.report({"loss": loss}, self)
        n_words = concat_ys_out.shape[0]
        chainer.report({"perp": self.xp.exp(loss.array * batch / n_words)}, self)
        return loss

    def translate(self, xs, max_length=5):
        batch = len(xs)
        with chainer.no_backprop_mode(), chainer.using_config("train", False):
            exs = sequence_embed(self.embed_x, [x[::-1] for x in xs])
            h, c, _ = self.encoder(None, None, exs)
            ys = self.xp.full(batch, EOS, np.int32)
            result = []
            for _ in range(max_length):
                eys = F.split_axis(self.embed_y(ys), batch, 0)
                h, c, ys = self.decoder(h, c, eys)
                wy = self.W(F.concat(ys, axis=0))
                ys = self.xp.argmax(wy.array, axis=1).astype(np.int32)
                result.append(ys)
        return np.stack(result).T


def sentences(k, lengths, n_vocab=9):
    rng = np.random.RandomState(k)
    return [rng.randint(2, n_vocab, n).astype(np.int32) for n in lengths]


LENGTHS = [((4, 3, 1), (2, 5, 3)), ((3, 3, 2), (4, 1, 2))]


def lengths(k):
    """Those of the sentences of step k, in two languages."""
    return [tuple(np.resize(part, batch(k, 3))) for part in LENGTHS[k % 2]]


@model("seq2seq, NStepLSTM")
def seq2seq(compile):
    net = Seq2seq(2, 9, 9, 5)
    optimizer = optimizers.Adam().setup(net)
    loss_of, translate = compile(net.forward), compile(net.translate)
    update = whole(optimizer.update)

    def step(k):
        sources, targets = lengths(k)
        xs = sentences(k, sources)
        update(loss_of, xs, sentences(k + 50, targets))
        return translate(xs)
    return step, [net, optimizer]


class AttentionDecoder(chainer.Chain):
    """Translation with attention over an encoder that reads in both directions."""

    def __init__(self, n_vocab, n_units):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, ignore_label=-1)
            self.forward_rnn = L.StatelessLSTM(n_units, n_units)
            self.backward_rnn = L.StatelessLSTM(n_units, n_units)
            self.decoder = L.StatelessGRU(3 * n_units, n_units)
            self.query = L.Linear(n_units, n_units, nobias=True)
            self.key = L.Linear(2 * n_units, n_units)
            self.energy = L.Linear(n_units, 1, nobias=True)
            self.out = L.Linear(n_units, n_vocab)

    def encode(self, xs):
        embedded = [self.embed(xs[:, i]) for i in range(xs.shape[1])]
        both = []
        for rnn, steps in ((self.forward_rnn, embedded), (self.backward_rnn, embedded[::-1])):
            c = h = None
            states = []
            for e in steps:
                c, h = rnn(c, h, e)
                states.append(h)
            both.append(states)
        return F.stack([F.concat(pair, axis=1) for pair in zip(both[0], both[1][::-1])], axis=1)

    def attend(self, states, keys, mask, h):
        batch, length, _ = keys.shape
        query = F.broadcast_to(self.query(h)[:, None], keys.shape)
        scores = F.reshape(self.energy(F.tanh(keys + query), n_batch_axes=2), (batch, length))
        scores = F.where(mask, scores, np.full(scores.shape, -1e9, np.float32))
        weights = F.softmax(scores, axis=1)
        return F.sum(states * F.broadcast_to(weights[:, :, None], states.shape), axis=1)

    def forward(self, xs, ys):
        mask = xs >= 0
        states = self.encode(xs)
        keys = self.key(states, n_batch_axes=2)
        h = np.zeros((len(xs), self.query.W.shape[1]), np.float32)
        previous = np.full(len(xs), EOS, np.int32)
        loss = 0
        for i in range(ys.shape[1]):
            context = self.attend(states, keys, mask, h)
            h = self.decoder(h, F.concat([self.embed(previous), context], axis=1))
            loss += F.softmax_cross_entropy(self.out(h), ys[:, i], ignore_label=-1)
            previous = ys[:, i]
        return loss / ys.shape[1]


def padded(rows, length):
    return np.stack([np.pad(row, (0, length - len(row)), "constant", constant_values=-1) for row in rows])


@model("seq2seq with attention", tolerance=1e-3)
def attention(compile):
    net = compile(AttentionDecoder(9, 4))
    optimizer = optimizers.Adam(0.01).setup(net)

    @whole
    def update(xs, ys):
        loss = net(xs, ys)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        return loss

    def step(k):
        sources, targets = lengths(k)
        return update(padded(sentences(k, sources), 4), padded(sentences(k + 50, targets), 5))
    return step, [net, optimizer]


class Memory:
    """One memory of a memory network: not a Link, as in Chainer's example."""

    def __init__(self, A, C, TA, TC, encoder):
        self.A, self.C, self.TA, self.TC, self.encoder = A, C, TA, TC, encoder

    def register(self, sentences):
        self.m = self.encoder(self.A, sentences)
        self.c = self.encoder(self.C, sentences)
        ml, cl = self.m.shape[1], self.c.shape[1]
        inds = np.arange(ml - 1, -1, -1, dtype=np.int32)
        self.m = self.m + F.broadcast_to(self.TA(inds), self.m.shape)
        self.c = self.c + F.broadcast_to(self.TC(np.arange(cl - 1, -1, -1, dtype=np.int32)), self.c.shape)

    def query(self, u):
        u = F.broadcast_to(F.expand_dims(u, axis=1), self.m.shape)
        p = F.softmax(F.sum(self.m * u, axis=2))
        p = F.broadcast_to(F.expand_dims(p, axis=2), self.c.shape)
        return F.sum(self.c * p, axis=1)


def bag_of_words(embed, sentences):
    return F.sum(embed(sentences), axis=-2)


def position_encoding(embed, sentences):
    length, n_units = sentences.shape[-1], embed.W.shape[1]
    k = np.arange(1, n_units + 1, dtype=np.float32) / n_units
    i = np.arange(1, length + 1, dtype=np.float32)[:, None]
    coeff = (1 - i / length) - k[None, :] * (1 - 2.0 * i / length)
    e = embed(sentences)
    return F.sum(e * F.broadcast_to(coeff.astype(np.float32), e.shape), axis=-2)


class MemNN(chainer.Chain):
    def __init__(self, n_units, n_vocab, encoder, max_memory, hops):
        super().__init__()
        with self.init_scope():
            self.embeds = chainer.ChainList(*[L.EmbedID(n_vocab, n_units) for _ in range(hops + 1)])
            self.temporals = chainer.ChainList(*[L.EmbedID(max_memory, n_units) for _ in range(hops + 1)])
            self.B = self.embeds[0]
            self.W = lambda u: F.linear(u, self.embeds[-1].W)
        self.encoder = encoder
        self.memories = [Memory(self.embeds[i], self.embeds[i + 1], self.temporals[i], self.temporals[i + 1], encoder)
                         for i in range(hops)]

    def register_all(self, sentences):
        for memory in self.memories:
            memory.register(sentences)

    def query(self, question):
        u = self.encoder(self.B, question)
        for memory in self.memories:
            u = memory.query(u) + u
        return self.W(u)

    def forward(self, sentences, question, answer):
        self.register_all(sentences)
        a = self.query(question)
        return F.softmax_cross_entropy(a, answer), F.accuracy(a, answer)


def memory_network(compile, encoder):
    net = compile(MemNN(4, 10, encoder, 6, 2))
    optimizer = optimizers.Adam(0.01).setup(net)

    @whole
    def update(sentences, question, answer):
        loss, accuracy = net(sentences, question, answer)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        return loss, accuracy

    def step(k):
        rng = np.random.RandomState(k)
        n = batch(k, 3)
        return update(rng.randint(0, 10, (n, 5, 4)).astype(np.int32), rng.randint(0, 10, (n, 4)).astype(np.int32),
                      rng.randint(0, 10, n).astype(np.int32))
    return step, [net, optimizer]


@model("memory network, bag of words", tolerance=1e-3)
def memory_network_words(compile):
    """The memories are objects that are no Links; they keep Variables of the call."""
    return memory_network(compile, bag_of_words)


@model("memory network, position encoding", tolerance=1e-3)
def memory_network_positions(compile):
    return memory_network(compile, position_encoding)


class MultiHeadAttention(chainer.Chain):
    def __init__(self, n_units, heads):
        super().__init__()
        self.heads = heads
        with self.init_scope():
            self.q, self.k, self.v = [L.Linear(n_units, n_units, nobias=True) for _ in range(3)]
            self.out = L.Linear(n_units, n_units)

    def split(self, x):
        batch, length, n_units = x.shape
        x = F.reshape(x, (batch, length, self.heads, n_units // self.heads))
        return F.reshape(F.transpose(x, (0, 2, 1, 3)), (batch * self.heads, length, n_units // self.heads))

    def forward(self, x, memory, mask):
        batch, length, n_units = x.shape
        q, k, v = [self.split(f(y, n_batch_axes=2)) for f, y in ((self.q, x), (self.k, memory), (self.v, memory))]
        scores = F.matmul(q, k, transb=True) / (n_units // self.heads) ** 0.5
        mask = np.repeat(mask, self.heads, axis=0)
        scores = F.where(mask, scores, np.full(scores.shape, -np.inf, np.float32))
        weights = F.dropout(F.softmax(scores, axis=2), 0.1)
        h = F.reshape(F.matmul(weights, v), (batch, self.heads, length, n_units // self.heads))
        h = F.reshape(F.transpose(h, (0, 2, 1, 3)), (batch, length, n_units))
        return self.out(h, n_batch_axes=2)


class FeedForward(chainer.Sequential):
    def __init__(self, n_units):
        super().__init__(L.Linear(n_units, 2 * n_units), F.relu, L.Linear(2 * n_units, n_units))

    def forward(self, x):
        batch, length, n_units = x.shape
        return F.reshape(super().forward(F.reshape(x, (batch * length, n_units))), x.shape)


class Norm(chainer.Chain):
    def __init__(self, n_units):
        super().__init__()
        with self.init_scope():
            self.norm = L.LayerNormalization(n_units)

    def forward(self, x):
        return F.reshape(self.norm(F.reshape(x, (-1, x.shape[2]))), x.shape)


class Layer(chainer.Chain):
    """A layer of the encoder, or with ``cross`` of the decoder."""

    def __init__(self, n_units, heads, cross):
        super().__init__()
        with self.init_scope():
            self.own = MultiHeadAttention(n_units, heads)
            self.feed = FeedForward(n_units)
            self.norm1, self.norm2 = Norm(n_units), Norm(n_units)
            if cross:
                self.cross, self.norm3 = MultiHeadAttention(n_units, heads), Norm(n_units)

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.norm1(x + F.dropout(self.own(x, x, mask), 0.1))
        if memory is not None:
            x = self.norm3(x + F.dropout(self.cross(x, memory, memory_mask), 0.1))
        return self.norm2(x + F.dropout(self.feed(x), 0.1))


class Transformer(chainer.Chain):
    def __init__(self, n_vocab, n_units, heads, layers):
        super().__init__()
        self.n_units = n_units
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units, ignore_label=-1)
            self.encoder = chainer.ChainList(*[Layer(n_units, heads, False) for _ in range(layers)])
            self.decoder = chainer.ChainList(*[Layer(n_units, heads, True) for _ in range(layers)])
            self.out = L.Linear(n_units, n_vocab)

    def positions(self, length):
        place = np.arange(length)[:, None]
        rate = np.exp(np.arange(self.n_units // 2) * -(np.log(10000.0) / (self.n_units // 2)))
        return np.concatenate([np.sin(place * rate), np.cos(place * rate)], axis=1).astype(np.float32)

    def embedded(self, ids):
        e = self.embed(ids) * self.n_units ** 0.5
        return F.dropout(e + self.positions(ids.shape[1])[None], 0.1)

    def forward(self, xs, ys):
        start = np.full((len(ys), 1), EOS, np.int32)
        ys_in = np.concatenate([start, ys[:, :-1]], axis=1)
        x_mask = np.broadcast_to((xs >= 0)[:, None, :], (len(xs), xs.shape[1], xs.shape[1]))
        cross_mask = np.broadcast_to((xs >= 0)[:, None, :], (len(xs), ys.shape[1], xs.shape[1]))
        history = np.tril(np.ones((ys.shape[1], ys.shape[1]), bool))
        y_mask = history[None] & np.ones((len(ys), 1, 1), bool)
        h = self.embedded(xs)
        for layer in self.encoder:
            h = layer(h, x_mask)
        g = self.embedded(ys_in)
        for layer in self.decoder:
            g = layer(g, y_mask, h, cross_mask)
        y = self.out(g, n_batch_axes=2)
        return F.softmax_cross_entropy(F.reshape(y, (-1, y.shape[2])), ys.reshape(-1), ignore_label=-1)


@model("Transformer, encoder and decoder with masks", tolerance=1e-3)
def transformer(compile):
    net = compile(Transformer(9, 8, 2, 2))
    optimizer = optimizers.Adam(0.001, beta2=0.98, eps=1e-6).setup(net)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0))
    update = whole(optimizer.update)

    def step(k):
        sources, targets = lengths(k)
        xs, ys = padded(sentences(k, sources), 4), padded(sentences(k + 50, targets), 5)
        update(net, xs, ys)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return net(xs, ys)
    return step, [net, optimizer]


class TreeLSTM(chainer.Chain):
    """The sentiment model of Chainer's example: it follows the tree of each sentence."""

    def __init__(self, n_vocab, n_units, n_label):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units)
            self.tree = L.ChildSumTreeLSTM(n_units, n_units)
            self.w = L.Linear(n_units, n_label)

    def traverse(self, node):
        """(loss of all labels below, cell, hidden)"""
        word = self.embed(np.array([node["word"]], np.int32))
        if "children" not in node:
            c, h = self.tree(None, None, word)
            loss = 0
        else:
            left, right = [self.traverse(child) for child in node["children"]]
            c, h = self.tree(left[1], right[1], left[2], right[2], word)
            loss = left[0] + right[0]
        return loss + F.softmax_cross_entropy(self.w(h), np.array([node["label"]], np.int32)), c, h

    def forward(self, node):
        return self.traverse(node)[0]


TREES = [{"word": 1, "label": 0, "children": [{"word": 2, "label": 1}, {"word": 3, "label": 0, "children": [
    {"word": 4, "label": 1}, {"word": 5, "label": 1}]}]}, {"word": 6, "label": 1, "children": [
        {"word": 7, "label": 0}, {"word": 0, "label": 1}]}]


@model("TreeLSTM, one program for each shape of tree", steps=8, warm=6, tolerance=1e-3)
def tree_lstm(compile):
    net = TreeLSTM(8, 4, 2)
    optimizer = optimizers.AdaGrad(0.1).setup(net)
    loss_of = compile(net.forward)

    @whole
    def update(trees):
        loss = loss_of(trees)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        return loss

    def step(k):
        return update(TREES[k % 2])
    return step, [net, optimizer]


class HaltingTree(chainer.Chain):
    """Splits a vector in two as long as its contents ask for it: the recursion depends on array values."""

    def __init__(self, n_units):
        super().__init__()
        with self.init_scope():
            self.enter, self.halt = L.Linear(n_units, n_units), L.Linear(n_units, 1)
            self.left, self.right = L.Linear(n_units, n_units), L.Linear(n_units, n_units)

    def grow(self, h, depth):
        if depth == 0 or float(self.halt(h).array[0, 0]) > 0:
            return h
        return self.grow(F.tanh(self.left(h)), depth - 1) + self.grow(F.tanh(self.right(h)), depth - 1)

    def forward(self, x):
        return F.sum(self.grow(self.enter(x), 2) ** 2)


@model("tree on data-dependent recursion", steps=8, warm=2)
def halting_tree(compile):
    net = compile(HaltingTree(4))
    optimizer = optimizers.SGD(0.05).setup(net)

    @whole
    def update(x):
        loss = net(x)
        net.cleargrads()
        loss.backward()
        optimizer.update()
        return loss

    def step(k):
        return update(np.random.RandomState(k).uniform(-1, 1, (1, 4)).astype(np.float32))
    return step, [net, optimizer]
