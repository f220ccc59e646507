"""Functions in parts: a line that cannot be compiled runs as Python, and everything is as in eager mode."""
import contextlib

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, programs, variable
from breaks import refuse as broken

SCALE = 2.0


def calls(n=3):
    """Calls with two Variables of other contents each time."""
    return [lambda k=k: (variable(3, 4, seed=k), variable(3, 4, seed=k + 10)) for k in range(n)]


def in_a_row(compile):
    def f(x, w):
        h = F.tanh(x) * w
        h = broken(h + 1)
        h = F.sigmoid(h) * h
        return F.sum(h * 2), h
    return compile(f), []


def in_a_loop(compile):
    def f(x, w):
        h = x
        for i in range(4):
            h = F.tanh(h) * w
            h = h + i
            if i == 2:
                continue
            h = broken(h)
            h = F.relu(h) + 0.1
            if float(F.sum(h).array) > 1e6:
                break
            h = F.sin(h) * 2
        else:
            h = h * 3 + 1
        return F.sum(h)
    return compile(f), []


def returns_from_parts(compile):
    def f(x, w):
        for i in range(3):
            h = F.tanh(x) * (i - 1)
            h = h + w
            if float(F.sum(h).array) > 2:
                return h * 2, i
            broken(h)
            h = F.sin(h) + x
            if float(F.sum(h).array) < -1:
                return h
        return F.exp(h) * w
    return compile(f), []


def in_with(compile):
    @contextlib.contextmanager
    def scope(log):
        log.append("in")
        try:
            yield log
        finally:
            log.append("out")

    log = []

    def f(x, w):
        with chainer.no_backprop_mode(), scope(log) as seen:
            k = F.tanh(x) * w
            k = broken(k + 1)
            seen.append(len(seen))
            k = F.exp(k) * 0.1
        h = F.relu(x * k) * w
        return F.sum(h), k
    return compile(f), [log]


def in_try(compile):
    def f(x, w):
        h = x
        try:
            h = F.tanh(h) * w
            h = broken(h) + 1
            g = F.exp(h) * 2
            if float(F.sum(g).array) > 20:
                raise ValueError("large")
            h = g
        except ValueError as error:
            h = h + len(str(error))
            h = F.sin(h) * 3
        finally:
            h = h * 0.5
            h = F.sin(h)
        return F.sum(h)
    return compile(f), []


def seen_by_a_handler(compile):
    def f(x, w):
        done = 0
        try:
            h = F.tanh(x) * w
            done = 1
            h = F.sin(h) * w
            done = 2
            broken(h)
            h = F.reshape(h, (12 + (float(h.array[0, 0]) > 0),))
            done = 3
        except chainer.utils.type_check.InvalidType:
            h = h * done
        return F.sum(h), done
    return compile(f), []


def names_without_values(compile):
    def f(x, w):
        n = int(x.array[0, 0] > 0)
        if n:
            m = F.tanh(x) * 2
        h = F.relu(x) + 1
        broken(h)
        h = F.sin(h) * w
        if n:
            h = h * m + 1
        broken(h)
        try:
            h = F.exp(m) * h
        except NameError as error:
            h = h * len(type(error).__name__)
        return F.sum(h)
    return compile(f), []


def deleted(compile):
    def f(x, w):
        h = F.tanh(x) * w
        k = F.sin(h) + 1
        broken(k)
        del h
        k = F.cos(k) * 2
        try:
            return F.sum(h)  # noqa: F821
        except UnboundLocalError:
            return F.sum(k) * 2
    return compile(f), []


def in_a_callee(compile):
    def inner(x, w, n=2, *more, scale=1):
        for _ in range(n):
            x = F.tanh(x) * w
            x = broken(x) * scale
            x = F.sin(x) + 1
        return x, more

    def f(x, w):
        h = F.relu(x) * 2 + w
        h, more = inner(h, w, 2, h, scale=3)
        h = h * F.sum(more[0])
        return F.sum(h)
    return compile(f), []


class Model(chainer.Chain):
    """Counts, logs and keeps what it computes."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(4, 4, initialW=array(4, 4, seed=1))
        self.count, self.log, self.last = 0, [], None

    def forward(self, x, w):
        self.count += 1
        h = F.tanh(self.l(x)) / self.count
        self.log.append(round(float(F.sum(h).array), 2))
        broken(h)
        self.count += 1
        h = F.sin(h) / self.count
        self.last = h
        return F.sum(h * w)


class Derived(Model):
    def forward(self, x, w):
        h = super().forward(x, w) * 2 + 1
        broken(h)
        self.log.append("between")
        return super().forward(x, w) * h


def in_a_method(compile):
    model = Model()
    return compile(model.forward), [model]


def in_a_base_class(compile):
    model = Derived()
    return compile(model.forward), [model]


def in_links(compile):
    model, other = Model(), Model()

    def f(x, w):
        h = F.sin(x) * 2
        h = model(h, w) + h
        return other(h, w) * 2 + 1
    return compile(f), [model, other]


def containers(compile):
    def f(x, w):
        hs, named = [], {}
        h = x
        for _ in range(2):
            h = F.tanh(h) * w
            h = h * 1.1
            hs.append(h)
        broken(h)
        named["all"] = hs
        hs.append(F.relu(h) + 1)
        named["sins"] = [F.sin(k) * 2 for k in hs]
        broken(h)
        hs[0] = F.exp(hs[0]) + named["sins"][1]
        named["sum"] = F.sum(hs[0]) + F.sum(named["all"][0])
        return named["sum"], named, hs
    return compile(f), []


def closures(compile):
    def f(x, w):
        n = 0

        def count(y):
            nonlocal n
            n += 1
            return F.tanh(y) * n
        h = count(x) * w
        broken(h)
        h = count(h) + n
        k = 3
        scaled = [lambda y: y * k]
        h = scaled[0](h) + 1
        k = 5
        broken(h)
        h = scaled[0](F.sin(h)) * n
        return F.sum(h)
    return compile(f), []


def global_names(compile):
    def f(x, w):
        global SCALE
        h = F.tanh(x) * SCALE
        SCALE = SCALE + 1
        broken(h)
        h = F.sin(h) * SCALE + w
        SCALE = 2.0
        return F.sum(h)
    return compile(f), []


def generator(compile):
    def steps(x, w):
        h = F.tanh(x)
        for _ in range(3):
            h = F.sin(h) * w + 1
            yield h
            broken(h)
            h = F.cos(h) * 2

    def f(x, w):
        total = F.sum(x) * 2
        for h in steps(x, w):
            total = total + F.sum(h * h)
            total = F.tanh(total)
        return total
    return compile(f), []


def random_numbers(compile):
    def f(x, w):
        h = F.dropout(x, 0.3) * w
        h = h + np.random.rand(3, 4).astype("f")
        broken(h)
        h = F.dropout(h, 0.5)
        return F.sum(h * np.random.rand())
    return compile(f), []


def gradients_between(compile):
    def f(x, w):
        h = F.tanh(x) * w
        loss = F.sum(h * h)
        loss.backward(loss_scale=2.0)
        g = x.grad * 2 + 1
        h = F.sin(x * g) * w
        x.cleargrad()
        w.cleargrad()
        return F.sum(h)
    return compile(f), []


def assigned_in_expressions(compile):
    def f(x, w):
        if (n := len(x)) > 1:
            h = F.tanh(x) * n
            h = h + (k := F.sum(x))
        broken(h)
        return F.sum(h * k * n) + sum(F.sum(y) for y in (h, w))
    return compile(f), []


def decided_by_values(compile):
    def f(x, w):
        h = F.tanh(x) * 2 + w
        if float(F.sum(h).array) > 0:
            h = F.sin(h) * 2
            broken(h)
            h = F.exp(h) + 1
        else:
            h = F.cos(h) * 3
        while float(F.sum(h).array) > 5:
            h = F.sin(h * 0.5)
            broken(h)
            h = F.tanh(h - 0.3)
        return F.sum(h)
    return compile(f), []


def several_breaks(compile):
    def f(x, w):
        h = F.tanh(x) * w
        h = broken(h) + broken(w)
        h = F.sin(h) * 2
        h = broken(h)
        h = broken(h)
        h = F.cos(h) + x
        return broken(F.sum(h * h))
    return compile(f), []


def left_before_a_name_has_a_value(compile):
    """The part with the `break` is divided later: what stands for no value passes through parts of a part."""
    def cut_later(i, x):
        return broken(x) is None if i else False

    def f(x, w):
        total = F.sum(x) * 2
        for k in range(3):
            broken(total)
            h = F.tanh(x) * 2 + k
            if k == 2 or cut_later(k, x):
                break
            d = F.sin(h) * w
            total = total + F.sum(d)
            del d
        return total
    return compile(f), []


def writes_parameters_before_they_are_used(compile):
    """The lines that write them run as Python: a `backward` after the call reads what they wrote."""
    links = [L.Linear(4, 4, initialW=array(4, 4, seed=k)) for k in range(2)]

    def f(x, w):
        h = F.tanh(x) * w
        links[0].W.array *= np.tri(4, dtype="f")
        h = F.tanh(links[0](h))
        links[1].W.array = np.clip(links[1].W.array, -0.5, 0.5)
        return F.sum(links[1](h) * 2) * F.sum(links[0].W)
    return compile(f), links


def averages_parameters(compile):
    """A slow copy follows the weights, in the two ways of writing that, and a Variable of an earlier part is changed in place."""
    fast, slow, slower = [L.Linear(4, 4, initialW=array(4, 4, seed=k)) for k in range(3)]

    def f(x, w):
        h = F.exp(F.tanh(fast(x)))
        for _, (p, q) in enumerate(zip(slow.params(), fast.params())):
            p.array *= 0.9
            p.array += 0.1 * q.array
        for (_, p), q in zip(sorted(slower.namedparams()), slow.params()):
            p.data = 0.5 * p.data + 0.5 * q.data
        broken(h)
        h.array *= w.array
        return F.sum(F.tanh(h) * slow(h)) * F.sum(F.tanh(slower(h)))
    return compile(f), [fast, slow, slower]


def trains_a_critic_before_it_is_used(compile):
    """Its update runs as Python: the gradients of the generator, which go through a part, read the updated weights."""
    generator, critic = [L.Linear(4, 4, initialW=array(4, 4, seed=k)) for k in range(2)]
    first, second = [chainer.optimizers.Adam(0.1).setup(link) for link in (critic, generator)]

    def f(x, w):
        made = F.tanh(generator(x))
        broken(made)
        of_critic = F.sum(F.square(critic(made.array)) * w.array)
        critic.cleargrads()
        of_critic.backward()
        first.update()
        loss = F.sum(F.square(critic(made) - 1))
        generator.cleargrads()
        loss.backward()
        second.update()
        return loss, of_critic
    return compile(f), [generator, critic]


def of_a_lambda(compile):
    return compile(lambda x, w: F.sum(broken(F.tanh(x) * w)) * in_parts(x, w)), []


def in_parts(x, w):
    """Called by a lambda."""
    h = F.sin(x) * w
    return F.sum(h) + 1


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_everything_is_as_in_eager_mode(make, backend):
    check(make, calls(), strict="parts", backend=backend)
