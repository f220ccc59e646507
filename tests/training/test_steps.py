"""Whole training steps under `to_static` do what they do eagerly; `step_grid.py` has all combinations, and these are some of them."""
import pytest
import step_grid
from step_options import OPTIMIZERS, OPTIONS

from dy2static import to_static

#: Each option once, but for what `test_faults_and_snapshots` has for each optimizer.
SLICE = [("Adam" if i % 2 else "MomentumSGD", option, "f") for i, option in enumerate(OPTIONS)
         if option not in ("interrupt", "interrupt-rule", "bad-label", "schedule", "faults", "WeightDecay", "GradientClipping")]


@pytest.mark.parametrize("name", [step_grid.Combination(*names) for names in SLICE], ids=str)
def test_step(name):
    report = step_grid.compare(name, steps=8, resume=False)
    assert not report.problems, "\n".join(report.problems)
    assert report.kind == "whole", report
    assert not report.late or name.option == "dynamic-scale", f"{report.late} captures in the last steps"


@pytest.mark.parametrize("optimizer, dtype", [(optimizer, "fed"[i % 3]) for i, optimizer in enumerate(OPTIMIZERS)
                                               if optimizer not in ("MSVAG-decay", "RMSprop-inside", "AMSBound")])
def test_faults_and_snapshots(optimizer, dtype):
    """Seven steps, three of which fail, saved, and steps of what is loaded: compiled and then eager, and the other way round."""
    made = []

    def compile(step):
        made.append(to_static(step, backend="numpy"))
        return made[-1]
    (eager, *mixed), _ = step_grid.snapshots(step_grid.Combination(optimizer, "faults", dtype), compile)
    assert [step_grid.differences(eager, seen, True) for seen in mixed] == [[], []]
    assert all(step.stats()["captures"] and not step.stats()["cuts"] for step in made)


def test_faults_in_native_code():
    report = step_grid.compare(step_grid.Combination("Adam", "faults", "d"), "c", steps=8, resume=False)
    assert not report.problems and report.kind == "whole", report


def test_three_steps_fail():
    run = step_grid.Run(step_grid.Combination("SGD", "faults", "f"), lambda function: function)
    run.go(range(8))
    assert [(k, seen["error"][0]) for k, seen in enumerate(run.seen) if seen["error"]] == [
        (4, "KeyboardInterrupt"), (5, "ZeroDivisionError"), (6, "IndexError")]


def test_a_report_names_what_differs():
    made, seen = [], []

    def compile(function):
        made.append(function)
        return (lambda *batch: seen.append(function(*batch)) or seen[-1]) if len(made) > 1 else function
    name = step_grid.Combination("SGD", "none", "f")
    runs = step_grid.Run(name, compile), step_grid.Run(name, compile)
    for run in runs:
        run.go(range(2))
    assert not step_grid.differences(runs[0].seen, runs[1].seen, True)
    runs[1].world.model.l1.W.array[0, 0] += 1
    for run in runs:
        run.go(range(2, 3))
    assert "step 2: all" in step_grid.differences(runs[0].seen, runs[1].seen, True)[0]
