"""Random programs with breaks at random places, against eager: what is seen of calls, gradients of two orders, random state.

``python -m tests.broken_programs --families staged,rich --seeds 0:200 --broken 0.1 --backend numpy|c`` prints totals (how
many differ, how many had a call that ran wholly eagerly, how many have a cut), and for each difference a program as short as
still shows it.  ``--broken 0`` puts no breaks in.
"""
import argparse
import collections
import faulthandler
import functools
import os
import resource
import sys
import tempfile
import time

from dy2static import config, to_static  # before Chainer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))      # as in the tests
import breaks  # noqa: E402
import program_comparison  # noqa: E402
import random_networks  # noqa: E402
import random_programs  # noqa: E402
import rich_programs  # noqa: E402
import session_worlds  # noqa: E402
import staged_programs  # noqa: E402


class Plain:
    """A program of `random_programs`; a text that Python does not take gives way to a short one."""

    def __init__(self, seed, broken=0):
        self.text = random_programs.Program(seed, broken).text
        self.text = self.text if random_programs.is_program(self.text) else "def f(a, b, log):\n    return a, b\n"


#: Per family: a program of a seed and a frequency of breaks, and what compares it with eager.
FAMILIES = {
    "staged": (staged_programs.Program, program_comparison.compare_staged),
    "lists": (functools.partial(staged_programs.Program, lists=True), program_comparison.compare_staged),
    "rich": (rich_programs.RichProgram, program_comparison.compare_staged),
    "networks": (random_networks.Network, program_comparison.compare_network),
    "plain": (Plain, program_comparison.compare_plain),
}

#: So many seconds a program may take.
SECONDS = 60

#: So many bytes may all take: a program that was shortened may fill a list for ever.
BYTES = 6 << 30


def look_at(family, seed, broken, backend="numpy", text=None):
    """Lines that say where a program differs from eager, and its compiled function.  text: in place of that of the seed."""
    make, compare = FAMILIES[family]
    program = make(seed, broken=broken)
    if text is not None:
        program.text = text
    return compare(program, functools.partial(to_static, backend=backend), rounded=backend != "numpy")


def reduced(family, seed, broken, backend):
    """The text of a program with as few lines and breaks as still show a difference."""
    def differs(kept):
        try:
            compile("\n".join(kept), "program", "exec")
            return bool(tried(family, seed, broken, backend, "\n".join(kept) + "\n")[0])
        except Exception:                               # what is left is no such program
            return False
    lines = _fewer_lines(FAMILIES[family][0](seed, broken=broken).text.splitlines(), differs)
    number = 0
    while number < (count := breaks.count("\n".join(lines))):
        fewer = breaks.without("\n".join(lines), number).splitlines()
        lines, number = (fewer, number) if breaks.count("\n".join(fewer)) < count and differs(fewer) else (lines, number + 1)
    return "\n".join(_fewer_lines(lines, differs))


def _fewer_lines(lines, differs):
    size = max(1, len(lines) // 2)
    while size:
        place = 0
        while place < len(lines):
            fewer = lines[:place] + lines[place + size:]
            lines, place = (fewer, place) if differs(fewer) else (lines, place + size)
        size //= 2
    return lines


def tried(*given):
    """What `look_at` gives, or what it raised."""
    try:
        with session_worlds.time_limit(SECONDS):
            return look_at(*given)
    except session_worlds.Late:
        return [f"takes more than {SECONDS} seconds"], None


def run_all(family, seeds, broken, backend, shown):
    """Look at many programs; whether none differs."""
    counts, started = collections.Counter(), time.time()
    for seed in seeds:
        try:
            lines, function = tried(family, seed, broken, backend)
        except Exception as error:
            lines, function = [f"the comparison raised {type(error).__name__}: {error}"], None
        stats = {} if function is None else function.stats()
        counts.update(programs=1, differ=bool(lines), wholly=bool(stats.get("fallbacks")), cut=bool(stats.get("cuts")))
        if lines:
            print(f"=== {family} {seed}\n" + "\n".join(lines[:4]))
            if counts["differ"] <= shown and not lines[0].startswith("takes"):
                print(reduced(family, seed, broken, backend))
            sys.stdout.flush()
    print(f"{family}: {dict(counts)}, {time.time() - started:.0f} s", flush=True)
    return not counts["differ"]


def main(arguments=None):
    """Run what the command line names; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--seeds", default="0:50", help="first:last")
    parser.add_argument("--broken", type=float, default=0.1, help="how often there are breaks")
    parser.add_argument("--backend", default="numpy", choices=("numpy", "c"))
    parser.add_argument("--shown", type=int, default=3, help="how many programs that differ are shortened")
    given = parser.parse_args(arguments)
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    config.VERIFY.value, config.BACKGROUND.value = 1, 0
    config.CACHE_DIR.value = config.CACHE_DIR.value or os.path.join(tempfile.gettempdir(), "random_libraries")
    seeds = range(*map(int, given.seeds.split(":")))
    return int(not all([run_all(family, seeds, given.broken, given.backend, given.shown) for family in given.families.split(",")]))


if __name__ == "__main__":
    sys.exit(main())
