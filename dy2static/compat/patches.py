"""What has to change in Chainer 7.8.1 for today's Python, NumPy, setuptools, protobuf and ONNX: one table.

Only the standard library is imported here: the start-up hook reads this table before anything else exists.
"""
from __future__ import annotations

import ast
from typing import Callable, Dict, NamedTuple, Tuple, Union

STANDINS = f"{__package__}.standins"


class Edit(NamedTuple):
    """Replace ``old``, which must occur exactly so many times, by ``new``, which has as many lines."""

    old: str
    new: str
    times: int = 1


Rewrite = Callable[[str], str]


def rebuild_caffe_messages(source: str) -> str:
    """Return a module that has protobuf build the Caffe messages from their serialized description.

    protobuf 4 and later refuse generated code as old as Chainer's; the description inside it is still good.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.keyword) and node.arg == "serialized_pb" and isinstance(node.value, ast.Call):
            description = ast.literal_eval(node.value.args[0]).encode("latin1")
            return "\n".join([
                "from google.protobuf import descriptor_pool",
                "from google.protobuf.internal import builder",
                f"DESCRIPTOR = descriptor_pool.Default().AddSerializedFile({description!r})",
                "builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())",
                "builder.BuildTopDescriptorsAndMessages(DESCRIPTOR, __name__, globals())",
            ])
    raise ValueError("no serialized_pb in it")


_PKG_RESOURCES = Edit("import pkg_resources\n", f"from {STANDINS} import pkg_resources\n")
_ONNX_MAPPING = Edit("from onnx.mapping import NP_TYPE_TO_TENSOR_TYPE\n",
                     f"from {STANDINS} import NP_TYPE_TO_TENSOR_TYPE\n")

PATCHES: Dict[str, Union[Tuple[Edit, ...], Rewrite]] = {
    # numpy.distutils went with Python 3.12, pkg_resources with setuptools 82; what both are imported for are
    # warnings about macOS Accelerate and about CuPy versions newer than Chainer, which are wanted here.
    "chainer._environment_check": (
        Edit("import numpy.distutils.system_info\n", "\n"),
        Edit("import pkg_resources\n", "\n"),
        Edit("\n    _check_osx_numpy_backend()\n    _check_optional_dependencies()\n", "\n\n\n"),
    ),
    "chainer.testing.helper": (_PKG_RESOURCES,),
    "chainer.testing.doctest_helper": (_PKG_RESOURCES,),
    # np.sctypes went with NumPy 2
    "chainer.functions.array.as_strided": (
        Edit("np.sctypes['int']", "(np.int8, np.int16, np.int32, np.int64)"),
        Edit("np.sctypes['float']", "(np.float16, np.float32, np.float64, np.longdouble)"),
    ),
    # numpy.float went with NumPy 1.24
    "chainer.functions.array.resize_images": (Edit("numpy.float)", "float)", 6),),
    # NumPy 2: arrays have a .device of their own, and it is 'cpu'; Chainer prints 'CPU'
    "chainer.variable": (
        Edit("device = getattr(array, 'device', 'CPU')",
             "device = ('CPU' if isinstance(array, numpy.ndarray) else getattr(array, 'device', 'CPU'))"),
    ),
    # NumPy 2: meshgrid returns a tuple
    "chainer.distributions.categorical": (Edit("self.log_p[mg + [", "self.log_p[list(mg) + [", 2),),
    # NumPy 2: a Python int out of range (padding=-1 in an unsigned array) no longer wraps
    "chainer.functions.array.pad_sequence": (
        Edit("y[i, l:] = self.padding", "y[i, l:] = numpy.asarray(self.padding).astype(y.dtype)"),
    ),
    # NumPy 2.4: a third positional argument of `maximum` is deprecated
    "chainer.dataset.convert": (
        Edit("numpy.maximum(shape, array.shape, shape)", "numpy.maximum(shape, array.shape, out=shape)"),
    ),
    # NumPy 2: copy=False means "raise if a copy is needed"
    "chainermn.communicators._memory_utility": (
        Edit("v = xp.array(v, copy=False, dtype=transfer_dtype)", "v = xp.asarray(v, dtype=transfer_dtype)"),
    ),
    "chainer.links.caffe.protobuf3.caffe_pb2": rebuild_caffe_messages,
    # onnx.mapping went with onnx 1.19; onnx stamps an IR version newer than its onnxruntime loads
    "onnx_chainer.export": (
        _ONNX_MAPPING,
        Edit("model.ir_version = onnx.IR_VERSION", "model.ir_version = min(onnx.IR_VERSION, 10)"),
    ),
    "onnx_chainer.functions.math": (_ONNX_MAPPING,),
    "onnx_chainer.functions.array": (_ONNX_MAPPING,),
    "onnx_chainer.context": (
        Edit("onnx.mapping.STORAGE_TENSOR_TYPE_TO_FIELD.get(",
             f"__import__({STANDINS!r}, fromlist=['*']).STORAGE_TENSOR_TYPE_TO_FIELD.get("),
    ),
}


def apply(name: str, source: str) -> str:
    """Return the source of module ``name`` as this Python and NumPy can run it, line for line.

    Raises:
        ValueError: the source is not that of Chainer 7.8.1.
    """
    patch = PATCHES[name]
    if callable(patch):
        return patch(source)
    for old, new, times in patch:
        found = source.count(old)
        if found != times:
            raise ValueError(f"{old.strip()!r} occurs {found} times in it, not {times}")
        source = source.replace(old, new)
    return source
