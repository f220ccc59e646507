"""What a cached call costs: ``y = x + 1`` on four floats, in microseconds, and where the time goes.

    python benchmarks/overhead.py
"""
import dy2static
import chainer
import numpy as np
from chainer import Variable

from timing import seconds_per_call


def add_one(x):
    return x + 1


compiled = dy2static.to_static(add_one)
array = np.zeros(4, np.float32)
with_grad, without_grad = Variable(array), Variable(array, requires_grad=False)
y = compiled(with_grad)


def without_backprop(function):
    def run():
        with chainer.no_backprop_mode():
            function(with_grad)
    return run


def nothing():
    with chainer.no_backprop_mode():
        pass


ROWS = {
    "requires grad": [lambda: add_one(with_grad), lambda: compiled(with_grad)],
    "requires no grad": [lambda: add_one(without_grad), lambda: compiled(without_grad)],
    "in no_backprop_mode()": [without_backprop(add_one), without_backprop(compiled)],
}
print(f"{'y = x + 1, four floats':<34}{'eager':>8}{'compiled':>10}{'ratio':>8}")
for what, functions in ROWS.items():
    eager, ours = (1e6 * s for s in seconds_per_call(functions))
    print(f"  {what:<32}{eager:>8.2f}{ours:>10.2f}{eager / ours:>8.2f}")

# The parts of the call with grad, each on its own: the generated entry, its guards, the arithmetic, the wrapping.
program = compiled.program(with_grad)
parts = {
    "no_backprop_mode() alone": nothing,
    "the whole call": lambda: compiled(with_grad),
    "  entry: guards, forward, wrapping": lambda: program.call((with_grad,), {}),
    "  guards alone (as diagnosis)": lambda: program.diagnose((with_grad,), {}),
    "  np.add(x, 1)": lambda: np.add(array, np.float32(1)),
}
empty = seconds_per_call([lambda: None])[0]
print(f"\n{'parts of the call with grad':<34}{'us':>8}")
for what, seconds in zip(parts, seconds_per_call(list(parts.values()))):
    print(f"  {what:<32}{1e6 * (seconds - empty):>8.2f}")
print("\nthe generated entry:\n" + program.entry)
