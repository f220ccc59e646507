"""A model that has about everything a file can hold."""
import collections

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

Out = collections.namedtuple("Out", "y more")
FILES = ("manifest.json", "programs.json", "arrays.safetensors")


class Model(chainer.Chain):
    """One that has about everything a file can hold."""

    def __init__(self):
        super().__init__()
        self.calls, self.h = 0, None
        with self.init_scope():
            self.l1, self.bn, self.l2 = L.Linear(4, 5), L.BatchNormalization(5), L.Linear(5, 3)
            self.lstm = L.LSTM(3, 3)
            self.more = chainer.ChainList(L.Linear(3, 3), L.Linear(3, 3))

    def forward(self, x, flag=True):
        self.calls += 1
        h = F.dropout(F.relu(self.bn(self.l1(x))))
        while float(F.max(abs(h)).array) > 1:
            h = h * 0.5
        if float(F.sum(h).array) > 0.1:
            print("positive", h.shape)
        h = self.lstm(self.l2(h))
        for link in self.more:
            h = link(h)
        self.h = h
        a, b = F.split_axis(h[:, :2], 2, 1)
        pooled = F.max_pooling_2d(h[:, None, :, None], (2, 1))
        return Out(F.concat([a, h[:, 1:]]), {"k": [pooled, np.sort(h.array, axis=0), self.calls]})
