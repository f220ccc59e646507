"""Updates of reinforcement learning, and learning to learn."""
import collections
import copy
import random

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import optimizers

from models.training import batch, model, whole


class QNetwork(chainer.Chain):
    def __init__(self, n_in, n_units, n_actions):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(n_in, n_units)
            self.l2 = L.Linear(n_units, n_actions)

    def forward(self, x):
        return self.l2(F.relu(self.l1(x)))


Transition = collections.namedtuple("Transition", ("state", "action", "reward", "next_state", "done"))


class DQN:
    """Chainer's DQN example: a target network, a replay memory, the Huber loss of the temporal difference."""

    def __init__(self, q, optimizer, gamma=0.9):
        self.q, self.target, self.optimize = q, copy.deepcopy(q), whole(optimizer.update)
        self.gamma = gamma
        self.replay = collections.deque(maxlen=50)

    def act(self, state, epsilon=0.3):
        if np.random.rand() < epsilon:
            return np.random.randint(3)
        with chainer.no_backprop_mode():
            return int(self.q(state[None]).array[0].argmax())

    def loss(self, states, actions, rewards, next_states, dones):
        q = F.select_item(self.q(states), actions)
        with chainer.no_backprop_mode():
            best = F.argmax(self.q(next_states), axis=1)
            next_q = F.select_item(self.target(next_states), best)
        target = rewards + self.gamma * (1 - dones) * next_q.array
        return F.mean(F.huber_loss(q[:, None], target[:, None], 1.0))

    def update(self, loss, size):
        drawn = Transition(*zip(*random.sample(list(self.replay), size)))
        arrays = [np.array(column, dtype) for column, dtype in zip(drawn, ("f", "i", "f", "f", "f"))]
        self.optimize(loss, *arrays)


@model("DQN update: double, target network, replay", steps=12, warm=6)
def dqn(compile):
    q = QNetwork(4, 8, 3)
    agent = DQN(q, optimizers.RMSprop(0.01).setup(q))
    loss = compile(agent.loss)
    act = compile(lambda state: F.argmax(q(state[None]), axis=1))

    def step(k):
        rng = np.random.RandomState(k)
        for _ in range(batch(k, 6)):
            state = rng.rand(4).astype("f")
            agent.replay.append(Transition(state, agent.act(state), rng.rand(), rng.rand(4), rng.rand() < 0.2))
        agent.update(loss, batch(k, 6))
        if k % 4 == 3:
            agent.target.copyparams(agent.q)
        return act(rng.rand(4).astype("f"))
    return step, [agent.q, agent.target]


class ActorCritic(chainer.Chain):
    def __init__(self, n_in, n_units, n_actions):
        super().__init__()
        with self.init_scope():
            self.body = L.Linear(n_in, n_units)
            self.pi = L.Linear(n_units, n_actions)
            self.v = L.Linear(n_units, 1)

    def forward(self, x):
        h = F.tanh(self.body(x))
        return self.pi(h), F.reshape(self.v(h), (-1,))


@model("actor-critic update (A2C)")
def actor_critic(compile):
    """Actions are drawn in the compiled function; returns are computed backwards over the steps of the rollout."""
    net = ActorCritic(4, 8, 3)
    optimizer = optimizers.Adam(0.01).setup(net)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(0.5))
    update = whole(optimizer.update)

    @compile
    def act(states):
        logits, _ = net(states)
        return chainer.distributions.Categorical(logit=logits).sample().array

    @compile
    def loss(states, actions, rewards, dones, last):
        with chainer.no_backprop_mode():
            _, value = net(last)
        returns, total = [], value.array
        for r, done in zip(reversed(rewards), reversed(dones)):
            total = r + 0.9 * total * (1 - done)
            returns.append(total)
        returns = np.concatenate(returns[::-1])
        logits, values = net(np.concatenate(states))
        log_prob = F.log_softmax(logits)
        entropy = -F.sum(F.exp(log_prob) * log_prob, axis=1)
        advantage = returns - values.array
        policy = -F.mean(F.select_item(log_prob, np.concatenate(actions)) * advantage)
        return policy + 0.5 * F.mean_squared_error(values, returns) - 0.01 * F.mean(entropy)

    def step(k):
        rng = np.random.RandomState(k)
        n = batch(k, 2)
        states = [rng.rand(n, 4).astype("f") for _ in range(3)]
        actions = [act(s).astype("i") for s in states]
        rewards, dones = [[rng.rand(n).astype("f") for _ in range(3)] for _ in range(2)]
        update(loss, states, actions, rewards, [(d < 0.2).astype("f") for d in dones], rng.rand(n, 4).astype("f"))
        return actions
    return step, [net, optimizer]


class Regressor(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1, self.l2 = L.Linear(1, 8), L.Linear(8, 1)

    def forward(self, x):
        return self.l2(F.tanh(self.l1(x)))


def with_weights(weights, x):
    w1, b1, w2, b2 = weights
    return F.linear(F.tanh(F.linear(x, w1, b1)), w2, b2)


@model("MAML: two inner steps, second order")
def maml(compile):
    net = Regressor()
    optimizer = optimizers.Adam(0.01).setup(net)

    @compile
    def meta_loss(tasks, rate=0.1):
        total = 0
        for x, y, x_test, y_test in tasks:
            weights = [net.l1.W, net.l1.b, net.l2.W, net.l2.b]
            for _ in range(2):
                loss = F.mean_squared_error(with_weights(weights, x), y)
                gradients = chainer.grad([loss], weights, enable_double_backprop=True)
                weights = [w - rate * g for w, g in zip(weights, gradients)]
            total += F.mean_squared_error(with_weights(weights, x_test), y_test)
        return total / len(tasks)
    update = whole(optimizer.update)

    def step(k):
        rng = np.random.RandomState(k)
        x = [rng.uniform(-2, 2, (batch(k, 5), 1)).astype("f") for _ in range(4)]
        tasks = [(x[0], np.sin(x[0]), x[1], np.sin(x[1])), (x[2], np.cos(x[2]), x[3], np.cos(x[3]))]
        update(meta_loss, tasks)
    return step, [net, optimizer]
