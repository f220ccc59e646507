"""The eight further networks in ONNX Runtime and OpenVINO, exported from their PyTorch twins."""
from cases import Cells
from further.in_torch import MODELS, model_of
from nets.in_engines import ENGINES, VERSION, begin, case_of

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


@CELLS.of(" ".join(name + ".infer" for name in MODELS), *ENGINES)
def further(data, cell, mode):
    return case_of(mode, model_of(data, cell), data["x"])
