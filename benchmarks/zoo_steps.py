"""The models in tests/models, each step of training whole: one compiled function for forward, backward and update.

    python benchmarks/zoo_steps.py [PART OF A NAME ...] [--seconds 3] [--backend c] [--optimizers SGD,Adam]

Beside it the same steps with the model and its loss compiled alone, and eager, in one process, in turns (what a step does besides
its update, such as an evaluation, is compiled in both).  Before each step a
schedule writes the learning rate, so that a program which holds on to it is captured again: the captures after warm-up are
counted.
"""
import argparse
import contextlib
import io
import random
import time
import warnings

import zoo  # first: it finds dy2static
import chainer
import dy2static
import numpy as np
from models.training import whole_steps
from models.zoo import ZOO

WAYS = "eager", "model", "whole"
CLASSES = [name for name in vars(chainer.optimizers) if isinstance(getattr(chainer.optimizers, name), type)]


@contextlib.contextmanager
def optimizers_of(kind, made):
    """Models that are made inside have this optimizer, whatever they ask for; ``made`` takes those of them."""
    of_chainer = {name: getattr(chainer.optimizers, name) for name in CLASSES}

    def make(*args, **kwargs):
        made.append(of_chainer[kind](1e-3))
        return made[-1]
    for name in CLASSES:
        setattr(chainer.optimizers, name, make)
    try:
        yield
    finally:
        for name, each in of_chainer.items():
            setattr(chainer.optimizers, name, each)


class Run(zoo.Run):
    """One model, trained in one of the ways."""

    def __init__(self, entry, way, kind, backend):
        self.entry, self.way, self.statics, self.optimizers, self.written = entry, way, [], [], 0

        def compile(target):
            self.statics.append(dy2static.to_static(target, backend=backend))
            return self.statics[-1]

        def same(target):
            return target
        random.seed(3)
        np.random.seed(3)
        with optimizers_of(kind, self.optimizers), whole_steps(compile if way == "whole" else same):
            step, _ = entry.make(same if way == "eager" else compile)
        self.step, self.best = lambda k: (self.schedule(), step(k)), [float("inf")] * entry.steps

    def schedule(self):
        """Write another learning rate than ever before."""
        self.written += 1
        for optimizer in self.optimizers:
            setattr(optimizer, "alpha" if "alpha" in vars(optimizer.hyperparam) else "lr", 1e-3 / (1 + 1e-4 * self.written))

    def counted(self):
        """Captures and cuts of all that is compiled, with their parts."""
        all_stats = [zoo.static_of(made).stats() for made in self.statics]
        return [sum(stats.get(name, 0) for stats in all_stats) for name in ("captures", "fallbacks", "cuts")]


def is_warming(run):
    return any(dispatcher.tiers.is_warming(program) for dispatcher in [zoo.static_of(made).dispatcher for made in run.statics]
               for program in dispatcher.programs)


def measure(entry, kind, backend, seconds):
    """The runs of a model in all ways, and the captures of the whole steps after warm-up."""
    runs = [Run(entry, way, kind, backend) for way in WAYS]
    for run in runs:
        run.warm(1 if run.way == "eager" else zoo.WARM)
        until = time.perf_counter() + zoo.PATIENCE
        while is_warming(run) and time.perf_counter() < until:
            run.warm(1)
    before, until, rounds = runs[-1].counted()[0], time.perf_counter() + seconds, 0
    while rounds < 3 or time.perf_counter() < until:
        for run in runs:
            run.cycle()
        rounds += 1
    return runs, runs[-1].counted()[0] - before


def main(arguments=None):
    """Measure and print; the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--seconds", type=float, default=3, help="for each model and optimizer")
    parser.add_argument("--backend", default="c")
    parser.add_argument("--optimizers", default="SGD,Adam")
    parser.add_argument("--large", action="store_true", help="also the models that take long")
    options = parser.parse_args(arguments)
    print(f"{'model':<45} {'':<5} {'eager, µs':>12} {'model':>10} {'whole':>10} {'model/whole':>12}  recaptures fallbacks cuts")
    rows = []
    for name, entry in ZOO.items():
        wanted = not options.parts or any(part.lower() in name.lower() for part in options.parts)
        if not wanted or name.startswith("L.") and not options.large:
            continue
        for kind in options.optimizers.split(","):
            with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
                warnings.simplefilter("ignore")
                runs, recaptures = measure(entry, kind, options.backend, options.seconds)
            eager, model, whole = (1e6 * run.seconds for run in runs)
            rows.append((name, kind, eager, model, whole, recaptures, *runs[-1].counted()[1:]))
            print(f"{name:<45} {kind:<5} {eager:>12,.0f} {model:>10,.0f} {whole:>10,.0f} {model / whole:>12.2f}"
                  f"  {recaptures:>10} {rows[-1][-2]:>9} {rows[-1][-1]:>4}", flush=True)
    return rows


if __name__ == "__main__":
    main()
