"""Random networks: functions and links of every family, composed as a user's model would, called and trained in turns.

Values are of a few kinds, each of one shape for a batch of n: ``I`` images (n, 4, 5, 6), ``M`` rows (n, 4), ``S``
sequences (n, 3, 4), ``Q`` squares (n, 3, 3), ``X`` scalars; ``a`` is an array of the shape of M, ``t`` are labels (n,),
``T`` bits (n, 4), ``r`` a number, ``k`` an int, ``b`` a test.  The tables below say what makes which kind of what.
"""
import builtins
import itertools
import linecache
import random
import re

import breaks
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

_serial = itertools.count()

ANY = """
F.relu({}); F.tanh({}); F.sigmoid({}); F.elu({}); F.leaky_relu({}, {r}); F.softplus({}); F.hard_sigmoid({})
F.clipped_relu({}, 0.5); F.selu({}); F.relu6({}); F.rrelu({}); F.sin({}); F.cos({}); F.absolute({})
F.square({}); F.sqrt(F.absolute({}) + 0.1); F.exp(-F.absolute({})); F.log(F.absolute({}) + 0.5)
F.log1p(F.absolute({})); F.expm1({} * 0.5); F.erf({}); F.erfc({}); F.sign({}); F.floor({}); F.ceil({})
F.fix({}); F.fmod({}, {} + 3.0); F.arctan({}); F.arctan2({}, {} + 2.0); F.maximum({}, {}); F.minimum({}, {})
F.clip({}, -0.5, 0.5); F.identity({}); F.cast({}, {}.dtype); F.squared_difference({}, {})
F.digamma(F.absolute({}) + 1.0); F.lgamma(F.absolute({}) + 1.0); F.logsumexp(F.stack([{}, {}]), axis=0)
F.sinh({}); F.cosh({} * 0.5); F.dropout({}, 0.4); F.gaussian({}, {}); F.zoneout({}, {}, 0.3)
F.where(({}.array > 0.1), {}, {}); F.ndtr({}); F.log_ndtr({}); ({} + {}); ({} - {}); ({} * {})
({} / (F.absolute({}) + 1.0)); -{}; ({} * {r}); ({r} - {}); ({} ** 2); (F.absolute({}) + 0.1) ** {r}
abs({}); F.add({}, {}, {}); F.average(F.stack([{}, {}]), axis=0); F.mean(F.stack([{}, {}]), 0)
F.max(F.stack([{}, {}]), axis=0); F.min(F.stack([{}, {}]), axis=0); F.sum(F.stack([{}, {}]), axis=0)
F.prod(F.stack([{}, {}]), axis=0); F.flip({}, -1); F.cumsum({}, axis=-1); F.cumprod({}, axis=-1)
F.broadcast_to({X}, {}.shape); {} * {X}; F.scale({}, {X}, axis=0); {} + {p}; F.bias({}, {X}, axis=0)
F.softmax({}, axis=-1); F.log_softmax({}, axis=-1); F.softmax({}); F.normalize({}, axis=1); F.copy({}, -1)
F.forget(lambda z: F.tanh(z) * 2, {}); F.forget(lambda z, y: z * F.sin(y), {}, {})
F.permutate({}, np.arange(len({}))[::-1].astype('i')); {}[::-1]; {}[..., ::-1]
F.concat([{}[1:], {}[:1]], axis=0); F.get_item({}, slice(None)); F.stack([{}, {}], axis=1)[:, {k} % 2]
F.separate(F.stack([{}, {}]))[{k} % 2]; F.vstack([{}, {}])[:len({})]; F.reshape(F.flatten({}), {}.shape)
F.rollaxis(F.rollaxis({}, 1), 1); F.swapaxes(F.swapaxes({}, 0, 1), 0, 1); F.transpose(F.transpose({}))
{}.T.T; F.expand_dims({}, 0)[0]; F.squeeze(F.expand_dims({}, 1), 1)
F.moveaxis(F.moveaxis({}, 0, -1), -1, 0); F.repeat({}, 2, axis=0)[::2]
F.tile({}, (2,) + (1,) * ({}.ndim - 1))[:len({})]
F.pad({}, 1, 'constant')[tuple(slice(1, -1) for _ in {}.shape)]
F.split_axis(F.concat([{}, {}], axis=1), 2, axis=1)[{k} % 2]; F.hstack([{}, {}])[:, :{}.shape[1]]
F.scatter_add({}, ([0],), {}[:1]); F.fliplr({}); F.flipud({}); chainer.as_variable({})
chainer.Variable({}.array); {}.array * {}; {} + {}.array; F.rsqrt(F.absolute({}) + 0.5)
F.arcsin(F.tanh({}) * 0.9); F.tan({} * 0.5); F.log10(F.absolute({}) + 0.3); F.log2(F.absolute({}) + 0.3)
F.erfinv(F.tanh({}) * 0.8); F.ndtri(F.sigmoid({}) * 0.8 + 0.1); F.erfcx({})
"""

TABLE = {
    "M": """
F.linear({M}, {w44}, {w4}); F.linear({M}, {w44}); F.matmul({M}, {w44}); {M} @ {w44}; F.embed_id({t}, {w44})
F.maxout(F.concat([{M}, {M}]), 2); F.crelu({M})[:, :4]; F.concat([{M}[:, :2], {M}[:, 2:]])
F.layer_normalization({M}, {w4}, {w4}); F.batch_normalization({M}, {w4}, {w4})
F.fixed_batch_normalization({M}, {w4}, {w4}, F.tanh({w4}), {w4} ** 2 + 0.5)
F.simplified_dropconnect({M}, {w44}, {w4}); F.sum({S}, axis=1)
F.lstm({M}, F.concat([{M}, {M}, {M}, {M}]))[{k} % 2]
F.tree_lstm({M}, {M}, F.concat([{M}, {M}, {M}, {M}, {M}]))[{k} % 2]
F.slstm({M}, {M}, F.concat([{M}] * 4), F.concat([{M}, {M}] * 2))[{k} % 2]; F.sum({S}, axis=1)
F.mean({S}, 1); F.max({S}, axis=1); F.average({S}, axis=1, weights={S}.array[0, :, 0] ** 2 + 0.1)
{S}[:, {k} % 3]; F.select_item({S}[:, 0], {t})[:, None] * {M}
F.reshape(F.average_pooling_2d({I}, (5, 6)), (-1, 4)); F.max({I}, axis=(2, 3)); F.sum({I}, (2, 3))
F.mean({I}, axis=(2, 3)); {I}[:, :, {k} % 5, 1]
F.spatial_pyramid_pooling_2d({I}, 1, pooling='max').reshape(-1, 4); F.scale({M}, {w4}, axis=1)
F.bias({M}, {w4}, axis=1); {M} * {w4}; F.einsum('nij,nj->ni', {Q}, {M}[:, :3]) @ {w34}
F.tensordot({M}, {w44}, axes=1); F.scatter_add({M}, (slice(None), 0), {M}[:, 1])
F.matmul({S}, {M}[:, :, None])[:, :, 0] @ {w34}; F.where({T} == 1, {M}, {M})
F.where({a} > 0, {M}, {M} * 0.5); F.embed_id({T}, {w44})[:, 0]
F.permutate({M}, np.array([1, 0, 3, 2], 'i'), axis=1); F.gumbel_softmax({M}, tau=0.7); {a} * {M}
F.broadcast({M}, {w4})[0]; F.broadcast({M}, {w4})[1]; chainer.Variable({a}); F.gaussian({M}, {M})
F.local_response_normalization({M}[:, :, None, None])[:, :, 0, 0]; F.dropout({M}, 0.3, mask=None)
F.det({Q}[0]) * {M}; F.diagonal({Q}, 0, 1, 2) @ {w34}; F.cumsum({M}, axis=1); F.cumprod({M}, axis=0)
{M}[{t} % len({M})]; {M}[np.arange(len({M})), {t}][:, None] + {M}; F.clip({M}, -1.0, 1.0)
F.huber_loss({M}, {M}, 0.4, reduce='no'); F.softmax_cross_entropy({M}, {t}, reduce='no')[:, None] * {M}
F.sigmoid_cross_entropy({M}, {T}, reduce='no'); F.absolute_error({M}, {M}); F.squared_error({M}, {M})
F.gaussian_nll({M}, {M}, {M}, reduce='no'); F.bernoulli_nll({M}, {M}, reduce='no')
F.hinge({M}, {t}, reduce='no'); F.gaussian_kl_divergence({M}, {M}, reduce='no'); F.zoneout({M}, {M}, 0.5)
F.array.get_item.get_item({M}, (Ellipsis, slice(None))); self.norm({M})
F.argmax({M}, axis=1).array.astype({M}.dtype)[:, None] * {M}
F.pad_sequence([{M}[0], {M}[0, :2]])[0][None] + {M}; F.max_pooling_1d({S}, 2, 1, 0)[:, 0, :3] @ {w34}
""",
    "S": """
F.stack([{M}, {M}, {M}], axis=1); F.reshape(F.concat([{M}, {M}, {M}]), (-1, 3, 4)); F.matmul({Q}, {S})
{Q} @ {S}; F.linear({S}, {w44}, {w4}, n_batch_axes=2); F.expand_dims({M}, 1) + {S}
F.broadcast_to({M}[:, None], {S}.shape); F.convolution_1d({S}, {w333}, pad=1)
F.deconvolution_1d({S}, {w333}, pad=1); F.max_pooling_1d({S}, 3, 1, 1); F.average_pooling_1d({S}, 3, 1, 1)
F.softmax({S}, axis=2); F.log_softmax({S}, axis=1); F.softmax({S}, axis=1)
F.concat([{S}[:, 1:], {S}[:, :1]], axis=1); F.stack(F.separate({S}, axis=1)[::-1], axis=1)
F.pad_sequence([{M}[0], {M}[-1], {M}[0]])[None] * {S}; F.einsum('nij,njk->nik', {Q}, {S})
F.tensordot({S}, {w44}, axes=1); F.stack(F.split_axis({S}, 3, axis=1))[:, :, 0].transpose(1, 0, 2)
{S}.transpose(0, 2, 1)[:, :3, :] @ {w34}; F.tile({M}[:, None], (1, 3, 1)); F.repeat({M}[:, None], 3, axis=1)
F.transpose({S}, (0, 2, 1))[:, :3] @ {w34}; F.embed_id({T}, {w44})[:, :3]
F.embed_id({T}, {w44}, ignore_label=0)[:, 1:]
F.layer_normalization(F.reshape({S}, (-1, 4)), {w4}, {w4}).reshape(-1, 3, 4)
F.batch_normalization({S}, {w4}, {w4}, axis=(0, 1)); F.cumsum({S}, axis=1)
F.transpose_sequence([{M}, {M}])[0][None, :1] + {S}
F.spatial_transformer_grid({S}[:, :2, :3], (3, 4))[:, 0]; F.unpooling_1d({S}[:, :, :2], 2, cover_all=False)
F.matmul({S}, {S}, transb=True)[:, :, :3] @ {S}
""",
    "I": """
F.convolution_2d({I}, {w4433}, {w4}, pad=1); F.deconvolution_2d({I}, {w4433}, pad=1)
F.convolution_2d({I}, {w4133}, pad=1, groups=4); F.convolution_2d({I}, {w4433}, pad=2, dilate=2)
F.dilated_convolution_2d({I}, {w4433}, pad=1); F.depthwise_convolution_2d({I}, {w1433}, pad=1)
F.max_pooling_2d({I}, 3, 1, 1); F.average_pooling_2d({I}, 3, 1, 1)
F.unpooling_2d(F.max_pooling_2d({I}, 2), 2, outsize=(5, 6))
F.local_response_normalization({I})
F.batch_normalization({I}, {w4}, {w4}); F.fixed_batch_normalization({I}, {w4}, {w4}, {w4}, {w4} ** 2 + 0.3)
F.group_normalization({I}, 2, {w4}, {w4}); F.depth2space(F.concat([{I}, {I}, {I}, {I}]), 2)[:, :, :5, :6]
F.sum(F.space2depth({I}[:, :, :4, :6], 2)[:, :4]) * {I}; F.shift(F.concat([{I}, {I}, {I}]))[:, :4]
F.im2col({I}, 3, 1, 1)[:, :4]; F.convolution_nd({I}, {w4433}, pad=1); F.max_pooling_nd({I}, 3, 1, 1)
F.average_pooling_nd({I}, 3, 1, 1); {M}[:, :, None, None] * {I}; F.scale({I}, {w4}, axis=1)
F.broadcast_to(F.reshape({M}, (-1, 4, 1, 1)), {I}.shape)
F.spatial_transformer_sampler({I}, F.tanh({I}[:, :2])); F.prelu({I}, {w4})
F.concat([{I}[:, 2:], {I}[:, :2]]); F.maxout(F.concat([{I}, {I}]), 2)
F.pad({I}[:, :, 1:-1], ((0, 0), (0, 0), (1, 1), (0, 0)), 'constant')
F.transpose({I}, (0, 1, 3, 2)).reshape({I}.shape); F.separate({I}, axis=1)[0][:, None] * {I}
F.swish({I}, {w4})
""",
    "Q": """
F.batch_inv({Q} + 3 * np.eye(3, dtype={M}.dtype)); F.matmul({Q}, {Q}); F.matmul({Q}, {Q}, transa=True)
{Q}.transpose(0, 2, 1); F.matmul({S}, {S}, transb=True); {Q} @ {Q}; F.einsum('nij,nkj->nik', {Q}, {Q})
F.stack([{M}[:, :3]] * 3, 1); F.matmul(F.reshape({M}[:, :3], (-1, 3, 1)), F.reshape({M}[:, :3], (-1, 1, 3)))
F.stack([F.inv({Q}[0] + 4 * np.eye(3, dtype={M}.dtype))] * len({Q})); F.swapaxes({Q}, 1, 2)
{I}[:, 1, :3, :3]; F.cumsum({Q}, axis=2); F.det({Q}[0]) * {Q}
F.stack([F.cholesky({Q}[0] @ {Q}[0].T + 5 * np.eye(3, dtype={M}.dtype))] * len({Q})); F.softmax({Q}, axis=2)
F.scatter_add({Q}, (slice(None), [0, 1, 0], [1, 2, 1]), {M}[:, :3])
""",
    "X": """
F.sum({M}); F.mean({S}); F.max({M}); F.min({S}); F.average({I}); F.softmax_cross_entropy({M}, {t})
F.softmax_cross_entropy({M}, {t}, class_weight=np.array([1, 2, 0.5, 1]).astype({M}.dtype))
F.softmax_cross_entropy({M}, {t} - 1); F.mean_squared_error({M}, {M}); F.mean_absolute_error({M}, {M})
F.huber_loss({M}, {M}, 0.5, reduce='sum_along_second_axis')[0]; F.sigmoid_cross_entropy({M}, {T})
F.sigmoid_cross_entropy({M}, {T}, normalize=False); F.hinge({M}, {t}); F.hinge({M}, {t}, 'L2')
F.bernoulli_nll({M}, {M}); F.gaussian_nll({M}, {M}, {M} * 0.2); F.gaussian_kl_divergence({M}, {M})
F.contrastive({M}, {M}, {T}[:, 0]); F.triplet({M}, {M}, {M}); F.decov({M}); F.cross_covariance({M}, {M})
F.logsumexp({M}); F.logsumexp({S}, axis=(1, 2))[0]; F.prod({Q}[0]); F.det({Q}[0])
F.connectionist_temporal_classification([{M}, {M}, {M}], {t}[:, None] % 3 + 1, blank_symbol=0)
F.crf1d({w44}, [{M}, {M}], [{t}, {t}])
F.negative_sampling({M}, {t}, {w44}, lambda shape: np.zeros(shape, 'i'), 2)
F.black_out({M}, {t}, {w44}, np.zeros((len({M}), 2), 'i') + 1); F.accuracy({M}, {t})
F.binary_accuracy({M}, {T}); F.r2_score({M}[:, 0], {a}[:, 1])
F.evaluation.accuracy.accuracy({M}, {t}, ignore_label=1); F.cast(F.precision({M}, {t}, 4)[0][1], DTYPE)
F.cast(F.f1_score({M}, {t})[0][0], DTYPE); F.sum(F.select_item({M}, {t})); {M}[0, 1]
{S}[{k} % len({S}), 0, 0]; F.sum(F.absolute({Q})) * 0.1; F.batch_l2_norm_squared({M})[0]
F.sum(F.batch_l2_norm_squared({I})); F.mean(F.normalize({M})); F.matmul({M}[0], {M}[0])
F.sum({I}, keepdims=True).reshape(()); F.squeeze(F.sum({M}, keepdims=True))
F.argmax({M}, axis=1).array.sum() * {X}; F.average({M}, weights={M}.array ** 2)
""",
}

#: Links: text of the constructor, what they take, and of which kind their result is.
LINKS = [
    ("L.Linear(4, 4)", "{M}", "M"),
    ("L.Linear(None, 4)", "{M}", "M"),
    ("L.Linear(None, 4, nobias=True)", "{I}", "M"),
    ("L.Convolution2D(4, 4, 3, pad=1)", "{I}", "I"),
    ("L.Convolution2D(None, 4, 3, pad=1, nobias=True)", "{I}", "I"),
    ("L.Deconvolution2D(4, 4, 3, pad=1)", "{I}", "I"),
    ("L.DilatedConvolution2D(4, 4, 3, pad=1)", "{I}", "I"),
    ("L.DepthwiseConvolution2D(4, 1, 3, pad=1)", "{I}", "I"),
    ("L.MLPConvolution2D(4, (4, 4), 1)", "{I}", "I"),
    ("L.BatchNormalization(4)", "{M}", "M"),
    ("L.BatchNormalization(4)", "{I}", "I"),
    ("L.BatchNormalization(4, use_gamma=False)", "{M}", "M"),
    ("L.BatchNormalization(axis=(0, 1), size=4)", "{S}", "S"),
    ("L.BatchRenormalization(4)", "{M}", "M"),
    ("L.LayerNormalization(4)", "{M}", "M"),
    ("L.LayerNormalization()", "{M}", "M"),
    ("L.GroupNormalization(2)", "{I}", "I"),
    ("L.EmbedID(4, 4)", "{t}", "M"),
    ("L.EmbedID(4, 4, ignore_label=0)", "{T}[:, :3]", "S"),
    ("L.Maxout(4, 4, 2)", "{M}", "M"),
    ("L.Highway(4)", "{M}", "M"),
    ("L.LSTM(4, 4)", "{M}", "M"),
    ("L.StatelessLSTM(4, 4)", "*[{M}, {M}, {M}]", "M2"),
    ("L.StatefulGRU(4, 4)", "{M}", "M"),
    ("L.StatelessGRU(4, 4)", "{M}, {M}", "M"),
    ("L.StatefulPeepholeLSTM(4, 4)", "{M}", "M"),
    ("L.StatefulZoneoutLSTM(4, 4)", "{M}", "M"),
    ("L.StatefulMGU(4, 4)", "{M}", "M"),
    ("L.ChildSumTreeLSTM(4, 4)", "{M}, {M}, {M}, {M}, {M}", "M2"),
    ("L.NaryTreeLSTM(4, 4, 2)", "{M}, {M}, {M}, {M}, {M}", "M2"),
    ("L.Scale(1, (4,))", "{M}", "M"),
    ("L.Bias(1, (4,))", "{M}", "M"),
    ("L.PReLU()", "{M}", "M"),
    ("L.PReLU()", "{I}", "I"),
    ("L.Swish(None)", "{I}", "I"),
    ("L.Swish((4,))", "{M}", "M"),
    ("L.SimplifiedDropconnect(4, 4)", "{M}", "M"),
    ("L.Convolution1D(3, 3, 3, pad=1)", "{S}", "S"),
    ("L.NStepLSTM(1, 4, 4, 0.2)", "None, None, list({S})", "L3"),
    ("L.NStepGRU(1, 4, 4, 0.0)", "None, list({S})", "L2"),
    ("L.NStepBiRNNTanh(1, 4, 2, 0.1)", "None, list({S})", "L2"),
    ("L.NStepRNNReLU(2, 4, 4, 0.0)", "None, list({S})", "L2"),
    ("L.Inception(4, 1, 1, 1, 1, 1, 1)", "{I}", "I"),
    ("L.InceptionBN(4, 1, 1, 1, 1, 1, 'avg', 1)", "{I}", "I"),
    ("L.CRF1d(4)", "[{M}, {M}], [{t}, {t}]", "X"),
    ("L.BinaryHierarchicalSoftmax(4, ((0, 1), (2, 3)))", "{M}, {t}", "X"),
    ("L.NegativeSampling(4, [3, 1, 2, 2], 2)", "{M}, {t}", "X"),
    ("L.BlackOut(4, [3, 1, 2, 2], 2)", "{M}, {t}", "X"),
    ("L.Classifier(L.Linear(4, 4))", "{M}, {t}", "X"),
    ("L.Parameter(np.ones((4,), DTYPE))", "", "P"),
    ("L.ConvolutionND(2, 4, 4, 3, pad=1)", "{I}", "I"),
    ("L.LocalConvolution2D(4, 4, (5, 6), 1)", "{I}", "I"),
    ("chainer.Sequential(L.Linear(4, 4), F.relu, L.Linear(4, 4))", "{M}", "M"),
    ("L.Linear(4, 4)", "{S}, n_batch_axes=2", "S"),
    ("L.DecorrelatedBatchNormalization(4, 2)", "{M}", "M"),
]

_HEAD = '''
class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        rng = np.random.RandomState(5)
        with self.init_scope():
{init}
        self.h, self.count, self.kept = None, 0, []

    def norm(self, z):
        return z / (F.sqrt(F.sum(z * z, axis=1, keepdims=True)) + 1)

    def reset_state(self):
        self.h = None
        self.count = 0
        for child in self.children():
            if hasattr(child, "reset_state"):
                child.reset_state()

    @compile
    def forward(self, i, m, s, t, T, r):
'''


class Network:
    """The text of a chain with a compiled ``forward``, and what is done with it; equal seeds give the same.

    broken: how often there are breaks (see `breaks`).
    """

    def __init__(self, seed, broken=0):
        self.random = random.Random(seed)
        self.dtype = self.pick("d", "d", "d", "f")
        self.lines, self.parameters, self.links, self.serial = [], set(), [], 0
        self.bound = {"I": ["i"], "M": ["m"], "S": ["s"], "Q": [], "X": [], "a": [], "r": ["r"]}
        self.rare = self.chance(0.3)
        for _ in range(self.random.randint(2, 6)):
            self.statement(2, 0)
        self.add(2, self.result())
        init = [f"self.{p} = chainer.Parameter(rng.uniform(-0.7, 0.7, {self.shape_of(p)}).astype(DTYPE))"
                for p in sorted(self.parameters)]
        init += [f"self.l{n} = {text}" for n, (text, _, _) in enumerate(self.links)]
        head = _HEAD.format(init="\n".join("            " + line for line in init or ["pass"]))
        self.text = head + "\n".join(self.lines) + "\n"
        if broken:
            self.text = breaks.insert(self.text, seed, broken)
        self.steps = [self.step() for _ in range(self.random.randint(3, 8))]
        self.optimizer = self.pick("SGD", "Adam", "MomentumSGD")

    @staticmethod
    def shape_of(parameter):
        return tuple(int(c) for c in parameter[1:]) if parameter != "p" else ()

    def make(self, compile):
        file = f"/random/network_{next(_serial)}.py"
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(True), file)
        names = {"F": F, "L": L, "np": np, "chainer": chainer, "DTYPE": self.dtype, "compile": compile,
                 "__name__": "random_network", **breaks.NAMES}
        with chainer.using_config("dtype", np.dtype(self.dtype)):
            exec(builtins.compile(self.text, file, "exec"), names)
            return names["Net"]()

    def step(self):
        """What is done next: a name and a number."""
        return self.pick("call", "call", "call", "backward", "backward", "loss", "grad", "update", "clear", "again", "write",
                         "reset", "test", "quiet", "parameter"), self.random.randint(0, 5)

    # --- text -----------------------------------------------------------------------------------------------------------

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, p):
        return self.random.random() < p

    def add(self, depth, line):
        self.lines.append("    " * depth + line)

    def expression(self, kind, depth=0):
        names = self.bound.get(kind, [])
        if kind == "a":
            return self.pick(*names, f"{self.expression('M', 3)}.array")
        if kind == "k":
            return self.pick("0", "1", "2", "self.count", "len(m)", f"int({self.expression('a')}.sum() > 0)")
        if kind == "r":
            return self.pick("0.5", "0.25", "1.5", "0.7", "r", "r", *[f"float({self.expression('M', 3)}.array[0, 0])"] * self.rare)
        if kind == "t":
            return "t"
        if kind == "T":
            return "T"
        if kind == "b":
            return self.pick("chainer.config.train", "self.count % 2", "r > 0.5", "len(m) > 2", "self.h is None",
                             *[f"float(F.sum({self.expression('M', 3)}).array) > {self.pick(-0.5, 0.0, 0.5)}", f"{self.expression('X', 3)}.array > 0",
                               f"{self.expression('a')}[0, 1] > 0.1", f"({self.expression('a')} > 0).any()"] * (1 + self.rare))
        if depth >= 2 and names:
            return self.pick(*names)
        if depth >= 3 and not names:
            return {"Q": "s[:, :, :3]", "X": "F.sum(m)"}[kind]
        if names and self.chance(0.15):
            return self.pick(*names)
        if self.chance(0.25):
            made = self.link(kind, depth)
            if made:
                return made
        if self.chance(0.45) or kind == "X" and self.chance(0.4):
            template = self.pick(*TABLES["ANY"]) if kind != "X" else self.pick("({} + {})", "({} * {})", "F.tanh({})", "F.sin({})", "F.relu({})", "F.exp(-F.absolute({}))", "{} * {r}")
            return self.fill(template, kind, depth + 1)
        return self.fill(self.pick(*TABLES[kind]), kind, depth + 1)

    def fill(self, template, kind, depth):
        def hole(match):
            what = match.group(1)
            if what[:1] == "w" or what == "p":
                self.parameters.add(what)
                return f"self.{what}"
            return self.expression(what or kind, depth)
        return re.sub(r"\{(\w*)\}", hole, template)

    def link(self, kind, depth):
        n = None
        there = [n for n, link in enumerate(self.links) if self.gives(link[2]) == kind]
        if there and self.chance(0.5):
            n = self.pick(*there)
        else:
            fitting = [link for link in LINKS if self.gives(link[2]) == kind]
            if not fitting:
                return None
            self.links.append(self.pick(*fitting))
            n = len(self.links) - 1
        _, takes, gives = self.links[n]
        call = f"self.l{n}({self.fill(takes, None, depth + 1)})"
        return {"M2": f"{call}[{self.random.randint(0, 1)}]", "L3": f"F.stack({call}[2])", "L2": f"F.stack({call}[1])", "P": f"{call} * {self.expression('M', depth + 1)}"}.get(gives, call)

    @staticmethod
    def gives(kind):
        return {"M2": "M", "P": "M", "L3": "S", "L2": "S"}.get(kind, kind)

    def new(self, kind, depth):
        """Assign a value of a kind to a name of it."""
        old = [n for n in self.bound[kind] if n.isidentifier()]
        if old and self.chance(0.4) and kind != "a":
            name = self.pick(*old)
        else:
            self.serial += 1
            name = f"{kind.lower()}{self.serial}"
        self.add(depth, f"{name} = {self.expression(kind)}" + (".copy()" if kind == "a" else ""))
        if name not in self.bound[kind]:
            self.bound[kind].append(name)

    def statement(self, depth, level):
        if level > 1 or self.chance(0.6):
            return self.flat(depth)
        self.pick(self.if_, self.if_, self.loop, self.with_, self.while_)(depth, level + 1)

    def flat(self, depth):
        kind = self.pick("M", "M", "M", "S", "I", "I", "Q", "X", "X")
        what = self.random.random()
        if what < 0.6:
            self.new(kind, depth)
        elif what < 0.68:
            self.add(depth, f"self.h = {self.expression('M')}")
        elif what < 0.72:
            self.add(depth, "self.count += 1")
        elif what < 0.78:
            self.new("a", depth)
            name = self.bound["a"][-1]
            self.add(depth, self.pick(f"{name}[0] = {self.expression('M', 3)}.array[0]", f"{name} *= 0.5", f"{name}[{name} > 0] = 0.1", f"np.maximum({name}, 0.1, out={name})"))
        elif what < 0.82:
            self.add(depth, f"self.kept.append({self.expression(self.pick('M', 'X'))})")
        elif what < 0.86:
            self.add(depth, f"chainer.report({{'loss': {self.expression('X')}}}, self)")
        elif what < 0.89:
            self.add(depth, f"{self.pick(*self.bound['M'])}.unchain_backward()" if len(self.bound["M"]) > 1 else "self.count += 2")
        elif what < 0.93:
            self.serial += 1
            m, x = self.expression("M", 3), self.expression("X")
            self.add(depth, f"g{self.serial}, = chainer.grad([{x}], [{m}], enable_double_backprop={self.pick(True, True, False)})")
            self.add(depth, f"m{self.serial} = g{self.serial} if g{self.serial} is not None else {m}")
            self.bound["M"].append(f"m{self.serial}")
        elif what < 0.96:
            self.add(depth, f"if {self.expression('b')}: raise ValueError('no')" if self.rare else "pass")
        else:
            self.serial += 1
            self.add(depth, f"m{self.serial} = {self.expression('M')} if self.h is None or len(self.h) != len(m) else self.h + {self.expression('M')}")
            self.bound["M"].append(f"m{self.serial}")

    def block(self, depth, level):
        before = {kind: list(names) for kind, names in self.bound.items()}
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth, level)
        self.bound = before

    def if_(self, depth, level):
        self.add(depth, f"if {self.expression('b')}:")
        self.block(depth + 1, level)
        if self.chance(0.6):
            self.add(depth, "else:")
            self.block(depth + 1, level)

    def loop(self, depth, level):
        self.serial += 1
        self.add(depth, f"for j{self.serial} in " + self.pick("range(2)", "range(len(m))", "(0.5, 0.25)", f"range({self.expression('k')} % 3)") + ":")
        self.block(depth + 1, level)

    def while_(self, depth, level):
        self.serial += 1
        c = f"c{self.serial}"
        self.add(depth, f"{c} = 0")
        self.add(depth, f"while {c} < 3 and {self.expression('b')}:")
        self.add(depth + 1, f"{c} += 1")
        self.block(depth + 1, level)

    def with_(self, depth, level):
        self.add(depth, "with " + self.pick("chainer.using_config('train', False)", "chainer.using_config('train', True)", "chainer.no_backprop_mode()",
                                            "chainer.using_config('enable_backprop', False)", "chainer.force_backprop_mode()") + ":")
        self.block(depth + 1, level)

    def result(self):
        x = self.expression("X")
        return self.pick(f"return {x}", f"return {x}, {self.expression('M')}", f"return {x}, {self.expression('X')}, {self.expression('I')}",
                         f"return {{'loss': {x}, 'y': {self.expression('M')}.array}}", f"return {x} + F.sum({self.expression('S')}) + F.sum({self.expression('I')})")


def _templates(text):
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";") if part.strip()]


TABLES = {kind: _templates(text) for kind, text in {**TABLE, "ANY": ANY}.items()}


def arguments(seed, dtype):
    """Arguments of a call: batches of one to four."""
    rng = np.random.RandomState(seed)
    n = (2, 3, 2, 1, 4, 2)[seed % 6]
    shapes = (n, 4, 5, 6), (n, 4), (n, 3, 4)
    xs = [chainer.Variable(rng.uniform(-1, 1, shape).astype(dtype), requires_grad=seed % 6 != 2) for shape in shapes]
    return (*xs, rng.randint(0, 4, n).astype("i"), rng.randint(0, 2, (n, 4)).astype("i"), (0.3, 0.8)[seed % 2])
