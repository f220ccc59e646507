"""The networks of twelve kinds in ONNX Runtime and OpenVINO, exported from their PyTorch twins."""
from cases import Cells
from nets.in_engines import ENGINES, VERSION, begin, case_of
from twins import workloads
from twins.in_torch import model_of

__all__ = ["CELLS", "VERSION", "begin"]
CELLS = Cells()


@CELLS.of(" ".join(workloads.CELLS), *ENGINES)
def inference(data, cell, mode):
    return case_of(mode, model_of(data, cell), *data["inputs"])
