"""Networks of eight kinds that people have trained since 2014: the cells, and the inputs of every framework (NumPy only)."""
import numpy as np

#: What each is, before inference, or a step of SGD.
NETWORKS = {
    "Text": "convolutions over 3, 4 and 5 words of 100 numbers, 32 texts of 50 words",
    "ConvNeXt": "six ConvNeXt blocks (7x7 depthwise) of 96 and 192 channels, 4 images of 112x112",
    "Efficient": "seven MBConv blocks with squeeze and excitation, 4 images of 96x96",
    "Shuffle": "twelve ShuffleNet blocks of 64 and 128 channels, 8 images of 64x64",
    "Video": "three convolutions over three axes (C3D), 4 clips of 16 images of 32x32",
    "ViT": "four layers of a vision transformer of 192 units, 8 images of 64x64 in patches of 8",
    "Diffusion": "U-Net with group normalization and embedded times, 4 images of 32x32",
    "NeRF": "radiance field of 128 units, 128 rays of 32 points",
}
CELLS = {f"{name}.{what}": f"{about}: {'inference' if what == 'infer' else 'loss, gradients, update with SGD'}"
         for name, about in NETWORKS.items() for what in ("infer", "train")}
RATE = 1e-3
CLASSES = 10
#: EfficientNet: channels, size of the windows, stride and expansion of each block.
STAGES = ((32, 16, 3, 1, 1), (16, 24, 3, 2, 6), (24, 24, 3, 1, 6), (24, 40, 5, 2, 6), (40, 40, 5, 1, 6), (40, 80, 3, 2, 6),
          (80, 80, 3, 1, 6))
_IMAGES = {"ConvNeXt": (4, 3, 112, 112), "Efficient": (4, 3, 96, 96), "Shuffle": (8, 3, 64, 64), "Video": (4, 3, 16, 32, 32),
           "ViT": (8, 3, 64, 64), "Diffusion": (4, 3, 32, 32)}
_SMALL = {"ConvNeXt": (2, 3, 32, 32), "Efficient": (2, 3, 32, 32), "Shuffle": (2, 3, 16, 16), "Video": (2, 3, 8, 8, 8),
          "ViT": (2, 3, 16, 16), "Diffusion": (2, 3, 8, 8)}


def arrays(cell, small=False):
    """``inputs``, ``target`` and sizes of the model, always the same ones; ``small``: sizes for tests."""
    name = cell.split(".")[0]
    r = np.random.RandomState(len(name))
    if name == "Text":
        count, words = (3, 9) if small else (32, 50)
        return {"small": small, "inputs": [r.randint(0, 5000, (count, words)).astype(np.int32)], "target": labels(r, count)}
    if name == "NeRF":
        rays, points = (3, 4) if small else (128, 32)
        inputs = [normal(r, rays, points, 3), np.full((rays, points), 0.1, np.float32)]
        return {"small": small, "inputs": inputs, "target": r.random_sample((rays, 3)).astype(np.float32)}
    shape = (_SMALL if small else _IMAGES)[name]
    inputs = [normal(r, *shape)]
    if name == "Diffusion":
        return {"small": small, "inputs": [*inputs, np.arange(shape[0], dtype=np.float32)], "target": normal(r, *shape)}
    return {"small": small, "inputs": inputs, "target": labels(r, shape[0])}


def normal(r, *shape):
    return r.standard_normal(shape).astype(np.float32)


def labels(r, count):
    return r.randint(0, CLASSES, count).astype(np.int32)
