"""What training steps are put together from: optimizers and options; the ways to write the step are in `step_forms`."""
from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import step_forms as forms
from chainer import optimizer_hooks as hooks
from chainer import optimizers

#: The steps of a run, and the samples of a batch: no power of two, so that dividing the loss by it rounds.
STEPS, BATCH = 20, 5


class Model(chainer.Chain):
    """A perceptron that uses one layer twice, and reads a few rows of a table.

    form: "uninitialised" leaves the size of an input to the first call; "shared" gives two layers one matrix; "unused" has a
    Parameter that gets no gradient.
    """

    def __init__(self, form: str = ""):
        super().__init__()
        self.seen = 0
        with self.init_scope():
            self.table = L.EmbedID(9, 3)
            self.l1 = L.Linear(None if form == "uninitialised" else 6, 5)
            self.l2 = L.Linear(5, 5)
            self.l3 = L.Linear(5, 5)
            if form == "unused":
                self.spare = chainer.Parameter(chainer.initializers.Normal(), (2, 3))
        if form == "shared":
            with self.init_scope():
                self.l3.W = self.l2.W

    def forward(self, x, ids, t, weight):
        self.seen += 1
        h = F.concat([x, self.table(ids)])
        h = F.tanh(self.l1(h))
        h = F.relu(self.l2(F.tanh(self.l2(h))))
        return F.softmax_cross_entropy(self.l3(h), t) * weight


class World:
    """The objects of one run: what a step reads and changes.  dtype: of the parameters."""

    def __init__(self, optimizer: str, option: "Option", dtype: str):
        with chainer.using_config("dtype", np.dtype(dtype)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.dtype, self.rate = np.dtype(dtype), rate_of(optimizer)
            self.model = Model(option.form)
            self.optimizer = OPTIMIZERS[optimizer]().setup(self.model)
            self.log: List[Any] = []
            option.prepare(self)

    def batch(self, k: int, option: "Option") -> Tuple[np.ndarray, ...]:
        """The arrays of step k.  A weight that is not finite makes gradients that are not."""
        made = np.random.RandomState(k)
        weight = np.array(option.weights.get(k, 1), self.dtype)
        labels = made.randint(0, 5, BATCH).astype("i")
        return made.randn(BATCH, 3).astype(self.dtype), made.randint(0, 9, BATCH).astype("i"), labels + option.labels.get(k, 0), weight


class UserRule(chainer.UpdateRule):
    """The rule of an optimizer of the user's own: signs of a running mean."""

    def init_state(self, param):
        self.state["mean"] = np.zeros_like(param.array)

    def update_core_cpu(self, param):
        if param.grad is None:
            return
        mean = self.state["mean"]
        mean *= self.hyperparam.decay
        mean += (1 - self.hyperparam.decay) * param.grad
        param.array -= (self.hyperparam.lr * np.sign(mean)).astype(param.dtype)


class UserMethod(chainer.optimizer.GradientMethod):
    """A `GradientMethod` of the user's own."""

    lr = chainer.optimizer.HyperparameterProxy("lr")

    def __init__(self, lr=0.01, decay=0.9):
        super().__init__()
        self.hyperparam.lr, self.hyperparam.decay = lr, decay

    def create_update_rule(self):
        return UserRule(self.hyperparam)


class UserOptimizer(chainer.Optimizer):
    """An `Optimizer` of the user's own, without rules."""

    def __init__(self, lr=0.05):
        self.lr, self._loss_scale = lr, None

    def update(self, lossfun=None, *args):
        if lossfun is not None:
            loss = lossfun(*args)
            self.target.cleargrads()
            loss.backward()
        self.call_hooks("pre")
        self.t += 1
        for param in self.target.params():
            if param.grad is not None:
                param.array -= (self.lr * param.grad).astype(param.dtype)
        self.call_hooks("post")


OPTIMIZERS: Dict[str, Callable] = {
    "SGD": lambda: optimizers.SGD(0.1), "MomentumSGD": lambda: optimizers.MomentumSGD(0.1),
    "CorrectedMomentumSGD": lambda: optimizers.CorrectedMomentumSGD(0.1), "NesterovAG": lambda: optimizers.NesterovAG(0.1),
    "AdaDelta": optimizers.AdaDelta, "AdaGrad": lambda: optimizers.AdaGrad(0.05), "MSVAG": lambda: optimizers.MSVAG(0.1),
    "MSVAG-decay": lambda: optimizers.MSVAG(0.1, weight_decay_rate=0.01, eta=0.9),
    "RMSprop": lambda: optimizers.RMSprop(0.01, eps=1e-4), "RMSprop-inside": lambda: optimizers.RMSprop(0.01, eps=1e-4, eps_inside_sqrt=True),
    "RMSpropGraves": lambda: optimizers.RMSpropGraves(0.01), "SMORMS3": lambda: optimizers.SMORMS3(0.01),
    "Adam": lambda: optimizers.Adam(0.01), "AdamW": lambda: optimizers.AdamW(0.01, weight_decay_rate=0.01, eta=0.9),
    "AMSGrad": lambda: optimizers.AMSGrad(0.01), "AdaBound": lambda: optimizers.AdaBound(0.01), "AMSBound": lambda: optimizers.AMSBound(0.01),
    "user-method": UserMethod, "user-optimizer": UserOptimizer,
}


def rate_of(optimizer: str) -> str:
    """The name of the hyperparameter that schedules change."""
    if optimizer == "AdaDelta":
        return "rho"
    return "alpha" if optimizer.startswith(("Adam", "AMS", "AdaBound")) else "lr"


# --- options --------------------------------------------------------------------------------------------------------------

def _nothing(world: World, k: int = 0) -> None:
    """Change nothing."""


class Option(NamedTuple):
    """What a step is given besides its optimizer.  prepare(world): once, before.  between(world, k): before step k.

    weights, labels: what is not 1, and added to the labels, by step.
    """

    prepare: Callable = _nothing
    step: Callable = forms.plain
    between: Callable = _nothing
    form: str = ""
    weights: Dict[int, float] = {}
    labels: Dict[int, int] = {}


def hooked(*made: Any, **named: Any) -> Option:
    """The option with these hooks; they are made anew for each run."""
    def prepare(world: World) -> None:
        for make in made:
            world.optimizer.add_hook(make(), **named)
    return Option(prepare)


def halve(optimizer):
    for param in optimizer.target.params():
        if param.grad is not None:
            param.grad *= 0.5


class Count:
    """A hook for each parameter, with a state of its own."""

    name, call_for_each_param, timing = "count", True, "post"

    def __init__(self):
        self.calls, self.largest = 0, {}

    def __call__(self, rule, param):
        self.calls += 1
        self.largest[param.name] = float(abs(param.array).max())


class Interrupt:
    """A hook that raises in its fifth call."""

    name, timing = "interrupt", "pre"

    def __init__(self, timing="pre", error=KeyboardInterrupt):
        self.calls, self.timing, self.error = 0, timing, error

    def __call__(self, optimizer):
        self.calls += 1
        if self.calls == 5:
            raise self.error("in a hook")


class InterruptRule(Interrupt):
    """A hook for each parameter that raises in the middle of the fifth update that gets so far."""

    name, call_for_each_param = "interrupt-rule", True

    def __call__(self, rule, param):
        self.calls += 1
        param.array[...] *= 0.99
        if self.calls == 32:
            raise self.error("in a hook for a parameter")


def _faults(world: World) -> None:
    """Hooks of all kinds, two of which raise, each once: steps 4 and 5 fail, and step 6 for a label."""
    for hook in (hooks.WeightDecay(0.01), hooks.GradientClipping(0.3), Interrupt(), InterruptRule("pre", ZeroDivisionError), Count()):
        world.optimizer.add_hook(hook)


def _rules(world: World) -> None:
    """Hyperparameters, hooks and rules of single parameters."""
    model, rules = world.model, world.model.l1.W.update_rule
    if rules is None:
        return
    setattr(rules.hyperparam, world.rate, getattr(world.optimizer, world.rate) / 2)
    model.l1.b.update_rule.add_hook(hooks.WeightDecay(0.01))
    model.l2.W.update_rule.add_hook(hooks.GradientHardClipping(-0.01, 0.01), timing="pre")
    model.l2.b.update_rule.add_hook(lambda rule, param: world.log.append(rule.t), name="log", timing="post")
    model.l3.b.update_rule = optimizers.MomentumSGD(0.2).create_update_rule()


def _schedule(world: World, k: int) -> None:
    start = 0.95 if world.rate == "rho" else 0.1
    setattr(world.optimizer, world.rate, start * (20 - k) / 20)


def _freeze(world: World, k: int) -> None:
    if k in (3, 5):
        getattr(world.model.l2, "disable_update" if k == 3 else "enable_update")()


def _disable(world: World) -> None:
    if world.model.l2.W.update_rule is not None:
        world.model.l2.W.update_rule.enabled = False


def _without_gradient(world: World) -> None:
    world.model.l1.W._requires_grad = world.model.l1.W.node._requires_grad = False


def _changing_hooks(world: World, k: int) -> None:
    if k == 3:
        world.optimizer.add_hook(hooks.WeightDecay(0.01))
    elif k == 5:
        world.optimizer.remove_hook("WeightDecay")


def _epochs(world: World, k: int) -> None:
    if k % 4 == 3:
        world.optimizer.new_epoch()


def calling(name: str, *args: Any) -> Callable:
    """`prepare` that calls a method of the optimizer, if it has that."""
    return lambda world: getattr(world.optimizer, name, lambda *_: None)(*args)


OPTIONS: Dict[str, Option] = {
    "none": Option(), "cleared-first": Option(step=forms.cleared_first), "cleared-after": Option(step=forms.cleared_after),
    "zerograds": Option(step=forms.zeroed), "lossfun": Option(step=forms.loss_function), "loss-link": Option(step=forms.loss_link),
    "WeightDecay": hooked(lambda: hooks.WeightDecay(0.01)), "Lasso": hooked(lambda: hooks.Lasso(0.01)),
    "GradientClipping": hooked(lambda: hooks.GradientClipping(0.3)),
    "GradientHardClipping": hooked(lambda: hooks.GradientHardClipping(-0.02, 0.03)),
    "GradientNoise": hooked(lambda: hooks.GradientNoise(0.01)), "GradientLARS": hooked(lambda: hooks.GradientLARS(weight_decay=0.01)),
    "two-hooks": hooked(lambda: hooks.WeightDecay(0.01), lambda: hooks.GradientClipping(0.3)),
    "post-hook": hooked(lambda: hooks.WeightDecay(0.01), timing="post"),
    "user-hook": hooked(lambda: halve), "counting-hook": hooked(Count),
    "changing-hooks": Option(between=_changing_hooks), "rules": Option(_rules),
    "disable_update": Option(lambda world: world.model.l1.disable_update()), "rule-disabled": Option(_disable),
    "requires_grad": Option(_without_gradient), "freezing": Option(between=_freeze),
    "loss_scale": Option(calling("loss_scaling", 1000, 100.0), forms.loss_link),
    "backward-scale": Option(calling("loss_scaling", 1000, 100.0), forms.scaled),
    "dynamic-scale": Option(calling("loss_scaling", 1), forms.loss_link, weights={1: np.inf, 2: np.nan, 3: np.inf}),
    "use_fp32": Option(calling("use_fp32_update")), "fp32-scale": Option(calling("use_fp32_update"), forms.loss_link, form="unused"),
    "schedule": Option(between=_schedule), "schedule-inside": Option(step=forms.scheduled_inside), "new_epoch": Option(between=_epochs),
    "reallocate": Option(step=forms.reallocated, form="unused"), "unused": Option(form="unused"), "shared": Option(form="shared"),
    "uninitialised": Option(form="uninitialised"), "accumulated": Option(step=forms.accumulated), "two-losses": Option(step=forms.two_losses),
    "two-updates": Option(step=forms.two_updates), "retain_grad": Option(step=forms.kept), "reading": Option(step=forms.reading),
    "interrupt": hooked(Interrupt), "interrupt-post": hooked(lambda: Interrupt("post", ZeroDivisionError)),
    "interrupt-rule": hooked(InterruptRule), "bad-label": Option(labels={5: 99}),
    "faults": Option(_faults, between=_schedule, labels={6: 99}),
}
