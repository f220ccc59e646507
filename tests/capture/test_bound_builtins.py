"""Methods in C of the user's lists, dicts and iterators that come into a call as they are."""
import chainer.functions as F
import pytest
from against_eager import check, variable


def of_a_list(compile):
    log = [1, 2, 3]

    def f(x, append, pop):
        append(F.tanh(x) * 2)
        return log[-1] * pop(0), append
    return compile(f), [log, log.append, log.pop]


def of_a_dict(compile):
    named = {"a": 2}

    def f(x, update, get):
        update(b=F.tanh(x) * get("a"), a=get("a") + 1)
        return named["b"] * 2
    return compile(f), [named, named.update, named.get]


def of_a_generator(compile):
    def numbers():
        number = 1
        while True:
            number += (yield number) or 1

    made = numbers()
    next(made)

    def f(x, send, step):
        return F.tanh(x) * step() * send(2)
    return compile(f), [made, made.send, made.__next__]


@pytest.mark.parametrize("make", [of_a_list, of_a_dict, of_a_generator])
def test_methods_of_containers_as_arguments(make):
    check(make, [lambda roots: (variable(3), *roots[1:])] * 3)
