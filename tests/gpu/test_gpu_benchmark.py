"""`benchmarks/gpu.py`: what it measures is compiled and right, on the stand-in for CuPy; and what ends a process."""
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import gpu  # noqa: E402


def test_columns_of_chainer(tmp_path, capsys):
    file = tmp_path / "figures.json"
    gpu.main(["--device", "cpu", "--sizes", "small", "--only", "mlp", "--columns", "Chainer;to_static;forward;without",
              "--seconds", "0.001", "--limit", "300", "--budget", "300", "--json", str(file)])
    step, inference = [row for row in json.loads(file.read_text())["cells"].values() if row]
    assert list(step) == ["Chainer", "to_static", "without graphs", "forward only"] and list(inference) == list(step)[:3]
    for record in (*step.values(), *inference.values()):
        assert "error" not in record and record["us"] > 0 and record["difference"] < 1e-5 and not record["warnings"]
        assert record["mode"] == "eager" or record["captures"] and not record["fallbacks"] and not record.get("cuts")
    assert "| mlp.infer | " in capsys.readouterr().out
    kept = json.loads(file.read_text())
    gpu.main(["--device", "cpu", "--sizes", "small", "--only", "none", "--json", str(file)])
    assert json.loads(file.read_text()) == kept and "| mlp.infer | " in capsys.readouterr().out


class Scripted:
    """A process that tells records, and ends with a status; those that were made keep what they were asked."""

    made = []

    def __init__(self, column, left, options, until):
        self.status, self.told = self.script[len(self.made)]
        self.made.append({cell: list(modes) for cell, modes in left.items()})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def records(self):
        return [{"version": "V"}, *[dict(zip(("cell", "mode", "error"), one)) for one in self.told]]

    def said(self):
        return "what it said"


def records(monkeypatch, *script):
    """The records of processes that go by the script, and what they were asked."""
    monkeypatch.setattr(Scripted, "made", [])
    monkeypatch.setattr(Scripted, "script", script, raising=False)
    monkeypatch.setattr(gpu, "Process", Scripted)
    columns = [gpu.Column("A", "chainer", ("a",)), gpu.Column("B", "chainer", ("b",))]
    return [tuple(record.values()) for record in gpu.measured(columns, ["one", "two"], None, float("inf")) if "mode" in record]


def test_another_process_goes_on_without_the_mode_that_ended_one(monkeypatch):
    ended, rest = [("one", "a"), ("one", "b")], [("one", "a"), ("one", "a", "x"), ("two", "a"), ("two", "b"), ("two", "a", "x"), ("two", "b", "x")]
    found = records(monkeypatch, (-11, ended), (0, rest))
    assert found == [("one", "b", "the process ended, status -11: what it said"), *rest[1:2], *rest[4:]]
    assert Scripted.made[1] == {"one": ["a"], "two": ["a", "b"]}


def test_a_mode_that_broke_the_device_is_not_tried_again(monkeypatch):
    found = records(monkeypatch, (1, [("one", "a"), ("one", "a", "broken")]), (0, [("one", "b"), ("one", "b", "x")]))
    assert found == [("one", "a", "broken"), ("one", "b", "x")] and Scripted.made[1]["one"] == ["b"]


def test_a_process_that_does_not_begin(monkeypatch):
    found = records(monkeypatch, (1, []))
    assert len(found) == 4 and len(Scripted.made) == 1 and found[0] == ("one", "a", "the process does not begin: what it said")


@pytest.mark.parametrize("tf32, shown", [((), "wrong"), (("--tf32",), "2 (2.00)")])
def test_other_numbers_are_wrong(tf32, shown, capsys):
    options, results = gpu.parsed(tf32), {"mlp.infer": {}}
    for mode, us, check in (("eager", 1.0, [1.0]), ("whole", 2.0, [1.01])):
        record = {"cell": "mlp.infer", "mode": mode, "us": us, "first_s": 0.1, "warm_s": 0.2, "check": check, "warnings": []}
        gpu.take(record, gpu.PROCESSES[0], results, {}, options)
    assert gpu.time_of(results["mlp.infer"], "to_static") == shown
    assert ("wrong: differs by 1e-02" in capsys.readouterr().out) == (shown == "wrong")
