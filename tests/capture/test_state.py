"""State that compiled functions change: of objects, containers, classes, modules and the world, in order and as often as eagerly."""
import collections
import io
import logging
import os
import random
import sys
import tempfile
import time

import chainer.functions as F
import numpy as np
import pytest
from against_eager import Box, check, programs, signs

LOG, TABLE, COUNT = [], {"n": 0}, 0


# --- lists and dicts ----------------------------------------------------------------------------------------------------


def every_list_method(compile):
    kept = [3.0, 1.0, 2.0]

    def f(x):
        kept.append(4.0)
        kept.insert(0, 0.5)
        kept.extend([7.0, 6.0])
        kept.__iadd__([9.0])
        last = kept.pop()
        first = kept.pop(0)
        kept.remove(1.0) if 1.0 in kept else None
        kept.sort()
        kept.reverse()
        kept[0] = kept[0] + last
        kept[1:3] = [5.0]
        del kept[-1]
        kept[:] = kept[:3] + [first]
        kept.sort(key=lambda v: -v)
        return x * sum(kept), kept.index(0.5), kept.count(0.5), kept.copy(), kept[::-1]
    return compile(f), [kept]


def every_dict_method(compile):
    kept = {"a": 1.0, "b": {"c": [1]}}

    def f(x):
        kept["n"] = kept.get("n", 0) + 1
        kept.setdefault("log", []).append(kept["n"])
        kept["b"]["c"].append(kept["n"])
        kept["b"].update(d=2.0, e=None)
        kept["b"].pop("e")
        kept["h"] = x * 2
        kept.pop("missing", None)
        if "z" in kept:
            del kept["z"]
        else:
            kept["z"] = 1
        return x * len(kept) * kept["a"], list(kept)
    return compile(f), kept


def cleared(compile):
    kept = {"list": [1.0], "dict": {"a": 1}, "set": {1}}

    def f(x):
        n = len(kept["list"]) + len(kept["dict"]) + len(kept["set"])
        kept["list"].clear()
        kept["dict"].clear()
        kept["set"].clear()
        kept["list"].append(float(n))
        return x * n
    return compile(f), kept


def aliased(compile):
    inner = [1.0]
    box = Box(first=inner, second=inner, table={"again": inner})

    def f(x):
        box.first.append(2.0)
        a = b = []
        a.append(x)
        box.second[0] += 1.0
        b.append(x * 2)
        return x * sum(box.table["again"]), a, b, a is b, box.first is inner
    return compile(f), [box, inner]


def changed_in_branches(compile):
    box = Box(h=None, log=[], table={"n": 0}, pair=[0, 0])

    def f(x):
        made = {"h": x, "items": [x, x]}
        if x.array.sum() > 0:
            box.h = x * 2
            box.log.append("positive")
            box.table["n"] += 1
            made["items"][0] = -x
            box.pair[0] = box.pair[0] + 1
        else:
            box.log.append("negative")
            box.table["m"] = 1
            made["h"] = F.exp(x)
            box.pair[1] -= 1
        return made["h"] * 2 + made["items"][0], made, box.table["n"]
    return compile(f), box


def changed_in_loops(compile):
    box = Box(steps=0, h=0.0, table={"n": 0.0})

    def f(x):
        h, made = x, {"sum": x * 0, "last": x}
        while float(abs(h.array).sum()) > 0.2:
            h = h * 0.5
            box.steps += 1
            box.table["n"] += float(h.array.sum())
            made["sum"] = made["sum"] + h
            made["last"] = h
        box.h = h
        return made, box.steps
    return compile(f), box


def deleted_in_branches(compile):
    box = Box(a=1.0, n=0)

    def f(x):
        made = {"a": x, "b": x * 2}
        if x.array.sum() > 0:
            del made["a"]
            box.extra = 1
        else:
            made.pop("b")
            if hasattr(box, "extra"):
                del box.extra
        return made, hasattr(box, "extra")
    return compile(f), box


# --- modules, closures --------------------------------------------------------------------------------------------


def globals_written(compile):
    global COUNT
    COUNT = 0
    LOG.clear()

    def f(x):
        global COUNT
        COUNT += 1
        if x.array.sum() > 0:
            COUNT += 10
        LOG.append(COUNT)
        TABLE["n"] = COUNT
        return x * COUNT
    return compile(f), [LOG, TABLE]


def nonlocals_in_blocks(compile):
    def make():
        count, last = 0, None

        def f(x):
            nonlocal count, last
            count += 1
            while count < 3 or x.array.sum() > 0.5:
                count += 1
                x = x * 0.5
            last = x
            return x * count, last is x
        return f
    return compile(make())


# --- effects in order ---------------------------------------------------------------------------------------------------------


def prints(compile):
    def f(x):
        print("start", x.shape, end=" ")
        if x.array.sum() > 0:
            print("positive", float(x.array.sum()) > 0)
            x = x * 2
        else:
            print("negative")
        for k in range(2):
            print(k, f"{k:03d}", sep="-")
        print(f"{float(x.array[0]):.3f}", "%d items" % len(x))
        return x
    return compile(f)


def prints_in_loops(compile):
    def f(x):
        n = 0
        while float(abs(x.array).sum()) > 0.3:
            print("step", n, "%.2f" % float(abs(x.array).sum()))
            x, n = x * 0.5, n + 1
        print("done after", n)
        return x
    return compile(f)


def draws(compile):
    def f(x):
        a = random.random()
        b = np.random.rand()
        noise = np.random.normal(0, 1, x.shape).astype("f")
        c = random.randint(0, 5) + random.uniform(0, 1)
        y = F.dropout(x * a + b + noise, 0.5) + random.choice([1.0, 2.0])
        if y.array.sum() > 0:
            y = y * np.random.uniform()
        return y * c, np.random.randint(3), random.gauss(0, 1)
    return compile(f)


def draw_decides(compile):
    def f(x):
        if random.random() < 0.5:
            x = x * 2
        if np.random.rand() < 0.5:
            x = F.relu(x)
        for _ in range(np.random.randint(1, 4)):
            x = x * 0.5
        return x
    return compile(f)


def logs(compile):
    logger = logging.getLogger("tests.state")
    stream = io.StringIO()
    logger.handlers[:] = [logging.StreamHandler(stream)]
    logger.setLevel("INFO")
    logger.propagate = False

    def f(x):
        logger.info("sum %.3f of %s", float(x.array.sum()), x.shape)
        logger.debug("never %s", x.array)
        if x.array.sum() > 0:
            logger.warning("positive")
        if logger.isEnabledFor(logging.DEBUG):
            x = x * 2
        return x * 2
    made = compile(f)

    def call(x):
        return made(x), stream.getvalue()
    return call


def text_stream(compile):
    stream = io.StringIO()

    def f(x):
        stream.write("a")
        print("to the stream", file=stream)
        x = x * 2
        stream.write(str(float(x.array.sum()) > 0))
        return x
    made = compile(f)
    return lambda x: (made(x), stream.getvalue())


def files(compile):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "log")

    def f(x):
        with open(path, "a") as out:
            out.write("line\n")
            out.write(f"{x.shape}\n")
        return x * 2
    made = compile(f)

    def call(x):
        y = made(x)
        with open(path) as log:
            return y, log.read()
    return call


def a_file_that_is_open(compile):
    out = tempfile.TemporaryFile("w+")

    def f(x):
        out.write("line\n")
        out.flush()
        return x * 2
    made = compile(f)

    def call(x):
        y = made(x)
        out.seek(0)
        return y, out.read()
    return call


def clock(compile):
    def f(x):
        start = time.time()
        y = x * 2
        spent = time.time() - start
        if spent > 1000:
            y = y * 2
        return y, spent < 1000
    return compile(f)


def host_call_decides(compile):
    answers = iter([True, False, True, True, False, True, False, False] * 4)

    def ask():
        return next(answers)

    def f(x):
        if ask():
            return x * 2
        return F.relu(x)
    return compile(f)


def host_number_is_used(compile):
    values = iter(range(100))

    def f(x):
        return x * next(values)
    return compile(f)


def environment(compile):
    def f(x):
        if os.environ.get("TESTS_STATE") == "1":
            x = x * 2
        return x * len(sys.argv[:1])
    made = compile(f)

    def call(x):
        os.environ["TESTS_STATE"] = "1" if x.array.sum() > 0 else "0"
        return made(x)
    return call


def environment_item(compile):
    environ = os.environ

    def f(x):
        if os.environ["TESTS_STATE"] == "1":
            x = x * 2
        return x * 3 if "TESTS_OTHER" in environ else x
    made = compile(f)

    def call(x):
        os.environ["TESTS_STATE"] = "1" if x.array.sum() > 0 else "0"
        os.environ.pop("TESTS_OTHER", None)
        if x.array.max() > 0.5:
            os.environ["TESTS_OTHER"] = "1"
        return made(x)
    return call


def arguments_of_the_process(compile):
    def f(x):
        sys.stderr.write("")
        return x * len(sys.argv) + len(os.path.join("a", "b")) + len(os.sep)
    made = compile(f)

    def call(x):
        sys.argv.append("x")
        try:
            return made(x)
        finally:
            sys.argv.pop()
    return call


def file_is_read(compile):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "scale")

    def f(x):
        with open(path) as file:
            scale = float(file.read())
        return x * scale
    made = compile(f)

    def call(x):
        with open(path, "w") as file:
            file.write(str(float(len(os.listdir(folder)) + (x.array.sum() > 0))))
        return made(x)
    return call


def existence_of_a_file(compile):
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "flag")

    def f(x):
        return x * 2 if os.path.exists(path) else x
    made = compile(f)

    def call(x):
        if x.array.sum() > 0:
            open(path, "w").close()
        elif os.path.exists(path):
            os.remove(path)
        return made(x)
    return call


class Meter:
    """A running mean."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total, self.count = self.total + value, self.count + 1


def objects_that_the_first_call_makes(compile):
    meters = collections.defaultdict(Meter)

    def f(x):
        loss = F.mean(x ** 2)
        meters["loss"].add(float(loss.array))
        meters["first"].add(int(x.array[0] * 100))
        return loss, {name: meter.total / meter.count for name, meter in meters.items()}
    return compile(f), [meters]


#: What stops a capture today: the call runs eagerly.
EAGER = {"nonlocals_in_blocks", "files", "host_call_decides",
         "host_number_is_used", "environment", "environment_item", "arguments_of_the_process", "file_is_read"}


@pytest.mark.parametrize("make", programs(globals()), ids=lambda make: make.__name__)
def test_state(make):
    check(make, signs(), compiled=make.__name__ not in EAGER)
