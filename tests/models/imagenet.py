"""Chainer's models of ImageNet with random weights: each is trained one step on images as small as it takes."""
from unittest import mock

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers
from chainer.links.model.vision import vgg

from models.training import batch, large, whole


def trained(compile, net, size, loss_of, dtype=np.float64):
    """Two steps on two images each.  Mostly in double precision: whether an activation is cut off, or the larger of two,
    must not depend on rounding."""
    optimizer = optimizers.SGD(1e-8).setup(net)
    loss_of, update = compile(loss_of), whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        n = batch(k, 2)
        x, t = rng.rand(n, 3, size, size).astype(dtype), rng.randint(0, 10, n).astype(np.int32)
        update(loss_of, x, t)
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return loss_of(x, t)
    return step, [net, optimizer]


@large("L.ResNet50Layers")
def resnet50(compile):
    with chainer.using_config("dtype", np.dtype("float64")):
        net = L.ResNet50Layers(pretrained_model=None)
    return trained(compile, net, 64, lambda x, t: F.softmax_cross_entropy(net(x, layers=["fc6"])["fc6"], t))


@large("L.VGG16Layers")
def vgg16(compile):
    """As it is, but for the size of the images: its fully connected layers get others, before their numbers are drawn."""
    sizes = {512 * 7 * 7: 512, 4096: 64, 1000: 10}
    with mock.patch.object(vgg, "Linear", lambda in_size, out_size, **options: L.Linear(sizes[in_size], sizes[out_size], **options)):
        net = L.VGG16Layers(pretrained_model=None)
    return trained(compile, net, 32, lambda x, t: F.softmax_cross_entropy(net(x, layers=["fc8"])["fc8"], t), np.float32)


@large("L.GoogLeNet")
def googlenet(compile):
    """With its two auxiliary classifiers."""
    with chainer.using_config("dtype", np.dtype("float64")):
        net = L.GoogLeNet(pretrained_model=None)

    def loss_of(x, t):
        names = ["loss1_fc2", "loss2_fc2", "loss3_fc"]
        one, two, three = [F.softmax_cross_entropy(y, t) for y in map(net(x, layers=names).get, names)]
        return 0.3 * (one + two) + three
    return trained(compile, net, 224, loss_of)
