"""Programs as people write them: each trains for a few steps, and gives what it compiled.  docs/mistakes.md has the table."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import Variable, training
from chainer.training import extensions

from dy2static import to_static
from dy2static.training import StaticUpdater

STEPS = 4


def floats(*shape):
    return np.random.rand(*shape).astype("f")


def labels(count, classes):
    return np.random.randint(0, classes, count).astype("i")


def set_up(link, optimizer=None):
    optimizer = optimizer or chainer.optimizers.Adam()
    optimizer.setup(link)
    return optimizer


def learn(loss, link, optimizer):
    link.cleargrads()
    loss.backward()
    optimizer.update()


def classifier_in_a_loop():
    model = to_static(L.Classifier(chainer.Sequential(L.Linear(8, 16), F.relu, L.Linear(16, 3))))
    optimizer = set_up(model)
    for _ in range(STEPS):
        learn(model(floats(16, 8), labels(16, 3)), model, optimizer)
    return [model.forward]


class Convolutional(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c1, self.b1, self.l = L.Convolution2D(1, 4, 3, pad=1), L.BatchNormalization(4), L.Linear(None, 3)

    def forward(self, x):
        h = F.max_pooling_2d(F.relu(self.b1(self.c1(x))), 2)
        return self.l(F.dropout(h, 0.2))


def convolutional_network_with_a_trainer(folder):
    data = chainer.datasets.TupleDataset(floats(32, 1, 8, 8), labels(32, 3))
    model = to_static(L.Classifier(Convolutional()))
    updater = StaticUpdater(chainer.iterators.SerialIterator(data, 8), set_up(model))
    trainer = training.Trainer(updater, (1, "epoch"), out=folder)
    test = chainer.iterators.SerialIterator(data, 8, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(test, model))
    trainer.extend(extensions.LogReport())
    trainer.run()
    return [model.forward]


class LanguageModel(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed, self.lstm, self.out = L.EmbedID(11, 8), L.LSTM(8, 8), L.Linear(8, 11)

    def forward(self, word):
        return self.out(self.lstm(self.embed(word)))


def language_model_with_truncated_backpropagation():
    model = LanguageModel()
    optimizer = set_up(model)

    @to_static
    def chunk(words):
        loss = 0
        for now, following in zip(words[:-1], words[1:]):
            loss += F.softmax_cross_entropy(model(now), following)
        learn(loss, model, optimizer)
        loss.unchain_backward()
        return loss
    for _ in range(STEPS):
        chunk(np.random.randint(0, 11, (6, 4)).astype("i"))
    return [chunk]


def tagger_of_sequences_of_any_length():
    encoder, head = L.NStepBiLSTM(1, 5, 6, 0.1), L.Linear(12, 3)
    model = chainer.ChainList(encoder, head)
    optimizer = set_up(model)

    @to_static
    def loss_of(xs, ts):
        _, _, ys = encoder(None, None, xs)
        return F.softmax_cross_entropy(head(F.concat(ys, axis=0)), F.concat(ts, axis=0))
    for _ in range(STEPS):
        lengths = np.random.randint(2, 9, 4)
        learn(loss_of([floats(n, 5) for n in lengths], [labels(n, 3) for n in lengths]), model, optimizer)
    return [loss_of]


def generative_adversarial_network():
    generator, critic = L.Linear(4, 8), L.Linear(8, 1)
    of_generator, of_critic = set_up(generator), set_up(critic)

    @to_static
    def step(x):
        fake = generator(np.random.normal(size=(len(x), 4)).astype("f"))
        loss_critic = F.average(F.softplus(-critic(x))) + F.average(F.softplus(critic(fake)))
        loss_generator = F.average(F.softplus(-critic(fake)))
        learn(loss_generator, generator, of_generator)
        fake.unchain_backward()
        learn(loss_critic, critic, of_critic)
        return loss_generator, loss_critic
    for _ in range(STEPS):
        step(floats(8, 8))
    return [step]


def variational_autoencoder():
    encoder, decoder = L.Linear(8, 4), L.Linear(2, 8)
    model = chainer.ChainList(encoder, decoder)
    optimizer = set_up(model)

    @to_static
    def step(x):
        mean, log_variance = F.split_axis(encoder(x), 2, axis=1)
        z = F.gaussian(mean, log_variance)
        loss = F.bernoulli_nll(x, decoder(z)) / len(x) + F.gaussian_kl_divergence(mean, log_variance) / len(x)
        learn(loss, model, optimizer)
        chainer.report({"loss": loss})
        return loss
    for _ in range(STEPS):
        step(floats(8, 8))
    return [step]


def policy_gradient():
    policy = L.Linear(3, 2)
    optimizer = set_up(policy)

    @to_static
    def probabilities(state):
        return F.softmax(policy(state[None]))[0].array

    @to_static
    def reinforce(states, actions, returns):
        chosen = F.select_item(F.log_softmax(policy(states)), actions)
        learn(-F.average(chosen * returns), policy, optimizer)
    for _ in range(STEPS):
        states = floats(10, 3)
        actions = np.array([int(np.random.rand() < probabilities(state)[1]) for state in states], "i")
        reinforce(states, actions, floats(10))
    return [probabilities, reinforce]


def q_learning_with_a_target_network():
    network = chainer.Sequential(L.Linear(3, 8), F.relu, L.Linear(8, 2))
    target = network.copy("copy")
    optimizer = set_up(network)

    @to_static
    def step(state, action, reward, following):
        with chainer.no_backprop_mode():
            best = F.max(target(following), axis=1)
        loss = F.mean(F.huber_loss(F.select_item(network(state), action), reward + 0.9 * best, 1.0, reduce="no"))
        learn(loss, network, optimizer)
        return loss
    for k in range(STEPS):
        step(floats(8, 3), labels(8, 2), floats(8), floats(8, 3))
        if k == 1:
            target.copyparams(network)
    return [step]


class Attention(chainer.Chain):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        with self.init_scope():
            self.qkv, self.out, self.norm = L.Linear(size, 3 * size), L.Linear(size, size), L.LayerNormalization(size)

    def forward(self, x):
        batch, length, size = x.shape
        q, k, v = F.split_axis(self.qkv(F.reshape(self.norm(F.reshape(x, (-1, size))), (batch, length, size)), n_batch_axes=2), 3, axis=2)

        def by_head(a):
            return F.transpose(F.reshape(a, (batch, length, self.heads, size // self.heads)), (0, 2, 1, 3))
        weights = F.softmax(F.matmul(by_head(q), by_head(k), transb=True) / np.sqrt(size // self.heads), axis=3)
        joined = F.reshape(F.transpose(F.matmul(weights, by_head(v)), (0, 2, 1, 3)), x.shape)
        return x + self.out(joined, n_batch_axes=2)


def transformer_block():
    model = to_static(Attention(8, 2))
    optimizer = set_up(model)
    for length in (3, 5, 4, 6):
        learn(F.mean(model(Variable(floats(2, length, 8))) ** 2), model, optimizer)
    return [model.forward]


def triplet_loss_of_one_network():
    network = to_static(chainer.Sequential(L.Linear(8, 8), F.relu, L.Linear(8, 4)))
    optimizer = set_up(network)
    for _ in range(STEPS):
        anchor, near, far = (network(floats(8, 8)) for _ in range(3))
        learn(F.triplet(anchor, near, far), network, optimizer)
    return [network.forward]


def an_image_is_optimized():
    network = L.Convolution2D(1, 4, 3)
    image = chainer.Link()
    with image.init_scope():
        image.pixels = chainer.Parameter(floats(1, 1, 8, 8))
    optimizer = set_up(image)

    @to_static
    def step(wanted):
        features = network(image.pixels)
        gram = F.matmul(features[0].reshape(4, -1), features[0].reshape(4, -1), transb=True)
        learn(F.mean_squared_error(gram, wanted), image, optimizer)
        image.pixels.array[...] = np.clip(image.pixels.array, 0, 1)
    for _ in range(STEPS):
        step(floats(4, 4))
    return [step]


def several_losses_with_weights():
    body, heads = L.Linear(8, 8), {"size": L.Linear(8, 1), "kind": L.Linear(8, 3)}
    model = chainer.ChainList(body, *heads.values())
    optimizer = set_up(model)

    @to_static
    def step(x, targets, weights):
        h = F.relu(body(x))
        losses = {"size": F.mean_squared_error(heads["size"](h), targets["size"]),
                  "kind": F.softmax_cross_entropy(heads["kind"](h), targets["kind"])}
        learn(sum(weights[name] * loss for name, loss in losses.items()), model, optimizer)
        return {name: float(loss.array) for name, loss in losses.items()}
    for k in range(STEPS):
        step(floats(8, 8), {"size": floats(8, 1), "kind": labels(8, 3)}, {"size": 1.0, "kind": 0.5 + k / 10})
    return [step]


def clipped_gradients_and_a_schedule():
    model = L.Linear(8, 3)
    optimizer = set_up(model, chainer.optimizers.MomentumSGD(lr=0.1))
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0))
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))

    @to_static
    def step(x, t):
        loss = F.softmax_cross_entropy(model(x), t)
        learn(loss, model, optimizer)
        return loss
    for _ in range(STEPS):
        optimizer.lr *= 0.9
        step(floats(8, 8), labels(8, 3))
    return [step]


def fine_tuning_with_frozen_layers():
    body, head = chainer.Sequential(L.Linear(8, 8), F.relu), L.Linear(8, 3)
    model = to_static(L.Classifier(chainer.Sequential(body, head)))
    optimizer = set_up(model)
    body.disable_update()
    for _ in range(STEPS):
        learn(model(floats(8, 8), labels(8, 3)), model, optimizer)
    return [model.forward]


def accumulated_gradients():
    model = L.Linear(8, 3)
    optimizer = set_up(model)

    @to_static
    def step(xs, ts):
        model.cleargrads()
        for x, t in zip(xs, ts):
            loss = F.softmax_cross_entropy(model(x), t) / len(xs)
            loss.backward()
        optimizer.update()
        return loss
    for _ in range(STEPS):
        step(floats(3, 8, 8), np.random.randint(0, 3, (3, 8)).astype("i"))
    return [step]


def a_step_that_prints_and_saves(folder):
    model = L.Linear(8, 3)
    optimizer = set_up(model)
    best = {"loss": np.inf}

    @to_static
    def step(x, t):
        loss = F.softmax_cross_entropy(model(x), t)
        learn(loss, model, optimizer)
        print("loss", loss.array)
        if float(loss.array) < best["loss"]:
            best["loss"] = float(loss.array)
            chainer.serializers.save_npz(f"{folder}/best.npz", model)
        return loss
    for _ in range(STEPS):
        step(floats(8, 8), labels(8, 3))
    return [step]
