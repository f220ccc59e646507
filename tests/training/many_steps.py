"""More than one step in a call: accumulated gradients, minibatches, critics, meta-learners; each program is ``make(compile)``.

``python -m tests.training.many_steps [--backend c] [PART OF A NAME ...]`` prints what became of each, and where it differs.
"""
import argparse
import os
import sys
import warnings

from dy2static import to_static  # before Chainer

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
import against_eager  # noqa: E402
import chainer  # noqa: E402
import chainer.functions as F  # noqa: E402
import chainer.links as L  # noqa: E402
import numpy as np  # noqa: E402
from against_eager import array  # noqa: E402
from chainer import optimizers  # noqa: E402

CALLS = {}


def called_with(*calls):
    """A decorator: the program's function is called with the arguments that these give."""
    def add(make):
        CALLS[make] = calls
        return make
    return add


class MLP(chainer.Chain):
    def __init__(self, n_in=3, n_out=2):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2 = L.Linear(n_in, 4), L.Linear(4, n_out)

    def forward(self, x):
        return self.l2(F.tanh(self.l1(x)))


def batches(count, seed=0, size=4):
    """So many batches in one array, and their labels."""
    return lambda: (array(count, size, 3, seed=seed), np.random.RandomState(seed).randint(0, 2, (count, size)).astype("i"))


def samples(count, seed=0):
    return lambda: (array(count, 3, seed=seed), np.random.RandomState(seed).randint(0, 2, count).astype("i"))


def trained(kind=optimizers.Adam, hooks=()):
    model = MLP()
    optimizer = kind().setup(model)
    for hook in hooks:
        optimizer.add_hook(hook)
    return model, optimizer


# ---- accumulated gradients

@called_with(batches(3), batches(3, 1), batches(5, 2), batches(2, 3))
def accumulated(compile):
    """One update with the gradients of several batches."""
    model, optimizer = trained()

    @compile
    def step(xs, ts):
        model.cleargrads()
        total = 0.0
        for x, t in zip(xs, ts):
            loss = F.softmax_cross_entropy(model(x), t) / len(xs)
            loss.backward()
            total += float(loss.array)
        optimizer.update()
        return np.float32(total)
    return step, [(model, optimizer)]


@called_with(batches(20), batches(20, 1), batches(25, 2), batches(31, 3))
def accumulated_by_number(compile):
    """Many batches, by their numbers; the norm of the sum is clipped."""
    model, optimizer = trained(optimizers.MomentumSGD, [chainer.optimizer_hooks.GradientClipping(0.1)])

    @compile
    def step(xs, ts):
        model.cleargrads()
        for i in range(xs.shape[0]):
            loss = F.softmax_cross_entropy(model(xs[i]), ts[i])
            loss.backward(loss_scale=1.0 / xs.shape[0])
        optimizer.update()
        return loss
    return step, [(model, optimizer)]


# ---- minibatches

@called_with(batches(3), batches(3, 1), batches(5, 2), batches(4, 3))
def minibatches(compile):
    """An update for each of the batches."""
    model, optimizer = trained()

    @compile
    def epoch(xs, ts):
        total = 0.0
        for x, t in zip(xs, ts):
            loss = F.softmax_cross_entropy(model(x), t)
            model.cleargrads()
            loss.backward()
            optimizer.update()
            total += float(loss.array)
        return np.float32(total / len(xs))
    return epoch, [(model, optimizer)]


@called_with(batches(24), batches(24, 1), batches(30, 2), batches(37, 3))
def many_minibatches(compile):
    """As many as are worth a loop."""
    model, optimizer = trained(optimizers.MomentumSGD)

    @compile
    def epoch(xs, ts):
        for i in range(len(xs)):
            optimizer.update(lambda: F.softmax_cross_entropy(model(xs[i]), ts[i]))
    return epoch, [(model, optimizer)]


@called_with(samples(12), samples(12, 1), samples(16, 2), samples(20, 3))
def drawn_minibatches(compile):
    """In an order that is drawn."""
    model, optimizer = trained(optimizers.SGD)

    @compile
    def epoch(x, t):
        order = np.random.permutation(len(x))
        losses = []
        for i in range(0, len(x), 4):
            chosen = order[i:i + 4]
            loss = F.softmax_cross_entropy(model(x[chosen]), t[chosen])
            model.cleargrads()
            loss.backward()
            optimizer.update()
            losses.append(loss.array)
        return np.mean(losses)
    return epoch, [(model, optimizer)]


@called_with(batches(3), batches(3, 1), batches(3, 2), batches(3, 3))
def rate_falls_inside(compile):
    """The rate is written between the updates of one call."""
    model, optimizer = trained(optimizers.SGD)

    @compile
    def epoch(xs, ts):
        for x, t in zip(xs, ts):
            optimizer.update(lambda x, t: F.softmax_cross_entropy(model(x), t), x, t)
            optimizer.lr *= 0.9
        optimizer.new_epoch()
    return epoch, [(model, optimizer)]


@called_with(batches(6), batches(6, 1), batches(6, 2))
def until_it_is_good(compile):
    """How many updates are made is up to the loss."""
    model, optimizer = trained(lambda: optimizers.SGD(0.5))

    @compile
    def fit(xs, ts):
        steps = 0
        loss = F.softmax_cross_entropy(model(xs[0]), ts[0])
        while float(loss.array) > 0.6 and steps < 20:
            model.cleargrads()
            loss.backward()
            optimizer.update()
            loss = F.softmax_cross_entropy(model(xs[0]), ts[0])
            steps += 1
        return steps
    return fit, [(model, optimizer)]


# ---- critics

def adversaries():
    gen, critic = MLP(3, 3), MLP(3, 1)
    return gen, critic, optimizers.RMSprop(1e-2).setup(gen), optimizers.RMSprop(1e-2).setup(critic)


@called_with(batches(3), batches(3, 1), batches(5, 2), batches(5, 3))
def critic_and_generator(compile):
    """WGAN: several updates of the critic, its weights clipped after each, then one of the generator."""
    gen, critic, gen_optimizer, critic_optimizer = adversaries()

    @compile
    def step(xs, _):
        for x in xs:
            z = np.random.uniform(-1, 1, x.shape).astype("f")
            with chainer.no_backprop_mode():
                fake = gen(z)
            loss = F.average(critic(fake)) - F.average(critic(x))
            critic.cleargrads()
            loss.backward()
            critic_optimizer.update()
            for p in critic.params():
                p.array[...] = p.array.clip(-0.1, 0.1)
        z = np.random.uniform(-1, 1, xs[0].shape).astype("f")
        gen_optimizer.update(lambda: -F.average(critic(gen(z))))
        return loss
    return step, [(gen, critic, gen_optimizer, critic_optimizer)]


@called_with(batches(2), batches(2, 1), batches(3, 2))
def critic_with_penalty(compile):
    """Gradients of gradients in each update of the critic."""
    gen, critic, gen_optimizer, critic_optimizer = adversaries()

    def critic_loss(x):
        fake = gen(np.random.uniform(-1, 1, x.shape).astype("f")).array
        eps = np.random.uniform(0, 1, (len(x), 1)).astype("f")
        middle = chainer.Variable(eps * x + (1 - eps) * fake)
        grad, = chainer.grad([critic(middle)], [middle], enable_double_backprop=True)
        penalty = F.mean_squared_error(F.sqrt(F.batch_l2_norm_squared(grad)), np.ones(len(x), "f"))
        return F.average(critic(fake)) - F.average(critic(x)) + 10 * penalty

    @compile
    def step(xs, _):
        for x in xs:
            critic_optimizer.update(critic_loss, x)
        gen_optimizer.update(lambda z: -F.average(critic(gen(z))), np.random.uniform(-1, 1, xs[0].shape).astype("f"))
    return step, [(gen, critic, gen_optimizer, critic_optimizer)]


# ---- meta-learners

def tasks(count=2, seed=0):
    return lambda: (array(count, 5, 3, seed=seed), array(count, 5, 2, seed=seed + 10))


def applied(weights, x):
    w1, b1, w2, b2 = weights
    return F.linear(F.tanh(F.linear(x, w1, b1)), w2, b2)


def meta_learner(compile, steps, inner=0.1):
    """MAML: the gradients of what so many steps of gradient descent give."""
    model, optimizer = trained(lambda: optimizers.MomentumSGD(0.01))

    @compile
    def step(xs, ys):
        total = 0
        for x, y in zip(xs, ys):
            weights = [model.l1.W, model.l1.b, model.l2.W, model.l2.b]
            for _ in range(steps):
                loss = F.mean_squared_error(applied(weights, x), y)
                grads = chainer.grad([loss], weights, enable_double_backprop=True)
                weights = [w - inner * g for w, g in zip(weights, grads)]
            total += F.mean_squared_error(applied(weights, x), y)
        model.cleargrads()
        total.backward()
        optimizer.update()
        return total
    return step, [(model, optimizer)]


@called_with(tasks(), tasks(seed=1), tasks(seed=2))
def one_inner_step(compile):
    return meta_learner(compile, 1)


@called_with(tasks(), tasks(seed=1), tasks(seed=2))
def three_inner_steps(compile):
    return meta_learner(compile, 3)


@called_with(tasks(1), tasks(1, seed=1), tasks(1, seed=2))
def ten_inner_steps(compile):
    return meta_learner(compile, 10)


@called_with(tasks(1), tasks(1, seed=1), tasks(1, seed=2))
def first_order(compile):
    """A copy is trained by an optimizer of its own inside; its gradients move the model."""
    model, optimizer = trained(optimizers.Adam)
    learner = model.copy(mode="copy")
    inner = optimizers.SGD(0.1).setup(learner)

    @compile
    def step(xs, ys):
        learner.copyparams(model)
        for _ in range(3):
            inner.update(lambda: F.mean_squared_error(learner(xs[0]), ys[0]))
        learner.cleargrads()
        loss = F.mean_squared_error(learner(xs[0]), ys[0])
        loss.backward()
        model.cleargrads()
        model.addgrads(learner)
        optimizer.update()
        return loss
    return step, [(model, optimizer, learner, inner)]


@called_with(tasks(1), tasks(1, seed=1), tasks(1, seed=2))
def reptile(compile):
    """The model moves to where a few steps of the optimizer lead."""
    model, optimizer = trained(optimizers.SGD)

    @compile
    def step(xs, ys):
        before = [p.array.copy() for p in model.params()]
        for _ in range(3):
            optimizer.update(lambda: F.mean_squared_error(model(xs[0]), ys[0]))
        for p, old in zip(model.params(), before):
            p.array[...] = old + 0.5 * (p.array - old)
    return step, [(model, optimizer)]


# ---- what became of them

def compared(make, backend="numpy"):
    """(what became of the program: whole, parts or eager; the lines that say where it differs; why it is not whole)"""
    made = []

    def compile(function):
        made.append(to_static(function, backend=backend))
        return made[-1]
    eager, _ = against_eager.run(make, CALLS[make], lambda function: function, False)
    found, _ = against_eager.run(make, CALLS[make], compile, False)
    problems = [f"call {i}: {line}" for i, pair in enumerate(zip(eager, found)) for line in against_eager.differences(*pair)]
    stats = made[0].stats()
    kind = "eager" if not stats["captures"] else "parts" if stats["cuts"] or stats["fallbacks"] else "whole"
    divided = made[0].dispatcher.in_parts.divided
    cuts = [] if divided is None else [str(cut) for cut in divided.parts.known.found]
    return kind, problems, [*map(str, made[0].dispatcher.fallback.refused.values()), *cuts], stats


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--backend", default="numpy")
    options = parser.parse_args()
    for make in CALLS:
        if options.parts and not any(part in make.__name__ for part in options.parts):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind, problems, reasons, stats = compared(make, options.backend)
        print(f"{make.__name__:<24} {kind:<6} captures {stats['captures']}, nodes {stats.get('nodes', 0)}, {len(problems)} differences",
              *[reason[:230] for reason in reasons[:2] if kind != "whole"], *[line[:300] for line in problems[:2]], sep="\n      ",
              flush=True)


if __name__ == "__main__":
    main()
