"""Choices between algorithms by measuring: what wins, what is kept, and that every candidate computes the same."""
import json
import math
import os
import subprocess
import sys
import textwrap

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
import test_native_convolutions as shapes

from dy2static import cli, config, to_static
from dy2static.native import channel_blocks, compiler, convolutions, cpus, shipped, store, team, tuning
from dy2static.ops.channel_blocks import convolve_blocks, turn_to_blocks

pytestmark = pytest.mark.skipif(not compiler.available(), reason="there is no C compiler on this machine")

CHOICE = tuning.Choice("sums", "sums of two numbers", lambda: "some text")


class Clock:
    """A clock that stands still; candidates move it."""

    def __init__(self):
        self.now, self.called = 0.0, []

    def __call__(self):
        return self.now

    def candidate(self, name, seconds, status=0):
        def call():
            self.called.append(name)
            self.now += seconds
            return status
        return call


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """A clock, an empty cache, a process that has measured nothing, and the setting."""
    made = Clock()
    monkeypatch.setattr(tuning, "clock", made)
    monkeypatch.setattr(tuning, "_tables", {})
    monkeypatch.setattr(store, "_checked", {})
    with config.CACHE_DIR.set(str(tmp_path)), config.TUNE.set(1):
        yield made


def choose(clock, subject="2 + 2", **seconds):
    return tuning.choose(CHOICE, subject, 8, lambda: list(seconds),
                         lambda names: {name: clock.candidate(name, seconds[name]) for name in names})


def restart():
    """As a new process is: nothing is known but what is on disk."""
    tuning._tables.clear()


def table_file():
    (path,) = [path for path, _, _ in tuning.kept()]
    return path


def test_the_fastest_is_chosen_once(clock):
    assert choose(clock, rule=2.0, fast=1.0, slow=9.0) == "fast"
    assert clock.called.count("slow") == 2                  # once to warm up, once to find that it is hopeless
    clock.called.clear()
    assert choose(clock, rule=1.0, fast=2.0, slow=9.0) == "fast"            # the choice of this process stands
    restart()
    assert choose(clock, rule=1.0, fast=2.0, slow=9.0) == "fast" and not clock.called
    assert choose(clock, "3 + 3", rule=1.0, fast=2.0) is None and clock.called


def test_what_is_not_clearly_faster_does_not_win(clock):
    assert choose(clock, rule=1.0, other=0.96) is None
    restart()
    assert choose(clock, rule=1.0, other=0.5) is None


def test_what_cannot_be_computed_does_not_win(clock):
    calls = {"rule": clock.candidate("rule", 2.0), "other": clock.candidate("other", 1.0, status=1)}
    found = tuning.measure(("rule", "other"), 8, calls)
    assert found.winner == "rule" and found.seconds["other"] == math.inf
    assert tuning.choose(CHOICE, "x", 8, lambda: list(calls), lambda names: calls) is None
    restart()
    assert tuning.choose(CHOICE, "x", 8, lambda: list(calls), lambda names: pytest.fail("measured again")) is None


def test_other_candidates_are_measured_again(clock):
    assert choose(clock, rule=2.0, fast=1.0) == "fast"
    assert choose(clock, rule=2.0, fast=1.0, new=0.5) == "new"
    assert choose(clock, fast=1.0, rule=2.0) is None        # the rules choose another one


def test_nothing_is_measured_or_read_without_the_setting(clock):
    assert choose(clock, rule=2.0, fast=1.0) == "fast"
    clock.called.clear()
    with config.TUNE.set(0):
        assert choose(clock, rule=2.0, fast=1.0) is None and choose(clock, "3 + 3", rule=2.0, fast=1.0) is None
    with shipped.recorded():                                # the texts of saved models are those of the rules
        assert choose(clock, rule=2.0, fast=1.0) is None
    assert not clock.called


@pytest.mark.parametrize("change", ["cpu", "threads", "kernels", "march"])
def test_the_table_of_another_machine_is_not_read(clock, monkeypatch, change):
    assert choose(clock, rule=2.0, fast=1.0) == "fast"
    restart()
    if change == "cpu":
        monkeypatch.setattr(cpus, "fields", lambda: {"model name": "another one"})
    elif change == "threads":
        monkeypatch.setattr(team, "wanted", lambda: 77)
    elif change == "kernels":
        monkeypatch.setitem(tuning.CHOICES, "sums", CHOICE._replace(kernels=lambda: "another text"))
    else:
        monkeypatch.setattr(config.MARCH, "value", "x86-64")
    assert choose(clock, rule=1.0, fast=2.0) is None
    assert len(list(tuning.kept())) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"machine": "", "entries": {}, "checksum": 1}'])
def test_a_damaged_table_counts_as_empty(clock, text):
    choose(clock, rule=2.0, fast=1.0)
    path = table_file()
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    document["entries"]["sums: 2 + 2"]["winner"] = "slow"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text or json.dumps(document))
    restart()
    assert [machine for _, machine, _ in tuning.kept()] == [None]
    assert choose(clock, rule=1.0, fast=2.0) is None
    assert [list(entries) for _, _, entries in tuning.kept()] == [["sums: 2 + 2"]]


def test_what_others_measure_meanwhile_is_kept(clock):
    choose(clock, rule=2.0, fast=1.0)
    mine = dict(tuning._tables)
    restart()
    choose(clock, "of another process", rule=2.0, fast=1.0)
    tuning._tables.update(mine)
    choose(clock, "3 + 3", rule=2.0, fast=1.0)
    assert [sorted(entries) for _, _, entries in tuning.kept()] == [["sums: 2 + 2", "sums: 3 + 3", "sums: of another process"]]


def test_another_process_reads_the_table(clock):
    """With a clock of its own, which would let another candidate win."""
    row = convolutions.Windows(1, 1, 16, 16, (9, 9), (3, 3), (9, 9), (1, 1), (1, 1), (1, 1))
    first = convolutions.candidates("conv", row, "f32")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolutions, "calls", lambda *args: {
            name: clock.candidate(name, float(len(first) - k)) for k, name in enumerate(first)})
        tuned = convolutions.tuned("conv", row, "f32")
    assert convolutions.ALGORITHMS[tuned.algorithm] == first[-1]
    program = textwrap.dedent(f"""
        from dy2static.native import convolutions
        convolutions.calls = None
        print(convolutions.tuned("conv", convolutions.Windows{tuple(row)!r}, "f32").algorithm)
    """)
    settings = {flag.name: str(flag.value) for flag in (config.CACHE_DIR, config.TUNE, config.MARCH, config.CC)}
    settings["DY2STATIC_THREADS"] = str(team.wanted())
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **settings}, capture_output=True, text=True)
    assert done.stdout.split() == [str(tuned.algorithm)], done.stderr


@pytest.mark.any_python
@pytest.mark.parametrize("call", shapes.CALLS)
@pytest.mark.parametrize("row", shapes.ROWS)
def test_every_algorithm_gives_the_same(call, row):
    row = shapes.ROWS[row]
    args, expected = shapes.reference(call, row, np.float32)
    found = convolutions.candidates(call, row, "f32")
    assert len(set(found)) == len(found)
    for algorithm in found:
        got = np.full(expected.shape, np.nan, np.float32)
        windows = row._replace(algorithm=convolutions.ALGORITHMS.index(algorithm))
        assert convolutions.compute(call, windows, "f32", *args, got) == 0
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4, err_msg=algorithm)


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("call", shapes.CALLS)
def test_algorithms_are_measured_on_usual_numbers(call, name, monkeypatch):
    made, numbers = [], tuning.numbers

    def noted(*shape, dtype=np.float32):
        made.append(numbers(*shape, dtype=dtype))
        return made[-1]

    monkeypatch.setattr(tuning, "numbers", noted)
    for row in ("padded", "groups", "added", "a channel each"):
        found = convolutions.candidates(call, shapes.ROWS[row], name)
        calls = convolutions.calls(call, shapes.ROWS[row], name, found)
        assert list(calls) == found and [call() for call in calls.values()] == [0] * len(found)
    assert {array.dtype for array in made} == {np.dtype(shapes.NAMES[name][0])}
    assert all(np.isfinite(array).all() and array.any() and array.ctypes.data % 64 == 0 for array in made)


@pytest.mark.any_python
@pytest.mark.parametrize("in_, out, groups, image", [(32, 48, 1, (9, 11)), (8, 20, 1, (6, 7)), (64, 64, 2, (5, 6)),
                                                     (32, 32, 4, (8, 8)), (32, 32, 8, (7, 12))])
def test_every_algorithm_gives_the_same_in_blocks(in_, out, groups, image):
    windows = channel_blocks.Windows(2, in_, out, groups, image, (3, 3), image, (1, 1), (1, 1), (1, 1))
    random = np.random.RandomState(0)
    x = turn_to_blocks(random.standard_normal((2, in_, *image)).astype("f"))
    filters = random.standard_normal((out, in_ // groups, 3, 3)).astype("f")
    expected = convolve_blocks(x, filters, (), image, ((1, 1),) * 3, groups, False, False, False, False, None)
    small = ["groups"] if in_ // groups in (4, 8) and "groups" in channel_blocks.candidates(windows) else []    # not everywhere
    assert sorted(channel_blocks.candidates(windows)) == ["Winograd", "direct", *small]
    found = {}
    for algorithm in ["rules", *channel_blocks.candidates(windows)]:
        got = found[algorithm] = np.full(expected.shape, np.nan, np.float32)
        assert channel_blocks.compute(windows._replace(algorithm=channel_blocks.ALGORITHMS.index(algorithm)), x, filters, got) == 0
        np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4, err_msg=algorithm)
    np.testing.assert_array_equal(found["rules"], found[channel_blocks.candidates(windows)[0]])


class Stages(chainer.Chain):
    """Convolutions that are worth being in blocks."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.layers = chainer.ChainList(*[L.Convolution2D(n, 32, 3, 1, 1) for n in (3, 32, 32, 32)])
            self.norm = L.BatchNormalization(32)

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(self.norm(layer(x)))
        return F.average_pooling_2d(x, x.shape[2:])


@pytest.mark.parametrize("fastest", ["plain", "blocks"])
def test_a_network_has_the_layout_that_won(clock, monkeypatch, fastest):
    """All layouts are compiled and called; nothing of that is seen in the result."""
    measure, tried = tuning.measure, []

    def measured(names, nbytes, calls):
        if "plain" not in names:
            return measure(names, nbytes, {name: clock.candidate(name, 1.0) for name in names})
        assert [call() for call in calls.values()] == [0] * len(calls)
        tried.append(list(names))
        return measure(names, nbytes, {name: clock.candidate(name, 1.0 if name == fastest else 2.0) for name in names})

    monkeypatch.setattr(tuning, "measure", measured)
    net, x = Stages(), np.random.RandomState(0).standard_normal((2, 3, 24, 24)).astype("f")
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        compiled = to_static(net.forward, backend="c", strict=True)
        np.testing.assert_allclose(compiled(x).array, net(x).array, rtol=1e-4, atol=1e-4)
        assert ("dy_blocks_conv(" in compiled.program(x).native_code) == (fastest == "blocks")
        assert tried == [["blocks", "plain"]]
        again = to_static(net.forward, backend="c", strict=True)
        again(x)
        assert again.program(x).native_code == compiled.program(x).native_code and len(tried) == 1


def test_a_program_has_the_algorithms_that_won(clock, monkeypatch, capsys):
    """The last candidate is the fastest one: it is in the text, the result is the same, and the table is shown."""
    monkeypatch.setattr(convolutions, "calls", lambda function, windows, name, names: {
        algorithm: clock.candidate(algorithm, float(len(names) - k)) for k, algorithm in enumerate(names)})
    random = np.random.RandomState(0)
    x, W = random.standard_normal((2, 3, 9, 9)).astype("f"), random.standard_normal((4, 3, 3, 3)).astype("f")

    def loss(x, W):
        return F.sum(F.convolution_2d(x, W, stride=2) ** 2)

    given = [chainer.Parameter(a.copy()) for a in (x, W)], [chainer.Parameter(a.copy()) for a in (x, W)]
    compiled = to_static(loss, backend="c", strict=True)
    for call, variables in zip((loss, compiled), given):
        y = call(*variables)
        y.backward()
    for eager, made in zip(*given):
        np.testing.assert_allclose(made.grad, eager.grad, rtol=1e-4, atol=1e-4)
    (entries,) = [entries for _, _, entries in tuning.kept()]
    assert {subject.split(":")[0] for subject in entries} == {"conv", "conv_transpose", "conv_grad_weight"}
    assert cli.main(["tuned", "list"]) == 0
    shown = capsys.readouterr().out
    assert "conv: f32 2x3 -> 4, 9x9 -> 4x4, 3x3 / 2x2 + 0x0 * 1x1" in shown and "*" in shown
    assert cli.main(["tuned", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["entries"] == entries
    assert cli.main(["tuned", "clear"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 table") and not list(tuning.kept())
