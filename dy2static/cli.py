"""The command line: ``python -m dy2static doctor | install-hook | remove-hook | pipelines | build-kernels``."""
from __future__ import annotations

import argparse
from typing import Optional, Sequence

from dy2static.backends.pipelines import pipelines
from dy2static.compat import doctor, hook
from dy2static.errors import BackendError
from dy2static.native import hotpath, kernels, store


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run one command and return the exit status."""
    parser = argparse.ArgumentParser(prog="dy2static", description="How dy2static is set up in this Python.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for name, (run, summary) in COMMANDS.items():
        commands.add_parser(name, help=summary, description=summary).set_defaults(run=run)
    return parser.parse_args(arguments).run()


def _doctor() -> int:
    for line in doctor.report():
        print(line)
    return 0


def _install_hook() -> int:
    print(f"wrote {hook.write()}: from now on plain `import chainer` works in this environment")
    return 0


def _remove_hook() -> int:
    print(f"removed {hook.path()}" if hook.remove() else "no hook is installed in this environment")
    return 0


def _pipelines() -> int:
    print(pipelines())
    return 0


def _build_kernels() -> int:
    try:
        compiled, count = kernels.build_all(hotpath.start)
    except BackendError as reason:
        print(f"programs run on NumPy: {reason}")
        return 1
    print(f"compiled {compiled} of {count} libraries of kernels into {store.directory()}")
    return 0


COMMANDS = {
    "doctor": (_doctor, "say which versions run here and what order of imports Chainer needs"),
    "install-hook": (_install_hook, "make `import chainer` work here without dy2static before it"),
    "remove-hook": (_remove_hook, "undo install-hook"),
    "pipelines": (_pipelines, "say which passes graphs go through, and when"),
    "build-kernels": (_build_kernels, "compile the kernels of native code ahead of the first program that needs them"),
}
