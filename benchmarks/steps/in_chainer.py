"""Whole steps of training as Chainer programs: eager, with the model and its loss compiled, and compiled whole."""
import dy2static
import chainer
import chainer.functions as F
import chainer.links as L
from chainer import optimizers

from cases import Case, Cells
from frameworks import in_chainer as models
from steps import workloads

VERSION = models.VERSION
CELLS = Cells()
MODES = "eager", "model", "whole"
MAKERS = {
    "sgd": lambda: optimizers.SGD(workloads.RATES["sgd"]),
    "momentum": lambda: optimizers.MomentumSGD(workloads.RATES["momentum"], workloads.MOMENTUM),
    "adam": lambda: optimizers.Adam(workloads.RATES["adam"], *workloads.BETAS, eps=workloads.EPSILON),
}


def begin(mode):
    """Before the cases of a process are made: Chainer alone is Chainer's methods alone."""
    if mode == "eager":
        dy2static.enable_to_static(False)


def supervised(cell, mode, model, loss, arguments, hooks=()):
    """The step of one optimizer; the loss is of the model and the arguments."""
    optimizer = MAKERS[cell.split(".")[1]]().setup(model)
    for hook in hooks:
        optimizer.add_hook(hook)
    if mode == "model":
        loss = dy2static.to_static(loss)

    def step(*arguments):
        value = loss(model, *arguments)
        model.cleargrads()
        value.backward()
        optimizer.update()
        return value
    compiled = loss if mode == "model" else step if mode == "eager" else dy2static.to_static(step)
    run = step if mode != "whole" else compiled
    return Case(lambda: run(*arguments), lambda value: [float(value.array), norm(model)], checked=4,
                compiled=None if mode == "eager" else compiled)


def norm(*links):
    """The norm of all parameters."""
    return models.norm([p.array for link in links for p in link.params()])


@CELLS.of("W2.sgd W2.momentum W2.adam", *MODES)
def mlp(data, cell, mode):
    return supervised(cell, mode, models.mlp_of(data, F.tanh), models.cross_entropy, (data["x"], data["t"]))


@CELLS.of("W4.adam", *MODES)
def language_model(data, cell, mode):
    return supervised(cell, mode, models.language_model_of(data), models.language_loss, (data["x"], data["t"]))


@CELLS.of("W10.adam MAML3.adam", *MODES)
def maml(data, cell, mode):
    model = models.filled(models.SineMLP(len(data["l1.b"])), data)
    arguments = [data[name] for name in ("xs", "ys", "xq", "yq")]
    return supervised(cell, mode, model, models.maml_loss, (*arguments, workloads.inner_steps(cell)))


@CELLS.of("W11.adam", *MODES)
def transformer(data, cell, mode):
    model = models.filled(models.Block(data["x"].shape[2], len(data["f1.b"])), data)
    return supervised(cell, mode, model, models.squared_error, (data["x"], data["t"]))


class Residual(chainer.ChainList):
    """Many small layers."""

    def __init__(self, layers, units):
        super().__init__(*[L.Linear(units, units) for _ in range(layers)])

    def forward(self, h):
        for layer in self:
            h = h + F.tanh(layer(h))
        return h


@CELLS.of("P300.adam", *MODES)
def small_parameters(data, cell, mode):
    layers = sum(name.endswith(".W") for name in data)
    named = {name[1:]: array for name, array in data.items()}         # the layers of a ChainList are numbers
    model = models.filled(Residual(layers, data["x"].shape[1]), named)
    clipping = chainer.optimizer_hooks.GradientClipping(workloads.THRESHOLD)
    return supervised(cell, mode, model, models.squared_error, (data["x"], data["t"]), [clipping])


# ---- DCGAN, as Chainer's example writes it, without the noise that its critic adds

class Generator(chainer.Chain):
    def __init__(self, n_hidden, bottom_width, ch):
        super().__init__()
        self.bottom_width, self.ch = bottom_width, ch
        with self.init_scope():
            self.l0 = L.Linear(n_hidden, bottom_width * bottom_width * ch)
            self.dc1 = L.Deconvolution2D(ch, ch // 2, 4, 2, 1)
            self.dc2 = L.Deconvolution2D(ch // 2, ch // 4, 4, 2, 1)
            self.dc3 = L.Deconvolution2D(ch // 4, ch // 8, 4, 2, 1)
            self.dc4 = L.Deconvolution2D(ch // 8, 3, 3, 1, 1)
            self.bn0 = L.BatchNormalization(bottom_width * bottom_width * ch)
            self.bn1 = L.BatchNormalization(ch // 2)
            self.bn2 = L.BatchNormalization(ch // 4)
            self.bn3 = L.BatchNormalization(ch // 8)

    def forward(self, z):
        h = F.reshape(F.relu(self.bn0(self.l0(z))), (len(z), self.ch, self.bottom_width, self.bottom_width))
        h = F.relu(self.bn1(self.dc1(h)))
        h = F.relu(self.bn2(self.dc2(h)))
        h = F.relu(self.bn3(self.dc3(h)))
        return F.sigmoid(self.dc4(h))


class Discriminator(chainer.Chain):
    def __init__(self, bottom_width, ch):
        super().__init__()
        with self.init_scope():
            for name, n_in, n_out, size in workloads.critic_layers(ch):
                setattr(self, name, L.Convolution2D(n_in, n_out, size, 2 if size == 4 else 1, 1))
                if name != "c0_0":
                    setattr(self, "bn" + name[1:], L.BatchNormalization(n_out, use_gamma=False))
            self.l4 = L.Linear(bottom_width * bottom_width * ch, 1)

    def forward(self, x):
        h = F.leaky_relu(self.c0_0(x))
        h = F.leaky_relu(self.bn0_1(self.c0_1(h)))
        h = F.leaky_relu(self.bn1_0(self.c1_0(h)))
        h = F.leaky_relu(self.bn1_1(self.c1_1(h)))
        h = F.leaky_relu(self.bn2_0(self.c2_0(h)))
        h = F.leaky_relu(self.bn2_1(self.c2_1(h)))
        h = F.leaky_relu(self.bn3_0(self.c3_0(h)))
        return self.l4(h)


def loss_dis(y_fake, y_real):
    batchsize = len(y_fake)
    return F.sum(F.softplus(-y_real)) / batchsize + F.sum(F.softplus(y_fake)) / batchsize


def loss_gen(y_fake):
    return F.sum(F.softplus(-y_fake)) / len(y_fake)


def adam_with_decay(model):
    optimizer = optimizers.Adam(workloads.GAN_RATE, *workloads.GAN_BETAS, eps=workloads.EPSILON).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(workloads.GAN_DECAY))
    return optimizer


@CELLS.of("DCGAN.adam", *MODES)
def gan(data, cell, mode):
    """``model``: both networks and both losses are compiled, as one would today."""
    compiled = dy2static.to_static if mode == "model" else lambda target: target
    width, bottom = data["dis.bn3_0.beta"].shape[0], data["x"].shape[2] // 8
    gen, dis = [compiled(filled(model, data, name)) for name, model in (
        ("gen", Generator(data["z"].shape[1], bottom, width)), ("dis", Discriminator(bottom, width)))]
    of_critic, of_generator = compiled(loss_dis), compiled(loss_gen)
    gen_optimizer, dis_optimizer = adam_with_decay(gen), adam_with_decay(dis)

    def update(x_real, z):
        y_real = dis(x_real)
        x_fake = gen(z)
        y_fake = dis(x_fake)
        dis_optimizer.update(of_critic, y_fake, y_real)
        gen_optimizer.update(of_generator, y_fake)
        return y_real, y_fake
    run = dy2static.to_static(update) if mode == "whole" else update

    def check(found):
        return [float(loss_dis(found[1], found[0]).array)] if found[1].array is not None else []
    return Case(lambda: run(data["x"], data["z"]), check, compiled=models.statically(dis) if mode == "model" else
                run if mode == "whole" else None)


def filled(model, data, prefix):
    """The model with the weights whose names begin so; biases of one network have the names of their layers."""
    for path, parameter in model.namedparams():
        parameter.array[...] = data[prefix + path.replace("/", ".")]
    return model
