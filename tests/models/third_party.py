"""Models of packages that build on Chainer: chainerrl, where it is installed."""
import chainer
import chainer.functions as F
import numpy as np
from chainer import optimizers

from models.training import batch, model, whole

try:
    from chainerrl import links, policies, q_functions, v_functions
except ImportError:
    links = None


def trained(compile, net, loss_of):
    optimizer = optimizers.SGD(0.05).setup(net)
    loss_of, update = compile(loss_of), whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        n = batch(k, 5)
        x, t = rng.rand(n, 4).astype(np.float32), rng.randint(0, 3, n).astype(np.int32)
        update(loss_of, x, t)
        with chainer.no_backprop_mode(), chainer.using_config("train", False):
            return loss_of(x, t)
    return step, [net, optimizer]


if links is not None:
    @model("chainerrl: MLP with batch normalisation")
    def mlp(compile):
        net = links.MLPBN(4, 3, (8, 8))
        return trained(compile, net, lambda x, t: F.softmax_cross_entropy(net(x), t))

    @model("chainerrl: Q-function")
    def q_function(compile):
        net = q_functions.FCStateQFunctionWithDiscreteAction(4, 3, 8, 2)
        return trained(compile, net, lambda x, t: F.mean(net(x).evaluate_actions(t) ** 2) + F.mean(net(x).max))

    @model("chainerrl: softmax policy and value")
    def policy(compile):
        net = chainer.Chain(pi=policies.FCSoftmaxPolicy(4, 3, n_hidden_layers=1, n_hidden_channels=8),
                            v=v_functions.FCVFunction(4, n_hidden_layers=1, n_hidden_channels=8))

        def loss_of(x, t):
            distribution, value = net.pi(x), F.flatten(net.v(x))
            advantage = 1 - value.array
            return F.mean(-distribution.log_prob(t) * advantage) - 0.01 * F.mean(distribution.entropy) + F.mean((value - 1) ** 2)
        return trained(compile, net, loss_of)

    @model("chainerrl: Gaussian policy")
    def gaussian_policy(compile):
        net = policies.FCGaussianPolicy(4, 2, n_hidden_layers=1, n_hidden_channels=8)
        return trained(compile, net, lambda x, t: -F.mean(net(x).log_prob(x[:, :2])))
