"""Runs Python programs as users would, each in a process of its own, which is a copy of one that has imported what they import.

To import Chainer, dy2static and scikit-learn takes longer than most of the programs themselves.
"""
import atexit
import builtins
import functools
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Done(NamedTuple):
    """What became of a program: as `subprocess.run` gives it."""

    returncode: int
    stdout: str
    stderr: str


def run(command, cwd=ROOT):
    """Run ``python *command`` in this folder, without any settings of dy2static in its environment, and wait for it."""
    with tempfile.TemporaryDirectory() as folder:
        request = {"command": list(map(str, command)), "cwd": str(cwd), "folder": folder}
        with _lock:
            server = _server()
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            status = int(server.stdout.readline())
        return Done(status, *[(pathlib.Path(folder) / name).read_text(encoding="utf-8") for name in ("out", "err")])


_lock = threading.Lock()


@functools.lru_cache(maxsize=None)
def _server():
    """The process that others are copies of; it ends when its input does."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DY2STATIC_")}
    server = subprocess.Popen([sys.executable, "-c", "import programs_run; programs_run.serve()"], text=True,
                              env={**clean, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(server.communicate)
    return server


def serve():
    """Read which programs to run, one a line, and answer each with its exit status."""
    for name in ("dy2static", "chainer.training.extensions", "sklearn.datasets"):       # dy2static before Chainer
        importlib.import_module(name)
    os.environ["PYTHONPATH"] = str(ROOT)
    sys.path.remove(str(ROOT / "tests"))
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _become(**request)
            return
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(command, cwd, folder):
    """Be the program: its arguments, its folder, its output and its module ``__main__``."""
    os.chdir(cwd)
    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, f"{folder}/out", os.O_WRONLY | os.O_CREAT),
                                (2, f"{folder}/err", os.O_WRONLY | os.O_CREAT)):
        os.dup2(os.open(name, flags), number)
    path = os.path.abspath(command[0])
    sys.argv[:], sys.path[0] = command, os.path.dirname(path)
    main = vars(sys.modules["__main__"])
    main.clear()
    main.update(__name__="__main__", __builtins__=builtins, __file__=path, __doc__=None)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    exec(compile(text, path, "exec", dont_inherit=True), main)
