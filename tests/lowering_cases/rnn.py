"""Calls of chainer.functions.rnn."""
import chainer.functions as F

from .case import Case

CASES = [
    Case("lstm", F.lstm, (3, 2), (3, 8)),
    Case("lstm ended", F.lstm, (3, 2), (2, 8)),
    Case("lstm h", lambda c, x: F.lstm(c, x)[1], (3, 2), (3, 8)),
    Case("lstm c", lambda c, x: F.lstm(c, x)[0], (3, 2), (2, 8)),
    Case("lstm images", F.lstm, (3, 2, 2, 1), (3, 8, 2, 1)),
]

DECLINED = []
