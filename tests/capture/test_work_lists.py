"""Loops over a list of work that the loop makes longer and shorter, as array values say."""
import chainer.functions as F
import pytest
from against_eager import check, variable


def halves(x):
    stack, total = [x], 0
    while stack:
        h = stack.pop()
        total = total + F.sum(h)
        if float(F.max(abs(h)).array) > 0.2:
            stack.append(h * 0.5)
            stack.append(h * 0.3)
    return total


def numbers(x):
    stack, out = [float(x.array.sum())], []
    while stack:
        value = stack.pop()
        if abs(value) > 0.2:
            stack.append(value / 2)
        out.append(value)
    return out, x


def bounded(x):
    stack, steps = [x], 0
    while len(stack) > 0 and steps < 5:
        h = stack.pop()
        steps += 1
        if float(h.array.sum()) > 0:
            stack += [h - 0.5, h - 1]
    return F.sum(F.stack(stack)) if stack else F.sum(x), steps, len(stack)


def arrays(x):
    stack, seen = [x.array], 0
    while stack:
        h = stack.pop()
        seen = seen + h.sum()
        if abs(h).max() > 0.2:
            stack.append(h * 0.5)
        else:
            break
    else:
        return x
    return x * seen


def last_of_all(x):
    stack = [x]
    while not stack:
        stack.append(x)
    while stack:
        h = stack.pop()
        if float(h.array.sum()) > 0:
            stack.append(F.relu(h) - 0.3)
    return h


def assigned(x):
    stack, steps = [x, x * 2], 0
    while stack and steps < 6:
        steps += 1
        h = stack[-1]
        if float(h.array.sum()) > 0.1:
            stack[-1] = h * 0.5
        else:
            stack.pop()
    return steps


PROGRAMS = {halves: True, numbers: True, bounded: True, arrays: True, last_of_all: True, assigned: False}


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_work_lists(function):
    calls = [lambda s=s: (variable(2, 3, seed=s),) for s in range(5)]
    check(lambda compile: (compile(function), None), calls, compiled=PROGRAMS[function])
