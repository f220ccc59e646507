"""Every workload of the benchmarks computes compiled what it computes eagerly; the runner and the page of figures fit together."""
import importlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from dy2static import config

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import coverage  # noqa: E402
import environments  # noqa: E402
import parts  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
import workloads  # noqa: E402
import zoo  # noqa: E402
import zoo_steps  # noqa: E402
from frameworks import in_chainer  # noqa: E402
from steps import in_chainer as whole_steps  # noqa: E402
from steps import workloads as step_workloads  # noqa: E402

PAGE, FIGURES = ROOT / "docs" / "performance.md", ROOT / "docs" / "performance.json"


@pytest.fixture(autouse=True)
def switches(monkeypatch):
    """What a benchmark switches off is on again for the tests behind it."""
    for flag in (config.VERIFY, config.BACKGROUND):
        monkeypatch.setattr(flag, "value", flag.value)


@pytest.mark.parametrize("cell", workloads.CELLS)
def test_compiled_computes_the_same(cell):
    eager, compiled = [in_chainer.CELLS.makers[cell][mode](workloads.arrays(cell, small=True), cell, mode)
                       for mode in ("eager", "dy2static")]
    for _ in range(max(eager.checked, 2)):
        np.testing.assert_allclose(compiled.check(compiled.step()), eager.check(eager.step()), rtol=1e-5, atol=1e-6)
    info = compiled.compiled.cache_info()
    assert (info.captures, info.fallbacks) == (1, 0)


@pytest.mark.parametrize("cell", ["W2.train", "W7.grad", "W12.call"])
def test_native_code_computes_the_same(cell):
    with config.BACKEND.set("c"):
        test_compiled_computes_the_same(cell)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cell", step_workloads.CELLS)
def test_whole_steps_compute_the_same(cell):
    eager, *others = [whole_steps.CELLS.makers[cell][mode](step_workloads.arrays(cell, small=True), cell, mode)
                      for mode in whole_steps.MODES]
    for _ in range(2):
        expected = eager.check(eager.step())
        for compiled in others:
            np.testing.assert_allclose(compiled.check(compiled.step()), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("package, cell", [
    (package, cell) for package, cell in [*rounds.cells_of(["nets", "further"]), ("recent", "Text.train"), ("recent", "ViT.infer"),
                                             ("twins", "Res2.infer"), ("twins", "Chars.infer")]
    if cell in ("Graph.train", "BERT.train", "Text.train") or not cell.endswith(("train", "lists")) and not cell.startswith("Tagger")])
def test_networks_compute_the_same(package, cell):
    """Those that capture quickly; the program compares the numbers of all of them."""
    networks, workloads = [importlib.import_module(f"{package}.{name}") for name in ("in_chainer", "workloads")]
    eager, compiled = [networks.CELLS.makers[cell][mode](workloads.arrays(cell, small=True), cell, mode) for mode in ("eager", "dy2static")]
    for _ in range(2):
        np.testing.assert_allclose(compiled.check(compiled.step()), eager.check(eager.step()), rtol=1e-5, atol=1e-6)
    assert compiled.compiled.stats()["fallbacks"] == 0


@pytest.mark.any_python
def test_sizes_for_tests_have_the_same_arrays():
    for cell in ("W1.train", "W3.train", "W4.train", "W5.train", "W8.infer", "W11.train"):
        small, full = workloads.arrays(cell, small=True), workloads.arrays(cell)
        assert {name: (a.ndim, a.dtype) for name, a in small.items()} == {name: (a.ndim, a.dtype) for name, a in full.items()}


def test_every_column_has_its_file():
    for column in (*environments.COLUMNS, environments.LIMITS):
        assert (ROOT / "benchmarks" / "frameworks" / f"in_{column.framework}.py").exists()
        assert column.environment in ("", *environments.PEERS)


@pytest.mark.any_python
def test_runner(tmp_path):
    """A whole run in small: processes, records, figures, page."""
    (tmp_path / "performance.md").write_text(PAGE.read_text())
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--small", "--rounds", "1", "--cells", "W12", "--columns", "dy2static, n",
         "--seconds", "0.01", "--patience", "0", "--results", str(tmp_path / "results"), "--docs", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    figures = json.loads((tmp_path / "performance.json").read_text())
    assert set(figures["threads"]["1"]) == {"Chainer", "dy2static, numpy"}
    ours = figures["threads"]["1"]["dy2static, numpy"]["W12.call"]
    assert (ours["captures"], ours["recaptures"], ours["fallbacks"], ours["difference"]) == (1, 0, 0, 0.0)
    page = (tmp_path / "performance.md").read_text()
    assert "| W12.call | dy2static, numpy | 1 | 0 | 0 |" in page and page == report.fill(page, figures)


@pytest.mark.any_python
def test_figures_go_into_a_new_folder(tmp_path):
    subprocess.run([sys.executable, str(ROOT / "benchmarks" / "run.py"), "--report", "--results", str(tmp_path / "results"),
                    "--docs", str(tmp_path / "new" / "docs")], check=True)
    assert json.loads((tmp_path / "new" / "docs" / "performance.json").read_text())["threads"] == {}


@pytest.mark.any_python
def test_page_has_every_section_once():
    assert sorted(report.sections_of(PAGE.read_text())) == sorted(report.SECTIONS)


@pytest.mark.any_python
@pytest.mark.parametrize("page", [PAGE, ROOT / "README.md"], ids=lambda page: page.name)
def test_pages_show_the_figures(page):
    assert page.read_text() == report.fill(page.read_text(), json.loads(FIGURES.read_text())), \
        "run `python benchmarks/run.py --report`, or `fill` the page with the figures"
    assert page is PAGE or sorted(report.sections_of(page.read_text())) == sorted(report.README_SECTIONS)


def record(column, us, check=(1.0,), others=0.0, **further):
    return {"column": column, "cell": "W2.train", "mode": "m", "threads": 1, "round": 0, "cold": True, "check": list(check),
            "first_s": 0.5, "version": "V 1", "blocks": [[us, others, us]], **further}


@pytest.mark.any_python
def test_tables():
    """Ratios are to eager Chainer; what differs is wrong; blocks in company do not count on two threads."""
    times = [record("Chainer", 500), record("PyTorch", 100), record("JAX", 40, check=[1.1]), record("Paddle", 9, round=1),
             record("dy2static, c", 200, captures=1, recaptures=0, fallbacks=0),
             {"column": "torch.compile", "cell": "W2.train", "mode": "m", "threads": 1, "round": 0, "error": "cannot | at all"},
             record("Chainer", 300, threads=2), record("PyTorch", 150, others=0.9, threads=2)]
    results = report.results_of({}, times, memory=[{"column": "Chainer", "cell": "W2.train", "peak_mib": 7.2}],
                                long=[{"column": c, "cell": "W2.train", "check": [n]} for c, n in (("Chainer", 2.0), ("dy2static, c", 2.2))])
    assert "| W2.train | 500 (1.00) | 200 (0.40) | 100 (0.20) | no | wrong | 9 |" in report.SECTIONS["one thread"](results)
    assert "| W2.train | 300 (1.00) | 150 (0.50)* |" in report.SECTIONS["two threads"](results)
    assert "| W2.train | dy2static, c | 200 | 2.50 | 0.04 (Paddle, 9) |  |" in report.SECTIONS["speedups"](results)
    assert report.SECTIONS["losses"](results) == "- W2.train: Paddle 0.045, PyTorch 0.50"
    assert "| W2.train | dy2static, c | 1 | 0 | 0 | 0e+00 | 1e-01 |" in report.SECTIONS["captures"](results)
    assert "| W2.train | 7 |" in report.SECTIONS["memory"](results)
    assert "- torch.compile: W2.train: cannot / at all" in report.SECTIONS["cannot"](results)
    assert json.loads(report.as_json(results)) == results


def test_models(capsys):
    """The figures of models, for one of them; what is written stands between its markers."""
    rows = zoo.main(["tree on", "--seconds", "0", "--backend", "numpy", "--profile"])
    assert [row[0] for row in rows] == ["tree on data-dependent recursion"] and all(number > 0 for number in rows[0][1:])
    assert "share" in capsys.readouterr().out and zoo.BEGIN in PAGE.read_text() and zoo.END in PAGE.read_text()


def test_whole_steps_of_models(capsys):
    row, = zoo_steps.main(["tree on", "--seconds", "0", "--backend", "numpy", "--optimizers", "SGD"])
    assert row[:2] == ("tree on data-dependent recursion", "SGD") and all(number > 0 for number in row[2:5])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", parts.PLACES)
def test_networks_with_a_line_that_stays_python(place):
    """They compute what they do eagerly, and the line without which they are compiled whole is refused."""
    network = "linear, 8 of 32"
    eager = parts.training(*parts.model_of(place, network, True))()
    for looks in (False, True):
        model, x = parts.model_of(place, network, looks, "numpy")
        for actual, expected in zip(parts.training(model, x)(), eager):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
        stats = type(model).forward.stats()
        assert looks == bool(stats["fallbacks"] or stats.get("cuts"))


def test_shares_of_programs(capsys):
    """What is compiled whole and what is not, in one family of few programs."""
    share, = coverage.main(["--families", "staged", "--seeds", "1", "--list"]).values()
    assert (share.programs, share.broken) == (1, []) and 0 <= share.uncut <= share.whole <= 1
    assert "staged" in capsys.readouterr().out
