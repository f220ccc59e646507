"""Loops over Links in which an ``if`` holds a line that cannot be compiled: all iterations up to it are one part."""
import warnings

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from against_eager import array, check, programs, variable
from breaks import refuse

from dy2static import to_static


def links(n=4, kind=chainer.ChainList):
    made = [L.Linear(4, 4, initialW=array(4, 4, seed=k)) for k in range(n)]
    return kind(*made) if kind is chainer.ChainList else kind(made)


def calls(n=3):
    return [lambda k=k: (variable(3, 4, seed=k), k) for k in range(n)]


def over_a_chain_list(compile):
    model, log = links(), []

    def f(x, n):
        h = x * 2
        for number, block in enumerate(model, 1):
            h = F.tanh(block(h))
            if number == 2 or (k := number) == n:
                log.append(float(refuse(F.sum(h)).array))
                h = F.sin(h) * 2
            h = h + number
            h = F.relu(h) + k if number > 2 else h
        return F.sum(h), number, len(log)
    return compile(f), [model, log]


def over_pairs(compile):
    model, scales = links(3, list), [1.0, 2.0, 3.0, 4.0]

    def f(x, n):
        h = x
        for block, scale in zip(model, scales):
            if scale == 3 and n:
                continue
            h = F.tanh(block(h)) * scale
            if scale == 2:
                refuse(h)
            elif n:
                h = h * 2
            else:
                h = F.sin(h)
        return F.sum(h) * scale, block
    return compile(f), model


def a_list_that_changes(compile):
    spare = links(6, list)

    class Holder:
        todo = None

    holder = Holder()

    def f(x, n):
        holder.todo = spare[:2]
        h, seen = x, []
        for block in holder.todo:
            h = F.tanh(block(h)) * 2
            seen.append(spare.index(block))
            if block is spare[1]:
                refuse(h)
                holder.todo.append(spare[3])
                holder.todo[0:1] = []
            if block is spare[3] and len(holder.todo) < 4:
                holder.todo.insert(0, spare[4])
                holder.todo.append(spare[5])
            h = F.sin(h) + 1
        return F.sum(h), seen, len(holder.todo)
    return compile(f), [holder]


def leaves_by_return(compile):
    model = links(5, tuple)

    def f(x, n):
        h = x
        for number, block in enumerate(model):
            h = F.tanh(block(h)) * 2
            if number == 3 - n:
                return F.sum(h), "head"
            if number == 1:
                refuse(h)
                if n == 1:
                    return F.sum(h * 2), "held"
            h = h * 2 + 1
            if number == 2:
                return F.sum(h), "tail"
        return F.sum(h), "end"
    return compile(f), list(model)


def without_items(compile):
    model = links(3, list)

    def f(x, n):
        h = F.tanh(x) * 2
        for block in model[n:] if n < 2 else []:
            h = F.tanh(block(h)) * 2
            if n == 1:
                refuse(h)
                last = F.sum(h)
        try:
            return F.sum(h) + last, block is model[2]
        except NameError as error:
            return F.sum(h) * 2, type(error).__name__
    return compile(f), model


def other_iterables(compile):
    model, log = links(3, list), []

    def blocks():
        try:
            for block in model:
                log.append("next")
                yield block
        finally:
            log.append("closed")

    class Wrapped:
        def __iter__(self):
            log.append("iter")
            return iter(model)

    def f(x, n):
        h = x
        for block in blocks():
            h = F.tanh(block(h)) * 2
            if n and block is model[1]:
                refuse(h)
                break
        log.append("after")
        for iterable in (Wrapped(), reversed(model), [F.sin, F.cos], range(3)):
            for block in iterable:
                h = F.tanh(h) * 2
                if block is model[1] or block == 1:
                    refuse(h)
                h = h + 1 if type(block) is int else block(h)
        log.append("end")
        return F.sum(h)
    return compile(f), [model, log]


def by_array_values(compile):
    model = links(4, list)

    def f(x, n):
        h = x
        for block in model:
            h = F.tanh(block(h)) * 2
            if F.sum(h).array > 0.5:
                refuse(h)
                h = h * 0.3
            h = F.sin(h) + 0.1
        return F.sum(h)
    return compile(f), model


def nested(compile):
    model = links(3, list)

    def f(x, n):
        h = x
        for k, block in enumerate(model):
            for number, inner in enumerate(model[:2]):
                h = F.tanh(inner(h)) * 2 + k
                if number == n:
                    refuse(h)
                h = h * 1.5
            h = block(h)
            if k == 1:
                h = h + refuse(k)
        return F.sum(F.tanh(h))
    return compile(f), model


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_everything_is_as_in_eager_mode(make):
    check(make, calls(), strict="parts")


def test_iterations_without_the_line_are_one_part():
    model = links(6, list)

    @to_static
    def f(x):
        for number, block in enumerate(model):
            x = F.tanh(block(x)) + 1
            if number == 2:
                refuse(x)
            x = F.sin(x)
        return x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            f(variable(3, 4))
    before = f.stats()["captures"]
    y = f(variable(3, 4))
    assert f.stats()["captures"] == before
    assert y.creator.inputs[0].creator.rank == 0           # two nodes


def test_a_test_that_holds_often_leaves_the_loop_as_it_is():
    model = links(8, list)

    @to_static
    def f(x, n):
        for block in model:
            x = F.tanh(block(x)) + 1
            if n:
                refuse(x)
        return x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f(variable(3, 4), 1)
        before = f.stats()["captures"]
        for n in (1, 1, 2, 3):
            f(variable(3, 4), n)
    assert f.stats()["captures"] <= before + 4


def test_tracebacks():
    model = links(3, list)

    def f(x, wanted):
        for number, block in enumerate(model):
            x = F.tanh(block(x)) * 2
            if number == 1:
                refuse(x)
                x = x * 2
            x = F.reshape(x, wanted) if number == 2 else x
        return x
    frames = []
    for function in (f, to_static(f)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for wanted in ((12,), (5,), (5,)):
                try:
                    function(variable(3, 4), wanted)
                except chainer.utils.type_check.InvalidType as error:
                    frames.append(_lines(error.__traceback__))
    assert len(frames) == 4 and frames[0] == frames[1] == frames[2] == frames[3]


def _lines(trace):
    found = []
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == __file__ and trace.tb_frame.f_code.co_name == "f":
            found.append(trace.tb_lineno)
        trace = trace.tb_next
    return found


def test_names_of_builtins_are_the_users():
    model = links(3, list)
    made = []

    def enumerate(items):
        made.append(zip(range(3), items))
        return made[-1]

    def f(x):
        for number, block in enumerate(model):
            x = F.tanh(block(x)) * 2
            if number == 1:
                refuse(x)
        return x, next(made[-1], "used up")
    static = to_static(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            (y, rest), (expected, wanted) = static(variable(3, 4)), f(variable(3, 4))
            np.testing.assert_allclose(y.array, expected.array, rtol=1e-5)
            assert rest == wanted == "used up"
