"""Classifiers of images."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers

from models.training import batch, model, whole


class MLP(chainer.Chain):
    def __init__(self, n_units, n_out):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, n_units)
            self.l2 = L.Linear(None, n_units)
            self.l3 = L.Linear(None, n_out)

    def forward(self, x):
        h1 = F.relu(self.l1(x))
        h2 = F.relu(self.l2(h1))
        return self.l3(h2)


@model("MLP")
def mlp(compile):
    net = compile(L.Classifier(MLP(20, 10)))
    optimizer = optimizers.Adam().setup(net)
    update = whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        x = rng.rand(batch(k, 8), 12).astype(np.float32)
        t = rng.randint(0, 10, len(x)).astype(np.int32)
        update(net, x, t)
        return net.loss, net.accuracy
    return step, [net, optimizer]


class Block(chainer.Chain):
    """Convolution, batch normalisation, ReLU."""

    def __init__(self, out_channels, ksize, pad=1):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, out_channels, ksize, pad=pad, nobias=True)
            self.bn = L.BatchNormalization(out_channels)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class VGG(chainer.Chain):
    """The small VGG of Chainer's CIFAR example, with fewer blocks."""

    def __init__(self, class_labels=5):
        super().__init__()
        with self.init_scope():
            self.block1_1 = Block(6, 3)
            self.block1_2 = Block(6, 3)
            self.block2_1 = Block(8, 3)
            self.block2_2 = Block(8, 3)
            self.fc1 = L.Linear(None, 16, nobias=True)
            self.bn_fc1 = L.BatchNormalization(16)
            self.fc2 = L.Linear(None, class_labels, nobias=True)

    def forward(self, x):
        h = self.block1_1(x)
        h = F.dropout(h, ratio=0.3)
        h = self.block1_2(h)
        h = F.max_pooling_2d(h, ksize=2, stride=2)
        h = self.block2_1(h)
        h = F.dropout(h, ratio=0.4)
        h = self.block2_2(h)
        h = F.max_pooling_2d(h, ksize=2, stride=2)
        h = F.dropout(h, ratio=0.5)
        h = self.fc1(h)
        h = self.bn_fc1(h)
        h = F.relu(h)
        h = F.dropout(h, ratio=0.5)
        return self.fc2(h)


@model("CNN: batch normalisation, dropout")
def cnn(compile):
    """Trained and evaluated in turn."""
    net = compile(L.Classifier(VGG()))
    optimizer = optimizers.MomentumSGD(0.01).setup(net)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(5e-4))
    update = whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        x = rng.rand(batch(k, 4), 3, 8, 8).astype(np.float32)
        t = rng.randint(0, 5, len(x)).astype(np.int32)
        update(net, x, t)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return net(x, t), net.accuracy
    return step, [net, optimizer]


class ResidualBlock(chainer.Chain):
    """Two convolutions and a short cut, which is projected where the number of channels changes."""

    def __init__(self, n_in, n_out, stride=1):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(n_in, n_out, 3, stride, 1, nobias=True)
            self.bn1 = L.BatchNormalization(n_out)
            self.conv2 = L.Convolution2D(n_out, n_out, 3, 1, 1, nobias=True)
            self.bn2 = L.BatchNormalization(n_out)
            if n_in != n_out:
                self.project = L.Convolution2D(n_in, n_out, 1, stride, nobias=True)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        h = self.bn2(self.conv2(h))
        shortcut = self.project(x) if hasattr(self, "project") else x
        return F.relu(h + shortcut)


class ResNet(chainer.Chain):
    def __init__(self, n_class):
        super().__init__()
        with self.init_scope():
            self.blocks = chainer.ChainList(ResidualBlock(3, 4), ResidualBlock(4, 4), ResidualBlock(4, 8, 2))
            self.fc = L.Linear(8, n_class)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.fc(F.average(x, axis=(2, 3)))


@model("ResNet, small")
def resnet(compile):
    net = compile(L.Classifier(ResNet(5)))
    optimizer = optimizers.CorrectedMomentumSGD(0.01).setup(net)
    update = whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        x = rng.rand(batch(k, 4), 3, 8, 8).astype(np.float32)
        t = rng.randint(0, 5, len(x)).astype(np.int32)
        update(net, x, t)
        return net.loss, net.y
    return step, [net, optimizer]
