"""Functions that compiled code makes and that leave it: returned, stored, with names of their own."""
import contextlib
import functools
import sys

import chainer
import chainer.functions as F
import numpy as np
import pytest
from against_eager import check, programs, signs
from function_objects import Box


def a_closure_leaves(compile):
    def f(x):
        k = 2.0

        def scale(y):
            return y * k
        return scale, x * 2
    made = compile(f)

    def call(x):
        scale, y = made(x)
        return scale(y) + y
    return call


def a_closure_of_variables_leaves(compile):
    def f(x):
        h = F.exp(x)
        return (lambda y: y * h), h
    made = compile(f)

    def call(x):
        scale, h = made(x)
        return scale(x) + h
    return call


def closures_that_share_a_cell_leave(compile):
    def f(x):
        count = 0

        def add(n=1):
            nonlocal count
            count += n
            return count

        def get(y):
            return y * count
        add()
        return add, get, x * 2
    made = compile(f)

    def call(x):
        add, get, y = made(x)
        add(3)
        return get(y), add()
    return call


def a_stored_closure(compile):
    box = Box(hook=None, hooks=[])

    def f(x):
        old = box.hook
        y = x if old is None else old(x)
        box.hook = lambda z: z * 2 + x.shape[0]
        box.hooks.append(lambda: y)
        return y
    made = compile(f)

    def call(x):
        y = made(x)
        return y, box.hook(y), len(box.hooks), box.hooks[-1]()
    return call


def functions_of_all_kinds_leave(compile):
    rate = 3.0

    class Scaled(chainer.Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.w = chainer.Parameter(np.array([0.5, -1.5, 2.0], "f"))

        def closing(self, x):
            return lambda y: y * self.w + x
    link = Scaled()

    def f(x, n=2):
        h, items, t = x * n, [x, n], 0

        def g(a, *more, b=n, c=h, **options):
            """Adds."""
            def inner(v):
                return v * h + rate
            return inner(a) + b + c + sum(more)
        for k in range(3):
            t += k
        first = lambda v: v * t         # noqa: E731
        if n > 1:
            def chosen(v: int = 3) -> str:
                return v * n
        else:
            chosen = None
        items.append(first(x))
        return {"g": g, "first": first, "chosen": chosen}, link.closing(x), (lambda: items), items
    made = compile(f)

    def call(x):
        table, scale, get, items = made(x)
        g, chosen = table["g"], table["chosen"]
        items.append(4)
        assert get() is items and made(x)[0]["g"] is not g
        return g(x, 1, 2, b=5, z=1), g(x), table["first"](x), chosen(), scale(x), get(), g.__doc__, g.__name__, g.__qualname__, \
            chosen.__annotations__, chosen.__defaults__, g.__kwdefaults__, g.__code__.co_names, g.__module__, g.__dict__
    return call


def closures_of_one_cell_leave(compile):
    def f(x):
        h = x * 2

        def first():
            return h

        def second(v):
            return v * h
        h = h + 1
        return first, second
    made = compile(f)

    def call(x):
        first, second = made(x)
        assert first.__closure__[0] is second.__closure__[0] and first() is first()
        return second(first()), second(x)
    return call


def a_decision_before_closures_leave(compile):
    def f(x):
        h = x * 2
        if float(F.sum(x).array) > 0:
            return lambda v: v * h
        return lambda v: v - h
    made = compile(f)
    return lambda x: made(x)(x)


def a_helper_makes_what_leaves(compile):
    def scaling(k):
        def scale(v):
            return v * k + unbound_later
        unbound_later = 4
        return scale

    def f(x):
        return scaling(x * 2), scaling(3)
    made = compile(f)

    def call(x):
        a, b = made(x)
        return a(x), b(x)
    return call


def lambdas_of_one_line_leave(compile):
    def f(x):
        a, b = lambda v: v * x, lambda v: v + x
        return a, b
    made = compile(f)
    return lambda x: [g(x) for g in made(x)]


def a_recursive_function_leaves(compile):
    def f(x):
        def power(n):
            return x if n == 0 else power(n - 1) * x
        return power
    made = compile(f)
    return lambda x: made(x)(3)


def a_stored_and_returned_closure(compile):
    box = Box(hook=None)

    def f(x):
        box.hook = lambda v: v * x
        return box.hook
    made = compile(f)
    return lambda x: (made(x)(x), box.hook(x))


def a_generator_leaves(compile):
    def f(x):
        return (x * k for k in range(3))
    made = compile(f)
    return lambda x: list(made(x))


SEEN = []


@contextlib.contextmanager
def scope(v):
    SEEN.append("in")
    try:
        yield v * 2
    finally:
        SEEN.append("out")


def a_context_of_a_generator_leaves(compile):
    made = compile(lambda x: (x * 3, scope(2)))         # nothing in the context is of this call, but it is used up

    def call(x):
        del SEEN[:]
        z, context = made(x)
        with context as y:
            SEEN.append("inside")
        return z, y, list(SEEN)
    return call


def a_generator_function_is_compiled(compile):
    def f(x):
        for k in range(3):
            yield x * k
    made = compile(f)
    return lambda x: list(made(x))


def a_partial_leaves(compile):
    def g(a, b):
        return a * b

    def f(x):
        return functools.partial(g, x * 2), functools.partial(F.clip, x_min=-0.5)
    made = compile(f)

    def call(x):
        p, q = made(x)
        return p(x), q(x, x_max=0.5)
    return call


def counters_with_a_name_of_their_own(compile):
    def counter(start):
        total = start

        def step(v):
            nonlocal total
            total = total + v
            return total
        return step

    def f(x):
        one, other = counter(x), counter(0)
        other(2)
        return one, other, one(x * 2), [other, other]
    made = compile(f)

    def call(x):
        one, other, y, others = made(x)
        assert others[0] is others[1] is other
        return one(x), one(x), other(1), other(x), y
    return call


def stored_in_containers(compile):
    box = Box(hooks=[], table={}, kept=())

    def f(x):
        h = x * 2
        box.hooks.append(lambda v: v * h)
        box.table["act"] = relu = lambda v: F.relu(v - h)
        box.kept = (relu, h)
        return relu(x)
    made = compile(f)

    def call(x):
        y = made(x)
        assert box.kept[0] is box.table["act"]
        return y, box.hooks[-1](x), box.table["act"](x), box.kept[1]
    return call


def stored_and_called_again(compile):
    box = Box(post=None)

    def f(x):
        first, second = (lambda a: a + 1), (lambda a: a * 3)
        box.post = lambda z: second(z) * 2
        return box.post(second(first(x)))
    made = compile(f)
    return lambda x: (made(x), box.post(x))


def stored_under_a_decision(compile):
    box = Box(post=None)

    def f(x):
        if float(x.array.sum()) > 0:
            box.post = lambda z: z * 2
        else:
            box.post = lambda z: z * x
        return box.post(x)
    made = compile(f)
    return lambda x: (made(x), box.post(x))


def stored_before_a_print(compile):
    box = Box(post=None)

    def f(x):
        box.post = lambda z: z * x
        print("stored")
        return x
    made = compile(f)
    return lambda x: (made(x), box.post(x))


def two_that_call_each_other(compile):
    def f(x):
        def even(n):
            return x if n == 0 else odd(n - 1)

        def odd(n):
            return x * 2 if n == 0 else even(n - 1)
        return even, odd
    made = compile(f)
    return lambda x: [g(3) for g in made(x)]


def recursive_with_state(compile):
    def f(x):
        seen = [x]

        def walk(n, scale=2):
            seen.append(x * n)
            return len(seen) if n == 0 else walk(n - 1) + scale
        return walk, seen
    made = compile(f)

    def call(x):
        walk, seen = made(x)
        return walk(2), seen, walk(1, scale=5)
    return call


#: What stops a capture today: the call runs eagerly.
EAGER = {"a_generator_leaves", "a_context_of_a_generator_leaves", "a_generator_function_is_compiled", "two_that_call_each_other"}
UNSURE = {"stored_under_a_decision", "stored_before_a_print"}
if sys.version_info < (3, 11):          # which code is which of one line is told by columns
    EAGER |= {"lambdas_of_one_line_leave"}
    UNSURE |= {"stored_and_called_again"}


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_made_functions(make):
    check(make, signs(), compiled=None if make.__name__ in UNSURE else make.__name__ not in EAGER)
