"""Calls of chainer.functions.rnn."""
import chainer.functions as F

from .case import Case

CASES = [
    Case("slstm", F.slstm, (3, 2), (3, 2), (3, 8), (3, 8)),
    Case("slstm h", lambda *xs: F.slstm(*xs)[1], (3, 2), (3, 2), (3, 8), (3, 8)),
    Case("slstm images", F.slstm, (3, 2, 1), (3, 2, 1), (3, 8, 1), (3, 8, 1)),
    *(Case(f"tree_lstm {n}", F.tree_lstm, *[(3, 2)] * n, (3, 2 * (3 + n)), twice=False) for n in (1, 2, 3)),
    Case("tree_lstm h", lambda *xs: F.tree_lstm(*xs)[1], (3, 2), (3, 2), (3, 10), twice=False),
    Case("lstm", F.lstm, (3, 2), (3, 8)),
    Case("lstm ended", F.lstm, (3, 2), (2, 8)),
    Case("lstm h", lambda c, x: F.lstm(c, x)[1], (3, 2), (3, 8)),
    Case("lstm c", lambda c, x: F.lstm(c, x)[0], (3, 2), (2, 8)),
    Case("lstm images", F.lstm, (3, 2, 2, 1), (3, 8, 2, 1)),
]

DECLINED = []
