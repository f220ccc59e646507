"""Every public entry of ``chainer.links``: how it is called, eagerly and compiled, and what of it is compared."""
import copy

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from against_eager import array, differences, observe, variable
from call_matrix import applied
from shared_results import once

from dy2static import to_static

ENTRIES = tuple(name for name in dir(L) if not name.startswith("_") and callable(getattr(L, name)))
_CLASSES = np.array([0, 2, 1, 2], np.int32)


class Row:
    """A link and how it is called.

    make: gives the link.  call: its arguments for a seed, or (arguments, keyword arguments).
    apply: what is compiled, if not the link: a function of it and of the arguments.
    eager: why it runs eagerly, if it does.
    """

    def __init__(self, make, call, apply=None, eager=None):
        self.make, self.call, self.apply, self.eager = make, call, apply, eager


def _of(*shape, low=-1.0, high=1.0):
    """Calls with one Variable of this shape."""
    return lambda seed: (variable(*shape, seed=seed, low=low, high=high),)


def _two(*shapes):
    return lambda seed: tuple(variable(*shape, seed=seed + 10 * k) for k, shape in enumerate(shapes))


def _labelled(*shape):
    return lambda seed: (variable(*shape, seed=seed), np.roll(_CLASSES, seed))


def _sequences(*states):
    """Calls with states and lists of sequences whose lengths change."""
    def call(seed):
        lengths = ([3, 2], [2, 2], [3, 2], [1, 1])[seed % 4]
        given = [None if seed % 2 else variable(*state, seed=seed + 20) for state in states]
        return (*given, [variable(n, 2, seed=seed + k) for k, n in enumerate(lengths)])
    return call


def _labels_of(seed):
    xs = [variable(n, 3, seed=seed + k) for k, n in enumerate((2, 2, 1))]
    return xs, [np.roll(_CLASSES, seed + k)[:len(x)] % 3 for k, x in enumerate(xs)]


class _Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first, self.second = L.Linear(3, 4), L.Linear(4, 3)

    def forward(self, x):
        return self.second(F.dropout(F.relu(self.first(x)), 0.3))


_IMAGE, _VECTOR = (2, 3, 5, 5), (4, 3)
_CELLS = {"LSTM": L.LSTM, "StatefulGRU": L.StatefulGRU, "GRU": L.GRU, "StatefulMGU": L.StatefulMGU,
          "StatefulPeepholeLSTM": L.StatefulPeepholeLSTM, "StatefulZoneoutLSTM": L.StatefulZoneoutLSTM}
_TREE = L.BinaryHierarchicalSoftmax.create_huffman_tree({0: 3, 1: 2, 2: 4})

#: entry, or entry and a variant: the row
ROWS = {
    "BatchNormalization": Row(lambda: L.BatchNormalization(3), _of(*_IMAGE)),
    "BatchNormalization of vectors": Row(lambda: L.BatchNormalization(3, decay=0.7, use_gamma=False), _of(*_VECTOR)),
    "BatchNormalization of a size to come": Row(lambda: L.BatchNormalization(axis=(0, 2, 3)), _of(*_IMAGE)),
    "BatchNormalization finetuned": Row(lambda: L.BatchNormalization(3), lambda seed: ((variable(*_VECTOR, seed=seed),), {"finetune": True})),
    "BatchRenormalization": Row(lambda: L.BatchRenormalization(3, rmax=1.5, dmax=0.5), _of(*_VECTOR)),
    "Bias": Row(lambda: L.Bias(1, (3,)), _of(*_IMAGE)),
    "Bias of two": Row(lambda: L.Bias(1), _two(_IMAGE, (3,))),
    "Bilinear": Row(lambda: L.Bilinear(3, 2, 4), _two((4, 3), (4, 2))),
    "BinaryHierarchicalSoftmax": Row(lambda: L.BinaryHierarchicalSoftmax(3, _TREE), _labelled(*_VECTOR)),
    "BlackOut": Row(lambda: L.BlackOut(3, [3, 2, 4], 2), _labelled(*_VECTOR)),
    "CRF1d": Row(lambda: L.CRF1d(3), _labels_of),
    "CRF1d transposed": Row(lambda: L.CRF1d(3), lambda seed: (_labels_of(seed), {"transpose": False, "reduce": "no"})),
    "CRF1d argmax": Row(lambda: L.CRF1d(3), lambda seed: (_labels_of(seed)[0],), apply=lambda link, xs: link.argmax(xs)),
    "ChildSumTreeLSTM": Row(lambda: L.ChildSumTreeLSTM(3, 2), _two((4, 2), (4, 2), (4, 2), (4, 2), (4, 3))),
    "NaryTreeLSTM": Row(lambda: L.NaryTreeLSTM(3, 2, 2), _two((4, 2), (4, 2), (4, 2), (4, 2), (4, 3))),
    "Classifier": Row(lambda: L.Classifier(_Net()), _labelled(*_VECTOR)),
    "Classifier of another loss": Row(lambda: L.Classifier(L.Linear(3, 2), F.mean_squared_error, None), _two((4, 3), (4, 2))),
    "Convolution1D": Row(lambda: L.Convolution1D(3, 4, 2), _of(2, 3, 5)),
    "Convolution2D": Row(lambda: L.Convolution2D(3, 4, 3, pad=1), _of(*_IMAGE)),
    "Convolution2D of a size to come": Row(lambda: L.Convolution2D(None, 4, 3, stride=2), _of(*_IMAGE)),
    "Convolution3D": Row(lambda: L.Convolution3D(2, 3, 2), _of(1, 2, 3, 3, 3)),
    "ConvolutionND": Row(lambda: L.ConvolutionND(2, 3, 4, 3), _of(*_IMAGE)),
    "Deconvolution1D": Row(lambda: L.Deconvolution1D(3, 4, 2), _of(2, 3, 5)),
    "Deconvolution2D": Row(lambda: L.Deconvolution2D(3, 2, 3, stride=2), _of(*_IMAGE)),
    "Deconvolution3D": Row(lambda: L.Deconvolution3D(2, 3, 2), _of(1, 2, 3, 3, 3)),
    "DeconvolutionND": Row(lambda: L.DeconvolutionND(2, 3, 4, 3), _of(*_IMAGE)),
    "DecorrelatedBatchNormalization": Row(lambda: L.DecorrelatedBatchNormalization(4, groups=2), _of(8, 4)),
    "DeformableConvolution2D": Row(lambda: L.DeformableConvolution2D(3, 2, 3, pad=1), _of(*_IMAGE)),
    "DepthwiseConvolution2D": Row(lambda: L.DepthwiseConvolution2D(3, 2, 3), _of(*_IMAGE)),
    "DilatedConvolution2D": Row(lambda: L.DilatedConvolution2D(3, 2, 2, dilate=2), _of(*_IMAGE)),
    "EmbedID": Row(lambda: L.EmbedID(4, 3), lambda seed: (np.roll(_CLASSES, seed),)),
    "EmbedID that ignores": Row(lambda: L.EmbedID(4, 3, ignore_label=-1), lambda seed: (np.roll(np.array([0, -1, 2, -1]), seed),)),
    "GroupNormalization": Row(lambda: L.GroupNormalization(1, 3), _of(*_IMAGE)),
    "GroupNormalization of a size to come": Row(lambda: L.GroupNormalization(3), _of(*_IMAGE)),
    "Highway": Row(lambda: L.Highway(3), _of(*_VECTOR)),
    "Inception": Row(lambda: L.Inception(3, 2, 2, 2, 2, 2, 2), _of(*_IMAGE)),
    "InceptionBN": Row(lambda: L.InceptionBN(3, 2, 2, 2, 2, 2, "avg", 2), _of(*_IMAGE)),
    "LayerNormalization": Row(lambda: L.LayerNormalization(3), _of(*_VECTOR)),
    "LayerNormalization of a size to come": Row(lambda: L.LayerNormalization(), _of(*_VECTOR)),
    "Linear": Row(lambda: L.Linear(3, 2), _of(*_VECTOR)),
    "Linear of a size to come": Row(lambda: L.Linear(2), _of(*_VECTOR)),
    "Linear over two axes": Row(lambda: L.Linear(3, 2, nobias=True),
                                lambda seed: ((variable(2, 4, 3, seed=seed),), {"n_batch_axes": 2})),
    "LocalConvolution2D": Row(lambda: L.LocalConvolution2D(3, 2, (5, 5), 3), _of(*_IMAGE)),
    "LocalConvolution2D of a size to come": Row(lambda: L.LocalConvolution2D(None, 2, ksize=3), _of(*_IMAGE)),
    "MLPConvolution2D": Row(lambda: L.MLPConvolution2D(3, (4, 2), 3), _of(*_IMAGE)),
    "Maxout": Row(lambda: L.Maxout(3, 2, 4), _of(*_VECTOR)),
    **{name: Row(lambda cls=getattr(L, name): cls(2, 2, 3, 0.3), _sequences((2, 2, 3)))
       for name in ("NStepGRU", "NStepRNNReLU", "NStepRNNTanh")},
    **{name: Row(lambda cls=getattr(L, name): cls(1, 2, 3, 0.3), _sequences((2, 2, 3)))
       for name in ("NStepBiGRU", "NStepBiRNNReLU", "NStepBiRNNTanh")},
    "NStepLSTM": Row(lambda: L.NStepLSTM(2, 2, 3, 0.3), _sequences((2, 2, 3), (2, 2, 3))),
    "NStepBiLSTM": Row(lambda: L.NStepBiLSTM(1, 2, 3, 0.3), _sequences((2, 2, 3), (2, 2, 3))),
    "NegativeSampling": Row(lambda: L.NegativeSampling(3, [3, 2, 4], 2), _labelled(*_VECTOR)),
    "PReLU": Row(lambda: L.PReLU((3,)), _of(*_VECTOR)),
    "Parameter": Row(lambda: L.Parameter(array(3, 2)), lambda seed: ()),
    "Scale": Row(lambda: L.Scale(1, (3,), True), _of(*_IMAGE)),
    "Scale of two": Row(lambda: L.Scale(1), _two(_IMAGE, (3,))),
    "SimplifiedDropconnect": Row(lambda: L.SimplifiedDropconnect(3, 2), _of(*_VECTOR)),
    "StatelessGRU": Row(lambda: L.StatelessGRU(3, 2), _two((4, 2), (4, 3))),
    "StatelessLSTM": Row(lambda: L.StatelessLSTM(3, 2), _two((4, 2), (4, 2), (4, 3))),
    "StatelessMGU": Row(lambda: L.StatelessMGU(3, 2), _two((4, 2), (4, 3))),
    "StatelessLSTM at first": Row(lambda: L.StatelessLSTM(None, 2), lambda seed: (None, None, variable(4, 3, seed=seed))),
    "Swish": Row(lambda: L.Swish((3,)), _of(*_VECTOR)),
    **{name: Row(lambda cls=cls: cls(3, 2), _of(*_VECTOR)) for name, cls in _CELLS.items()},
    "GRU without a state": Row(lambda: L.StatelessGRU(3, 2), _two((4, 2), (4, 3))),
    "LSTM of a size to come": Row(lambda: L.LSTM(2), _of(*_VECTOR)),
}

#: Entries without a row, and why.
WITHOUT = {
    "TheanoFunction": "Theano does not run on any supported Python",
    **dict.fromkeys(("ResNet50Layers", "ResNet101Layers", "ResNet152Layers"), "a model; ResNet50Layers is in tests/models"),
    **dict.fromkeys(("VGG16Layers", "VGG19Layers"), "a model; VGG16Layers is in tests/models"),
    "GoogLeNet": "a model; it is in tests/models",
}

_CALLS = 5


def arguments(row, seed):
    """Positional and keyword arguments of a call."""
    given = row.call(seed)
    return given if len(given) == 2 and isinstance(given[0], tuple) and isinstance(given[1], dict) else (given, {})


def train(row, link, function):
    """What can be seen of a link that is called, differentiated and updated again and again; the last but one in test mode."""
    optimizer = chainer.optimizers.MomentumSGD(0.01).setup(link)
    link.cleargrads()                                       # of a Parameter that was made with an array they are NaN
    found = []
    for seed in range(_CALLS):
        args, kwargs = arguments(row, seed)
        np.random.seed(seed)
        with chainer.using_config("train", seed != _CALLS - 2):
            found.append(observe(function, args, kwargs, [link])[0])
        if all(p.array is not None for p in link.params()):
            optimizer.update()
        link.cleargrads()
    return found


def compiled_and_eager(row):
    """Two links that are alike and their functions: compiled, and not."""
    np.random.seed(0)
    eager = row.make()
    compiled = copy.deepcopy(eager)
    if row.apply is None:
        return (to_static(compiled, strict=row.eager is None), None), (eager, eager)
    static = to_static(row.apply, strict=row.eager is None)
    return (compiled, lambda *args: static(compiled, *args)), (eager, lambda *args: row.apply(eager, *args)), static


def static_of(link):
    """The compiled method of a link."""
    return next(cls.__dict__[name] for cls in type(link).__mro__ for name in ("__call__", "forward") if name in cls.__dict__
                and hasattr(cls.__dict__[name], "stats"))


@once(tuple(ROWS))
def matrix_row(name):
    """Compare one row; the FunctionNode classes that stayed whole, and the calls that did."""
    row = ROWS[name]
    (compiled, function), (eager, plain), *rest = compiled_and_eager(row)
    expected = train(row, eager, plain)
    actual = train(row, compiled, function or compiled)
    problems = [f"call {k}: {line}" for k, pair in enumerate(zip(expected, actual)) for line in differences(*pair)]
    assert not problems, "\n".join(text[:400] for text in problems[:6])
    static = rest[0] if rest else static_of(compiled)
    info = static.cache_info()
    assert (info.captures == 0 < info.fallbacks) if row.eager else (info.fallbacks == 0 < info.captures), info
    return applied(static)
