"""Seven of the recent networks in ONNX Runtime and OpenVINO, exported from their PyTorch twins: ONNX has no `cumprod` for NeRF."""
import numpy as np

from cases import Cells
from nets.in_engines import ENGINES, VERSION, begin, case_of
from recent.in_torch import MODELS, model_of

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


@CELLS.of(" ".join(name + ".infer" for name in MODELS if name != "NeRF"), *ENGINES)
def recent(data, cell, mode):
    inputs = [x.astype(np.int64) if x.dtype == np.int32 else x for x in data["inputs"]]
    return case_of(mode, model_of(data, cell), *inputs)
