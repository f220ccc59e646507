"""``check=N``: calls that also run eagerly leave what one call leaves, and the first line that differs is named."""
import logging
import os
import random
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, variable
from against_eager import check as same_as_eager

import dy2static
from dy2static import to_static
from dy2static.backends.host import templates as generated
from dy2static.capture.effects import Effects
from dy2static.diagnostics.check.checked import CheckedCall
from dy2static.ir.op import OPS
from dy2static.lowering.registry import LOWERINGS
from dy2static.runtime.host_calls import Call
from dy2static.runtime.node import CompiledFunction
from dy2static.runtime.raising import raise_again

log = logging.getLogger(__name__)
seen, counts, total = [], {"calls": 0}, 0


def start():
    """Forget what earlier calls left behind."""
    global total
    total = 0
    seen.clear()
    counts["calls"] = 0


@pytest.fixture(autouse=True)
def _fresh():
    start()


# --- right programs: as if called once ---

class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.first, self.normalize, self.last = L.Linear(3, 4), L.BatchNormalization(4), L.Linear(4, 2)
        for p in self.params():
            p.array[...] = array(*p.shape, seed=p.size)
        self.steps, self.losses, self.history = 0, [], {}

    def forward(self, x):
        h = F.dropout(F.relu(self.normalize(self.first(x))))
        self.steps += 1
        self.history["last"] = self.hidden = h
        y = self.last(h)
        if float(F.sum(h).array) > 0:
            y = y * 2
            self.losses.append(float(F.sum(y).array))
        return y


def of_model(compile):
    model = Model()
    compiled = compile(Model.forward)
    return (lambda x: compiled(model, x)), [model]


def of_state(compile):
    def f(x, a, notes, box):
        global total
        total += 1
        counts["calls"] += 1
        seen.append(x.shape)
        notes["n"] = notes.get("n", 0) + 1
        box.add(len(box))
        a[0] = a[1] * 2
        a += 1
        print("sum", float(x.array.sum()))
        log.warning("called %d", total)
        return F.sin(x) * total, [a, notes], None
    start()
    notes, box, a = {}, set(), np.arange(3.0)
    compiled = compile(f)
    return (lambda x: compiled(x, a, notes, box)), [notes, box, a, seen, counts]


def of_draws(compile):
    generator = np.random.RandomState(3)

    def f(x):
        noise = np.random.uniform(-1, 1, 3).astype("f")
        return x * noise + random.random(), generator.randint(5)
    return compile(f), [generator]


def of_closure(compile):
    count = 0

    def f(x):
        nonlocal count
        count += 1
        while float(F.sum(x).array) < 3:
            x = x + 1
        return x * count
    return compile(f), [lambda: count]


def of_gradients(compile):
    w = chainer.Parameter(array(2, 3))

    def f(x):
        loss = F.sum((x * w) ** 2)
        w.cleargrad()
        loss.backward()
        w.array -= 0.1 * w.grad
        return loss.array
    return compile(f), [w]


def of_exceptions(compile):
    def f(x):
        seen.append(1)
        y = F.relu(x)
        if float(F.sum(y).array) > 0:
            raise ValueError("too much", 3)
        return y
    start()
    return compile(f), [seen]


RIGHT = {"model": of_model, "state": of_state, "draws": of_draws, "closure": of_closure, "gradients": of_gradients,
         "exceptions": of_exceptions}


@pytest.mark.parametrize("case", RIGHT)
def test_a_checked_call_leaves_what_one_call_leaves(case, caplog, capsys):
    f = same_as_eager(RIGHT[case], [lambda: (variable(2, 3),)] * 3, check=2)
    said = [record.getMessage() for record in caplog.records if record.name == __name__]
    assert said == ([f"called {n}" for n in range(1, 7)] * 2 if case == "state" else [])
    assert capsys.readouterr().out == ""


def test_texts_appear_once(capsys):
    f = to_static(lambda x: print("value", float(x.array.sum())) or F.relu(x), check=1)
    f(variable(2, low=1, high=1))
    assert capsys.readouterr().out == "value 2.0\n"


def test_only_the_first_calls_of_each_program_are_checked():
    f = to_static(lambda x: F.relu(x), check=2)
    kinds = []
    for size in (1, 1, 1, 2):
        f(variable(size))
        kinds.append(type(f.dispatcher.calls[0]) is CheckedCall)
    assert kinds == [True, False, False, True]
    assert type(f(variable(2)).creator) is not CompiledFunction
    assert type(f(variable(2)).creator) is CompiledFunction


def test_an_unchecked_function_calls_its_programs_directly():
    f = to_static(lambda x: F.relu(x))
    f(variable(2))
    assert [call.call for call in f.dispatcher.calls] == [f.dispatcher.programs[0].call]     # the first calls are counted
    for _ in range(60):
        f(variable(2))
    assert f.dispatcher.calls == [f.dispatcher.programs[0].call]


def test_a_link_class_and_methods_take_check():
    model = to_static(Model(), check=1)
    model(variable(2, 3))
    assert model.steps == 1 and len(model.forward.dispatcher.programs) == 1


# --- wrong programs: the first line that differs ---

def inner(h):
    z = F.relu(h)
    return F.tanh(z) * 2            # wrong: tanh


def values(x):
    y = F.sin(x) + 1
    if float(F.sum(y).array) > 0:
        y = inner(y)
    return F.sum(y + 1)


def loops(x):
    y = F.relu(x) + 1
    while float(F.sum(y).array) < 30:
        y = y + 1
        y = y + F.tanh(y)           # wrong: tanh in the loop
    return y


def numpy_values(x):
    a = x.array * 2
    b = np.tanh(a)
    c = np.array_split(b, 1)[0]    # wrong: split
    return F.sum(x * c)


def effects(x):
    y = F.relu(x)
    seen.append(1)                  # wrong: never written
    return y


def attributes(x, model):
    model.steps = model.steps + 2   # wrong: attribute
    return F.relu(x)


def texts(x):
    print("start")
    y = F.relu(x)
    print("sum", float(F.sum(y).array))     # wrong: text
    return y


def raises(x):
    if float(F.sum(x).array) > -100:
        raise ValueError
    return x


def gradients(x):
    y = F.sin(x)
    y = F.tanh(y)                   # wrong: gradient
    return F.sum(y * 3)


def wrong_lowering(patch):
    patch.setitem(LOWERINGS, type(F.tanh(variable(1)).creator), lambda node, x: OPS["relu"](x))


def wrong_code(patch):
    right = generated.filled
    patch.setattr(generated, "filled", lambda form, op, *rest: right(OPS["relu"].numpy if op.name == "tanh" else form, op, *rest))


def wrong_call(change):
    def apply(patch):
        right = Call.__call__
        patch.setattr(Call, "__call__", lambda call, *operands: change(call, right, *operands))
    return apply


def no_writes(patch):
    patch.setattr(Effects, "final_writes", lambda capture: ())


def no_raise(patch):
    patch.setattr(raise_again, "__code__", (lambda kind, *args: None).__code__)


def wrong_gradient(patch):
    right = OPS["tanh"].vjp
    object.__setattr__(OPS["tanh"], "vjp", lambda g, *rest, **attrs: right(g + g, *rest, **attrs))
    patch.callbacks.append(lambda: object.__setattr__(OPS["tanh"], "vjp", right))


def shout(call, right, *operands):
    if call.name == "print" and "sum" in str(call.args):
        print("!", end="")
    return right(call, *operands)


def draw_again(call, right, *operands):
    if call.name.startswith("random"):
        np.random.uniform()
    return right(call, *operands)


def draws(x):
    return x * np.random.uniform()


def split_wrongly(call, right, *operands):
    found = right(call, *operands)
    return [found[0] + 1] if call.name == "array_split" else found


#: function, further arguments, what is broken, the text of the line (or None: the function's), the words of the message.
WRONG = {
    "a value": (values, (), wrong_lowering, "return F.tanh(z) * 2", "result.array is "),
    "a value in generated code only": (values, (), wrong_code, "return F.tanh(z) * 2", "result.array is "),
    "a value in a loop": (loops, (), wrong_lowering, "y = y + F.tanh(y)", "result.array of shape (2, 3) differs most at ["),
    "a NumPy value": (numpy_values, (), wrong_call(split_wrongly), "c = np.array_split(b, 1)[0]", "result.array is "),
    "a global list": (effects, (), no_writes, "seen.append(1)", "seen has [0] only eagerly"),
    "an attribute": (attributes, (Model,), no_writes, "model.steps = model.steps + 2",
                     "model.steps is 2 eagerly, and 0 compiled"),
    "a text": (texts, (), wrong_call(shout), 'print("sum", float(F.sum(y).array))', "the standard output gets 'start"),
    "an exception": (raises, (), no_raise, None, "the call raises ValueError eagerly, and "),
    "random numbers": (draws, (), wrong_call(draw_again), "return x * np.random.uniform()", ""),
    "a gradient": (gradients, (), wrong_gradient, "y = F.tanh(y)", "the gradient of x"),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_first_line_that_differs_is_named(case, monkeypatch, capsys):
    function, more, broken, line, words = WRONG[case]
    monkeypatch.callbacks = []
    broken(monkeypatch)
    f = to_static(function, check=1)
    args = (variable(2, 3, low=0.5, high=1), *(make() for make in more))
    try:
        with pytest.raises(dy2static.DivergenceError) as caught, warnings.catch_warnings():
            warnings.simplefilter("error")
            f(*args).backward()
    finally:
        for undo in monkeypatch.callbacks:
            undo()
    error = caught.value
    first, place, shown, *_ = str(error).splitlines()
    assert first.startswith(f"D2S302: the compiled call of {function.__name__} differs from the eager call: ") and words in first
    assert place.startswith(f"  {os.path.abspath(__file__)}:")
    assert shown.partition("#")[0].strip() == (line or f"def {function.__name__}(x):")
    assert error.__cause__ is None and error.__context__ is None
    assert isinstance(error, AssertionError) and "not_to_static" in error.hint
    assert seen == [] or case != "a global list", "the state is that of the compiled call"


def test_what_cannot_be_put_back_is_not_checked(tmp_path):
    items = iter([1, 2, 3])

    @to_static(check=5)
    def f(x):
        next(items)
        return F.relu(x)
    with pytest.warns(dy2static.CheckWarning) as caught:
        f(variable(2))
    assert [(os.path.basename(w.filename), str(w.message).partition(": ")[2]) for w in caught] == [
        (os.path.basename(__file__), "it can reach a list_iterator, which cannot be put back")]
    assert next(items) == 2
    assert [call.call for call in f.dispatcher.calls] == [f.dispatcher.programs[0].call]


def test_gradients_of_a_result_that_was_written_are_not_compared():
    f = to_static(lambda x: (F.tanh(x), F.sum(F.tanh(x) * x)), check=1)
    x = variable(2, 3)
    y, loss = f(x)
    y.array[...] = 0.5
    loss.backward()
    assert x.grad is not None


def test_after_a_difference_calls_go_on(monkeypatch):
    wrong_lowering(monkeypatch)
    f = to_static(values, check=1)
    with pytest.raises(dy2static.DivergenceError):
        f(variable(2, 3))
    assert f(variable(2, 3)).array.shape == ()
