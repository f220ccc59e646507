"""Sets dy2static up in this checkout and runs it.  Needs Python 3.9 to 3.13 with pip.

For native code it also needs a C compiler (cc, gcc or clang); without one programs run on NumPy.

    python3 run.py demo     train a digit classifier, eager and compiled side by side
    python3 run.py test     run the tests
    python3 run.py lint     check the style of the sources
    python3 run.py docs     build the documentation into build/site

Arguments after the command go to what is run: ``python3 run.py test -x tests/doors/test_compat.py``.  Everything
is installed in the folder ``.venv-<version of Python>`` here, which later runs use again; delete it to start
over.
"""
import argparse
import contextlib
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
COMMANDS = {
    "demo": ("examples/digits/train.py",),
    "test": ("-m", "pytest", "-n", "auto", "--dist", "worksteal"),
    "docs": ("-m", "sphinx", "-W", "-q", "docs", "build/site"),
    "lint": ("-m", "ruff", "check", "--output-format=concise"),
}
OLDEST = (3, 9)
CHAINER = "chainer==7.8.1"
BUILD = ("setuptools>=64,<81", "wheel")     # newer ones lack pkg_resources, which Chainer's build imports
NUMPY_1, NUMPY_2 = "numpy==1.26.*", "numpy>=2"


def main():
    """Set up what is missing, run the command, and return its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numpy", metavar="VERSION", help="use this NumPy, in an environment of its own")
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    options = parser.parse_args()
    if sys.version_info < OLDEST:
        sys.exit("dy2static needs Python %d.%d or newer; this is %s" % (*OLDEST, sys.version.split()[0]))
    environment = Environment(options.numpy)
    environment.set_up()
    environment.compile_sources()
    return subprocess.call([environment.python, *COMMANDS[options.command], *options.arguments], cwd=ROOT)


class Environment:
    """A virtual environment of this Python in the checkout, with Chainer, dy2static and what tests need."""

    def __init__(self, numpy=None):
        name = ".venv-%d.%d" % sys.version_info[:2]
        self.numpy = NUMPY_1 if sys.version_info < (3, 12) else NUMPY_2
        if numpy is not None:
            self.numpy, name = "numpy==" + numpy, name + "-numpy-" + numpy
        self.folder = ROOT / name
        self.log = self.folder / "setup.log"
        self.stamp = self.folder / "setup.stamp"
        self.python = str(self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))

    def set_up(self):
        """Create and fill the environment, unless that is done and its recipe has not changed."""
        if self.stamp.is_file() and self.stamp.read_text() == self.recipe() and self.runs():
            return
        started = time.time()
        print("setting up %s (details in %s)" % (self.folder.name, self.log.relative_to(ROOT)), flush=True)
        with step("environment"):
            self.create()
        with step("build tools"):
            self.pip("install", *BUILD)
        with step("Chainer, built from source"):
            self.pip("install", "--no-build-isolation", CHAINER, self.numpy)
        with step("dy2static and its tests"):
            self.pip("install", "--no-build-isolation", "--editable", ".[test,examples,docs]", self.numpy)
        self.stamp.write_text(self.recipe())
        print("  %-28s %6.1f s" % ("all", time.time() - started), flush=True)

    def recipe(self):
        """A digest of everything that decides what gets installed."""
        parts = [sys.version.encode(), self.numpy.encode(), str(ROOT).encode()]
        parts += [(ROOT / name).read_bytes() for name in ("setup.cfg", "pyproject.toml", "run.py")]
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def compile_sources(self):
        """Store the byte code of the package, also where Python itself may not: each process starts a second earlier."""
        subprocess.call([self.python, "-m", "compileall", "-q", "dy2static"], cwd=ROOT)

    def runs(self):
        """Whether the environment's Python still starts."""
        return Path(self.python).exists() and subprocess.call([self.python, "-c", ""]) == 0

    def create(self):
        """Make the environment, with a pip even where ensurepip is missing (Debian without python3-venv)."""
        has_ensurepip = importlib.util.find_spec("ensurepip") is not None
        if not self.runs():
            venv.create(self.folder, clear=True, with_pip=has_ensurepip, symlinks=os.name != "nt")
        self.log.write_text("")
        if not has_ensurepip:
            self.logged(sys.executable, "-m", "pip", "--python", self.python, "install", "pip")

    def pip(self, *arguments):
        """Run pip in the environment."""
        self.logged(self.python, "-m", "pip", *arguments)

    def logged(self, *command):
        """Run a command with its output in the log; end this program with the tail of the log if it fails."""
        quiet = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PIP_USER="0")
        with open(self.log, "a") as log:
            print("$", *command, file=log, flush=True)
            status = subprocess.call(command, cwd=ROOT, env=quiet,
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        if status != 0:
            tail = self.log.read_text(errors="replace").splitlines()[-25:]
            sys.exit("\n".join(["failed\nThe end of %s:" % self.log, *tail]))


@contextlib.contextmanager
def step(name):
    """Show the name of what runs inside and, when it ends, how long it took."""
    print("  %-28s " % name, end="", flush=True)
    started = time.time()
    yield
    print("%6.1f s" % (time.time() - started), flush=True)


if __name__ == "__main__":
    sys.exit(main())
