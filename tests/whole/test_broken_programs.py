"""Random programs with breaks at random places do what they do eagerly."""
import ast

import breaks
import broken_programs
import pytest
import staged_programs

from dy2static import CaptureError, to_static


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", broken_programs.FAMILIES)
def test_programs_with_breaks(family, seed):
    lines, _ = broken_programs.look_at(family, seed, broken=0.1)
    assert not lines, "\n".join(lines[:6]) + "\n" + broken_programs.FAMILIES[family][0](seed, broken=0.1).text


def test_breaks_are_the_same_for_equal_seeds():
    one, again, other = (breaks.insert(staged_programs.Program(3).text, seed, 0.1) for seed in (5, 5, 6))
    assert one == again != other


def test_there_are_several_breaks():
    text = staged_programs.Program(3).text
    assert sum(isinstance(node, ast.Name) and node.id in breaks.NAMES for node in ast.walk(ast.parse(breaks.insert(text, 0, 0.1)))) > 1
    assert not any(name + "(" in text for name in breaks.NAMES)


@pytest.mark.parametrize("name", breaks.NAMES)
def test_every_break_stops_a_capture_and_gives_its_value(name):
    def function(x, broken):
        broken(x)
        return x * 2

    def used(broken):
        return {"yielded": lambda x: next(breaks.yielded(x)), "Held": lambda x: breaks.Held(x).value}.get(name, broken)
    value = object()
    assert used(breaks.NAMES[name])(value) is value
    with pytest.raises(CaptureError):
        to_static(function, strict=True)(staged_programs.inputs(0)[0], used(breaks.NAMES[name]))
