"""Networks: the cells, and the inputs and weights that every framework starts from (NumPy only).

A framework makes its model and fills it with `weight(name, shape)`: parameters have Chainer's names and layouts in all frameworks.
"""
import zlib

import numpy as np

CELLS = {
    "ResNet50.infer1": "ResNet-50, one image of 224x224: inference",
    "ResNet50.infer8": "ResNet-50, 8 images of 224x224: inference",
    "ResNet50.train": "ResNet-50, 4 images of 128x128: loss, gradients, update with SGD",
    "MobileNet.infer": "MobileNetV2, 8 images of 128x128: inference",
    "MobileNet.train": "MobileNetV2, 8 images of 128x128: loss, gradients, update with SGD",
    "UNet.train": "U-Net, 4 images of 64x64: loss, gradients, update with SGD",
    "GPT.infer": "4 causal transformer layers of 256 units, 4 sequences of 256: inference",
    "GPT.train": "the same: loss, gradients, update with Adam",
    "BERT.infer": "one layer of BERT-base, 8 sequences of 128: inference",
    "BERT.train": "the same: loss, gradients, update with SGD",
    "Tagger.recurring": "tagger with a bidirectional LSTM, 16 sequences of 5 to 40 words, three batches in turn: a step of Adam",
    "Tagger.fresh": "the same, with lengths that no batch had before",
    "Graph.infer": "graph network of two rounds, scatter_add, 1000 nodes of 64 units, 5000 edges: inference",
    "Graph.train": "the same: loss, gradients, update with SGD",
    "Decode.gru": "greedy decoding with a GRU, 128 units, 500 words, until a word ends it or 40 steps",
    "Decode.cache": "greedy decoding with attention, keys and values written into arrays",
    "Decode.lists": "the same, keys and values appended to lists",
    "Elements.infer": "ten elementwise operations on ten million elements",
    "Elements.grad": "the same, with the gradients of both inputs",
}
RATE = 0.01
#: Where batch normalization of few images amplifies rounding, also between one BLAS and another: smaller updates
RATES = {"ResNet50.train": 2e-5, "MobileNet.train": 1e-3}
BATCHES = 3                 # of the tagger, where they recur
STEPS = 40                  # of decoding, at most
#: MobileNetV2: expansion, channels, repetitions, stride of each stage
INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
INVERTED_SMALL = ((1, 8, 1, 1), (2, 8, 2, 2), (2, 12, 2, 1))
#: ResNet-50: inner channels, repetitions, stride of each stage
BOTTLENECKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
BOTTLENECKS_SMALL = ((4, 2, 1), (8, 2, 2))


def arrays(cell, small=False):
    """Inputs by name and sizes of the model, always the same ones; ``small``: sizes for tests."""
    name, what = cell.split(".")
    return {"small": small, **MAKERS[name](np.random.RandomState(len(cell)), what, small)}


def weight(name, shape):
    """The parameter or statistic of that name."""
    r, kind = np.random.RandomState(zlib.crc32(name.encode())), name.rsplit(".", 1)[-1]
    if kind in ("gamma", "avg_var"):
        return r.uniform(0.3, 0.7, shape).astype(np.float32)
    if kind == "W" and len(shape) > 1:
        return (r.standard_normal(shape) * np.sqrt(1.5 / np.prod(shape[1:]))).astype(np.float32)
    return (0.05 * r.standard_normal(shape)).astype(np.float32)


def recurrent(name, n_units, n_in):
    """The weights of one direction of an LSTM: (4n, n_in), (4n, n), (4n,), (4n,); gates are input, forget, candidate, output."""
    n = 4 * n_units
    shapes = {"x.W": (n, n_in), "h.W": (n, n_units), "x.b": (n,), "h.b": (n,)}
    return [weight(f"{name}.{part}", shape) for part, shape in shapes.items()]


# ---- inputs

def images(size, count, classes):
    def make(r, what, small):
        n, side = (2, 32) if small else (count.get(what, count["train"]), size.get(what, size["train"]))
        return {"x": r.standard_normal((n, 3, side, side)).astype(np.float32), "t": r.randint(0, classes, n).astype(np.int32)}
    return make


def segmented(r, what, small):
    n, side = (1, 16) if small else (4, 64)
    return {"x": r.standard_normal((n, 3, side, side)).astype(np.float32), "t": r.randint(0, 4, (n, side, side)).astype(np.int32),
            "width": 4 if small else 16}


def gpt(r, what, small):
    n, length, words, units, layers = (2, 8, 20, 16, 2) if small else (4, 256, 1000, 256, 4)
    return {"x": r.randint(0, words, (n, length)).astype(np.int32), "t": r.randint(0, words, (n, length)).astype(np.int32),
            "words": words, "units": units, "layers": layers, "heads": 4}


def bert(r, what, small):
    n, length, units, heads = (2, 6, 24, 4) if small else (8, 128, 768, 12)
    return {"x": r.standard_normal((n, length, units)).astype(np.float32),
            "t": r.standard_normal((n, length, units)).astype(np.float32), "units": units, "heads": heads}


def tagger(r, what, small):
    words, tags, units, n = (30, 5, 8, 3) if small else (1000, 20, 100, 16)
    return {"words": words, "tags": tags, "units": units, "count": n, "longest": 8 if small else 40}


def sentences(data, turn):
    """The lists of words and tags of that batch."""
    r = np.random.RandomState(100 + turn)
    lengths = sorted(r.randint(5, data["longest"] + 1, data["count"]), reverse=True)
    return [[r.randint(0, data[of], n).astype(np.int32) for n in lengths] for of in ("words", "tags")]


def graph(r, what, small):
    nodes, edges, units = (10, 30, 8) if small else (1000, 5000, 64)
    source, target = r.randint(0, nodes, (2, edges)).astype(np.int32)
    x, t = r.standard_normal((2, nodes, units)).astype(np.float32)
    return {"x": x, "t": t, "source": source, "target": target, "units": units}


def decoder(r, what, small):
    words, units = (20, 8) if small else (500, 128)
    return {"words": words, "units": units, "start": r.standard_normal((1, units)).astype(np.float32)}


def elements(r, what, small):
    n = 1000 if small else 10_000_000
    return {"x": r.standard_normal(n).astype(np.float32), "y": r.standard_normal(n).astype(np.float32)}


MAKERS = {
    "ResNet50": images({"infer1": 224, "infer8": 224, "train": 128}, {"infer1": 1, "infer8": 8, "train": 4}, 10),
    "MobileNet": images({"train": 128}, {"train": 8}, 10), "UNet": segmented, "GPT": gpt, "BERT": bert, "Tagger": tagger,
    "Graph": graph, "Decode": decoder, "Elements": elements,
}
