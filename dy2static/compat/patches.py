"""What has to change in Chainer 7.8.1 for today's Python, NumPy, setuptools, protobuf and ONNX: one table.

Only the standard library is imported here: the start-up hook reads this table before anything else exists.
"""
from __future__ import annotations

import ast
from typing import Callable, Dict, NamedTuple, Tuple, Union

STANDINS = f"{__package__}.standins"
CUDA = f"{__package__}.cuda"


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

#: What gives the array that an object stands for.  It may be read-only: functions take it, and what is written to is a copy.
_ARRAY = "__chainer_array__"


def _seen(name: str) -> str:
    """The array that a variable of the source stands for, or its value where it stands for none."""
    return f"getattr({name}, {_ARRAY!r}, {name})"


def _own(name: str) -> str:
    """As `_seen`, with an array that has no other references."""
    return f"(numpy.array({name}.{_ARRAY}) if hasattr({name}, {_ARRAY!r}) else {name})"


PATCHES: Dict[str, Union[Tuple[Edit, ...], Rewrite]] = {
    # numpy.distutils went with Python 3.12, pkg_resources with setuptools 82; what both are imported for are
    # warnings about macOS Accelerate and about CuPy versions newer than Chainer, which are wanted here.
    "chainer._environment_check": (
        Edit("import numpy.distutils.system_info\n", "\n"),
        Edit("import pkg_resources\n", "\n"),
        Edit("\n    _check_osx_numpy_backend()\n    _check_optional_dependencies()\n", "\n\n\n"),
    ),
    # CuPy 13 does not look into NVIDIA's wheels for libraries.  CuPy 14 has no functions of cuDNN, and to install it again, which a
    # warning of Chainer's advises, changes nothing
    "chainer.backends.cuda": (
        Edit("    import cupy\n    from cupy import cuda  # NOQA\n",
             f"    import cupy; __import__({CUDA!r}, fromlist=['*']).preload(cupy.__version__)\n"
             "    from cupy import cuda  # NOQA\n"),
        Edit("            not getattr(check_cuda_available, '_already_warned', False)):\n",
             "            _cupy_major < 14 and not getattr(check_cuda_available, '_already_warned', False)):\n"),
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
    # NumPy 2: arrays have a .device of their own, and it is 'cpu'; Chainer prints 'CPU'.  The others: lazy arrays (see _ARRAY)
    "chainer.variable": (
        Edit("device = getattr(array, 'device', 'CPU')",
             "device = ('CPU' if isinstance(array, numpy.ndarray) else getattr(array, 'device', 'CPU'))"),
        Edit("if not isinstance(data, array_types):\n", f"if not isinstance(data := {_own('data')}, array_types):\n"),
        Edit("        self._set_array(d)\n", f"        self._set_array({_own('d')})\n"),
        Edit("            _check_grad_type(None, self, False, g)\n",
             f"            _check_grad_type(None, self, False, g := {_own('g')})\n"),
        Edit("elif numpy.isscalar(initializer):\n", f"elif numpy.isscalar(initializer := {_own('initializer')}):\n"),
        Edit("    if isinstance(obj, chainerx.ndarray):\n        requires_grad",
             f"    if isinstance(obj := {_seen('obj')}, chainerx.ndarray):\n        requires_grad"),
        Edit("        return obj.array\n    return obj\n", f"        return obj.array\n    return {_seen('obj')}\n"),
    ),
    "chainer.function_node": (
        Edit("x.raw_array if isinstance(x, variable.Variable) else x\n",
             f"x.raw_array if isinstance(x, variable.Variable) else {_seen('x')}\n"),
    ),
    "chainer.functions.math.basic_math": (
        Edit("    if not (numpy.isscalar(value)\n", f"    if not (numpy.isscalar(value := {_seen('value')})\n"),
    ),
    "chainer.functions.array.where": (
        Edit("z, = Where(condition).apply((x, y))", f"z, = Where({_seen('condition')}).apply((x, y))"),
    ),
    "chainer.functions.array.get_item": (
        Edit("        self.slices = slices\n\n    def check_type_forward",
             f"        self.slices = tuple([{_seen('s')} for s in slices])\n\n    def check_type_forward"),
    ),
    "chainer.initializers": (
        Edit("    if (isinstance(initializer, chainer.get_array_types())\n",
             f"    if (isinstance(initializer := {_seen('initializer')}, chainer.get_array_types())\n"),
        Edit("            or isinstance(initializer, chainer.get_array_types())\n",
             f"            or isinstance({_seen('initializer')}, chainer.get_array_types())\n"),
    ),
    # NumPy 2: meshgrid returns a tuple
    "chainer.distributions.categorical": (Edit("self.log_p[mg + [", "self.log_p[list(mg) + [", 2),),
    # NumPy 2: a Python int out of range (padding=-1 in an unsigned array) no longer wraps
    "chainer.functions.array.pad_sequence": (
        Edit("y[i, l:] = self.padding", "y[i, l:] = numpy.asarray(self.padding).astype(y.dtype)"),
    ),
    # NumPy 2.4: a third positional argument of `maximum` is deprecated; examples may be lazy arrays
    "chainer.dataset.convert": (
        Edit("numpy.maximum(shape, array.shape, shape)", "numpy.maximum(shape, array.shape, out=shape)"),
        Edit("        arrays = numpy.asarray(arrays)\n",
             f"        arrays = [{_seen('x')} for x in arrays] if hasattr(arrays[0], {_ARRAY!r}) else numpy.asarray(arrays)\n"),
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
