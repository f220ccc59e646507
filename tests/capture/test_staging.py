"""Decisions and loops on array values: what is seen of a call is what the eager call shows, and it is compiled."""

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import array, signs


def param(*values):
    return chainer.Parameter(np.array(values, "f"))


class Box:
    """A plain object with state."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


# --- which object is it ----------------------------------------------------------------------------------------------


def returned_input(compile):
    def f(x):
        return x if float(x.array.sum()) > 0 else F.tanh(x)
    return compile(f), None


def returned_input_used_on(compile):
    def f(x):
        h = x if float(x.array.sum()) > 0 else F.tanh(x)
        return h, h * 2
    return compile(f), None


def one_of_two_parameters(compile):
    w, v = param(1, 2, 3), param(3, 2, 1)

    def f(x):
        p = w if x.array[0] > 0 else v
        return F.sum(x * p), p
    return compile(f), [w, v]


def nested_inputs(compile):
    w, v = param(1, 2, 3), param(3, 2, 1)

    def f(x):
        if x.array[0] > 0:
            if x.array[1] > 0:
                return x
            return w
        elif x.array[2] > 0:
            return v
        return x * w
    return compile(f), [w, v]


def state_kept_in_one_branch(compile):
    w = param(1, 2, 3)
    box = Box(h=w)

    def f(x):
        if x.array[0] > 0:
            box.h = F.sin(x)
        return box.h * x
    return compile(f), [box, w]


def state_without_gradient_in_one_branch(compile):
    w, c = param(1, 2, 3), chainer.Variable(np.array([1, 2, 3], "f"), requires_grad=False)
    box = Box(h=w)

    def f(x):
        box.h = w
        if x.array[0] > 0:
            box.h = F.sin(c)
        return box.h * x
    return compile(f), [box, w, c]


def loop_that_keeps_the_object(compile):
    w = param(1, 2, 3)
    box = Box(best=w)

    def f(x):
        n = 0
        while n < 3 and float(x.array.sum()) > -1:
            box.best = x
            n += 1
            x = x - 0.5
        return box.best, n
    return compile(f), [box, w]


def loop_of_no_trips(compile):
    def f(x):
        h = x
        while float(h.array.sum()) > 0:
            h = h - 1
        return h
    return compile(f), None


def previous_and_current(compile):
    def f(x):
        before = after = x
        while float(after.array.sum()) > 0:
            before, after = after, after * 0.5 - 0.3
        return before * 1, after
    return compile(f), None


def two_names_of_one(compile):
    def f(x):
        if x.array[0] > 0:
            u = v = F.tanh(x)
        else:
            u = v = F.sin(x)
        return u, v
    return compile(f), None


def loops_of_two_nodes(compile):
    """A node each, whose counts must not have one name."""
    def f(x):
        while float(x.array.max()) > 0.2:
            x = x * 0.7
        y = x
        while float(y.array.max()) > 0.1:
            y = F.tanh(y) - 0.05
        return x, y
    return compile(f), None


def aliases_in_objects(compile):
    box = Box(a=[1, 2], n=0)
    box.b = box.a

    def f(x):
        if x.array[0] > 0:
            box.a[0] = 5
        else:
            box.b[1] = 7
        box.n = box.a[0] + box.b[1]
        return x * box.n
    return compile(f), [box]


def array_of_an_object_kept(compile):
    box = Box(a=np.ones(3, "f"))

    def f(x):
        if x.array[0] > 0:
            box.a = x.array * 2
        return x * box.a
    return compile(f), [box]


def array_of_the_caller(compile):
    def f(x, p):
        q = p if x.array[0] > 0 else p * 2
        return x * q, q
    return compile(f), None


def array_carried(compile):
    box = Box(a=np.ones(3, "f"))

    def f(x):
        while float(box.a.sum()) > 0.2 + float(x.array[0]) ** 2:
            box.a = box.a * 0.5
        return x + box.a
    return compile(f), [box]


# --- names ------------------------------------------------------------------------------------------------------------


def bound_in_one_branch(compile):
    def f(x):
        if x.array[0] > 0:
            y = x * 2
        if x.array[1] > 5:
            return y
        return x
    return compile(f), None


def unbound_when_read(compile):
    box = Box(n=0)

    def f(x):
        if x.array[0] > 0:
            y = x * 2
        box.n += 1
        return y
    return compile(f), [box]


def unbound_after_loop(compile):
    box = Box(n=0, h=None)

    def f(x):
        while float(x.array.sum()) > 0:
            y = x * 2
            x = x - 1
        box.n += 1
        return y
    return compile(f), [box]


def bound_to_input_in_one_branch(compile):
    def f(x):
        if x.array[0] > 0:
            y = x
        else:
            z = x * 2
        if x.array[0] > 0:
            return y
        return z
    return compile(f), None


# --- decisions --------------------------------------------------------------------------------------------------------


def guarded_division(compile):
    def f(x):
        n = int(x.array.sum() > 0)
        if n and 4 / n > 3:
            return x * 2
        return x * (3 if n == 0 or 1 / n > 1 else 5)
    return compile(f), None


def chained(compile):
    def f(x):
        if -0.5 < float(x.array.sum()) <= 1.5 < 2 + float(x.array[0]):
            return x * 2
        return -x
    return compile(f), None


def walrus(compile):
    def f(x):
        if (s := float(x.array.sum())) > 0:
            return x * s
        return x - s
    return compile(f), None


def bool_of_numpy_or_python(compile):
    box = Box(b=None)

    def f(x):
        box.b = x.array.sum() > 0 and x.array[0] > 0
        return x * 2
    return compile(f), [box]


def bool_of_mixed_kinds(compile):
    box = Box(b=None)

    def f(x):
        box.b = x.array.sum() > 0 and float(x.array[0]) > 0
        return x * 2
    return compile(f), [box]


def value_of_or(compile):
    def f(x):
        return x * (int(x.array.sum() > 0) or 7)
    return compile(f), None


def on_parameters(compile):
    w = param(1, -2, 3)

    def f(x):
        return x * w if w.array.sum() > 0 else x - w
    return compile(f), [w]


def many_elements(compile):
    def f(x):
        if x.array > 0:
            return x
        return -x
    return compile(f), None


def a_variable_decides(compile):
    def f(x):
        if F.sum(x):
            return x
        return -x
    return compile(f), None


def not_and_or_in_a_loop(compile):
    def f(x):
        done, n = False, 0
        while not done and (n < 5 or x.array[0] > 3):
            x = x * 0.5
            n += 1
            done = bool(abs(x.array).sum() < 0.3)
        return x, n, done
    return compile(f), None


# --- effects ----------------------------------------------------------------------------------------------------------


def prints_in_branches(compile):
    def f(x):
        print("start")
        if x.array[0] > 0:
            print("positive")
            y = x * 2
        else:
            y = x - 1
            print("negative", 3)
        for i in range(3):
            if float(y.array.sum()) < i:
                print("stop", i)
                break
            print("on", i)
        return y
    return compile(f), None


def prints_in_loops(compile):
    def f(x):
        n = 0
        while float(x.array.sum()) > 0:
            print("n is", n)
            x = x - 0.5
            n += 1
        print("end", n)
        return x
    return compile(f), None


def draws_in_branches(compile):
    def f(x):
        if x.array[0] > 0:
            x = F.dropout(x, 0.5)
        n = 0
        while n < 4 and np.random.rand() < 0.7:
            x = x + F.dropout(x, 0.3)
            n += 1
        return x, np.random.rand(), n
    return compile(f), None


def draws_decide(compile):
    def f(x):
        while np.random.rand() < 0.6:
            x = x * 0.9
        if np.random.rand() < 0.5 and np.random.rand() < 0.5:
            return x * 2
        return -x
    return compile(f), None


def state_before_an_exception(compile):
    box = Box(n=0, h=None, items=[1, 2])

    def f(x):
        box.n += 1
        if x.array[0] > 0:
            box.items[0] = 7
        n = int(x.array.sum() < 0)
        box.n += 10
        k = 1 // n
        box.n += 100
        return x * k
    return compile(f), [box]


def accuracy_before_an_exception(compile):
    """What no gradient passes has a creator all the same."""
    box, label = Box(accuracy=None), np.zeros(1, "i")

    def f(x):
        box.accuracy = F.accuracy(F.reshape(x, (1, 3)), label)
        if x.array[1] > 0:
            raise ValueError("the second is positive")
        return x
    return compile(f), [box]


def exception_in_a_branch(compile):
    box = Box(n=0, m=0)

    def f(x):
        box.n += 1
        if x.array[0] > 0:
            box.m += 1
            k = 3 // int(x.array[1] > 0.6)
            box.m += 10
            x = x * k
        box.n += 100
        return x
    return compile(f), [box]


def exception_in_a_loop(compile):
    box = Box(n=0)

    def f(x):
        k = 3
        while float(x.array.sum()) > 0:
            box.n += 1
            k = 6 // (k - 2) - 4
            x = x - 0.4
        return x * k
    return compile(f), [box]


def assertion_in_a_branch(compile):
    box = Box(n=0)

    def f(x):
        if x.array[0] > 0:
            box.n += 1
            assert x.array[1] > 0.6, "too small"
            box.n += 10
        return x
    return compile(f), [box]


CASES = [returned_input, returned_input_used_on, one_of_two_parameters, nested_inputs,
         state_kept_in_one_branch, loop_that_keeps_the_object, loop_of_no_trips, previous_and_current, loops_of_two_nodes,
         two_names_of_one, aliases_in_objects, array_of_an_object_kept, array_of_the_caller, array_carried,
         bound_in_one_branch, unbound_when_read, unbound_after_loop, bound_to_input_in_one_branch,
         guarded_division, chained, walrus, bool_of_numpy_or_python, value_of_or, on_parameters,
         not_and_or_in_a_loop, prints_in_branches, prints_in_loops, draws_in_branches, draws_decide,
         state_before_an_exception, accuracy_before_an_exception, exception_in_a_branch, exception_in_a_loop,
         assertion_in_a_branch]

#: What runs eagerly, for now: the result must be the same.
EAGER = [bool_of_mixed_kinds, many_elements, a_variable_decides, state_without_gradient_in_one_branch]


def calls_of(case):
    return signs(lambda: array(3, seed=5)) if case is array_of_the_caller else signs()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_compiled(case):
    """Values, gradients, identity, state, output and exceptions are those of the eager program."""
    against_eager.check(case, calls_of(case), compiled=True)


@pytest.mark.parametrize("case", EAGER, ids=lambda case: case.__name__)
def test_equal(case):
    against_eager.check(case, calls_of(case))


# --- many calls -------------------------------------------------------------------------------------------------------
