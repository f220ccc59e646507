"""What surrounds native programs, in C and in Python: the same objects, gradients, updates, and the same refusals."""
import gc
import sys
import threading
import weakref
from types import SimpleNamespace

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer import Parameter, Variable, optimizers
from chainer.optimizer import GradientMethod
from chainer.optimizer_hooks import GradientClipping, WeightDecay

from dy2static import config, enable_to_static, to_static
from dy2static.native import compiler, library, team
from dy2static.program import hotpath
from dy2static.runtime import backprop, guard_tests, node, updating
from dy2static.runtime.guard_tests import GuardTable, fits
from dy2static.runtime.segment import BackwardProgram

pytestmark = pytest.mark.skipif(not compiler.available() or bool(library._problem()),
                                reason="there is no C compiler on this machine, or another Python")


@pytest.fixture(autouse=True)
def python_afterwards(monkeypatch):
    """Native functions are there where a test starts them, and not because of a native program."""
    with monkeypatch.context() as patch:
        patch.setattr(hotpath, "prepare", lambda: None)
        yield patch
    hotpath.stop()


def in_both(run):
    """What ``run()`` gives with the Python functions and with the native ones."""
    hotpath.stop()
    first = run()
    hotpath.start()
    assert type(node.make_variable) is not type(run)
    return first, run()


class Mixed(chainer.Chain):
    """Links of all three kinds, nested, and a parameter of its own."""

    def __init__(self, dtype):
        super().__init__()
        with self.init_scope(), chainer.using_config("dtype", dtype):
            self.b = Parameter(np.ones(3, dtype))
            self.a = L.Linear(4, 6)
            self.list = chainer.ChainList(L.Linear(6, 5), chainer.Sequential(F.relu, L.Linear(5, 3)))

    def forward(self, x):
        return self.list[1](F.relu(self.list[0](self.a(x)))) + F.broadcast_to(self.b, (len(x), 3))


def squares(model, x):
    return F.sum(model(x) ** 2)


def trained(optimizer, dtype=np.float32, steps=6, before=None, compiled=True):
    """Everything that a few steps leave behind."""
    np.random.seed(0)
    model = Mixed(dtype)
    optimizer = optimizer().setup(model)
    x = np.random.randn(2, 4).astype(dtype)
    loss = to_static(squares, backend="c") if compiled else squares
    losses = []
    for step in range(steps):
        if before is not None:
            before(model, optimizer, step)
        if step % 2:
            value = loss(model, x)
            model.cleargrads()
            value.backward()
            optimizer.update()
            losses.append(value.array)
        else:
            optimizer.update(loss, model, x)
    return state_of(model, optimizer), [repr(float(value)) for value in losses]


def state_of(model, optimizer):
    found = [optimizer.t, getattr(optimizer, "_loss_scaling_isnan", None)]
    for path, x in sorted(model.namedparams()):
        rule = x.update_rule
        found += [path, exact(x.array), exact(x.grad), x.grad_var is None or x.grad_var.requires_grad, x._grad_valid,
                  x._loss_scale, rule.t, sorted((name, exact(array)) for name, array in (rule.state or {}).items())]
    return found


def exact(array):
    return None if array is None else (array.dtype.str, array.shape, array.tobytes())


OPTIMIZERS = {
    "SGD": lambda: optimizers.SGD(0.05), "MomentumSGD": lambda: optimizers.MomentumSGD(0.02), "Adam": optimizers.Adam,
    "Adam, other numbers": lambda: optimizers.Adam(0.01, 0.8, 0.99, 1e-6, 0.7), "AdamW": lambda: optimizers.AdamW(0.01, weight_decay_rate=0.1),
    "AMSGrad": optimizers.AMSGrad, "AdaBound": optimizers.AdaBound, "RMSprop": lambda: optimizers.RMSprop(eps=1e-4),
    "SGD, a whole number": lambda: optimizers.SGD(1), "SGD, a NumPy number": lambda: optimizers.SGD(np.float64(0.05)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda d: d.__name__)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_updates(name, dtype):
    first, second = in_both(lambda: trained(OPTIMIZERS[name], dtype))
    assert first == second


@pytest.mark.parametrize("name", ["SGD", "MomentumSGD", "Adam"])
def test_updates_that_threads_share(name):
    """Shares that end within a parameter, and that have several, give the same bits; where one is not finite, NumPy does all."""
    def run():
        model = chainer.ChainList(L.Linear(250, 301), L.Scale(0, (7,)), L.Linear(400, 150))
        optimizer = OPTIMIZERS[name]().setup(model)
        for number, parameter in enumerate(model.params()):
            parameter.array[...] = np.linspace(-2, number, parameter.size).reshape(parameter.shape)
        for step in range(3):
            for parameter in model.params():
                parameter.grad = parameter.array * np.float32(0.7)
            if step == 2:
                model[2].W.grad[7] = np.inf
            with np.errstate(all="ignore"):
                optimizer.update()
        return state_of(model, optimizer)
    before = config.THREADS.value
    team.team().handle.insist(1)
    team.set_threads(3)
    try:
        first, second = in_both(run)
    finally:
        team.team().handle.insist(0)
        config.THREADS.value = before
        team.set_threads(team.wanted())
        config.THREADS.value = before
    assert first == second


class Doubled(optimizers.sgd.SGDRule):
    def update_core_cpu(self, param):
        param.data -= 2 * self.hyperparam.lr * param.grad


def with_own_rule(model, optimizer, step):
    if step == 1:
        model.a.W.update_rule = Doubled(optimizer.hyperparam)


def with_a_method_replaced(model, optimizer, step):
    if step == 1:
        rule = model.a.b.update_rule
        rule.update_core = lambda param: Doubled.update_core_cpu(rule, param)


def shared(model, optimizer, step):
    if step == 1:
        with model.init_scope():
            model.again = model.a


def with_a_huge_gradient(model, optimizer, step):
    if step == 3:
        model.b.array[...] = 1e38


PREPARATIONS = {
    "a rate of its own": lambda m, o, k: setattr(m.a.W.update_rule.hyperparam, "lr", 0.5),
    "a rate that changes": lambda m, o, k: setattr(o, "lr", 0.1 / (k + 1)),
    "a rule switched off": lambda m, o, k: setattr(m.a.b.update_rule, "enabled", k % 2 == 0),
    "no rule": lambda m, o, k: setattr(m.list[0].W, "update_rule", None),
    "a rule of the user's": with_own_rule,
    "a method of the user's": with_a_method_replaced,
    "a hook of a rule": lambda m, o, k: k == 2 and m.a.W.update_rule.add_hook(WeightDecay(0.1), "decay"),
    "a hook": lambda m, o, k: k == 2 and o.add_hook(WeightDecay(0.1)),
    "a hook of all": lambda m, o, k: k == 0 and o.add_hook(GradientClipping(0.5)),
    "loss scaling": lambda m, o, k: o.set_loss_scale(8.0),
    "a link that is there twice": shared,
    "overflow": with_a_huge_gradient,
    "Fortran order": lambda m, o, k: setattr(m.a.W, "array", np.asfortranarray(m.a.W.array)),
    "a leaf that needs none": lambda m, o, k: k == 3 and setattr(m.a, "b", Parameter(np.ones(6, np.float32)))}


@pytest.mark.parametrize("name", PREPARATIONS)
@pytest.mark.filterwarnings("ignore")
def test_what_is_not_plain(name):
    """Compared with eager Chainer as well, where the forward is computed alike."""
    def run():
        try:
            return trained(lambda: optimizers.SGD(0.05), before=PREPARATIONS[name])
        except (AttributeError, TypeError) as error:
            return str(error)
    first, second = in_both(run)
    assert first == second


def test_a_read_only_parameter_raises_what_chainer_raises():
    def run():
        model = Mixed(np.float32)
        optimizer = optimizers.SGD().setup(model)
        squares(model, np.ones((2, 4), np.float32)).backward()
        optimizer.update(squares, model, np.ones((2, 4), np.float32))
        model.a.W.array.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            optimizer.update()
        return optimizer.t, [x.update_rule.t for x in model.params()]
    first, second = in_both(run)
    assert first == second


def test_parameters_without_arrays_are_cleared():
    def run():
        link = L.Linear(None, 3)
        link.cleargrads()
        return link.W.grad if link.W._grad_valid else "invalid", link.W._grad_initializer, exact(link.b.grad)
    first, second = in_both(run)
    assert first == second


def gradients(function, *arrays, prepare=lambda *leaves: None, steps=2, **options):
    """What backward leaves at the leaves, as often as ``steps``, and at the loss."""
    compiled = to_static(function, backend="c")
    leaves = [Variable(array.copy()) for array in arrays]
    found = []
    for _ in range(steps):
        prepare(*leaves)
        loss = compiled(*leaves)
        loss.backward(**options)
        found.append([exact(loss.grad), loss._grad_valid])
        for x in leaves:
            found.append([exact(x.grad), x.grad_var is None or (x.grad_var.requires_grad, x.grad_var.creator is None),
                          x._loss_scale])
    return found


def clear(*leaves):
    for x in leaves:
        x.cleargrad()


def without_first(*leaves):
    clear(*leaves)
    leaves[0]._requires_grad = leaves[0]._node._requires_grad = False


A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32) * 2
BACKWARDS = {
    "cleared": (lambda x, y: F.sum(x * x * y), {"prepare": clear}),
    "added up": (lambda x, y: F.sum(x * x * y), {}),
    "one leaf twice": (lambda x, y: F.sum(x * y) + F.sum(x), {"prepare": clear}),
    "not reached": (lambda x, y: F.sum(x * x), {"prepare": clear}),
    "of one element": (lambda x, y: F.sum(x * y, keepdims=True), {"prepare": clear}),
    "loss scale": (lambda x, y: F.sum(x * y), {"prepare": clear, "loss_scale": 4.0}),
    "retain_grad": (lambda x, y: F.sum(x * y), {"prepare": clear, "retain_grad": True}),
    "double backprop": (lambda x, y: F.sum(x * x * y), {"prepare": clear, "enable_double_backprop": True}),
    "no gradient wanted": (lambda x, y: F.sum(x * y), {"prepare": without_first}),
    "double precision": (lambda x, y: F.sum(F.cast(x, "float64") * 3.0), {"prepare": clear}),
    "the gradient itself": (lambda x, y: F.sum(x) + F.sum(y), {"prepare": clear}),
}


@pytest.mark.parametrize("name", BACKWARDS)
@pytest.mark.filterwarnings("ignore")
def test_backward(name):
    function, options = BACKWARDS[name]
    first, second = in_both(lambda: gradients(function, A, B, **options))
    assert first == second


def double(x):
    return F.sum(x * x)


@pytest.mark.parametrize("what", ["all there", "some gone", "one with a gradient", "one is the loss of another"])
def test_backward_where_a_call_makes_several(what):
    def run():
        compiled, x = to_static(lambda x: (x * 3, F.sum(x * x), F.sum(F.exp(x)), x * 2), backend="c"), Variable(A.copy())
        found = []
        for _ in range(3):
            x.cleargrad()
            y, loss, other, z = compiled(x)
            if what == "some gone":
                del y, other
            elif what == "one with a gradient":
                y.grad = A.copy()
            elif what == "one is the loss of another":
                other.backward()
                found.append(exact(x.grad))
            loss.backward()
            found += [exact(x.grad), exact(z.grad), exact(loss.grad), x.grad_var.requires_grad]
        return found
    first, second = in_both(run)
    assert first == second


@pytest.mark.parametrize("what", ["debug", "hooks", "a gradient given", "another thread", "twice", "no leaf left"])
@pytest.mark.filterwarnings("ignore")
def test_backward_in_other_circumstances(what):
    def run():
        compiled, x = to_static(double, backend="c"), Variable(A.copy())
        compiled(x).backward()
        x.cleargrad()
        loss = compiled(x)
        if what == "debug":
            with chainer.using_config("debug", True):
                loss.backward()
        elif what == "hooks":
            with chainer.function_hooks.TimerHook() as hook:
                loss.backward()
            return exact(x.grad), len(hook.call_history)
        elif what == "a gradient given":
            loss.grad = np.full((), 3, np.float32)
            loss.backward()
        elif what == "another thread":
            thread = threading.Thread(target=loss.backward)
            thread.start()
            thread.join()
        elif what == "twice":
            loss.backward()
            x.cleargrad()
            loss.backward()
        else:
            kept, grad = x.array, weakref.ref(x)
            loss.cleargrad()
            del x
            gc.collect()                                # what the capture left behind
            loss.backward()
            return exact(kept), grad() is None
        return exact(x.grad), chainer.config.enable_backprop, "enable_backprop" in chainer.config._local.__dict__
    first, second = in_both(run)
    assert first == second


def test_objects_are_the_same():
    """Attributes of Variables and nodes, their order included, and who holds whom."""
    def run():
        x = Variable(A.copy())
        y = node.make_variable(A, True)
        node.connect(node.HiddenLeaves.segment, (x,), (y,), (A,), None, False)
        creator = y.creator_node
        found = [[(name, type(value).__name__) for name, value in item.__dict__.items()] for item in (y, y.node, creator)]
        assert y.node.get_variable() is y and creator.outputs[0]() is y.node and creator.inputs == (x.node,)
        assert y.array is A and y.node.dtype is A.dtype and y.shape == y.node.shape == A.shape and gc.is_tracked(y)
        return found, y.rank, creator.rank, creator.held[0] is A, creator._output_count, creator.lazy_grad_sum
    first, second = in_both(run)
    assert first == second


FITTING = {
    "as expected": (np.zeros((2, 3), np.float32), True), "Fortran order": (np.zeros((2, 3), np.float32, "F"), True),
    "with gaps": (np.zeros((2, 6), np.float32)[:, ::2], True), "a dtype made anew": (np.zeros((2, 3), np.dtype("=f4")), True),
    "another byte order": (np.zeros((2, 3), np.dtype("f4").newbyteorder()), False), "another dtype": (np.zeros((2, 3)), False),
    "longer": (np.zeros((2, 4), np.float32), False), "one axis more": (np.zeros((2, 3, 1), np.float32), False),
    "no axis": (np.zeros((), np.float32), False), "empty": (np.zeros((0, 3), np.float32), False),
    "a subclass": (np.zeros((2, 3), np.float32).view(np.matrix), False), "a number": (1.0, False), "None": (None, False),
    "a scalar": (np.float32(1), False), "a shape and a dtype": (Variable(np.zeros((2, 3), np.float32)), False),
}


@pytest.mark.parametrize("name", FITTING)
def test_arrays_as_expected(name):
    item, fitting = FITTING[name]
    expected = [(np.array(shape, np.int64).tobytes(), np.dtype(dtype)) for shape, dtype in (((2, 3), "f"), ((), "i8"))]

    def run():
        number = np.zeros((), np.int64)
        return fits(expected[:1], item), fits(tuple(expected), item, number), fits(tuple(expected), number, item)
    hotpath.stop()
    first = run()
    hotpath.start()
    expected = tuple(expected)
    assert first == run() == (fitting, fitting, False)


def test_calls_find_the_program_that_fits():
    hotpath.start()
    compiled = to_static(lambda x, y, z: x * y + z, backend="c")
    for dtype in (np.float32, np.float64):
        for shapes in (((2, 3), (2, 3), (3,)), ((2, 3), (3,), (3,)), ((3,), (3,), ()), ((2, 3), (2, 3), (2, 3))):
            arrays = [np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape) for shape in shapes]
            for _ in range(2):
                np.testing.assert_array_equal(compiled(*arrays), arrays[0] * arrays[1] + arrays[2])
            inputs = [Variable(x) for x in arrays]
            assert "fits" in compiled.program(*arrays).entry
            assert type(compiled(*inputs[:2], arrays[2])) is Variable
    assert compiled.stats()["captures"] == 16


def test_chainer_shows_its_own_methods():
    assert Variable.backward.__doc__ and GradientMethod.update.__wrapped__ is updating._update
    assert Variable.backward.__wrapped__ is backprop._backward and chainer.Link.cleargrads.__wrapped__ is updating._cleargrads


HELD = {
    "as expected": ((3, 2), (2, 6), "f", False), "another number": ((4, 2), (2, 6), "f", True), "empty": ((0, 2), (2, 6), "f", False),
    "another first axis": ((3, 3), (2, 6), "f", True), "another saved array": ((3, 2), (4, 6), "f", True),
    "another dtype": ((3, 2), (2, 6), "d", True), "one axis more": ((3, 2, 1), (2, 6), "f", True), "no axis": ((), (2, 6), "f", True),
    "larger": ((3, 6), (6, 6), "f", False)}


@pytest.mark.parametrize("name", HELD)
def test_replaced_arrays_of_free_sizes(name, monkeypatch):
    shape, saved, dtype, replaced = HELD[name]
    x, w = Variable(np.zeros(shape, dtype)), Variable(np.zeros(5, "f"))
    held = (3, x.node, w.node, np.zeros(saved, "f"), np.zeros(saved[0]))
    for variable in (x, w):
        variable.node.retain_data()
    expected = [(("n" if name == "empty" else 3, "m"), "<f4"), ((5,), "<f4"), (("m", 6), "<f4"), (("m",), "<f8")]
    program = BackwardProgram(lambda: (), tuple([("held", k) for k in range(5)]), (None, *expected), (True,))

    def run():
        return node.is_replaced(held, program)
    assert in_both(run) == (replaced, replaced)
    if not replaced:                                    # it asks no Python function then
        monkeypatch.setattr(node, "_fits", None)
        assert not run()
    assert program.is_plain


@pytest.mark.parametrize("sizes", [(2,), (2, 3, 4)], ids=["known", "free"])
@pytest.mark.parametrize("optimizer", [optimizers.SGD, optimizers.MomentumSGD, optimizers.Adam, optimizers.AdamW])
def test_plain_steps_do_without_chainer(optimizer, sizes, monkeypatch):
    hotpath.start()
    model, loss = Mixed(np.float32), to_static(squares, backend="c")
    optimizer = optimizer().setup(model)
    for size in sizes:
        x = np.ones((size, 4), np.float32)
        optimizer.update(loss, model, x)                # makes the states and the backward program
    steps = len(sizes) + 1
    for module, name in ((backprop, "_backward"), (updating, "_update"), (updating, "_cleargrads")):
        monkeypatch.setattr(module, name, None)
    before = model.a.W.array.copy()
    optimizer.update(loss, model, np.ones((sizes[-1] + len(sizes) - 1, 4), np.float32))
    assert optimizer.t == steps and (model.a.W.array != before).any()
    enable_to_static(False)
    try:
        with pytest.raises(TypeError, match="not callable"):
            model.cleargrads()
        with pytest.raises(TypeError, match="not callable"):
            optimizer.update()
    finally:
        enable_to_static(True)


@pytest.fixture
def coming(python_afterwards, monkeypatch):
    """The functions come an hour after the first native program."""
    python_afterwards.undo()
    hotpath.stop()
    monkeypatch.setattr(hotpath.hotpath, "is_kept", lambda: False)
    monkeypatch.setattr(hotpath, "_SECONDS", 3600)
    monkeypatch.setattr(hotpath, "_waiting", [])
    with config.BACKGROUND.set(1):
        yield
    for timer in hotpath._waiting:
        timer.cancel()


def test_two_threads_make_the_first_native_program(coming, monkeypatch):
    """Both found that nobody had begun; the second one started the timer of the first again, which then ended with an error."""
    both = threading.Barrier(2)
    monkeypatch.setattr(hotpath.hotpath, "is_kept", lambda: both.wait(60) and False)
    threads = [threading.Thread(target=hotpath.prepare) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hotpath._waiting) == 2 and all(timer.is_alive() for timer in hotpath._waiting)


@pytest.mark.parametrize("cores, running, is_waiting", [(2, 1, True), (2, 0, False), (4, 2, False), (4, 3, True), (1, 0, False)])
def test_the_functions_come_after_what_programs_wait_for(monkeypatch, cores, running, is_waiting):
    """On two cores, the compilers of the products, of the program and of these functions took the core from the program itself."""
    builds, begun, clock = [SimpleNamespace(is_compiling=True)] * running, [], iter(range(100))
    monkeypatch.setattr(compiler.cpus, "cores", lambda: cores)
    monkeypatch.setattr(compiler, "_running", builds)
    monkeypatch.setattr(hotpath, "start", lambda: begun.append(len(builds)))
    monkeypatch.setattr(hotpath, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda seconds: builds.clear()))
    hotpath._start_beside()
    assert begun == [0 if is_waiting else running]
    monkeypatch.setattr(compiler, "are_busy", lambda: True)             # and it does not wait for good
    hotpath._start_beside()
    assert len(begun) == 2 and next(clock) > hotpath._MOST_SECONDS


def test_calls_that_wait_for_native_code_wait_for_the_functions(coming):
    with config.BACKGROUND.set(0):
        to_static(double, backend="c")(Variable(A.copy()))
    assert not hotpath._waiting and type(node.make_variable).__name__ != "function"


def test_programs_made_meanwhile_have_them_too(coming):
    """While the library is being compiled."""
    compiled = to_static(double, backend="c")
    y = compiled(Variable(A.copy()))
    space = compiled.dispatcher.programs[0].call.__globals__
    assert space["make_variable"] is node.make_variable and type(node.make_variable).__name__ == "function"
    hotpath.start()
    assert space["make_variable"] is node.make_variable and type(node.make_variable).__name__ != "function"
    assert exact(compiled(Variable(A.copy())).array) == exact(y.array) and not hotpath._early


def test_tables_made_meanwhile_are_asked_by_native_code(coming):
    """The guards of a program that is there before the library are a table, which Python asks until then."""
    model, x = Mixed(np.float32), np.ones((2, 4), np.float32)
    compiled = to_static(squares, backend="c")
    losses = [compiled(model, x).array for _ in range(2)]
    space = compiled.dispatcher.programs[0].call.__globals__
    assert any(type(value) is GuardTable for value in space.values()) and type(space["check"]).__name__ == "function"
    hotpath.start()
    assert space["check"] is guard_tests.check and type(space["check"]).__name__ != "function"
    losses.append(compiled(model, x).array)
    assert len({exact(loss) for loss in losses}) == 1 and compiled.stats()["captures"] == 1
    assert len(compiled(model, x[:1]).array.shape) == 0 and compiled.stats()["captures"] == 2


def test_nothing_is_left_behind():
    """References and memory over many steps."""
    hotpath.start()
    model, x = Mixed(np.float32), np.ones((2, 4), np.float32)
    optimizer, loss = optimizers.Adam().setup(model), to_static(squares, backend="c")

    def steps(count):
        for _ in range(count):
            value = loss(model, x)
            model.cleargrads()
            value.backward()
            optimizer.update()

    def counts():
        gc.collect()
        held = [None, True, False, Variable, Parameter, model.a.W, model.a.W.array, np.dtype("f"), x, model.a.W.update_rule]
        return [sys.getrefcount(item) for item in held], len(gc.get_objects())
    steps(20)
    before = counts()
    steps(300)
    after = counts()
    assert after[1] - before[1] < 50          # what tests before have left may go meanwhile
    # the only one of them, and immortal or not, counts vary by what else runs
    assert all(abs(now - then) < 100 for then, now in zip(before[0], after[0])), (before, after)


def test_garbage_is_collected():
    hotpath.start()
    x = Variable(A.copy())
    y = to_static(double, backend="c")(x)
    y.itself = y
    seen = weakref.ref(y)
    del y
    gc.collect()
    assert seen() is None


def test_variables_that_a_search_has_found_are_not_used_again():
    """Who holds all objects that there are, as debuggers do, also holds those that wait to be used again."""
    hotpath.start()
    model, x = Mixed(np.float32), np.ones((2, 4), np.float32)
    loss = to_static(squares, backend="c")

    def step():
        value = loss(model, x)
        value.backward()
        return value
    for _ in range(20):
        expected = step().array
        model.cleargrads()              # the gradients wait to be used again
    found = gc.get_objects()
    value = step()
    np.testing.assert_array_equal(value.array, expected)
    for variable in (value, *[parameter.grad_var for parameter in model.params()]):
        assert not any(item is variable or item is vars(variable) or item is variable.node for item in found)
