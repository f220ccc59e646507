"""Methods and functions of the user's that libraries and Python call: of datasets, copies, enums, metaclasses and keys."""
import copy
import enum

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, variable
from chainer.datasets import DictDataset, SubDataset, TransformDataset, TupleDataset

LOG = []


class Examples(chainer.dataset.DatasetMixin):
    def __init__(self):
        self.drawn = 0

    def __len__(self):
        LOG.append("length")
        return 4

    def get_example(self, i):
        LOG.append(i)
        self.drawn += 1
        return self.drawn + i


class Scaled:
    def __init__(self, by):
        self.by = by

    def __call__(self, value):
        LOG.append("scaled")
        return value * self.by

    def by_method(self, value):
        LOG.append("method")
        self.by += 1
        return value * self.by


def doubled(value):
    LOG.append("doubled")
    return value * 2


DATASETS = {
    "own": lambda examples: examples,
    "function": lambda examples: TransformDataset(examples, doubled),
    "object": lambda examples: TransformDataset(examples, Scaled(3)),
    "method": lambda examples: TransformDataset(examples, Scaled(3).by_method),
    "parts": lambda examples: SubDataset(examples, 0, 4, [3, 2, 1, 0]),
    "tuples": lambda examples: TupleDataset(examples, TransformDataset(examples, doubled)),
    "dicts": lambda examples: DictDataset(a=examples, b=TransformDataset(examples, doubled)),
}


@pytest.mark.parametrize("backend", ["c", "numpy"])
@pytest.mark.parametrize("name", DATASETS)
def test_dataset(name, backend):
    def make(compile):
        LOG.clear()
        examples = Examples()
        dataset = DATASETS[name](examples)

        def step(x, i):
            LOG.append("before")
            found = dataset[i], dataset[1:3], dataset[-1]
            LOG.append("after")
            return F.tanh(x) * examples.drawn, found, dataset[[1, 0]] if name in ("own", "function") else len(dataset)
        return compile(step), [LOG, examples, vars(examples), dataset]
    check(make, [lambda i=i: (variable(2, 3, seed=i), i % 3) for i in range(5)], compiled=True, backend=backend)


class Value:
    def __init__(self, value):
        LOG.append("init")
        self.value = value


class Copied(Value):
    def __copy__(self):
        LOG.append("copy")
        return Copied(self.value + 1)

    def __deepcopy__(self, memo):
        LOG.append("deepcopy")
        return Copied(self.value + 2)


class WithState(Value):
    def __getstate__(self):
        LOG.append("state")
        return {"value": self.value}

    def __setstate__(self, state):
        LOG.append("set")
        self.value = state["value"] + 5


class Reduced(Value):
    def __reduce__(self):
        LOG.append("reduce")
        return made_again, (self.value + 1,)


class ReducedBy(Value):
    def __reduce_ex__(self, protocol):
        LOG.append(protocol)
        return ReducedBy, (self.value + 1,)


class WithArguments(Value):
    def __new__(cls, *args):
        LOG.append("new")
        return super().__new__(cls)

    def __getnewargs__(self):
        LOG.append("arguments")
        return self.value,


def made_again(value):
    LOG.append("made")
    return Reduced(value)


@pytest.mark.parametrize("backend", ["c", "numpy"])
@pytest.mark.parametrize("cls", [Copied, WithState, Reduced, ReducedBy, WithArguments], ids=lambda c: c.__name__)
def test_copy(cls, backend):
    def make(compile):
        kept = cls(1)
        LOG.clear()

        def step(x, i):
            LOG.append("before")
            kept.value += i
            copies = copy.copy(kept), copy.deepcopy(kept), copy.deepcopy([kept, kept]), copy.deepcopy({"a": cls(i)})["a"]
            LOG.append("after")
            return F.tanh(x) * copies[0].value, [vars(found) for found in (*copies[:2], *copies[2], copies[3])], \
                copies[2][0] is copies[2][1]
        return compile(step), [LOG, vars(kept)]
    check(make, [lambda i=i: (variable(2, 3, seed=i), i) for i in range(5)], compiled=True, backend=backend)


class Kind(enum.Enum):
    A = 1
    B = 2

    @property
    def size(self):
        LOG.append("size")
        return len(LOG)

    def __str__(self):
        LOG.append("text")
        return "kind"

    @classmethod
    def _missing_(cls, value):
        LOG.append(value)
        return cls.A


class Meta(type):
    @property
    def size(cls):
        LOG.append("size")
        return len(LOG)

    def __len__(cls):
        LOG.append("length")
        return 3

    def __instancecheck__(cls, item):
        LOG.append("instance")
        return hasattr(item, "value")

    def __subclasscheck__(cls, item):
        LOG.append("subclass")
        return True


class OfMeta(metaclass=Meta):
    pass


class Key:
    def __hash__(self):
        LOG.append("hash")
        return 3


class Named:
    def __set_name__(self, owner, name):
        LOG.append(name)
        self.name = name


class Called:
    def __call__(self, x):
        LOG.append("called")
        return x * 2


class CalledTwice(Called):
    def __call__(self, x):
        return Called.__call__(self, x) * Called.__call__(self, x)


KEY, CALLED = Key(), CalledTwice()

SEEN_BY_PYTHON = {
    "enum": lambda x, i: (Kind.A.size, str(Kind.B), f"{Kind.A}"),
    "missing": lambda x, i: Kind(i).value,
    "metaclass": lambda x, i: (OfMeta.size, len(OfMeta), isinstance(KEY, OfMeta), issubclass(int, OfMeta)),
    "hash": lambda x, i: (hash(KEY), {KEY: i}[KEY]),
    "call": lambda x, i: (CALLED(x), list(map(CALLED, [x, x * i])), Called.__call__(CALLED, x)),
}


@pytest.mark.parametrize("name", SEEN_BY_PYTHON)
@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_called_by_python(name):
    seen = SEEN_BY_PYTHON[name]

    def make(compile):
        LOG.clear()

        def step(x, i):
            LOG.append("before")
            found = seen(x, i)
            LOG.append("after")
            return F.tanh(x), found
        return compile(step), [LOG]
    check(make, [lambda i=i: (variable(2, 3, seed=i), i) for i in range(4)], compiled=True if name in ("hash", "call") else None)


def test_named_by_a_class():
    def make(compile):
        LOG.clear()
        kind = Named

        def step(x):
            class Local:
                named, number = kind(), 3
            return F.tanh(x), Local.named.name, Local.number
        return compile(step), [LOG]
    check(make, [lambda s=s: (variable(2, 3, seed=s),) for s in range(3)])


def logged(*values):
    LOG.append(len(values))
    return sum(values) * 2


BY_NUMPY = {
    "piecewise": lambda x, u: np.piecewise(x.array, [x.array > 0], [logged, logged]),
    "fromfunction": lambda x, u: np.fromfunction(logged, (2, 3)),
    "formatter": lambda x, u: np.array2string(np.arange(3.0), formatter={"float": lambda v: str(logged(v))}),
    "made inside": lambda x, u: np.frompyfunc(logged, 1, 1)(np.arange(3)).tolist(),
    "numbers": lambda x, u: u(1.0, 2.0),
    "arrays": lambda x, u: u(x.array, 2.0).astype("f"),
    "reduced": lambda x, u: u.reduce(np.arange(4.0)),
}


@pytest.mark.parametrize("name", BY_NUMPY)
@pytest.mark.filterwarnings("ignore::dy2static.FallbackWarning")
def test_called_by_numpy(name):
    """As often as eagerly: not also in trials of what a function of NumPy gives."""
    def make(compile):
        LOG.clear()
        ufunc = np.frompyfunc(logged, 2, 1)
        return compile(lambda x: (x * 2, BY_NUMPY[name](x, ufunc))), LOG
    check(make, [lambda: (variable(2, 3),)] * 3)
