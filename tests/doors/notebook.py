"""A notebook: its cells, run in one IPython shell as a kernel runs them.  ``python tests/doors/notebook.py`` runs it.

Each cell is a text and what it is to print or raise.  A difference ends the program with status 1 and the cell.
"""
import io
import os
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout

from IPython.core.interactiveshell import InteractiveShell

#: Cells in order: the text, and a text that must be in what the cell prints.
CELLS = [
    ("""
import dy2static, numpy as np, chainer, chainer.functions as F
from dy2static import to_static
x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
print("ready")
""", "ready"),
    ("""
@to_static(strict=True)
def f(x):
    if F.sum(x).array > 0:
        return x * 2
    return F.relu(x)
print(f(chainer.Variable(x)).array.tolist(), f.cache_info().captures)
""", "[[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]] 1"),
    # a traceback that IPython shows: `executing` hangs parents on the nodes of Python's trees, shared ones included
    ("1 / 0", "ZeroDivisionError"),
    ("""
@to_static(strict=True)
def g(x):
    y = x
    for i in range(3):
        if F.sum(y).array < 100:
            y = y + i
    return y
print(g(chainer.Variable(x)).array.tolist()[0], g.cache_info().captures)
""", "[0.0, 1.0, 2.0] 1"),
    # an error in compiled code is shown at the line of its cell
    ("""
@to_static
def wrong(x, w):
    y = x + 1
    return F.matmul(y, w)
wrong(x, np.ones((5, 2), np.float32))
""", "----> 4     return F.matmul(y, w)"),
    # a function that is defined again, with the name it had
    ("""
@to_static(strict=True)
def f(x):
    return x * 3
print(f(chainer.Variable(x)).array.tolist()[1])
""", "[0.0, 3.0, 6.0]"),
    # a helper that is defined again in another cell: the function that calls it takes the new one
    ("""
def helper(x):
    return x + 1
@to_static(strict=True)
def calls(x):
    return helper(x) * 2
print(calls(chainer.Variable(x)).array.tolist()[1])
""", "[2.0, 4.0, 6.0]"),
    ("""
def helper(x):
    return x - 1
print(calls(chainer.Variable(x)).array.tolist()[1])
""", "[-2.0, 0.0, 2.0]"),
    # a class in one cell, an instance in the next
    ("""
class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = chainer.links.Linear(3, 2, initialW=1)
    @to_static(strict=True)
    def forward(self, x):
        h = self.l(x)
        return h * 2 if F.max(h).array > 1 else h
model = Model()
""", ""),
    ("print(model(x).array.tolist())", "[[-12.0, -12.0], [6.0, 6.0]]"),
    ("%time y = f(chainer.Variable(x))\nprint(y.shape)", "(2, 3)"),
    ("%%time\n@to_static(strict=True)\ndef timed(x):\n    return F.exp(x)\nprint(timed(x * 0).array.tolist()[0])",
     "[1.0, 1.0, 1.0]"),
    ("%%timeit -n 2 -r 1\nf(x)", "per loop"),
    # a module beside the notebook that changes between two cells
    ("""
import net
net_y = net.scaled(chainer.Variable(x))
print(net_y.array.tolist()[1])
""", "[0.0, 2.0, 4.0]"),
    ("%load_ext autoreload\n%autoreload 2", ""),
    ("WRITE_NET * 5", ""),
    ("print(net.scaled(chainer.Variable(x)).array.tolist()[1])", "[0.0, 5.0, 10.0]"),
    ("code = f.code; print(code)", "return x * 3"),
    ("print(str(f.explain(chainer.Variable(x))))", "| graph: MulConstant"),
    ("f.no_such_name", "AttributeError"),
    ("""
@to_static(strict=True)
def last(x):
    while F.sum(x).array < 10:
        x = x + 1
    return x
print(float(F.sum(last(chainer.Variable(x))).array))
""", "15.0"),
]

NET = "from dy2static import to_static\n@to_static(strict=True)\ndef scaled(x):\n    return x * {}\n"


def main() -> int:
    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "net.py")
    sys.path.insert(0, folder)
    write(path, "2")
    shell = InteractiveShell.instance()
    shell.colors = "NoColor" if "NoColor" in getattr(InteractiveShell.colors, "values", ()) else "nocolor"
    for number, (text, wanted) in enumerate(CELLS, 1):
        if text.startswith("WRITE_NET"):
            write(path, text.split("*")[1].strip())
            continue
        shown = io.StringIO()
        with redirect_stdout(shown), redirect_stderr(shown):
            shell.run_cell(text, store_history=True)
        if wanted not in shown.getvalue() or not wanted and shown.getvalue().strip():
            print(f"cell {number}:\n{text}\nshows\n{shown.getvalue()}\nand not\n{wanted}")
            return 1
    print(f"{len(CELLS)} cells as wanted")
    return 0


def write(path: str, factor: str) -> None:
    """The module beside the notebook, new to `autoreload`, which looks at the time of a file."""
    with open(path, "w") as file:
        file.write(NET.format(factor))
    later = time.time() + 10 * float(factor)
    os.utime(path, (later, later))


if __name__ == "__main__":
    sys.exit(main())
