"""`chainer.distributions` in compiled functions: made inside, used there, returned and stored, with their cached attributes."""
import copy

import against_eager
import chainer
import chainer.distributions as D
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import variable

MADE = {
    "Normal": lambda x: D.Normal(x, log_scale=x * 0.1), "Independent": lambda x: D.Independent(D.Normal(x, F.exp(x))),
    "Bernoulli": lambda x: D.Bernoulli(logit=x), "Categorical": lambda x: D.Categorical(logit=x),
    "Uniform": lambda x: D.Uniform(low=x, high=x * x + 1), "Laplace": lambda x: D.Laplace(x, F.exp(x)),
    "MultivariateNormal": lambda x: D.MultivariateNormal(
        x, scale_tril=np.tril(np.ones((3, 3), "f")) * F.broadcast_to(F.exp(F.mean(x)), (2, 3, 3))),
    "Beta": lambda x: D.Beta(F.exp(x), F.exp(x * 2)), "Gamma": lambda x: D.Gamma(F.exp(x), F.exp(x * 2)),
    "OneHotCategorical": lambda x: D.OneHotCategorical(F.softmax(x)), "Pareto": lambda x: D.Pareto(F.exp(x), F.exp(x)),
}
NOT_THERE = {"Categorical": ("mean",), "OneHotCategorical": ("entropy",)}


def used(d, name):
    """What people ask distributions for."""
    found = [d.batch_shape, d.event_shape, type(d).__name__, isinstance(d, chainer.Distribution)]
    found += [getattr(d, word) for word in ("mean", "entropy") if word not in NOT_THERE.get(name, ())]
    drawn = d.sample()
    return [*found, drawn, d.sample((2, 2)), d.log_prob(drawn.array.astype("f")), chainer.kl_divergence(d, d), d.params]


@pytest.mark.parametrize("name", MADE)
def test_what_is_used_inside(name):
    def make(compile):
        return compile(lambda x: used(MADE[name](x), name)), None
    against_eager.check(make, [lambda: (variable(2, 3, low=0.1),)], rounds=1, compiled=True, backend="numpy")


@pytest.mark.parametrize("name", ["Normal", "Independent", "Categorical", "MultivariateNormal"])
def test_what_leaves(name):
    def make(compile):
        made = compile(MADE[name])

        def program(x):
            d = made(x)
            return d, used(d, name), type(d) is type(MADE[name](x))
        return program, None
    against_eager.check(make, [lambda: (variable(2, 3, low=0.1),)], compiled=True)


class Own(D.Normal):
    """Computes more than its base."""

    def __init__(self, loc, scale):
        super().__init__(loc, scale=scale)
        self.doubled = loc * 2

    @chainer.utils.cache.cached_property
    def width(self):
        return self.scale * 2

    def log_prob(self, x):
        return super().log_prob(x) + 1


@chainer.register_kl(Own, Own)
def _own_and_own(first, second):
    return F.sum((first.loc - second.doubled) ** 2) + first.width


@chainer.register_kl(Own, D.Normal)
def _own_and_normal(first, second):
    return first.doubled - second.mean


class Holder:
    def __init__(self):
        self.prior, self.last = D.Normal(np.zeros((2, 3), "f"), scale=np.ones((2, 3), "f")), None


class Lazy:
    def __init__(self, x):
        self.x = x

    @chainer.utils.cache.cached_property
    def y(self):
        return F.exp(self.x)


def own_classes(x, holder):
    d, e = Own(x, F.exp(x)), D.Normal(x, scale=F.exp(x))
    return [d, e, chainer.kl_divergence(d, d), chainer.kl_divergence(d, e), d.log_prob(x), d.width is d.width,
            type(d) is Own, isinstance(d, D.Normal), isinstance(e, Own)]


def stored_and_read(x, holder):
    holder.last = D.Normal(x * 2, F.exp(x))
    return holder.prior.log_prob(x), holder.prior.sample(), chainer.kl_divergence(holder.last, holder.prior), holder.prior.mean


def under_a_decision(x, holder):
    d = D.Normal(x, F.exp(x))
    y = d.log_prob(x * 2) if float(F.sum(x).array) > 0 else d.scale
    return y, d


def one_of_two(x, holder):
    if float(F.sum(x).array) > 0:
        d = D.Normal(x, F.exp(x))
    else:
        d = D.Laplace(x * 2, F.exp(x))
    return d


def shared(x, holder):
    d = D.Normal(x, F.exp(x))
    i = D.Independent(d)
    return [i, d, i.distribution is d, copy.copy(d)], {"a": D.Bernoulli(logit=x)}, i.log_prob(x)


def without_backprop(x, holder):
    d = D.Normal(x, F.exp(x))
    with chainer.no_backprop_mode():
        y = d.variance
    return y, d.variance, d


def cached_attributes(x, holder):
    made = Lazy(x)
    return made, made.y * made.y


def with_attributes(x, holder):
    d = D.Normal(x, F.exp(x))
    d.note, d.twice = "made here", d.loc * 2
    return d


def in_a_loop(x, holder):
    n = 0
    while float(F.sum(x).array) < 9 and n < 9:
        d = D.Normal(x, F.exp(-x))
        x, n = d.mean + d.variance, n + 1
    return x


@pytest.mark.parametrize("function", [own_classes, stored_and_read, under_a_decision, one_of_two, shared, without_backprop,
                                      cached_attributes, with_attributes, in_a_loop], ids=lambda f: f.__name__)
def test_programs(function):
    def make(compile):
        holder, compiled = Holder(), compile(function)
        return (lambda x: compiled(x, holder)), holder
    calls = [lambda k=k: (variable(2, 3, seed=k, low=-1.0 + k % 2, high=k % 2 + 0.1),) for k in (0, 1)]
    against_eager.check(make, calls, compiled=True)


def test_arguments():
    def make(compile):
        asked = compile(lambda d, x: [d.log_prob(x), d.entropy, d.sample(), d])

        def program(x):
            d = D.Normal(x * 2, F.exp(x))
            first = asked(d, x)
            return first, asked(d, x), first[-1] is d
        return program, None
    against_eager.check(make, [lambda: (variable(2, 3),)], compiled=True)


class Encoder(chainer.Chain):
    def __init__(self, compile):
        super().__init__()
        with self.init_scope():
            self.hidden, self.mean, self.spread = L.Linear(6, 5), L.Linear(5, 2), L.Linear(5, 2)
        self.compiled = compile(self.encode)

    def encode(self, x):
        h = F.tanh(self.hidden(x))
        return D.Independent(D.Normal(self.mean(h), log_scale=self.spread(h)))

    def forward(self, x):
        return self.compiled(x)


class Decoder(chainer.Chain):
    def __init__(self, compile):
        super().__init__()
        with self.init_scope():
            self.hidden, self.output = L.Linear(2, 5), L.Linear(5, 6)
        self.compiled = compile(self.decode)

    def decode(self, z):
        axes = z.ndim - 1
        return D.Independent(D.Bernoulli(logit=self.output(F.tanh(self.hidden(z, n_batch_axes=axes)), n_batch_axes=axes)))

    def forward(self, z):
        return self.compiled(z)


class Prior(chainer.Link):
    def __init__(self):
        super().__init__()
        self.loc, self.scale = np.zeros(2, "f"), np.ones(2, "f")
        self.register_persistent("loc")
        self.register_persistent("scale")

    def forward(self):
        return D.Independent(D.Normal(self.loc, scale=self.scale), reinterpreted_batch_ndims=1)


class Bound(chainer.Chain):
    """The negative evidence lower bound, averaged over a few samples."""

    def __init__(self, inner, outer, beta=0.5, k=3):
        super().__init__()
        self.beta, self.k = beta, k
        with self.init_scope():
            self.encoder, self.decoder, self.prior = Encoder(inner), Decoder(inner), Prior()
        self.compiled = outer(self.loss)

    def loss(self, x):
        posterior = self.encoder(x)
        likelihood = self.decoder(posterior.sample(self.k))
        reconstruction = F.mean(likelihood.log_prob(F.broadcast_to(x[None, :], (self.k, *x.shape))))
        divergence = F.mean(chainer.kl_divergence(posterior, self.prior()))
        loss = -(reconstruction - self.beta * divergence)
        chainer.report({"loss": loss, "reconstruction": reconstruction, "kl": divergence}, self)
        return loss

    def forward(self, x):
        return self.compiled(x)


def as_it_is(function):
    return function


@pytest.mark.parametrize("parts, whole", [(True, False), (False, True), (True, True)], ids=["parts", "whole", "both"])
def test_variational_autoencoder(parts, whole):
    def make(compile):
        net = Bound(*[compile if wanted else as_it_is for wanted in (parts, whole)])
        optimizer = chainer.optimizers.Adam().setup(net)
        reporter = chainer.Reporter()
        reporter.add_observer("main", net)

        def step(k):
            x = np.random.RandomState(k).randint(0, 2, (3 + k % 2, 6)).astype("f")
            with reporter.scope({}):
                optimizer.update(net, x)
                return dict(reporter.observation), net.encoder(x).params, [p.array.copy() for p in net.params()]
        return step, None
    against_eager.check(make, [lambda: (0,), lambda: (1,)], compiled=True, strict=True, backward=False)
