"""Decisions and loops on array values: what is seen of a call is what the eager call shows, and it is compiled."""
import gc
import threading

import against_eager
import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import array, variable

from dy2static import not_to_static, to_static


class Box:
    """A plain object with state."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def param(*values):
    return chainer.Parameter(np.array(values, "f"))


def signs(*more, count=3):
    """Calls with Variables of positive, negative and mixed contents."""
    return [lambda low=low, high=high, k=k: (variable(count, seed=k, low=low, high=high), *[m() for m in more])
            for k, (low, high) in enumerate(((0.1, 1), (-1, -0.1), (-1, 1), (-0.2, 1.2)))]


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


# --- objects ----------------------------------------------------------------------------------------------------------


def fresh_objects(compile):
    def f(x):
        found = {"a": x, "n": 0}
        items = [x, x * 2]
        same = items
        if x.array[0] > 0:
            found["a"] = x * 3
            found["n"] = 1
            items[0] = found["a"]
        else:
            same[1] = x - 1
        return found, items, same
    return compile(f), None


def fresh_inside(compile):
    def f(x):
        if x.array[0] > 0:
            items = [x * 1, x * 2]
            items[0] = items[1]
            y = items[0] + items[1]
        else:
            pair = {"k": x}
            pair["k"] = pair["k"] * 2
            y = pair["k"]
        return y
    return compile(f), None


def written_before_read(compile):
    w = param(1, 2, 3)
    box = Box(h=w, n=3, r=0.5, d={"a": w, "k": 1})

    def f(x):
        if x.array[0] > 0:
            box.h = F.tanh(x)
            box.d["k"] = 5
        else:
            box.n = 4
            box.d["a"] = x
        return x * 2
    return compile(f), [box, w]


def carried_on_objects(compile):
    box = Box(h=None, n=0, items=[0.5, 1])

    def f(x):
        box.h = x
        while float(box.h.array.sum()) > 0:
            box.h = box.h - 0.5
            box.n += 1
            box.items[0] = box.items[0] * 2.0
        return box.h * box.items[0]
    return compile(f), [box]


def closure_variables(compile):
    count, h = 0, None

    def f(x):
        nonlocal count
        if x.array[0] > 0:
            count += 1
        elif x.array[1] > 0:
            count -= 1
        return x * count
    return compile(f), [Box(f=f)]


def recursion(compile):
    def half(x, depth):
        if depth < 4 and float(abs(x.array).sum()) > 0.3:
            return half(x * 0.5, depth + 1)
        return x

    def f(x):
        return half(x, 0) * 2
    return compile(f), None


def two_objects_of_a_class(compile):
    class Cell:
        def __init__(self, v):
            self.v, self.hits = v, 0

        def step(self, x):
            if float((x.array * self.v.array).sum()) > 0:
                self.hits += 1
                return x * self.v
            return x

    cells = [Cell(param(1, 2, 3)), Cell(param(-1, -2, -3))]

    def f(x):
        for cell in cells:
            x = cell.step(x)
        return x
    return compile(f), cells


def convolution_in_branches(compile):
    conv = chainer.links.Convolution2D(1, 2, 3, pad=1)
    bn = chainer.links.BatchNormalization(2)

    def f(x):
        h = F.reshape(F.tile(x, 3), (1, 1, 3, 3))
        n = 0
        if x.array[0] > 0:
            h = F.sum(bn(conv(h)), axis=1, keepdims=True)
        while n < 2 and float(h.array.max()) > 0:         # not the sum: that is rounding
            h = F.tanh(F.sum(bn(conv(h[:, :1])), axis=1, keepdims=True))
            n += 1
        return F.sum(h * h)
    return compile(f), [conv, bn]


def without_backprop(compile):
    w = param(1, 2, 3)

    def f(x):
        with chainer.no_backprop_mode():
            h = x * w
            if h.array[0] > 0:
                h = h * 2
        while float(h.array.sum()) > 1:
            h = h * 0.5
        return x * h
    return compile(f), [w]



def sets_and_cells(compile):
    box = Box(seen={1}, log=[])

    def f(x):
        total = 0

        def add(k):
            nonlocal total
            total = total + k

        if x.array[0] > 0:
            add(2)
        else:
            add(3)
        n = 0
        while n < 2 and float(x.array.sum()) > 0:
            add(n)
            n += 1
        return x * total
    return compile(f), [box]


def items_appended(compile):
    box = Box(items=[])

    def f(x):
        if x.array[0] > 0:
            box.items.append(x * 2)
        return x * len(box.items)
    return compile(f), [box]


def deleted_in_a_branch(compile):
    box = Box(d={"a": 1, "b": 2})

    def f(x):
        box.d["a"] = 1
        if x.array[0] > 0:
            del box.d["a"]
        return x * 2
    return compile(f), [box]


def new_key_in_both(compile):
    box = Box(d={"a": 1})

    def f(x):
        if x.array[0] > 0:
            box.d["k"] = 2
        else:
            box.d["k"] = 3
        return x * box.d["k"]
    return compile(f), [box]


def object_made_before(compile):
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

        def swap(self):
            self.a, self.b = self.b, self.a

    def f(x):
        pair = Pair(x, x * 2)
        if x.array[0] > 0:
            pair.swap()
        while float(pair.a.array.sum()) > 1:
            pair.a = pair.a * 0.5
            pair.swap()
        return pair.a * 1, pair.b * 1
    return compile(f), None


def shared_list_in_two_objects(compile):
    items = [1.0, 2.0]
    box, other = Box(items=items), Box(items=items)

    def f(x):
        n = 0
        while n < 3 and x.array[0] > 0:
            box.items[0] += 1.0
            n += 1
            if x.array[1] > 0:
                other.items[0] *= 2.0
        return x * items[0]
    return compile(f), [box, other]


def containers_swapped(compile):
    box = Box(a=[1], b=[2])

    def f(x):
        if x.array[0] > 0:
            box.a, box.b = box.b, box.a
        return x * box.a[0]
    return compile(f), [box]


def generators_and_zip(compile):
    def f(x):
        total = x
        for a, b in zip(range(3), (x, x * 2, x * 3)):
            if float(b.array.sum()) < a:
                continue
            total = total + b
            if float(total.array.sum()) > 6:
                break
        else:
            total = total * 2
        return total
    return compile(f), None


def for_with_return(compile):
    def f(x):
        for i in range(4):
            x = x * 0.5
            if float(abs(x.array).max()) < 0.1 * i:
                return x, i
        return x * 3, -1
    return compile(f), None


def float_state(compile):
    box = Box(r=-0.0, k=2)

    def f(x):
        if x.array[0] > 0:
            box.r = 0.0
        else:
            box.r = -0.0
        return x + box.r
    return compile(f), [box]


def kinds_of_numbers(compile):
    box = Box(k=2)

    def f(x):
        box.k = 2
        if x.array[0] > 0:
            box.k = 2.0
        return x * box.k
    return compile(f), [box]


def whole_numbers_grow(compile):
    def f(x):
        k = 1
        while float(x.array.sum()) > -60:
            k *= 3
            x = x - 0.7
        return x, k
    return compile(f), None


def random_python(compile):
    import random

    def f(x):
        n = 0
        while n < 5 and random.random() < 0.8:
            if x.array[0] > 0 and random.random() < 0.5:
                x = x * 1.5
            n += 1
        return x, n
    return compile(f), None


def division_in_the_test(compile):
    box = Box(n=0)

    def f(x):
        n = int(x.array.sum() > 0)
        box.n += 1
        while 4 // (n - 1) != 0 and float(x.array.sum()) < 2:
            box.n += 1
            x = x + 0.5
            n = 3
        return x
    return compile(f), [box]


def asking_prints(compile):
    def f(x):
        def more(v):
            print("asked", 1)
            return float(v.array.sum()) > 0

        while more(x):
            x = x - 0.5
        return x
    return compile(f), None


def asking_changes_state(compile):
    box = Box(asked=0, h=None)

    def f(x):
        def more(v):
            box.asked += 1
            return float(v.array.sum()) > 0

        while more(x):
            x = x - 0.5
        return x * box.asked
    return compile(f), [box]


def walrus_in_the_test(compile):
    def f(x):
        while (s := float(x.array.sum())) > 0:
            x = x - 0.5
        return x * s
    return compile(f), None


def leaf_in_a_branch(compile):
    def f(x):
        h = x
        if x.array[0] > 0:
            h = chainer.Variable(x.array * 2)
        return F.sum(h * h)
    return compile(f), None


def leaves_in_a_loop(compile):
    def f(x):
        h = x * 2
        n = 0
        while n < 3 and float(h.array.sum()) > 0:
            h = chainer.Variable(h.array - 0.5)
            h = h * x
            n += 1
        return h
    return compile(f), None


def constant_or_input(compile):
    c = chainer.Variable(np.ones(3, "f"), requires_grad=False)

    def f(x):
        h = c
        while float(x.array.sum()) > 0.5:
            h = h * x
            x = x - 0.5
        return h
    return compile(f), [c]


class Square(chainer.FunctionNode):
    """A function of the user's: opaque."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        return inputs[0] * inputs[0],

    def backward(self, indexes, gradients):
        x, = self.get_retained_inputs()
        return 2 * x * gradients[0],


def user_function(compile):
    def f(x):
        n = 0
        while n < 3 and float(x.array.sum()) > 0:
            x = Square().apply((x,))[0] - 0.3
            n += 1
        if x.array[0] > 0:
            x = Square().apply((x,))[0]
        return x
    return compile(f), None


def host_in_loop(compile):
    box, log = Box(n=0), []

    @not_to_static
    def say(text):
        log.append(text)

    def f(x):
        n = 0
        while float(x.array.sum()) > 0:
            box.n += 1
            say(n)
            x = x - 0.5
            n += 1
        if x.array[0] < -0.3:
            box.n += 5
            say("low")
        return x * box.n
    return compile(f), [box, log]


def written_before_a_call_that_may_fail(compile):
    box = Box(h=param(1, 2, 3), n=0)

    def f(x):
        if x.array[0] > 0:
            box.h = F.tanh(x)
            print("wrote", box.n)
            box.n += 1
        np.linalg.inv(np.eye(2) * float(x.array.sum()))
        return box.h * 2
    return compile(f), [box]


def state_of_an_lstm(compile):
    lstm = chainer.links.LSTM(3, 3)

    def f(x):
        lstm.reset_state()
        h = lstm(F.reshape(x, (1, 3)))
        n = 0
        while n < 4 and float(abs(h.array).sum()) > 0.05:
            h = lstm(h)
            n += 1
        return h
    return compile(f), [lstm]


def statistics_in_branches(compile):
    bn = chainer.links.BatchNormalization(3)

    def f(x):
        h = F.stack([x, x * 2])
        if x.array[0] > 0:
            h = bn(h)
        n = 0
        while n < 2 and float(x.array[1]) > 0:
            h = bn(h + 1)
            n += 1
        return h
    return compile(f), [bn]


def list_of_states(compile):
    def f(x):
        out = []
        for i in range(3):
            if float(x.array.sum()) > 0:
                x = x * 0.5
            out.append(x)
        return out
    return compile(f), None


def tuple_of_states(compile):
    def f(x):
        state = (x, x * 2)
        while float(state[0].array.sum()) > 0:
            a, b = state
            state = (b - 1, a - 0.5)
        return state[0] * 1, state[1] * 1
    return compile(f), None


def filled_when_none(compile):
    box = Box(h=None)

    def f(x):
        if box.h is None:
            box.h = x * 1
        if x.array[0] > 0:
            box.h = box.h * 0.5
        return box.h
    return compile(f), [box]


def compared_by_is(compile):
    def f(x):
        y = x
        if x.array[0] > 0:
            y = x * 2
        return x * 3 if y is x else y
    return compile(f), None


def gradient_through_kept_state(compile):
    box = Box(h=param(1, 2, 3))

    def f(x):
        while float(x.array.sum()) > 0:
            x = x * box.h - 1
            box.h = box.h * 0.9
        return x
    return compile(f), [box]


def arithmetic_on_ints(compile):
    def f(x):
        i = int(x.array[0] * 10)
        j = i // 3 if i > 0 else -i % 3
        return x * max(i, j), i, j, abs(i), -i, i / 2, i ** 2, min(i, 2), i << 1
    return compile(f), None


def bools_combined(compile):
    def f(x):
        a, b = x.array[0] > 0, x.array[1] > 0
        c = a & b
        d = bool(a) | bool(b)
        if c or d:
            x = x * 2
        return x, c, d
    return compile(f), None


def none_or_a_variable(compile):
    def f(x):
        def search(v):
            for i in range(3):
                if float(v.array.sum()) > i:
                    return v * 2
                v = v + 0.1
            return None

        found = search(x)
        return x if found is None else found
    return compile(f), None


def raised_in_a_loop(compile):
    box = Box(n=0)

    def f(x):
        box.n += 1
        for i in range(3):
            if float(x.array.sum()) > 1.2 - i * 0.1:
                box.n += 10
                raise ValueError("too large", i)
            x = x + 0.1
        return x
    return compile(f), [box]


def deleted_name(compile):
    def f(x):
        y = x
        if x.array[0] > 0:
            del y
        return y
    return compile(f), None


def written_while_iterating(compile):
    box = Box(d={"a": 1.0, "b": 2.0})

    def f(x):
        for k in box.d:
            if x.array[0] > 0:
                box.d[k] = box.d[k] * 2
        return x * sum(box.d.values())
    return compile(f), [box]


CASES = [returned_input, returned_input_used_on, one_of_two_parameters, nested_inputs,
         state_kept_in_one_branch, loop_that_keeps_the_object, loop_of_no_trips, previous_and_current,
         two_names_of_one, aliases_in_objects, array_of_an_object_kept, array_of_the_caller, array_carried,
         bound_in_one_branch, unbound_when_read, unbound_after_loop, bound_to_input_in_one_branch,
         guarded_division, chained, walrus, bool_of_numpy_or_python, value_of_or, on_parameters,
         not_and_or_in_a_loop, prints_in_branches, prints_in_loops, draws_in_branches, draws_decide,
         state_before_an_exception, exception_in_a_branch, exception_in_a_loop, assertion_in_a_branch,
         fresh_objects, fresh_inside, written_before_read, carried_on_objects, recursion,
         two_objects_of_a_class, convolution_in_branches, sets_and_cells, new_key_in_both, object_made_before,
         shared_list_in_two_objects, generators_and_zip, for_with_return, float_state, whole_numbers_grow,
         random_python, division_in_the_test, asking_prints, asking_changes_state, leaf_in_a_branch,
         leaves_in_a_loop, constant_or_input, state_of_an_lstm, statistics_in_branches, filled_when_none,
         gradient_through_kept_state, bools_combined, raised_in_a_loop, written_while_iterating]

#: What runs eagerly, for now: the result must be the same.
EAGER = [closure_variables, bool_of_mixed_kinds, many_elements, a_variable_decides, without_backprop,
         state_without_gradient_in_one_branch, items_appended, deleted_in_a_branch, containers_swapped,
         kinds_of_numbers, walrus_in_the_test, host_in_loop, written_before_a_call_that_may_fail,
         list_of_states, tuple_of_states, compared_by_is, arithmetic_on_ints, none_or_a_variable,
         deleted_name, user_function]


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


def shrink_loop(x, w):
    n = 0
    while float((x * x).array.sum()) > 0.5 and n < 10:
        x = F.tanh(x * w)
        if float(x.array[0]) > 0.2:
            x = x - 0.1
        n += 1
    return x, n


@pytest.mark.parametrize("dtype", "efd")
@pytest.mark.parametrize("shape", [(3,), (1,), (2, 2)])
def test_dtypes(dtype, shape):
    """Values, dtypes and gradients in half, single and double precision."""
    def make(compile):
        w = chainer.Parameter(np.full(shape, 0.75, dtype))

        def f(x):
            n = 0
            while float((x * x).array.sum()) > 0.5 and n < 10:
                x = F.tanh(x * w)
                n += 1
            if n > 2:
                x = x * w
            return x
        return compile(f), [w]
    calls = [lambda k=k: (variable(*shape, seed=k, dtype=dtype, low=-2, high=2),) for k in range(4)]
    against_eager.check(make, calls, compiled=True)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3)])
def test_sizes(shape):
    """Arrays without axes and without elements."""
    def make(compile):
        def f(x):
            while float(x.array.sum()) > 0.5:
                x = x * 0.5
            return F.sin(x) if x.array.sum() > 0 else F.sum(x * 2)
        return compile(f), None

    def make_same_shape(compile):
        def f(x):
            while float(x.array.sum()) > 0.5:
                x = x * 0.5
            return F.sin(x) if x.array.sum() > 0 else x
        return compile(f), None
    calls = [lambda low=low: (variable(*shape, low=low, high=low + 2),) for low in (-2, 0, 1)]
    against_eager.check(make, calls)
    against_eager.check(make_same_shape, calls, compiled=True)


def test_no_recapture():
    """One program serves all branches and trip counts."""
    w = param(0.5, 0.75, 0.9)
    @to_static
    def g(x):
        return shrink_loop(x, w)[0]
    for k in range(50):
        g(variable(3, seed=k, low=-2, high=2))
    assert g.stats()["captures"] == 1 and g.stats()["fallbacks"] == 0


def test_many_calls_before_backward():
    """Each call keeps the branches it took and what its loop saved."""
    def total(compile):
        w = param(0.5, 0.75, 0.9)

        def step(x):
            return shrink_loop(x, w)[0]
        run = compile(step)
        xs = [variable(3, seed=k, low=-2, high=2) for k in range(12)]
        ys = [run(x) for x in xs]
        gc.collect()
        for k in (5, 3, 8):
            ys[k].grad = np.ones(3, "f")
            ys[k].backward()
        against_eager.weighted_sum(ys).backward()
        return [x.grad for x in xs] + [w.grad]
    for a, b in zip(total(lambda f: f), total(to_static)):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_many_trips():
    """A loop of many iterations, and its gradient."""
    def run(compile):
        def f(x):
            n = 0
            while n < 5000 and float(x.array.sum()) > -1e9:
                x = x * 0.9999
                n += 1
            return x, n
        x = variable(3, dtype="d")
        y, n = compile(f)(x)
        F.sum(y).backward()
        return y.array, x.grad, n
    for a, b in zip(run(lambda f: f), run(to_static)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_threads():
    """Calls of one program on several threads at once, each with its own branches."""
    w = param(0.5, 0.75, 0.9)

    def step(x):
        return shrink_loop(x, w)[0]
    run, failed = to_static(step), []
    expected = {k: step(variable(3, seed=k, low=-2, high=2)).array for k in range(20)}
    run(variable(3))

    def work(first):
        for k in range(first, 20, 2):
            y = run(variable(3, seed=k, low=-2, high=2))
            if not np.allclose(y.array, expected[k], rtol=2e-5):
                failed.append(k)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_messages_made_of_array_values_are_compiled():
    """An error under a decision is made by the run, with what arrays hold in its text."""
    def f(x):
        if x.array.min() < 0:
            raise ValueError("low: %.2f" % x.array.min(), len(x))
        return F.sqrt(x)
    compiled = to_static(f, strict=True)
    for low in (0.5, -2, 0.5, -1):
        x = variable(3, low=low, high=low + 0.5)
        try:
            expected = f(x).array
        except ValueError as error:
            with pytest.raises(ValueError) as found:
                compiled(x)
            assert found.value.args == error.args
        else:
            np.testing.assert_array_equal(compiled(x).array, expected)
