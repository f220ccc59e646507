"""One call of Chainer functions."""
import numpy as np

LABELS = np.array([2, 0, -1, 1, 2], np.int32)
IDS = np.array([[2, 0], [1, 2]], np.int32)


class Case:
    """A call of Chainer functions.

    operands: shapes, filled at random between low and high, or arrays taken as they are.
    exact: whether the values must be the same to the last bit.
    twice: whether it can be differentiated twice.
    train: what ``chainer.config.train`` is.
    """

    def __init__(self, name, function, *operands, low=-2.0, high=2.0, exact=True, twice=True, dtypes="e f d", train=True):
        self.name, self.function, self.operands = name, function, operands
        self.low, self.high, self.exact, self.twice, self.dtypes = low, high, exact, twice, dtypes.split()
        self.train = train

    def __str__(self):
        return self.name

    def arrays(self, dtype, seed=0):
        rng = np.random.RandomState(seed)
        return [rng.uniform(self.low, self.high, operand).astype(dtype) if isinstance(operand, tuple) else operand
                for operand in self.operands]


def unary(name, function, **options):
    """One function of one array, in several shapes."""
    return [Case(f"{name}{shape}", function, shape, **options) for shape in ((4, 3), (), (0, 3), (1,))]


def binary(name, function, **options):
    """One function of two arrays that broadcast."""
    return [Case(f"{name}{a}{b}", function, a, b, **options)
            for a, b in (((4, 3), (4, 3)), ((4, 3), (3,)), ((4, 1), (1, 3)), ((), (2,)), ((0, 3), (3,)),
                         ((2, 1, 3), (4, 1)))]
