"""Updaters of a user's for the tests, with their models: as in Chainer's examples."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import Variable
from chainer.training.updaters import StandardUpdater


class MLP(chainer.Chain):
    def __init__(self, n_in=6, n_out=3):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(n_in, 8)
            self.l2 = L.Linear(8, n_out)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


class Generator(MLP):
    def __init__(self):
        super().__init__(4, 6)
        with self.init_scope():
            self.bn = L.BatchNormalization(8)

    def make_hidden(self, n):
        return np.random.uniform(-1, 1, (n, 4)).astype(np.float32)

    def forward(self, z):
        return F.sigmoid(self.l2(F.relu(self.bn(self.l1(z)))))


class DCGANUpdater(StandardUpdater):
    """That of Chainer's example: both losses of one forward."""

    def __init__(self, *args, **kwargs):
        self.gen, self.dis = kwargs.pop("models")
        super().__init__(*args, **kwargs)

    def loss_dis(self, dis, y_fake, y_real):
        batchsize = len(y_fake)
        L1 = F.sum(F.softplus(-y_real)) / batchsize
        L2 = F.sum(F.softplus(y_fake)) / batchsize
        loss = L1 + L2
        chainer.report({"loss": loss}, dis)
        return loss

    def loss_gen(self, gen, y_fake):
        batchsize = len(y_fake)
        loss = F.sum(F.softplus(-y_fake)) / batchsize
        chainer.report({"loss": loss}, gen)
        return loss

    def update_core(self):
        gen_optimizer = self.get_optimizer("gen")
        dis_optimizer = self.get_optimizer("dis")

        batch = self.get_iterator("main").next()
        device = self.device
        x_real = Variable(self.converter(batch, device)) / 255.
        xp = np

        gen, dis = self.gen, self.dis
        batchsize = len(batch)

        y_real = dis(x_real)

        z = Variable(xp.asarray(gen.make_hidden(batchsize)))
        x_fake = gen(z)
        y_fake = dis(x_fake)

        dis_optimizer.update(self.loss_dis, dis, y_fake, y_real)
        gen_optimizer.update(self.loss_gen, gen, y_fake)


class WGANUpdater(StandardUpdater):
    """``n_c`` steps of the critic, with its weights clipped, for each of the generator."""

    n_c, c = 2, 0.05

    def __init__(self, iterator, models, optimizers, **kwargs):
        super().__init__(iterator, optimizers, **kwargs)
        self.gen, self.critic = models

    def update_core(self):
        for _ in range(self.n_c):
            batch = self.get_iterator("main").next()
            x_real = Variable(np.asarray(batch).astype("f") / 255)
            z = Variable(self.gen.make_hidden(len(batch)))
            loss = F.average(self.critic(self.gen(z)) - self.critic(x_real))
            self.critic.cleargrads()
            loss.backward()
            self.get_optimizer("dis").update()
            for p in self.critic.params():
                p.array[...] = np.clip(p.array, -self.c, self.c)
            chainer.report({"wasserstein": -loss}, self.critic)
        loss = -F.average(self.critic(self.gen(Variable(self.gen.make_hidden(5)))))
        self.gen.cleargrads()
        loss.backward()
        self.get_optimizer("gen").update()
        chainer.report({"loss": loss}, self.gen)


class Accumulating(StandardUpdater):
    """The gradients of two batches for one update; it asks for epochs as Chainer's updaters do."""

    def update_core(self):
        iterator, optimizer = self.get_iterator("main"), self.get_optimizer("main")
        optimizer.target.cleargrads()
        for _ in range(2):
            x, t = self.converter(iterator.next(), self.device)
            loss = optimizer.target(x, t) / 2
            loss.backward()
        optimizer.update()
        if self.auto_new_epoch and iterator.is_new_epoch:
            optimizer.new_epoch(auto=True)


class Counting(StandardUpdater):
    """Calls the step of its base class."""

    count = 0

    def update_core(self):
        super().update_core()
        self.count += 1


def examples(n=22):
    """A dataset of pairs."""
    return chainer.datasets.TupleDataset(np.random.rand(n, 6).astype(np.float32), np.random.randint(0, 3, n).astype(np.int32))


def standard(cls=StandardUpdater, dataset=None, **kwargs):
    """An updater of a classifier, and its models by the names under which they report."""
    np.random.seed(0)
    model = L.Classifier(MLP())
    optimizer = chainer.optimizers.Adam().setup(model)
    iterator = chainer.iterators.SerialIterator(examples() if dataset is None else dataset, 5)
    return cls(iterator, optimizer, **kwargs), {"main": model}


def gan(cls):
    """An updater of two models, each with its optimizer."""
    np.random.seed(0)
    models = {"gen": Generator(), "dis": MLP(6, 1)}
    optimizers = {name: chainer.optimizers.Adam(2e-3, 0.5).setup(model) for name, model in models.items()}
    iterator = chainer.iterators.SerialIterator((np.random.rand(20, 6) * 255).astype(np.float32), 5)
    if cls is WGANUpdater:
        return cls(iterator, list(models.values()), optimizers), models
    return cls(models=list(models.values()), iterator=iterator, optimizer=optimizers, device="@numpy"), models


def assert_same(found, expected):
    """Equal but for rounding, in shape, dtype and order, too."""
    assert type(found) is type(expected)
    if isinstance(found, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected):
            assert_same(one, other)
    elif isinstance(found, dict):
        assert list(found) == list(expected)
        assert_same(list(found.values()), list(expected.values()))
    elif isinstance(found, np.ndarray):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(found, expected, 2e-4, 1e-6)
    else:
        assert found == expected
