"""What the worlds of a session share: patches, configuration, environment, and what their steps may use."""
import contextlib
import logging
import os
import random
import sys
import tempfile
import types
import warnings
from unittest import mock

import chainer
import numpy as np

#: What stands in for library functions.
FAKES = '''
import chainer
_apply = chainer.FunctionNode.apply


def fake_tanh(x, *args, **more):
    return x * 3


def fake_double(x, *args, **more):
    return x + x


def fake_sqrt(x):
    return x * 10


def fake_sum(x, *args, **more):
    return 42.0


def fake_array(x, *args, **more):
    return x * 2


def fake_two(x, y, *args, **more):
    return x + y


def fake_plain(x, *args, **more):
    return ("fake", x)


def fake_plain_two(x, y=None, *args):
    return ("fake", y)


def fake_print(*args, **more):
    import sys
    sys.stdout.write("fake " + repr(args) + "\\n")


def forward(self, xs):
    return xs[0] * 3,


def backward(self, indexes, gs):
    return gs[0] * 5,


def apply(self, inputs):
    print("apply", self.label)
    return _apply(self, inputs)
'''

FILE = os.path.join(tempfile.gettempdir(), f"session_file_{os.getpid()}")


class Hook(chainer.LinkHook):
    """Says which links are called."""

    name = "session"

    def forward_preprocess(self, args):
        print("before", type(args.link).__name__)

    def forward_postprocess(self, args):
        print("after", type(args.link).__name__, args.out.shape)


class FunctionHook(chainer.FunctionHook):
    """Says which functions are called."""

    name = "session"

    def forward_preprocess(self, function, data):
        print("function", function.label)


def make_variable(shape, dtype, seed):
    return chainer.Variable(make_array(shape, dtype, seed))


def make_constant(shape, dtype, seed):
    return chainer.Variable(make_array(shape, dtype, seed), requires_grad=False)


def make_array(shape, dtype, seed):
    """Values with one decimal; those of seed 3 have NaN and infinities among them."""
    array = np.array(np.round(np.random.RandomState(seed).uniform(-1, 2, shape), 1), dtype)
    if seed == 3 and array.size > 2:
        array.ravel()[:3] = np.nan, np.inf, -np.inf
    return array


class Process:
    """What both worlds share: patches, configuration, environment; `close` puts all of it back."""

    def __init__(self):
        self.patches = []
        self.before = dict(os.environ), np.geterr(), logging.getLogger("k").level, list(warnings.filters)
        self.config = self.settings()
        self.made = []

    def settings(self):
        """The configuration and the states of the generators."""
        return dict(chainer.config._local.__dict__), dict(chainer.global_config.__dict__), np.random.get_state(), random.getstate()

    def restore(self, settings):
        """The reverse of `settings`."""
        for owner, values in zip((chainer.config._local, chainer.global_config), settings):
            if owner.__dict__ != values:
                owner.__dict__.clear()
                owner.__dict__.update(values)
        np.random.set_state(settings[2])
        random.setstate(settings[3])

    def patch(self, target, new):
        patch = mock.patch(target, new, create=target.startswith("builtins.extra"))
        patch.start()
        self.patches.append(patch)

    def unpatch(self):
        self.patches.pop().stop()

    @contextlib.contextmanager
    def unpatched(self):
        """Have the libraries as they are, for what compares."""
        for patch in reversed(self.patches):
            patch.stop()
        try:
            yield
        finally:
            for patch in self.patches:
                patch.start()

    def make_module(self, name, **values):
        sys.modules[name] = module = types.ModuleType(name)
        module.__dict__.update(values, __file__=f"/sessions/{name}.py")
        self.made.append(name)

    def drop_module(self, name):
        del sys.modules[name]

    def write_file(self, text):
        with open(FILE, "w", encoding="utf-8") as file:
            file.write(text)

    def close(self):
        while self.patches:
            self.unpatch()
        environ, errors, level, filters = self.before
        for name in set(os.environ) - set(environ):
            del os.environ[name]
        np.seterr(**errors)
        logging.getLogger("k").setLevel(level)
        warnings.filters[:] = filters
        for name in self.made:
            sys.modules.pop(name, None)
        chainer.get_function_hooks().clear()
        self.restore(self.config)

    def names(self):
        """What the texts of steps may use."""
        return {"patch": self.patch, "unpatch": self.unpatch, "make_module": self.make_module, "drop_module": self.drop_module,
                "write_file": self.write_file, "add_function_hook": lambda: FunctionHook().__enter__(),
                "remove_function_hooks": chainer.get_function_hooks().clear, "fakes": sys.modules["session_fakes"],
                "V": make_variable, "C": make_constant, "X": make_array, "A": np.array, "HOOK": Hook}
