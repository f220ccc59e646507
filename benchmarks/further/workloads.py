"""Eight further networks: the cells, and the inputs that every framework starts from (NumPy only)."""
import numpy as np

CELLS = {
    "VGG.infer": "VGG-11 (form for CIFAR), 16 images of 32x32: inference",
    "Dense.infer": "DenseNet of 3 blocks of 6 layers, growth 16, 16 images of 32x32: inference",
    "Squeeze.infer": "SqueezeNet of 8 fire modules, one image of 128x128: inference",
    "ResNeXt.infer": "ResNeXt of 6 blocks, 16 groups, 4 images of 64x64: inference",
    "Mixer.infer": "MLP-Mixer, 6 layers, 4 images of 128x128 in patches of 16: inference",
    "Temporal.infer": "temporal convolutions with dilation 1 to 32, 64 channels, 8 sequences of 256: inference",
    "Autoencoder.infer": "convolutions and deconvolutions with batch normalisation, 16 images of 32x32: inference",
    "Highway.infer": "ten highway layers of 512 units, batch 64: inference",
}
SHAPES = {"VGG": (16, 3, 32, 32), "Dense": (16, 3, 32, 32), "Squeeze": (1, 3, 128, 128), "ResNeXt": (4, 3, 64, 64),
          "Mixer": (4, 3, 128, 128), "Temporal": (8, 64, 256), "Autoencoder": (16, 3, 32, 32), "Highway": (64, 512)}
SMALL = {"Squeeze": (1, 3, 64, 64), "Mixer": (1, 3, 32, 32), "Temporal": (2, 8, 40), "Highway": (2, 16)}


def arrays(cell, small=False):
    """The input and its sizes, always the same ones; ``small``: sizes for tests."""
    name = cell.split(".")[0]
    shape = SMALL.get(name, (2, *SHAPES[name][1:])) if small else SHAPES[name]
    return {"small": small, "x": np.random.RandomState(len(name)).standard_normal(shape).astype(np.float32)}
