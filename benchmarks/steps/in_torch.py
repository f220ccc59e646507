"""Whole steps of training in PyTorch: eager, and with torch.compile of the loss and of the optimizer."""
import torch
from torch import nn

from cases import Case, Cells
from frameworks import in_torch as models
from steps import workloads

VERSION = models.VERSION
CELLS = Cells()
#: The optimizer: a loop over parameters; one fused kernel; compiled (with its operations over lists, or with fused kernels).
MODES = "eager", "eager_fused", "compile_fused", "compile_foreach", "compile_single"


def begin(mode):
    pass


def optimizer_of(name, parameters, mode):
    """The optimizer as that mode wants it."""
    how = {"fused": True} if mode.endswith("fused") else {"foreach": True} if mode.endswith("foreach") else {"foreach": False}
    rate = workloads.RATES[name]
    if name == "adam":
        return torch.optim.Adam(parameters, rate, workloads.BETAS, workloads.EPSILON, **how)
    return torch.optim.SGD(parameters, rate, workloads.MOMENTUM if name == "momentum" else 0, **how)


def supervised(cell, mode, model, loss, arguments, before=lambda parameters: None):
    """The step of one optimizer; ``before`` is called with the parameters before each update."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = optimizer_of(cell.split(".")[1], parameters, mode)
    function = models.compiled(lambda *arguments: loss(model, *arguments), mode)

    def update():
        before(parameters)
        optimizer.step()
    if mode in ("compile_foreach", "compile_single"):
        update = torch.compile(update)

    def step():
        optimizer.zero_grad()
        value = function(*arguments)
        value.backward()
        update()
        return value
    return Case(step, lambda value: [value.item(), models.norm([p.detach() for p in parameters])], checked=4)


@CELLS.of("W2.sgd W2.momentum W2.adam", *MODES)
def mlp(data, cell, mode):
    model = models.filled(models.MLP(torch.tanh, data["x"].shape[1], *data["l1.b"].shape, *data["l3.b"].shape), data)
    return supervised(cell, mode, model, models.cross_entropy, [models.tensor(data[name]) for name in "xt"])


@CELLS.of("W4.adam", *MODES)
def language_model(data, cell, mode):
    return supervised(cell, mode, models.LanguageModel(data), models.language_loss, [models.tensor(data[name]) for name in "xt"])


@CELLS.of("W10.adam MAML3.adam", "eager", "eager_fused", "compile_fused", "compile_single")
def maml(data, cell, mode):
    """Compiled with torch.func.grad, which torch.compile can differentiate twice."""
    model = models.filled(models.SineMLP(len(data["l1.b"])), data)
    loss = models.maml_loss_of_functions if mode.startswith("compile") else models.maml_loss
    arguments = [models.tensor(data[name]) for name in ("xs", "ys", "xq", "yq")]
    return supervised(cell, mode, model, lambda *tasks: loss(*tasks, workloads.inner_steps(cell)), arguments)


@CELLS.of("W11.adam", *MODES)
def transformer(data, cell, mode):
    return supervised(cell, mode, models.Block(data), models.squared_error, [models.tensor(data[name]) for name in "xt"])


class Residual(nn.Module):
    def __init__(self, data):
        super().__init__()
        layers = sum(name.endswith(".W") for name in data)
        self.layers = nn.ModuleList([models.linear(data, f"l{i}") for i in range(layers)])

    def forward(self, h):
        for layer in self.layers:
            h = h + torch.tanh(layer(h))
        return h


@CELLS.of("P300.adam", *MODES)
def small_parameters(data, cell, mode):
    return supervised(cell, mode, Residual(data), models.squared_error, [models.tensor(data[name]) for name in "xt"],
                      lambda parameters: nn.utils.clip_grad_norm_(parameters, workloads.THRESHOLD))


# ---- DCGAN, as PyTorch's example writes its update

class Generator(nn.Module):
    def __init__(self, data, bottom, ch):
        super().__init__()
        self.bottom, self.ch = bottom, ch
        self.l0 = nn.Linear(data["z"].shape[1], bottom * bottom * ch)
        self.bn0 = nn.BatchNorm1d(bottom * bottom * ch, eps=2e-5)
        for i, n in enumerate((ch, ch // 2, ch // 4), 1):
            setattr(self, f"dc{i}", nn.ConvTranspose2d(n, n // 2, 4, 2, 1))
            setattr(self, f"bn{i}", nn.BatchNorm2d(n // 2, eps=2e-5))
        self.dc4 = nn.ConvTranspose2d(ch // 8, 3, 3, 1, 1)

    def forward(self, z):
        h = torch.relu(self.bn0(self.l0(z.flatten(1)))).view(len(z), self.ch, self.bottom, self.bottom)
        for convolution, normalisation in ((self.dc1, self.bn1), (self.dc2, self.bn2), (self.dc3, self.bn3)):
            h = torch.relu(normalisation(convolution(h)))
        return torch.sigmoid(self.dc4(h))


class Discriminator(nn.Module):
    def __init__(self, bottom, ch):
        super().__init__()
        self.names = [name for name, *_ in workloads.critic_layers(ch)]
        for name, n_in, n_out, size in workloads.critic_layers(ch):
            setattr(self, name, nn.Conv2d(n_in, n_out, size, 2 if size == 4 else 1, 1))
            if name != "c0_0":
                setattr(self, "bn" + name[1:], nn.BatchNorm2d(n_out, eps=2e-5))
        self.l4 = nn.Linear(bottom * bottom * ch, 1)

    def forward(self, x):
        for name in self.names:
            x = getattr(self, name)(x)
            x = nn.functional.leaky_relu(x if name == "c0_0" else getattr(self, "bn" + name[1:])(x), 0.2)
        return self.l4(x.flatten(1))


def filled(model, data, prefix):
    kinds = {"weight": "W", "bias": "b"}
    for name, parameter in model.named_parameters():
        layer, kind = name.split(".")
        kind = {"weight": "gamma", "bias": "beta"}[kind] if layer.startswith("bn") else kinds[kind]
        with torch.no_grad():
            found = data.get(f"{prefix}.{layer}.{kind}")
            parameter.copy_(torch.ones_like(parameter) if found is None else models.tensor(found))
            parameter.requires_grad_(found is not None)
    return model


@CELLS.of("DCGAN.adam", *MODES)
def gan(data, cell, mode):
    width, bottom = data["dis.bn3_0.beta"].shape[0], data["x"].shape[2] // 8
    gen, dis = filled(Generator(data, bottom, width), data, "gen"), filled(Discriminator(bottom, width), data, "dis")
    x, z = models.tensor(data["x"]), models.tensor(data["z"])
    how = {"fused": True} if mode.endswith("fused") else {"foreach": mode.endswith("foreach")}
    of_gen, of_dis = [torch.optim.Adam([p for p in model.parameters() if p.requires_grad], workloads.GAN_RATE, workloads.GAN_BETAS,
                                       workloads.EPSILON, workloads.GAN_DECAY, **how) for model in (gen, dis)]
    softplus = nn.functional.softplus
    make = models.compiled(gen, mode)
    loss_dis = models.compiled(lambda x, fake: softplus(-dis(x)).mean() + softplus(dis(fake)).mean(), mode)
    loss_gen = models.compiled(lambda fake: softplus(-dis(fake)).mean(), mode)
    updates = [of.step if mode not in ("compile_foreach", "compile_single") else torch.compile(of.step) for of in (of_dis, of_gen)]

    def step():
        fake = make(z)
        of_dis.zero_grad()
        loss = loss_dis(x, fake.detach())
        loss.backward()
        updates[0]()
        of_gen.zero_grad()
        loss_gen(fake).backward()
        updates[1]()
        return loss
    return Case(step, lambda loss: [loss.item()])
