"""Run by mpiexec: functions and Links of ChainerMN inside compiled code, beside eager mode, on each process.

    mpiexec -n 2 python tests/training/multi_node_functions.py
    mpiexec -n 2 python tests/training/multi_node_functions.py fails
"""
import sys
import warnings

from dy2static import FallbackWarning, to_static
import chainer
import chainer.functions as F
import chainer.links as L
import chainermn
import chainermn.functions as M
import numpy as np
from chainermn import global_except_hook

chainer.config.dtype = np.float64


def before(x):
    return F.sigmoid(F.tanh(x) * 2 + F.relu(x)) * F.exp(F.tanh(x) * 0.5)


def after(h):
    return F.sum(F.tanh(h) * F.sigmoid(h) + F.sin(h) * 0.5)


def ring(communicator):
    """Each process sends to the next one: the first one sends before it receives, all others receive before they send."""
    rank, last = communicator.rank, communicator.size - 1

    def function(x):
        h = before(x)
        if rank == 0:
            sent = M.send(h, communicator, rank=1)
            return after(M.recv(communicator, rank=last, delegate_variable=sent))
        got = M.recv(communicator, rank=rank - 1)
        return M.send(before(got) * h, communicator, rank=(rank + 1) % (last + 1))
    return function


def exchange(communicator):
    def function(x):
        h = before(x)
        parts = M.allgather(communicator, h)
        h = before(F.stack(parts))
        return sum([after(y) for y in M.alltoall(communicator, [F.sum(h) * (k + 1) + y for k, y in enumerate(parts)])])
    return function


def broadcast(communicator):
    rank = communicator.rank

    def function(x):
        h = before(x) if rank == 0 else None
        return after(before(M.bcast(communicator, h, root=0)) * x)
    return function


class Normalized(chainer.Chain):
    def __init__(self, communicator):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(4, 6)
            self.bn = chainermn.links.MultiNodeBatchNormalization(6, communicator)
            self.l2 = L.Linear(6, 3)

    def forward(self, x):
        return after(self.l2(before(self.bn(before(self.l1(x))))))


def calls(function, compile_, communicator, train=True):
    """Losses, gradients and statistics of some calls, and the lines that ran as Python."""
    np.random.seed(0)
    function = function(communicator)
    compiled = to_static(function, strict="parts" if train else True, backend="numpy") if compile_ else function
    model = function if isinstance(function, chainer.Chain) else chainer.Chain()
    seen = []
    with warnings.catch_warnings(record=True) as said, chainer.using_config("train", train):
        warnings.simplefilter("always", FallbackWarning)
        for number in range(4):
            x = chainer.Variable(np.random.RandomState(10 * number + communicator.rank).rand(5, 4))
            model.cleargrads()
            loss = compiled(x)
            loss.backward()
            seen += [loss.array, x.grad, *[p.grad for _, p in sorted(model.namedparams())]]
        seen += [model.bn.avg_mean, model.bn.avg_var] if model is function else []
    return [x for x in seen if x is not None], [str(w.message) for w in said if w.category is FallbackWarning]


def main():
    """The exit status: whether all is well on this process."""
    communicator = chainermn.create_communicator("naive")
    if sys.argv[1:] == ["fails"]:
        return fail(communicator)
    wrong = []
    for function, train in ((ring, True), (exchange, True), (broadcast, True), (Normalized, True), (Normalized, False)):
        name = f"{function.__name__}{'' if train else ' in evaluation'}"
        (expected, _), (found, said) = [calls(function, compile_, communicator, train) for compile_ in (False, True)]
        if len(expected) != len(found) or not all(np.allclose(one, other, 1e-9, 1e-12) for one, other in zip(expected, found)):
            wrong.append(f"{name}: not what eager computes")
        if bool(said) != train or not all("of ChainerMN exchanges arrays with other processes" in words for words in said):
            wrong.append(f"{name}: {said}")
    print(f"process {communicator.rank} of {communicator.size}: {wrong or 'as in eager mode'}", flush=True)
    return bool(wrong)


def fail(communicator):
    """One process raises in a compiled function, while the other waits for it."""
    global_except_hook.add_hook()
    for number in range(4):
        compiled = to_static(lambda x: F.reshape(before(x), (7, 7)), backend="numpy")
        if number == 3 and communicator.rank == 1:
            compiled(np.zeros((2, 3)))
        communicator.allreduce(np.ones(3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
