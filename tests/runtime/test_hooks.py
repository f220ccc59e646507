"""Link hooks are converted like the links; function hooks see one function, or the eager run."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, variable
from chainer import link_hooks


class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(2, 3, 3, initialW=array(3, 2, 3, 3, seed=1))
            self.linear = L.Linear(12, 4, initialW=array(4, 12, seed=2))
            self.last = L.Linear(4, 3, initialW=array(3, 4, seed=3))

    def forward(self, x):
        return self.last(F.tanh(self.linear(F.relu(self.conv(x)))))


class Watch(chainer.LinkHook):
    """A hook of the user's with state of several kinds."""

    name = "Watch"

    def __init__(self):
        self.calls, self.seen, self.outs, self.last = 0, [], {}, None

    def forward_preprocess(self, args):
        self.calls += 1
        self.seen.append((args.link.__class__.__name__, args.link.name, args.forward_name, len(args.args), args.kwargs))

    def forward_postprocess(self, args):
        self.outs[args.link.name] = args.out
        self.last = args.out.array.mean()


class Clip(chainer.LinkHook):
    """A hook that changes a parameter in place, by its name."""

    name = "Clip"

    def __init__(self, limit):
        self.limit = limit

    def forward_preprocess(self, args):
        args.link.W.array[...] = args.link.W.array.clip(-self.limit, self.limit)


class Bad(chainer.LinkHook):
    name = "Bad"

    def forward_postprocess(self, args):
        raise ValueError(f"no {args.forward_name}")


def calling(setup, *later):
    """A program that calls a network; ``later``: changes before further calls, each of which is made twice."""
    def make(compile):
        np.random.seed(5)
        model = Net()
        setup(model)

        def function(x):
            return model(x)
        return compile(function), model

    def call(change):
        def prepared(model):
            change(model)
            return (variable(2, 2, 4, 4),)
        return prepared
    return make, [call(c) for change in (lambda m: None, *later) for c in (change, lambda m: None)]


def added(link, make):
    return lambda model: model[link].add_hook(make())


def deleted(link, name):
    return lambda model: model[link].delete_hook(name)


Net.__getitem__ = lambda self, name: getattr(self, name)

HOOKS = {
    "spectral": calling(added("linear", link_hooks.SpectralNormalization)),
    "spectral, added later": calling(lambda m: None, added("linear", link_hooks.SpectralNormalization), deleted("linear", "SpectralNormalization")),
    "spectral of a convolution": calling(added("conv", lambda: link_hooks.SpectralNormalization(n_power_iteration=2))),
    "spectral with gamma": calling(added("linear", lambda: link_hooks.SpectralNormalization(use_gamma=True, factor=2.0))),
    "two of them": calling(lambda m: [added(n, link_hooks.SpectralNormalization)(m) for n in ("conv", "linear")]),
    "standardized": calling(added("conv", link_hooks.WeightStandardization), deleted("conv", "WeightStandardization")),
    "standardized linear": calling(added("linear", link_hooks.WeightStandardization)),
    "own": calling(added("linear", Watch), added("conv", Watch), deleted("linear", "Watch")),
    "own, named": calling(lambda m: m.linear.add_hook(Watch(), name="mine"), lambda m: m.linear.add_hook(Watch())),
    "in place": calling(added("linear", lambda: Clip(0.5)), lambda m: setattr(m.linear.local_link_hooks["Clip"], "limit", 0.25)),
}
MODES = [{}, {"train": False}, {"enable_backprop": False}, {"in_recomputing": True}]


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_of_links(name):
    make, calls = HOOKS[name]
    check(make, calls, rounds=1, compiled=True if name != "in place" else None)     # backward reads what is written


@pytest.mark.parametrize("mode", MODES[1:], ids=str)
@pytest.mark.parametrize("name", ["spectral", "standardized"])
def test_modes(name, mode):
    make, calls = HOOKS[name]

    def within(compile):
        function, model = make(compile)
        function(variable(2, 2, 4, 4))

        def called(x):
            with chainer.using_config(*next(iter(mode.items()))):
                return function(x)
        return called, model
    check(within, calls, rounds=1, compiled=True)


def test_registered_hooks():
    """Hooks registered for the thread: put there and taken away between calls; one program serves each state."""
    def make(compile):
        model, hook = Net(), Watch()
        static = compile(lambda x: model(x))

        def function(on, x):
            if not on:
                return static(x)
            with hook:
                return static(x)
        return function, [model, hook]
    check(make, [lambda on=on: (on, variable(2, 2, 4, 4)) for on in (0, 1, 1, 0, 1, 0)], rounds=1, compiled=True)


def test_hooks_of_the_compiled_link():
    def make(compile):
        model = Net()
        model.add_hook(Watch())
        model.linear.add_hook(link_hooks.SpectralNormalization())
        return compile(model), model
    check(make, [lambda: (variable(2, 2, 4, 4),)] * 3, rounds=1, compiled=True)


def test_hook_that_raises():
    def make(compile):
        model = Net()
        model.linear.add_hook(Watch())
        model.last.add_hook(Bad())
        return compile(lambda x: model(x)), model
    check(make, [lambda: (variable(2, 2, 4, 4),)] * 2, rounds=1)


@pytest.mark.parametrize("registered", [True, False], ids=["thread", "link"])
def test_timer(registered):
    """Times differ from run to run; what is timed does not."""
    seen = []

    def make(compile):
        model, timer = Net(), link_hooks.TimerHook()
        seen.append(timer)
        static = compile(lambda x: model(x))
        if not registered:
            model.linear.add_hook(timer)
            return static, None

        def function(x):
            with timer:
                return static(x)
        return function, None
    check(make, [lambda: (variable(2, 2, 4, 4),)] * 3, rounds=1, compiled=True)
    eager, compiled = [[name for name, _ in timer.call_history] for timer in seen]
    assert eager == compiled and eager and all(t.total_time() > 0 and not t._running_stack and not t._depth for t in seen)


class Labels(chainer.FunctionHook):
    name = "Labels"

    def __init__(self):
        self.seen = []

    def forward_preprocess(self, function, in_data):
        self.seen.append(function.label)


def test_function_hooks():
    """A hook of the user's sees what it sees eagerly; Chainer's timers see the compiled call."""
    def make(compile):
        model, hook = Net(), Labels()
        static = compile(lambda x: model(x))

        def function(on, x):
            if not on:
                return static(x)
            with hook:
                return static(x)
        return function, [model, hook]
    check(make, [lambda on=on: (on, variable(2, 2, 4, 4)) for on in (0, 1, 0)], rounds=2)


@pytest.mark.parametrize("own", [True, False])
def test_function_hooks_registered_inside(own):
    def make(compile):
        kept = Labels()

        def function(x):
            hook = kept if own else Labels()
            with hook:
                y = F.exp(x)
            return y * 2, list(hook.seen)
        return compile(function), kept
    check(make, [lambda: (variable(3),)] * 2)


def test_link_hooks_registered_inside():
    def make(compile):
        model, hook = Net(), Watch()

        def function(x):
            with hook:
                y = model(x)
            model.linear.add_hook(hook)
            z = model(x)
            model.linear.delete_hook("Watch")
            return y, z
        return compile(function), [model, hook]
    check(make, [lambda: (variable(2, 2, 4, 4),)] * 2)


@pytest.mark.parametrize("kind", [link_hooks.TimerHook, Watch])
@pytest.mark.parametrize("own", [True, False])
def test_link_hooks_entered_inside(kind, own):
    """Also where links were called before, without hooks."""
    def make(compile):
        model, kept = Net(), kind()

        def function(x):
            hook = kept if own else kind()
            y = model(x)
            with hook:
                z = model(x)
            return y, z, len(hook.call_history) if kind is link_hooks.TimerHook else hook.calls
        return compile(function), model
    check(make, [lambda: (variable(2, 2, 4, 4),)] * 2)


def test_spectral_normalization_in_a_gan():
    """An optimizer step through normalised weights, a gradient penalty, and a deep copy."""
    def make(compile):
        model = Net()
        for link in (model.conv, model.linear):
            link.add_hook(link_hooks.SpectralNormalization())
        optimizer = chainer.optimizers.SGD(0.1).setup(model)

        def penalised(x):
            y = F.sum(model(x))
            g, = chainer.grad([y], [x], enable_double_backprop=True)
            return y + F.sum(g * g)
        static = compile(penalised)

        def step(x):
            loss = static(x)
            model.cleargrads()
            loss.backward()
            optimizer.update()
            return loss.array
        return step, model
    check(make, [lambda: (variable(2, 2, 4, 4),)] * 3, rounds=1, backward=False, compiled=True)
