"""Generated code calls nothing of the compiler: what its names stand for is of the run time, of ops, or the user's."""
import functools
import types

import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import links as L

from dy2static import not_to_static, to_static
from dy2static.backends.host import function as host_functions
from dy2static.ir.op import OPS
from dy2static.program import entry, guards
from dy2static.runtime.host_calls import Call

#: Rooms whose functions and objects programs may hold.  native and c.executor: native code and what runs where it declines.
ALLOWED = ("dy2static.runtime.", "dy2static.ops.", "dy2static.ir.", "dy2static.errors", "dy2static.native.",
           "dy2static.backends.c.executor", "dy2static.backends.c.draws")


def home(value):
    """The module that a value, or its class, comes from."""
    if isinstance(value, types.ModuleType):
        return value.__name__ + "."
    named = isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type))
    return str((value if named else type(value)).__module__)


def parts(value, seen):
    """The value and what it is made of."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    inner = ()
    if isinstance(value, Call):
        inner = value.function, value.args, value.kwargs, value.flatten, value.within
    elif isinstance(value, (tuple, list)):
        inner = value
    elif type(value) is dict and "__name__" not in value:        # globals of the user's functions are the user's
        inner = value.values()
    elif isinstance(value, types.MethodType):
        inner = value.__self__, value.__func__
    elif isinstance(value, functools.partial):
        inner = value.func, value.args
    for item in inner:
        parts(item, seen)


def foreign(namespace):
    """What is the compiler's among all that a namespace holds."""
    seen, of_ops = {}, {id(op.numpy) for op in OPS.values()}
    parts(namespace, seen)
    return sorted({f"{home(value)}: {value!r}"[:200] for value in seen.values()
                   if home(value).startswith("dy2static") and not home(value).startswith(ALLOWED) and id(value) not in of_ops})


@pytest.fixture
def namespaces(monkeypatch):
    """Every namespace that generated code gets."""
    found = []
    for module in (host_functions, entry, guards):
        def spy(source, filename, namespace, *places, compile_text=module.compile_text, **keep):
            found.append(dict(namespace))
            return compile_text(source, filename, namespace, *places, **keep)
        monkeypatch.setattr(module, "compile_text", spy)
    return found


class Model(chainer.Chain):

    def __init__(self):
        super().__init__()
        self.seen, self.calls, self.table = [], 0, {}
        with self.init_scope():
            self.embed, self.out = L.EmbedID(5, 3), L.Linear(3, 2)

    def forward(self, words, x):
        h = self.embed(words) * x[:, None]
        steps = []
        for k in range(3):
            if float(h.array.sum()) > 0:
                h = F.tanh(h) + k
            steps.append(h)
        y = x.array.copy()
        y[0] = 2
        self.calls += 1
        self.seen.append(self.calls)
        self.table[f"{self.calls:03d}"] = len(steps)
        host(y)
        while float(F.sum(h).array) > 100:
            h *= 0.5
        chainer.report({"size": F.sum(h)}, self)
        return self.out(F.dropout(h)), own(h), np.sort(y), y[y > 0]


class Own(chainer.FunctionNode):

    def forward(self, inputs):
        return inputs[0] * 2,

    def backward(self, indexes, grads):
        return grads[0] * 2,


def own(x):
    return Own().apply((x,))[0]


@not_to_static
def host(array):
    return array.shape


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_generated_code_knows_nothing_of_the_compiler(namespaces, backend):
    model = Model()
    step = to_static(Model.forward, backend=backend)
    for scale in (1, -1, 1):
        x = chainer.Variable(np.linspace(-1, 1, 4).astype("f") * scale)
        y = step(model, np.array([0, 1, 2, 3]), x)
        F.sum(y[0]).backward(enable_double_backprop=True)
    assert step.cache_info().programs and len(namespaces) > 4
    assert [problem for namespace in namespaces for problem in foreign(namespace)] == []


def test_what_is_of_the_compiler_is_found():
    call = Call(guards.compile_diagnosis, (), {}, None, "call")
    assert [text.partition(":")[0] for text in foreign({"name": [call]})] == ["dy2static.program.guards"]
