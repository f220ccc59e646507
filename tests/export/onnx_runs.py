"""Runs of ONNX models in onnxruntime, for tests."""
import numpy as np
import pytest

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

#: How far a result may be from NumPy's, by the least exact dtype around.
TOLERANCE = {"float16": 5e-3, "float32": 2e-6, "float64": 1e-12}


def session(model):
    """A session of a model, or of a file, with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    model = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def run(model, inputs):
    """The results by their names; inputs that the model does not have are left out."""
    opened = model if isinstance(model, onnxruntime.InferenceSession) else session(model)
    known = {node.name for node in opened.get_inputs()}
    given = {name: np.asarray(value) for name, value in inputs.items() if name in known}
    return dict(zip([node.name for node in opened.get_outputs()], opened.run(None, given)))


def tolerance(*arrays):
    """How far results of these operands may be from NumPy's."""
    floats = [np.asarray(a).dtype.name for a in arrays if np.asarray(a).dtype.kind == "f"]
    return max([TOLERANCE[name] for name in floats], default=0)


def check(actual, expected, allowed, what=""):
    """Compare one result: shape, dtype, numbers."""
    expected = np.asarray(expected)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype), what
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=allowed, atol=allowed, err_msg=what)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=what)
