"""What is known of the operators of ONNX: the dtypes that onnxruntime's kernels take, and the dtypes of results."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

_FLOATS = "float32 float64"
_NUMBERS = "int32 int64 float32 float64"


class Operator(NamedTuple):
    """What an operator takes and gives.

    dtypes: those that the kernel takes, None for any.  data: the operands in such a dtype, None for all.
    result: the dtype of the result; None: that of the first of these operands.
    """

    dtypes: Optional[Tuple[str, ...]]
    data: Optional[Tuple[int, ...]] = None
    result: Optional[str] = None


def _kernels(dtypes: str, names: str, data: Optional[Tuple[int, ...]] = None, result: Optional[str] = None) -> Dict[str, Operator]:
    return {name: Operator(tuple(dtypes.split()), data, result) for name in names.split()}


#: Operators that do not take every dtype.  Kernels of the CPU for half precision and small ints are left out: not every
#: onnxruntime has them.
_TABLE: Dict[str, Operator] = {
    **_kernels(_NUMBERS, "Add Sub Mul Div Mod Abs Sign Max Min MatMul"),
    **_kernels(_NUMBERS, "Clip"),
    **_kernels(_NUMBERS + " bool", "Equal", result="bool"),
    **_kernels(_NUMBERS, "Less Greater LessOrEqual GreaterOrEqual", result="bool"),
    **_kernels(_NUMBERS, "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd CumSum", (0,)),
    **_kernels(_NUMBERS, "Where", (1, 2)),
    **_kernels(_NUMBERS + " bool int8 uint8", "Pad", (0, 2)),
    **_kernels("int32 int64 float32 float64", "Neg"),
    **_kernels("int32 int64 float32 float64", "TopK", (0,)),
    **_kernels("int32 float32 float64", "ArgMax ArgMin", (0,), "int64"),
    **_kernels(_FLOATS, "Pow Floor Ceil Round Exp Log Sqrt Reciprocal Tanh Sigmoid Relu Sin Cos Softmax LogSoftmax Gemm"),
    **_kernels(_FLOATS, "DFT", (0,)),
    **_kernels(_FLOATS, "MaxPool BatchNormalization"),
    **_kernels(_FLOATS, "IsNaN IsInf", result="bool"),
    **_kernels("float32", "Erf Tan Asin Acos Atan Sinh Cosh Atanh Conv ConvTranspose AveragePool"),
    **_kernels("float32", "LayerNormalization HardSwish HardSigmoid"),
    **_kernels("float32", "Resize", (0,)),
    **_kernels("bool", "And Or Xor Not"),
    **_kernels(_NUMBERS, "ScatterElements ScatterND", (0, 2)),
    **{name: Operator(None, (), "int64") for name in ("Shape", "SequenceLength")},
}
_ANY = Operator(None)

#: What a dtype is converted to where a kernel does not take it, the nearest first.
_WIDER = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), ("int32", "int64", "float32")), "int32": ("int64", "float64"),
    "uint32": ("int64",), "uint64": ("int64",), "float16": ("float32", "float64"), "float32": ("float64",)}

#: Operators whose result for ints around 2 ** 64 is that of signed ints.
_AROUND = ("Add", "Sub", "Mul", "Neg", "ReduceSum", "CumSum", "MatMul", "Where", "Equal", "ScatterElements", "ScatterND")


def operator(name: str) -> Operator:
    """What is known of an operator."""
    return _TABLE.get(name, _ANY)


def widened(name: str, dtype: Any) -> Optional[np.dtype]:
    """The dtype in which an operator computes for operands of this one; None where there is none."""
    dtype, known = np.dtype(dtype), operator(name)
    if known.dtypes is None or dtype.name in known.dtypes:
        return dtype
    if name.startswith("Scatter") and dtype.kind == "b":
        return dtype
    if dtype == np.uint64 and name not in _AROUND:
        return None
    return next((np.dtype(wide) for wide in _WIDER.get(dtype.name, ()) if wide in known.dtypes), None)
