"""The examples run, quickly; so does every block of Python in the README, the guide and the settings, whose tables are true."""
import pathlib
import re

import programs_run
import pytest

from dy2static import config, errors
from dy2static.native import failures

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def run(*command, cwd=ROOT):
    """The output of a Python program; fails with its errors."""
    done = programs_run.run(command, cwd)
    assert done.returncode == 0, done.stderr
    assert "FallbackWarning" not in done.stderr
    return done.stdout


def test_digits():
    out = run("examples/digits/train.py", "--quick")
    same = re.findall(r"largest difference in any epoch: loss ([\d.e+-]+), accuracy ([\d.e+-]+)", out)
    assert len(same) == 2, "with the Trainer and with a loop"
    assert all(float(loss) < 1e-4 and float(accuracy) < 1e-2 for loss, accuracy in same)
    assert len(re.findall(r"[\d.]+x$", out, re.M)) == 4, "four speeds"
    assert "h = _dy.call(F.relu)(_dy.call(self.l1)(x))" in out
    assert re.search(r"^def forward\(arena, ", out, re.M)
    assert re.search(r"h = F\.dropout\(h, self\.dropout\) +\| graph: Dropout", out)
    assert "'fallbacks': 0" in out and "fallbacks=0" in out


def test_saved():
    """What is loaded predicts as what was saved, and learns what that did not know."""
    out = run("examples/digits/saved.py", "--quick")
    upright, shifted = map(float, re.findall(r"trained: ([\d.]+) upright, ([\d.]+) shifted", out)[0])
    loaded, = map(float, re.findall(r"loaded: ([\d.]+) upright", out))
    better = float(re.findall(r"trained on: [\d.]+ upright, ([\d.]+) shifted", out)[0])
    assert upright == loaded and better > shifted + 0.1


def test_quickstart():
    out = run("examples/quickstart.py")
    assert re.match(r"accuracy (0\.9\d*|1\.0)\ndef forward\(arena, ", out)


def test_read_rows():
    """A loop that stops when the model is sure: learns as eagerly, and does not read all rows."""
    out = run("examples/digits/read_rows.py", "--quick")
    apart, = re.findall(r"largest difference in any epoch: ([\d.e+-]+)", out)
    (accuracy, rows), = re.findall(r"test accuracy ([\d.]+) with ([\d.]+) rows", out)
    assert float(apart) < 2e-2 and float(accuracy) > 0.85 and float(rows) < 7.95
    assert "captures=1, fallbacks=0" in out


def test_lazy_logistic():
    out = run("examples/lazy/logistic.py", "--epochs", "5")
    accuracy, = re.findall(r"accuracy on other data ([\d.]+)", out)
    apart, = re.findall(r"largest difference to NumPy ([\d.e+-]+)", out)
    structures, captures = map(int, re.findall(r"structures (\d+), captures (\d+)", out)[0])
    assert float(accuracy) > 0.95 and float(apart) < 1e-9 and structures <= 3 and captures <= 3


def test_lazy_kmeans():
    out = run("examples/lazy/kmeans.py", "--steps", "8")
    assert float(re.findall(r"their cluster ([\d.]+)", out)[0]) > 0.7
    assert "points that NumPy puts into another cluster 0," in out


def test_lazy_gaussian_process():
    out = run("examples/lazy/gaussian_process.py", "--steps", "20")
    first, last = map(float, re.findall(r"likelihood ([\d.]+) at first, ([\d.]+) at last", out)[0])
    found, mean = map(float, re.findall(r"other patients ([\d.]+), of the mean ([\d.]+)", out)[0])
    assert last < first - 20 and found < 0.7 * mean and float(re.findall(r"numerical gradients ([\d.e+-]+)", out)[0]) < 1e-6
    assert int(re.findall(r"structures (\d+)", out)[0]) <= 5, "one for all steps but the first"


def test_lazy_filters_and_life():
    out = run("examples/lazy/filters.py")
    assert "computed before anybody looks: False" in out and "that NumPy finds otherwise 0" in out
    assert "alive 13, dtype int8, as NumPy: True" in run("examples/lazy/life.py")


def test_lazy_four_programs():
    out = run("examples/lazy/four_programs.py")
    assert "1. [1.         2.         2.41421356 2.73205081]" in out and "the part is there: True" in out
    assert "3. minibatches 100, structures 1, captures 1" in out
    assert "4. built before the backend was chosen: [0.    0.49  0.924 1.27  1.523]" in out


def test_cnn():
    out = run("examples/digits/cnn.py", "--quick")
    (loss, accuracy), = re.findall(r"largest difference in any epoch: loss ([\d.e+-]+), accuracy ([\d.e+-]+)", out)
    moved, = re.findall(r"largest difference of running statistics: ([\d.e+-]+)", out)
    eager, compiled = map(float, re.findall(r"test accuracy ([\d.]+) eager, ([\d.]+) compiled", out)[0])
    assert float(loss) < 1e-9 and float(accuracy) < 1e-9 and float(moved) < 1e-9 and eager > 0.85
    assert eager == compiled and "the same random numbers were drawn: True" in out
    assert "captures=2, fallbacks=0" in out, "to train and to test"


def test_docstrings():
    out = run("examples/docstrings.py", "--quick")
    (loss, bits, foreseen), = re.findall(r"in any epoch: loss ([\d.e+-]+), bits ([\d.e+-]+), foreseen ([\d.e+-]+)", out)
    assert float(loss) < 1e-3 and float(bits) < 1e-3 and float(foreseen) < 1e-3
    assert "captures=4, fallbacks=0" in out, "to train and to test, without state and with"


@pytest.mark.parametrize("model", ["MLP", "MLPSideEffect"])
def test_static_graph_mnist(model):
    out = run("examples/static_graph/mnist.py", "--quick", "--model", model)
    apart = [abs(float(one) - float(other)) for one, other in re.findall(r"loss ([\d.]+) as written, ([\d.]+)", out)]
    assert len(apart) == 2 and max(apart) < 1e-3
    one, other = map(float, re.findall(r"test accuracy ([\d.]+) as written, ([\d.]+)", out)[0])
    assert one > 0.8 and abs(one - other) < 0.01
    assert re.search(r"^[34] schedules", out, re.M) and "def forward(arena, " in out, "to train, two sizes to test; one more to learn of the counter"
    assert "MLPSideEffect" != model or "calls that were counted: 72" in out


def test_static_graph_vgg():
    out = run("examples/static_graph/vgg.py", "--quick")
    apart = [abs(float(one) - float(other)) for one, other in re.findall(r"loss ([\d.]+) as written, ([\d.]+)", out)]
    assert len(apart) == 2 and apart[0] < 1e-4 and apart[1] < 2e-2


def test_static_graph_ptb():
    out = run("examples/static_graph/ptb.py", "--quick")
    pairs = re.findall(r"perplexity ([\d.]+) as written, ([\d.]+)", out)
    assert len(pairs) == 2 and all(abs(float(one) / float(other) - 1) < 1e-3 for one, other in pairs)
    assert float(pairs[1][0]) < float(pairs[0][0]) and "schedules: 2" in out


def test_paddle():
    """Trained and traced here, served by another process: the same probabilities."""
    out = run("examples/paddle/train.py", "--quick")
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", out)]
    assert len(losses) == 3 and losses == sorted(losses, reverse=True)
    assert "captures=1, fallbacks=0" in out and "served: image -> [(None, 10)]" in out
    there, here = map(float, re.findall(r"accuracy ([\d.]+)", out))
    assert there == here > 0.8
    assert float(re.search(r"between the processes: ([\d.e+-]+)", out).group(1)) < 1e-5


def test_newton():
    """The program itself checks its gradients, against eager and against finite differences."""
    out = run("examples/newton.py", "--steps", "3")
    found = [float(loss) for loss in re.findall(r"^ +0\.\d{5} +(0\.\d{5}) +0\.9\d+ +\d+$", out, re.M)]
    assert len(found) == 4 and found == sorted(found, reverse=True), "every step lowers the loss"
    assert "captures=1, fallbacks=0" in out


def test_lbfgs():
    out = run("examples/lbfgs.py")
    eager, compiled = re.findall(r"^(?:eager|compiled) +(0\.\d+) +\d+ +\d+ +(0\.9\d+)", out, re.M)
    assert eager == compiled
    assert float(re.findall(r"largest difference between the weights: ([\d.e+-]+)", out)[0]) < 1e-3
    assert "captures=1, fallbacks=0" in out


def test_beam_search():
    out = run("examples/beam_search.py", "--quick")
    losses = [float(loss) for loss in re.findall(r"loss per letter ([\d.]+)", out)]
    assert losses[-1] < 0.8 * losses[0]
    assert "eager and compiled decoding agree" in out
    assert out.count("captures=1, fallbacks=0") == 2, "training and decoding"


def program_of(page):
    """All blocks of Python of a page, one after the other, as one program."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    assert blocks
    return "\n".join(blocks)


@pytest.mark.parametrize("page", ["README.md", "docs/settings.md", "docs/recipes.md", "docs/lazy.md"])
def test_blocks_of_pages_run(page, tmp_path):
    (tmp_path / "page.py").write_text(program_of((ROOT / page).read_text(encoding="utf-8")), encoding="utf-8")
    run("page.py", cwd=tmp_path)


def test_the_tutorial(tmp_path):
    (tmp_path / "tutorial.py").write_text(program_of((ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")), encoding="utf-8")
    out = run("tutorial.py", cwd=tmp_path)
    eager, compiled = map(float, re.findall(r"^(?:eager|compiled) +loss ([\d.]+)", out, re.M))
    assert abs(eager - compiled) < 1e-4 and "captures=1, fallbacks=0" in out
    assert "`.ctypes` of an array" in out and float(re.findall(r"loaded model: ([\d.]+)", out)[0]) > 0.85


def test_every_error_code_is_explained():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    classes = [cls for cls in vars(errors).values() if isinstance(cls, type) and cls.__module__ == errors.__name__]
    coded = [cls for cls in (*classes, *vars(failures).values()) if "code" in getattr(cls, "__dict__", ())]
    raised = {(cls.code, cls.__name__) for cls in coded} - {("D2S000", "Dy2StaticError")}
    assert set(re.findall(r"^\| (D2S\d+) \| `(\w+)`", page, re.M)) == raised
    warned = {cls.__name__ for cls in classes if issubclass(cls, Warning)}
    assert set(re.findall(r"^\| `(\w+Warning)`", page, re.M)) == warned


def test_the_guide_runs_and_shows_what_it_prints(tmp_path):
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    (tmp_path / "mlp.py").write_text(program_of(guide), encoding="utf-8")
    out = run("mlp.py", cwd=tmp_path)
    assert "_dy.call(F.relu)(_dy.call(self.l1)(x))" in out
    assert re.search(r"h\.array\.ctypes\.data .*\| .*EAGER: `\.ctypes` of an array", out)
    generated, = re.findall(r"^```\n(def forward\(arena.*?)^```$", guide, re.M | re.S)
    assert without_spacing(generated) in without_spacing(out), "the generated function that the guide shows"


def without_spacing(code):
    """Code without the columns and line numbers of its comments."""
    return re.sub(r" +# \S+", "", code)


def test_the_settings_list_every_variable():
    settings = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(DY2STATIC_\w+)` \| `(.*?)` \| (.*) \|$", settings, re.M)
    assert rows == [(name, repr(flag.default), flag.doc) for name, flag in config.Flag.table.items()]


LINKED = sorted({(page.relative_to(ROOT).as_posix(), link)
                 for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md")]
                 for link in re.findall(r"\]\((?!https?://|#)([^)]+)\)", page.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("page, link", LINKED)
def test_links_lead_somewhere(page, link):
    assert ((ROOT / page).parent / link.partition("#")[0]).exists()
