"""What the page shows, as numbers, texts, lists and dicts: panes of lines, each with the user's lines it comes from."""
from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..conversion import stages_of
from ..diagnostics.explain import Explanation
from ..errors import Dy2StaticError, Location
from ..ir.graph import Graph, Value
from ..ir.listing import listed
from ..runtime.profile import Profile

#: The states of a line, the strongest first, by the kinds of its marks.
_STATES = (("eager", "runs eagerly"), ("cut", "Python between parts"), ("host", "host, at every call"), ("opaque", "kept whole"),
           ("graph", "compiled"), ("part", "compiled part"), ("Python", "Python, at capture only"), ("not run", "not run"))
_PLACE = re.compile(r"# (\S+):(\d+)$")
_COMMENT, _PART = re.compile(r"/\* (.+:\d+) \*/$"), re.compile(r"\bpart_\d+\b")
_MOST_POINTS = 400


def gathered(function: Any, explanation: Explanation, programs: Sequence[Tuple[str, Any]], profile: Optional[Profile],
             misses: Sequence[Any], info: Dict[str, Any]) -> Dict[str, Any]:
    """Everything that the page shows.

    programs: the one of the call, or, with their names, those of its parts.  profile: None where no call was timed.
    """
    program = programs[0][1] if len(programs) == 1 and not explanation.cuts else None
    panes = [{"title": "Converted source", "groups": _stages(function)}]
    if programs:
        panes.append({"title": "Graph", "groups": [
            {"title": name, "lines": [_line(text, place) for text, place in listed(one.graph)]} for name, one in programs]})
        panes.append({"title": "Generated Python", "groups": [
            {"title": name, "lines": _generated(one.code)} for name, one in programs]})
        native = [(name, one.native_code) for name, one in programs if one.native_code]
        panes += [{"title": "C", "groups": [
            {"title": name, "lines": _native(code)} for name, code in native]}] if native else []
    return {
        "name": function.__qualname__, "summary": str(explanation).split("\n", 2)[1],
        "sources": [_source(listing, _times(profile, "forward"), _times(profile, "backward"), _runs_on(profile))
                    for listing in explanation.listings],
        "panes": panes,
        "timed": None if profile is None else {"calls": profile.calls, "seconds": profile.seconds, "backward": sum(
            [record.seconds for record in profile.records if record.direction == "backward"])},
        "memory": None if program is None else {**program.memory._asdict(), "peak": program.peak_bytes,
                                                "points": memory_points(program.graph)},
        "guards": [] if program is None else [guard.describe() for guard in program.guards],
        "splits": list(explanation.split_by), "info": {name: value for name, value in info.items() if value is not None},
        "misses": [miss._asdict() for miss in misses],
        "cuts": [{"place": _key(cut.at), "reason": cut.reason, "hint": cut.hint or ""} for cut in explanation.cuts],
    }


def _key(place: Optional[Location]) -> str:
    return "" if place is None else f"{os.path.basename(place.file)}:{place.line}"


def _line(text: str, place: Optional[Location] = None) -> List[str]:
    return [text, _key(place)]


def _source(listing: Any, times: Dict[str, float], backward: Dict[str, float], runs_on: Dict[str, str]) -> Dict[str, Any]:
    lines = []
    for line in listing.lines:
        key = f"{os.path.basename(listing.file)}:{line.number}"
        kinds = {mark.kind for mark in line.marks}
        state, words = next(((kind, words) for kind, words in _STATES if kind in kinds), ("", ""))
        if state == "graph" and key in runs_on:
            state, words = ("native", "native code") if runs_on[key] == "C" else ("graph", "compiled, NumPy")
        lines.append({"number": line.number, "text": line.text, "key": key, "state": state.replace(" ", "-"), "words": words,
                      "marks": [str(mark) for mark in line.marks], "seconds": times.get(key, 0.0),
                      "backward": backward.get(key, 0.0)})
    return {"title": listing.name, "file": listing.file, "lines": lines}


def _times(profile: Optional[Profile], direction: str) -> Dict[str, float]:
    """Seconds of each line; what several lines share is divided evenly."""
    found: Dict[str, float] = {}
    for record in () if profile is None else profile.records:
        for place in record.places if record.direction == direction else ():
            found[_key(place)] = found.get(_key(place), 0.0) + record.seconds / len(record.places)
    return found


def _runs_on(profile: Optional[Profile]) -> Dict[str, str]:
    """What the operations of each line run on, by what most of its time went to."""
    found: Dict[str, str] = {}
    for record in () if profile is None else profile.records:        # those that took longest come first
        for place in record.places:
            found.setdefault(_key(place), "C" if record.native else "NumPy")
    return found


def _stages(function: Any) -> List[Dict[str, Any]]:
    try:
        stages = stages_of(function)
    except Dy2StaticError as error:
        return [{"title": "", "lines": [_line(str(error))]}]
    file = os.path.basename(function.__code__.co_filename)
    groups: List[Dict[str, Any]] = []
    for stage in stages:
        if stage.before == stage.after and stage is not stages[-1]:
            continue                                    # it found nothing to change
        lines = [[text, f"{file}:{stage.lines[number]}" if number in stage.lines else ""]
                 for number, text in enumerate(stage.after.splitlines(), 1)]
        groups.append({"title": f"after {stage.number} {stage.name}", "lines": lines})
    return groups[::-1]                                 # what is compiled comes first


def _generated(code: str) -> List[List[str]]:
    """The lines of generated Python; one without a place in its comment belongs to that of the line before."""
    lines, key = [], ""
    for text in code.splitlines():
        found = _PLACE.search(text)
        if found is not None:
            key = f"{found[1]}:{found[2]}"
        elif text.lstrip().startswith(("def ", "return ")):
            key = ""
        lines.append([text, key])
    return lines


def _native(code: str) -> List[List[str]]:
    """The lines of C; those of a function, and its calls, come from the lines that the comment before it names."""
    lines, keys, inside = [], {}, ""
    for text in code.splitlines():
        found, part = _COMMENT.match(text), _PART.search(text)
        if found is not None:
            inside = "|".join(found[1].split(", "))
        if part is not None and inside:
            keys.setdefault(part[0], inside)
        lines.append([text, inside or (keys.get(part[0], "") if part is not None else "")])
        if text == "}":
            inside = ""
    return lines


def memory_points(graph: Graph) -> List[Tuple[str, str, int]]:
    """The bytes of arrays of known sizes that are alive after each node: the node, its line, bytes.

    Views and what is computed in place are counted as arrays of their own: it is a bound.  Of long graphs, the largest
    of each stretch.
    """
    last: Dict[Value, int] = {}
    for number, node in enumerate(graph.nodes):
        last.update(dict.fromkeys(node.inputs, number))
    last.update(dict.fromkeys(graph.outputs, len(graph.nodes)))
    ends: Dict[int, int] = {}
    alive, points = 0, []
    for number, node in enumerate(graph.nodes):
        for value in node.outputs:
            alive += value.nbytes
            ends[last.get(value, number)] = ends.get(last.get(value, number), 0) + value.nbytes
        points.append((node.op.name, _key(node.loc), alive))
        alive -= ends.get(number, 0)
    width = max(1, -(-len(points) // _MOST_POINTS))
    return [max(points[k:k + width], key=lambda point: point[2]) for k in range(0, len(points), width)]
