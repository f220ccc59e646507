"""Exceptions under decisions on array values are those of eager: class, state, cause, context, and the user's lines."""
import dataclasses
import sys

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import Picture, differences

from dy2static import to_static


class Diverged(Exception):
    def __init__(self, loss, step=0):
        super().__init__(f"loss {loss} at step {step}")
        self.loss, self.step = loss, step


class Later(Diverged):
    pass


class Described(ValueError):
    def __init__(self, text, **more):
        ValueError.__init__(self, text)
        self.__dict__.update(more)


class Slotted(Exception):
    __slots__ = ("loss", "unset")

    def __new__(cls, *args):
        made = super().__new__(cls, *args)
        made.tag = "new"
        return made

    def __init__(self, loss):
        self.loss = loss


class Denied(OSError):
    def __init__(self, loss):
        super().__init__(2, f"no file {loss}", "name")


class Ended(StopIteration):
    pass


@dataclasses.dataclass
class Told(Exception):
    loss: float
    past: list = dataclasses.field(default_factory=list)


class Exit(BaseException):
    pass


class Model(chainer.Chain):
    n = 0


model, many = Model(), []


def of_class(cls, **more):
    def program(loss, x):
        model.n += 1
        if loss.array > 1e3:
            raise cls(float(loss.array), **more)
        model.n += 1
        return loss
    program.__name__ = cls.__name__
    return program


def with_attributes(loss, x):
    if loss.array > 1e3:
        raise Described("bad %s" % loss.array, loss=loss, x=x, model=model, parts=[x.array, {"loss": loss.array}])
    return loss


def attribute_of_a_built_in_one(loss, x):
    try:
        if loss.array > 1e3:
            raise ValueError("big")
    except ValueError as error:
        error.loss = float(loss.array)
        print(error)
        error.x = x
        raise
    return loss


def check(loss, step):
    if loss.array > 1e3:
        raise Diverged(float(loss.array), step)


def raised_from_one_of_a_callee(loss, x):
    try:
        check(loss, 1)
    except Diverged as error:
        many.append(error.loss)
        raise Later(error.loss, error.step + 1) from error
    return loss


def three_in_a_chain(loss, x):
    try:
        try:
            check(loss, 2)
        except Diverged as error:
            raise Later(error, 3) from error
    except Later as error:
        raise ValueError(str(error), error, error.__cause__) from None
    return loss


def while_one_is_handled(loss, x):
    try:
        raise KeyError("key")
    except KeyError:
        check(loss, 4)
    return loss


def from_another_that_was_not_raised(loss, x):
    if loss.array > 1e3:
        raise Diverged(1) from KeyError(float(loss.array))
    return loss


def in_finally(loss, x):
    try:
        check(loss, 5)
    finally:
        check(loss * 0.5, 6)
    return loss


def in_a_loop(loss, x):
    for step in range(4):
        loss = loss * 2
        try:
            check(loss, step)
        except Diverged as error:
            raise RuntimeError(f"in step {error.step}") from error
    return loss


def after_a_loop_on_values(loss, x):
    failed = None
    while loss.array < 20 and failed is None:
        loss = loss * 2
    try:
        check(loss, 7)
    except Diverged as error:
        failed = error
    if failed is not None:
        raise Later(failed.loss) from failed
    return loss


def of_no_exception(loss, x):
    try:
        if loss.array > 1e3:
            raise Exit(float(loss.array))
    except Exception:
        print("never")
    return loss


def leaving_the_program(loss, x):
    print("before")
    if loss.array > 1e3:
        raise SystemExit(int(loss.array))
    return loss


def mean_of_what_comes_before_a_large_one(loss, x):
    total, n = 0, 0
    for row in (loss, x[0] / 1000):
        if row.array > 1e3:
            break
        total += row
        n += 1
    return total / n


def of_an_empty_list(loss, x):
    found = []
    if loss.array < 1e3:
        found.append(loss)
    many.append(len(found))
    return found[0] * x


def of_a_tuple(loss, x):
    weights = (1, 2)
    if loss.array < 1e3:
        weights = (1, 2, 3)
    return loss * weights[2]


def of_a_missing_key(loss, x):
    losses = {"loss": loss}
    if loss.array < 1e3:
        losses["small"] = loss
    try:
        return losses["small"]
    except KeyError as error:
        raise Later(float(loss.array), 3) from error


def ended_in_a_generator(loss, x):
    def rows():
        yield loss
        if loss.array > 1e3:
            raise StopIteration
        yield loss * 2
    return sum(rows())


def found_in(loss, x):
    return x if loss.array < 1e3 else None


def attribute_of_none(loss, x):
    return found_in(loss, x).array * 2


def attribute_of_a_number_in_a_function_of_chainer(loss, x):
    total = 0
    if loss.array < 1e3:
        total += x
    return F.reshape(total, (2, 1))


def items_of_none(loss, x):
    model.n += 1
    try:
        return found_in(loss, x)[0]
    except TypeError as error:
        raise Later(float(loss.array)) from error


def parts_of_none(loss, x):
    first, second = found_in(loss, x)
    return first * second


def loop_over_none(loss, x):
    return sum(row for row in found_in(loss, x)) if loss.array == 1 else [row * 2 for row in found_in(loss, x)]


PROGRAMS = [*map(of_class, (Diverged, Later, Slotted, Denied, Ended, Told, Exit, KeyError)), with_attributes,
            attribute_of_a_built_in_one, raised_from_one_of_a_callee, three_in_a_chain, while_one_is_handled,
            from_another_that_was_not_raised, in_finally, in_a_loop, after_a_loop_on_values, of_no_exception, leaving_the_program,
            mean_of_what_comes_before_a_large_one, of_an_empty_list, of_a_tuple, of_a_missing_key, ended_in_a_generator,
            items_of_none, parts_of_none, loop_over_none]
if sys.version_info >= (3, 10):         # from there on, an AttributeError knows the object
    PROGRAMS += [attribute_of_none, attribute_of_a_number_in_a_function_of_chainer]


def shown(error, picture):
    """All that can be seen of an exception and of those behind it."""
    if error is None:
        return None
    lines, step = [], error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == __file__ and step.tb_frame.f_code.co_name not in ("observed", "call"):
            lines.append((step.tb_frame.f_code.co_name, step.tb_lineno))
        step = step.tb_next
    state = {name: getattr(error, name, None) for name in ("loss", "errno", "strerror", "filename", "value", "code", "name", "obj")}
    return (type(error).__name__, str(error), repr(error), picture.of([error.args, dict(error.__dict__), state]),
            error.__suppress_context__, tuple(lines), shown(error.__cause__, picture), shown(error.__context__, picture),
            error.__cause__ is error.__context__)


def observed(function, program, number):
    x = chainer.Variable(np.array([number, 2], "f"))
    picture = Picture()
    result, error = None, None
    try:
        raise LookupError("around the call")
    except LookupError:
        try:
            result = function(x)
        except BaseException as raised:
            error = raised
    return {"seen": picture.of([x, result, model, many]), "error": shown(error, picture)}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_the_exception_of_eager(program, capsys):
    def call(x):
        return program(F.sum(x * x), x)

    def all_calls(function):
        model.n = 0
        many.clear()
        return [observed(function, program, number) for number in (1, 100, 200, 2)], capsys.readouterr().out
    (eager, said), (compiled, said_compiled) = all_calls(call), all_calls(to_static(call, strict=True, backend="numpy"))
    assert said_compiled == said and [found["error"] is None for found in eager] == [True, False, False, True]
    assert [line for pair in zip(eager, compiled) for line in differences(*pair)] == []


def test_what_is_raised_without_a_decision_leaves_the_call_after_its_effects(capsys):
    @to_static
    def leave(x):
        print("first")
        raise SystemExit(3)
    with pytest.raises(SystemExit):
        leave(chainer.Variable(np.ones(2, "f")))
    assert capsys.readouterr().out == "first\n"
