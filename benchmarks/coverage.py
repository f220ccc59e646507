"""How many programs are compiled: without a call that runs wholly eagerly, and without a cut.

    python benchmarks/coverage.py [--families staged,rich,...] [--seeds 100] [--broken 0.1] [--conformance FOLDER] [--list]

The programs: those of a folder with ``conformance.py`` and ``cases_open.py``, random programs, networks and sessions, the
models of tests/models, the calls of Chainer's functions and links of tests, and the small programs that tests refuse for one
reason each.  Each runs compiled in a process of its own.  ``--list`` names those that are not compiled, and says why.
"""
import argparse
import collections
import contextlib
import functools
import importlib.util
import io
import os
import pathlib
import pickle
import select
import signal
import sys
import time
import types
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import dy2static  # noqa: E402  (before chainer)
import call_matrix  # noqa: E402
import chainer  # noqa: E402
import link_matrix  # noqa: E402
import models.zoo  # noqa: E402
import numpy as np  # noqa: E402
import program_comparison  # noqa: E402
import random_networks  # noqa: E402
import refused_programs  # noqa: E402
import rich_programs  # noqa: E402
import session_programs  # noqa: E402
import session_worlds  # noqa: E402
import staged_programs  # noqa: E402

SECONDS = 120               # that a program may take


class Compiler:
    """A `to_static` that keeps what it made."""

    def __init__(self, backend="numpy"):
        self.backend, self.statics = backend, []

    def __call__(self, target=None, **options):
        if target is None:
            return functools.partial(self, **options)
        made = dy2static.to_static(target, backend=self.backend, **options)
        self.statics += [static for static in _statics(made) if static not in self.statics]
        return made

    def found(self):
        """Counts, and why calls ran eagerly."""
        total = collections.Counter(fallbacks=0, cuts=0, parts=0)
        for static in self.statics:
            counts = static.stats()
            total.update({name: counts.get(name, 0) for name in total})
        reasons = [reason for static in self.statics for reason in static.dispatcher.fallback.refused.values()]
        return dict(total), list(dict.fromkeys(reasons or ["captures do not pay"] * (total["fallbacks"] > 0)))


def _statics(made):
    made = getattr(made, "__func__", made)
    if hasattr(made, "dispatcher"):
        return [made]
    owner = made if isinstance(made, type) else type(made)
    named = (vars(cls).get(name) for cls in owner.__mro__ for name in ("__call__", "forward"))
    return [method for method in named if hasattr(method, "dispatcher")]


# --- the programs: per family, names and what runs each -------------------------------------------------------------------


def conformance(options):
    """The cases of a folder."""
    def module(name):
        spec = importlib.util.spec_from_file_location(name, os.path.join(options.conformance, name + ".py"))
        sys.modules[name] = found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found
    if options.conformance:
        runner, cases = module("conformance"), module("cases_open").C
        for case in cases:
            yield case.name, lambda compile, case=case: runner.run_side(case, compile, 2)


def _random(make, observe):
    def programs(options):
        for seed in range(options.seeds):
            yield str(seed), lambda compile, seed=seed: observe(make(seed, broken=options.broken), compile)
    return programs


def _session(session, compile):
    session_worlds.run(session, "numpy", compile=compile)


def zoo(options):
    """The models of tests/models: a few steps of training."""
    def train(entry, compile):
        np.random.seed(3)
        step, _ = entry.make(compile)
        for k in range(2 * entry.steps):
            step(k)
    for name, entry in models.zoo.ZOO.items():
        yield name, functools.partial(train, entry)


def functions(options):
    """The calls of Chainer's functions."""
    def call(case, compile):
        static = compile(case.function)
        for dtype in case.dtypes:
            call_matrix.Call(static, case, dtype)
    for case in call_matrix.ROWS:
        yield str(case), functools.partial(call, case)


def links(options):
    """Chainer's links, called and trained."""
    def train(row, compile):
        np.random.seed(0)
        link = row.make()
        if row.apply is None:
            return link_matrix.train(row, link, compile(link))
        static = compile(row.apply)
        return link_matrix.train(row, link, lambda *args: static(link, *args))
    for name, row in link_matrix.ROWS.items():
        yield name, functools.partial(train, row)


def refused(options):
    """Small programs that tests refuse, or refused once."""
    def call(function, compile):
        static = compile(function)
        for _ in range(2):
            with contextlib.suppress(Exception):
                static(chainer.Variable(np.full((2, 3), 0.5, "f")))
    for name, function in vars(refused_programs).items():
        if isinstance(function, types.FunctionType) and function.__code__.co_varnames[:1] == ("x",):
            yield name, functools.partial(call, function)


FAMILIES = {
    "conformance": conformance,
    "staged": _random(staged_programs.Program, program_comparison.staged_observed),
    "lists": _random(functools.partial(staged_programs.Program, lists=True), program_comparison.staged_observed),
    "rich": _random(rich_programs.RichProgram, program_comparison.staged_observed),
    "networks": _random(random_networks.Network, program_comparison.network_observed),
    "sessions": _random(session_programs.Session, _session),
    "zoo": zoo, "functions": functions, "links": links, "refused": refused,
}


# --- running ------------------------------------------------------------------------------------------------------------------


def in_child(run, backend):
    """The counts and reasons of a program; a text where it did not end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(_run(run, backend), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        late = not select.select([pipe], [], [], SECONDS)[0]
        if late:
            os.kill(child, signal.SIGKILL)
        text = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(text) if text and not late else ("takes too long" if late else "ends the process")


def _run(run, backend):
    compiler = Compiler(backend)
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            run(compiler)
        except Exception as error:
            if not compiler.statics:
                return f"{type(error).__name__}: {error}"
    return compiler.found()


class Share:
    """What became of the programs of one family."""

    def __init__(self):
        self.programs = self.whole = self.uncut = 0
        self.reasons, self.eager, self.broken = collections.Counter(), [], []

    def add(self, name, found):
        """Count one program."""
        if isinstance(found, str):
            self.broken.append((name, found))
            return
        counts, reasons = found
        self.programs += 1
        self.whole += not counts["fallbacks"]
        self.uncut += not counts["fallbacks"] and not counts["cuts"]
        if counts["fallbacks"]:
            self.eager.append((name, reasons))
            self.reasons.update(reasons)


def main(arguments=None):
    """Run what the command line names; the shares by family."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--seeds", type=int, default=100, help="how many random programs of each kind")
    parser.add_argument("--broken", type=float, default=0, help="how often random programs have breaks (see tests/breaks.py)")
    parser.add_argument("--conformance", default="", help="a folder with conformance.py and cases_open.py")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--list", action="store_true", help="name the programs with calls that run wholly eagerly")
    options = parser.parse_args(arguments)
    dy2static.config.VERIFY.value = dy2static.config.BACKGROUND.value = 0
    shares = {}
    print(f"{'programs':<14}{'number':>8}{'no call eager':>16}{'and no cut':>14}{'seconds':>9}")
    for family in options.families.split(","):
        share, began = shares.setdefault(family, Share()), time.time()
        for name, run in FAMILIES[family](options):
            share.add(name, in_child(run, options.backend))
        if not share.programs:
            continue
        whole, uncut = (f"{count:>6} {count / share.programs:7.1%}" for count in (share.whole, share.uncut))
        print(f"{family:<14}{share.programs:>8}  {whole}{uncut}{time.time() - began:>9.0f}", flush=True)
        for name, why in share.broken:
            print(f"    {name}: {why[:200]}")
        if options.list:
            for reason, count in share.reasons.most_common():
                print(f"    {count:>4} {reason[:180]}")
            for name, reasons in share.eager:
                print(f"      {name}: {'; '.join(reasons)[:200]}", flush=True)
    return shares


if __name__ == "__main__":
    main()
