"""What users write who check with ``mypy --strict``: nothing of dy2static's is untyped there.  Types behind ``# is:``."""
from typing import Any

import numpy as np
from chainer.link import Chain
from chainer.variable import Variable

import dy2static
import dy2static.lazy as lazy
from dy2static import InputSpec, not_to_static, to_static
from dy2static.extensions import CompileReport

Array = np.ndarray[Any, Any]


@to_static
def scaled(x: Array, factor: float = 2.0) -> Variable:
    return Variable(x * factor)


reveal_type(scaled(np.ones(3)))                         # is: chainer.variable.Variable
scaled("x")                                             # error: arg-type
reveal_type(scaled.code)                                # is: str
reveal_type(scaled.stats()["captures"])                 # is: int
reveal_type(scaled.cache_info().captures)               # is: int
reveal_type([miss.reason for miss in scaled.explain_misses()])  # is: list[str]
reveal_type(scaled.program(np.ones(3)).source)          # is: str
scaled.clear_cache()
print(scaled.explain(np.ones(3)), scaled.graph)
with scaled.profile() as profile:
    scaled(np.ones(3))
print(profile)


class Model(Chain):
    @to_static(input_spec=[InputSpec([None, 3], "float32")])
    def forward(self, x: Array) -> Variable:
        return scaled(x)

    @not_to_static
    def logged(self, x: Array) -> int:
        return len(x)


model = Model()
reveal_type(model.forward(np.ones((2, 3))))             # is: chainer.variable.Variable
reveal_type(model.logged(np.ones(3)))                   # is: int
dy2static.save(model, "model", [InputSpec([None, 3], "float32")])
loaded = dy2static.load("model")
reveal_type(loaded)                                     # is: dy2static.saved.layer.TranslatedLayer
loaded(np.ones((2, 3)))
loaded.cleargrads()
dy2static.export.onnx(scaled, [np.ones(3)], "scaled.onnx")
dy2static.export.c(scaled, [np.ones(3)], "scaled")
dy2static.enable_to_static(False)
dy2static.set_verbosity(1)
dy2static.set_code_level("all")
dy2static.static_graph(scaled.python_function)
CompileReport()
y = lazy.array(np.ones(3)) + 1
reveal_type(y)                                          # is: dy2static.lazy.arrays.LazyArray
lazy.numpy.zeros(3)
reveal_type(y.sum(axis=0) > y[0])                       # is: dy2static.lazy.arrays.LazyArray
