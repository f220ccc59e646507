"""The first step makes the states of its optimizer in the same program as all later ones, and leaves what it does in eager mode."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import optimizers
from step_options import OPTIMIZERS

from dy2static import not_to_static, to_static
from dy2static.native import compiler, library
from dy2static.program import hotpath
from dy2static.record.guards import DefinitionsMatch
from dy2static.runtime.rule_states import described_state, state_of

X, T = np.random.RandomState(1).uniform(-1, 1, (4, 3)).astype(np.float32), np.array([0, 1, 1, 0], np.int32)
OWN = ("user-method", "user-optimizer")


class World:
    """A model, its optimizer and a step, which calls ``look`` in front of the update."""

    def __init__(self, make=optimizers.Adam, look=None, sizes=(3, 2)):
        np.random.seed(4)
        self.model = chainer.Sequential(L.Linear(sizes[0], 4), F.tanh, L.Linear(4, sizes[1]))
        self.optimizer = make().setup(self.model)
        self.look = look

    def step(self, x, t):
        loss = F.softmax_cross_entropy(self.model(x), t)
        self.model.cleargrads()
        loss.backward()
        if self.look is not None:
            self.look(self)
        self.optimizer.update()
        return loss

    def seen(self):
        """All that a step changes: the counts, Parameters, gradients and states; None for those that are not there."""
        found = {"t": self.optimizer.t}
        for name, param in self.model.namedparams():
            rule = param.update_rule
            found[name] = param.array, param.grad
            if rule is not None:
                found[name + "/rule"] = rule.t, None if rule.state is None else list(rule.state.items()), getattr(rule, "beta_power", 0)
        return found


def same(a, b):
    """Whether two things are the same to the last bit."""
    if isinstance(a, np.ndarray):
        return type(b) is np.ndarray and a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides and \
            a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def outcome(step, *batch):
    """What a step gives, or what it raises."""
    try:
        return step(*batch).array
    except (Exception, KeyboardInterrupt) as error:
        return type(error)


def compared(make, between=lambda world, k: None, batches=((X, T),) * 4, **options):
    """Steps in eager mode and compiled, the same after each; gives the compiled function."""
    eager, world = make(), make()
    compiled = to_static(world.step, **{"backend": "numpy", "strict": True, **options})
    for k, batch in enumerate(batches):
        between(eager, k), between(world, k)
        results = []
        for step in eager.step, compiled:
            np.random.seed(k)
            results.append(outcome(step, *batch))
        assert same(*results), k
        assert same(eager.seen(), world.seen()), k
    return compiled


def counts(compiled):
    info = compiled.cache_info()
    return info.captures, info.programs, info.fallbacks


@pytest.mark.parametrize("name", [name for name in OPTIMIZERS if name not in OWN])
def test_one_program_from_the_first_step_on(name):
    compiled = compared(lambda: World(OPTIMIZERS[name]))
    assert counts(compiled) == (1, 1, 0)
    (program,) = compiled.dispatcher.programs
    (definitions,) = [guard.definitions for guard in program.guards if isinstance(guard, DefinitionsMatch)]
    assert not definitions.known.token, "an abstract class is asked in each call, which takes long"


def test_one_program_in_native_code():
    if not compiler.available() or library._problem():
        pytest.skip("there is no C compiler")
    hotpath.start()                                     # so that guards are a table
    eager, world = World(), World()
    compiled = to_static(world.step, backend="c", strict=True)
    for k in range(4):
        if k == 2:
            for each in eager, world:
                each.optimizer.setup(each.model)
        np.testing.assert_allclose(eager.step(X, T).array, compiled(X, T).array, rtol=1e-5)
        for p, q in zip(eager.model.params(), world.model.params()):
            assert list(p.update_rule.state) == list(q.update_rule.state) and p.update_rule.t == q.update_rule.t
            np.testing.assert_allclose(p.update_rule.state["m"], q.update_rule.state["m"], rtol=1e-4, atol=1e-7)
    assert counts(compiled) == (1, 1, 0)


def _with_new_states(world, k):
    """Before each step, states and optimizers go, come back, and are loaded."""
    rules = [param.update_rule for param in world.model.params()]
    if k == 1:
        world.optimizer.setup(world.model)
    elif k == 2:
        for rule in rules[:2]:
            rule._state = None
    elif k == 3:
        saved = chainer.serializers.DictionarySerializer()
        saved.save(world.optimizer)
        world.optimizer.setup(world.model)
        chainer.serializers.NpzDeserializer(saved.target).load(world.optimizer)
    elif k == 4:
        rules[0]._state = {name: array.copy() for name, array in rules[0].state.items()}


@pytest.mark.parametrize("name", ["Adam", "SMORMS3", "SGD"])
def test_states_that_go_and_come(name):
    assert counts(compared(lambda: World(OPTIMIZERS[name]), _with_new_states, ((X, T),) * 6)) == (1, 1, 0)


def test_a_program_that_was_captured_with_states_serves_rules_without():
    def between(world, k):
        if k == 0:
            world.step(X, T)
        elif k == 2:
            world.optimizer.setup(world.model)
    assert counts(compared(World, between)) == (1, 1, 0)


def test_another_optimizer_has_a_program_of_its_own():
    def between(world, k):
        if k == 2:
            world.optimizer = optimizers.MomentumSGD(0.1).setup(world.model)
    assert counts(compared(World, between)) == (2, 2, 0)


def test_amsgrad_has_another_state():
    def between(world, k):
        world.optimizer.amsgrad = k > 1
        if k == 2:
            world.optimizer.setup(world.model)
    assert counts(compared(World, between)) == (2, 2, 0)


def test_a_forward_that_fails_leaves_no_states():
    """A label that is out of range: the program raises before the update."""
    wrong = np.array([0, 1, 7, 0], np.int32)
    assert counts(compared(World, batches=[(X, wrong), (X, T), (X, wrong), (X, T)])) == (1, 1, 0)


class RefuseLarge:
    """A hook for a Parameter that raises in the program, because of what an array holds."""

    name, call_for_each_param, timing = "refuse", True, "pre"

    def __call__(self, rule, param):
        if float(param.array.max()) > 5:
            raise KeyboardInterrupt


@pytest.mark.parametrize("of_rules", [False, True])
@pytest.mark.parametrize("n", [0, 2])
def test_an_interrupt_in_a_hook_of_the_first_step(n, of_rules):
    """The hook of the optimizer runs before there is any state, those of rules after the state of their rule is made."""
    def make():
        world = World()
        for param in world.model.params() if of_rules else ():
            param.update_rule.add_hook(RefuseLarge())
        if not of_rules:
            world.optimizer.add_hook(RefuseLarge())
        list(world.model.params())[n].array.flat[0] = 9
        return world

    def between(world, k):
        if k == 2:
            list(world.model.params())[n].array.flat[0] = 0.1
    assert counts(compared(make, between)) == (1, 1, 0)


def test_an_interrupt_in_code_that_is_not_compiled():
    """In the first step, between the gradients and the update."""
    calls = []

    @not_to_static
    def interrupt(world):
        calls.append(world)
        if len(calls) < 3:
            raise KeyboardInterrupt
    compared(lambda: World(look=interrupt), strict=False)


def test_what_looks_for_the_states_before_the_update():
    """Code that is compiled, and code that is not, find in the first step what they find in eager mode."""
    found = {}

    def look(world):
        found.setdefault(id(world), []).append([param.update_rule.state is None for param in world.model.params()])

    def look_unseen(world):
        look(world)
    for each in look, not_to_static(look_unseen):
        found.clear()
        compared(lambda each=each: World(look=each), strict=False)
        eager, ours = found.values()
        assert eager == ours and all(eager[0]) and not any(eager[-1])


class OwnRule(optimizers.adam.AdamRule):
    """A rule that says when it makes its state."""

    said = []

    def init_state(self, param):
        super().init_state(param)
        print("state of", param.name)
        self.state["steps"] = np.zeros(2, np.float32)


class OwnAdam(optimizers.Adam):
    def create_update_rule(self):
        return OwnRule(self.hyperparam)


def test_a_rule_of_the_users_makes_its_state_when_it_is_updated(capsys):
    eager, world = World(OwnAdam), World(OwnAdam)
    compiled = to_static(world.step, backend="numpy", strict=True)
    for k in range(3):
        said = []
        for step in eager.step, compiled:
            step(X, T)
            said.append(capsys.readouterr().out)
        assert said[0] == said[1] and bool(said[0]) == (k == 0) and same(eager.seen(), world.seen())


def test_an_init_state_of_one_rule_is_called(capsys):
    def between(world, k):
        rule = world.model[0].W.update_rule
        if k == 0:
            def init_state(param):
                print("own")
                rule.state["m"], rule.state["v"] = np.ones_like(param.array), np.ones_like(param.array)
            rule.init_state = init_state
    compared(World, between, strict=False)
    assert capsys.readouterr().out == "own\nown\n"


def test_parameters_that_the_first_step_initializes():
    """The first call runs in eager mode, and the second one is captured for good."""
    compiled = compared(lambda: World(sizes=(None, 2)))
    assert counts(compiled)[:2] == (1, 1)


def test_two_optimizers_in_one_step():
    class Two(World):
        def __init__(self):
            super().__init__(lambda: optimizers.Adam(0.01))
            self.second = chainer.Sequential(L.Linear(2, 2))
            self.other = optimizers.MomentumSGD(0.1).setup(self.second)
            self.other.add_hook(chainer.optimizer_hooks.WeightDecay(0.01))

        def step(self, x, t):
            loss = super().step(x, t)
            second = F.softmax_cross_entropy(self.second(self.model(x)), t)
            self.second.cleargrads()
            second.backward()
            self.other.update()
            return loss + second.array

        def seen(self):
            return {**super().seen(), **{name: (param.array, param.grad, param.update_rule.state["v"])
                                         for name, param in self.second.namedparams()}}
    assert counts(compared(Two)) == (1, 1, 0)


def test_steps_in_a_loop():
    class Looping(World):
        def step(self, x, t):
            for k in range(12):
                loss = super().step(x * (k + 1), t)
            return loss
    assert counts(compared(Looping)) == (1, 1, 0)


class Counting(World):
    """Counts steps and samples, beside the optimizer."""

    def __init__(self):
        super().__init__()
        self.steps, self.log = 0, {"samples": 0.0, "always": 3}

    def step(self, x, t):
        self.steps += 1
        self.log["samples"] += len(x)
        self.log["always"] = 3
        return super().step(x / self.steps, t)

    def seen(self):
        return {**super().seen(), "steps": self.steps, "log": dict(self.log)}


def test_numbers_of_the_users_that_a_step_changes_are_inputs():
    compiled = compared(Counting)
    assert counts(compiled) == (1, 1, 0)
    numbers = {key for _, key, *_ in compiled.dispatcher.varying}
    assert numbers == {"steps", "samples"}


def test_a_number_that_is_a_size():
    """It decides how many layers there are: that is a size, from 2 on."""
    class Growing(Counting):
        def step(self, x, t):
            for _ in range(self.steps):
                x = x * 0.5
            return super().step(x, t)
    assert counts(compared(Growing)) == (3, 3, 0)


class ActNorm(chainer.Link):
    """Starts with what the first batch says; so does its ``count``, which is missing until then."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.bias = chainer.Parameter(0, (1, 3))
        self.is_initialized = False

    def forward(self, x):
        if not self.is_initialized and not hasattr(self, "count"):
            self.bias.array[...] = -x.mean(axis=0, keepdims=True)
            self.is_initialized, self.count = True, len(x)
        return F.tanh(x + F.broadcast_to(self.bias, x.shape))


def test_parameters_that_the_first_batch_sets():
    """A backward after this call would read what it has written; the next call does not write."""
    link, eager = ActNorm(), ActNorm()
    run = to_static(link.forward, strict=True)
    for k in range(3):
        y, expected = run(X * k), eager.forward(X * k)
        np.testing.assert_array_equal(y.array, expected.array)
        for result, owner in ((y, link), (expected, eager)):
            owner.cleargrads()
            F.sum(result).backward()
        np.testing.assert_array_equal(link.bias.grad, eager.bias.grad)
    assert run.cache_info().captures == 1 and run.cache_info().fallbacks == 0


def test_an_optimizer_that_the_step_makes():
    """Setting it up gives the Parameters other rules: that line runs as Python, and the step does not run in eager mode."""
    def steps(compiled):
        world = World()

        def step():
            optimizer = optimizers.Adam(0.1)
            optimizer.setup(world.model)
            for _ in range(2):
                loss = F.softmax_cross_entropy(world.model(X), T)
                world.model.cleargrads()
                loss.backward()
                optimizer.update()
            return loss.array
        run = to_static(step) if compiled else step
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = [run() for _ in range(3)]
        assert not any("eager mode" in str(warning.message) for warning in caught)
        return found
    np.testing.assert_allclose(steps(True), steps(False), rtol=1e-5)


def test_hyperparameters_of_rules_are_those_of_the_optimizer():
    def schedule(k):
        return 0.5 ** k

    def read(rule):
        try:
            missing = rule.hyperparam.nothing
        except AttributeError as error:
            missing = str(error)
        return rule.hyperparam.alpha, rule.hyperparam.schedule is schedule, rule.hyperparam.schedule(2), missing
    model = L.Linear(2, 3)
    optimizer = optimizers.Adam(0.25).setup(model)
    optimizer.hyperparam.schedule = schedule
    static = to_static(read, strict=True)
    assert static(model.W.update_rule) == read(model.W.update_rule)
    optimizer.hyperparam.alpha = 0.75
    assert static(model.W.update_rule) == read(model.W.update_rule)


class LarsRule(chainer.UpdateRule):
    """A step as long as the parameter: a number of NumPy's, or 1.0."""

    def init_state(self, param):
        self.state.update(v=np.zeros_like(param.array), trust=0.0)

    def update_core(self, param):
        weights, gradient = np.linalg.norm(param.array), np.linalg.norm(param.grad)
        trust = 0.02 * weights / (gradient + 1e-9) if weights > 0 and gradient > 0 else 1.0
        v = self.state["v"]
        v *= 0.9
        v -= 0.1 * trust * param.grad
        param.array += v
        self.state["trust"] = float(trust)


class Lars(chainer.GradientMethod):
    def create_update_rule(self):
        return LarsRule(self.hyperparam)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_branches_with_different_kinds_in_the_rule_of_many_parameters(backend):
    """More ways than a function may have: each call of the rule is captured by itself, and joined."""
    found = []
    for compile in (lambda step: step, lambda step: to_static(step, strict=True, backend=backend)):
        model = chainer.ChainList(*[L.Linear(4, 4, initialW=np.eye(4, dtype=np.float32) * (k + 0.5)) for k in range(6)])
        optimizer = Lars().setup(model)

        def step(x):
            for layer in model:
                x = F.tanh(layer(x))
            model.cleargrads()
            F.sum(x * x).backward()
            optimizer.update()
        made = compile(step)
        for k in range(4):
            made(np.random.RandomState(k).uniform(-1, 1, (3, 4)).astype(np.float32))
        found.append([(param.array, param.update_rule.state["trust"], param.update_rule.t) for param in model.params()])
    for eager, compiled in zip(*found):
        np.testing.assert_allclose(compiled[0], eager[0], rtol=1e-4, atol=1e-4)
        assert compiled[1:] == pytest.approx(eager[1:], rel=1e-3)


@pytest.mark.parametrize("make", [made for name, made in OPTIMIZERS.items() if name not in OWN], ids=[name for name in OPTIMIZERS if name not in OWN])
def test_what_a_capture_sees_of_large_states(make):
    """Their types, in all that a program relies on; what they hold is left out."""
    large = np.zeros((3, 200, 100), np.float32)
    for array in (large, large.transpose(2, 0, 1), large.astype(np.float64)[:, ::2]):
        link = chainer.Link()
        with link.init_scope():
            link.p = chainer.Parameter(array)
        link.p.array = array
        make().setup(link)
        seen, made = [{key: (type(state), state.dtype, state.shape, state.strides) for key, state in found(link.p).items()}
                      for found in (described_state, state_of)]
        assert seen == made and link.p.update_rule.state is None
