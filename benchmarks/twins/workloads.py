"""Networks of twelve kinds that are written once, for layers of Chainer and of PyTorch: the cells, and the inputs (NumPy only)."""
import numpy as np

from recent.workloads import normal

#: What each is, and the shape of its input; in tests, the last axes are shorter.
NETWORKS = {
    "Inception": ("three Inception blocks, 4 images of 56x56", (4, 3, 56, 56)),
    "Upscale": ("four residual blocks, and channels that become places (super-resolution), 2 images of 48x48", (2, 3, 48, 48)),
    "Atrous": ("convolutions with three dilations side by side (DeepLab), 2 images of 56x56", (2, 3, 56, 56)),
    "Ghost": ("six GhostNet blocks with squeeze and excitation, 4 images of 64x64", (4, 3, 64, 64)),
    "CSP": ("a CSP block and pyramid pooling (YOLO), 2 images of 128x128", (2, 3, 128, 128)),
    "MobileV3": ("seven MobileNetV3 blocks, 4 images of 128x128", (4, 3, 128, 128)),
    "Res2": ("three Res2Net blocks, 4 images of 64x64", (4, 3, 64, 64)),
    "Wave": ("eight WaveNet layers of 64 channels, 2 sequences of 1024", (2, 64, 1024)),
    "Points": ("PointNet, 8 clouds of 512 points", (8, 3, 512)),
    "Chars": ("three convolutions over characters, 8 texts of 256", (8, 70, 256)),
    "Windows": ("two layers of attention in windows (Swin), 4 images of 16x16 of 96 units", (4, 16, 16, 96)),
    "Conformer": ("two Conformer blocks without attention, 4 sequences of 100 of 144 units", (4, 100, 144)),
}
CELLS = {f"{name}.infer": f"{about}: inference" for name, (about, _) in NETWORKS.items()}
#: Shorter inputs for tests; the others are small enough.
_SMALL = {"MobileV3": (4, 3, 32, 32), "CSP": (2, 3, 32, 32), "Wave": (2, 64, 64), "Points": (8, 3, 32)}


def arrays(cell, small=False):
    """``inputs``, always the same ones; ``small``: sizes for tests."""
    name = cell.split(".")[0]
    shape = NETWORKS[name][1]
    return {"small": small, "inputs": [normal(np.random.RandomState(len(name)), *(_SMALL.get(name, shape) if small else shape))]}
