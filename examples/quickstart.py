"""The smallest example: a Chain with one decorator, trained on made-up data.

    python examples/quickstart.py
"""
import dy2static  # noqa: F401  (before chainer)
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from dy2static import to_static


class MLP(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(2, 16)
            self.l2 = L.Linear(16, 2)

    @to_static
    def forward(self, x):
        return self.l2(F.tanh(self.l1(x)))


x = np.random.rand(64, 2).astype(np.float32)
t = (x[:, 0] > x[:, 1]).astype(np.int32)
model = MLP()
optimizer = chainer.optimizers.Adam(alpha=0.05).setup(model)

for _ in range(100):
    loss = F.softmax_cross_entropy(model(x), t)
    model.cleargrads()
    loss.backward()
    optimizer.update()

print("accuracy", F.accuracy(model(x), t).array)
print(model.forward.program(x).code)
