"""The networks in inference engines, exported from their PyTorch twins: ONNX Runtime and OpenVINO."""
import os
import tempfile
import warnings

import numpy as np
import onnxruntime
import openvino
import torch

from cases import Case, Cells
from nets import in_torch as twins

VERSION = f"ONNX Runtime {onnxruntime.__version__}, OpenVINO {openvino.__version__.split('-')[0]}"
CELLS = Cells()
THREADS = int(os.environ["OMP_NUM_THREADS"])
OPSET = 17


def begin(mode):
    pass


def exported(model, inputs):
    """The path of the model in ONNX, with a folded graph for these inputs."""
    path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), tuple(torch.from_numpy(x) for x in inputs), path, dynamo=False, opset_version=OPSET,
                          input_names=[f"x{i}" for i in range(len(inputs))])
    return path


def in_onnxruntime(path, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    fed = {f"x{i}": x for i, x in enumerate(inputs)}
    return lambda: session.run(None, fed)[0]


def in_openvino(path, inputs):
    # float32 as everybody else: by itself it may choose bfloat16 where the CPU has instructions for that
    settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": THREADS, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    fed = {i: x for i, x in enumerate(inputs)}
    return lambda: request.infer(fed, share_inputs=True)[0]


ENGINES = {"onnxruntime": in_onnxruntime, "openvino": in_openvino}


def digest(y):
    total = y.astype(np.float64)
    return [total.sum(), np.abs(total).sum()]


def case_of(mode, model, *inputs):
    return Case(ENGINES[mode](exported(model, inputs), inputs), digest)


@CELLS.of("ResNet50.infer1 ResNet50.infer8 MobileNet.infer", *ENGINES)
def images(data, cell, mode):
    return case_of(mode, twins.IMAGES[cell.split(".")[0]](data), data["x"])


@CELLS.of("GPT.infer", *ENGINES)
def gpt(data, cell, mode):
    return case_of(mode, twins.gpt_of(data), data["x"].astype(np.int64))


@CELLS.of("BERT.infer", *ENGINES)
def bert(data, cell, mode):
    return case_of(mode, twins.bert_of(data), data["x"])


@CELLS.of("Graph.infer", *ENGINES)
def graph(data, cell, mode):
    return case_of(mode, twins.graph_of(data), data["x"], data["source"].astype(np.int64), data["target"].astype(np.int64))


@CELLS.of("Elements.infer", *ENGINES)
def elements(data, cell, mode):
    class Ten(torch.nn.Module):
        def forward(self, x, y):
            return twins.ten(x, y)
    case = case_of(mode, Ten(), data["x"], data["y"])
    return case._replace(check=lambda y: [float(y)])
