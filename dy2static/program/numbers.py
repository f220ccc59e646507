"""Numbers that a call computes: once for all parameters whose counts are equal."""
from __future__ import annotations

import re
from typing import Dict, List, Mapping, Sequence, Tuple

from ..record.guards import TypeMatch
from ..record.outcome import Outcome

_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
_MANY = 3                   # expressions that are worth a comparison of what is in them


def computed_together(computed: Mapping[str, str], outcome: Outcome) -> List[str]:
    """Lines that compute expressions.  Those that differ in one whole number only are computed once where these are equal.

    computed: the names of the results by the expressions.
    """
    groups = _alike([(text, name) for text, name in computed.items()], outcome)
    return [line for group in groups for line in _lines(group)]


def checked_together(conditions: Sequence[str], then: str, outcome: Outcome) -> List[str]:
    """Lines with a statement behind each of these conditions; where whole numbers are equal, one stands for all that are alike."""
    lines: List[str] = []
    for group in _alike([(condition, "") for condition in conditions], outcome):
        each = [f"if {text}: {then}" for _, _, text in group]
        if len(group) < _MANY:
            lines += each
        else:
            numbers = dict.fromkeys([number for _, number, _ in group])
            lines += [f"if {' == '.join(numbers)}:", f"    {each[0]}", "else:", *[f"    {line}" for line in each]]
    return lines


def _alike(texts: Sequence[Tuple[str, str]], outcome: Outcome) -> List[List[Tuple[str, str, str]]]:
    """Pairs of an expression and a name, as name, whole number in it and expression: those alike but for that number together."""
    whole = {guard.source for guard in outcome.guards if isinstance(guard, TypeMatch) and guard.expected is int}
    numbers = {name: source in whole for name, source in outcome.named}
    functions = {name: f"<{id(item)}>" for name, item in outcome.bound}
    groups: Dict[str, List[Tuple[str, str, str]]] = {}
    for text, name in texts:
        inside = {word for word in _NAME.findall(text) if word in numbers}
        number = inside.pop() if len(inside) == 1 else ""
        is_alike = numbers.get(number, False) and "'" not in text and '"' not in text
        form = _NAME.sub(lambda found: "<>" if found[0] in numbers else functions.get(found[0], found[0]), text)
        groups.setdefault(form if is_alike else text, []).append((name, number, text))
    return list(groups.values())


def _lines(group: List[Tuple[str, str, str]]) -> List[str]:
    each = [f"{name} = {text}" for name, _, text in group]
    if len(group) < _MANY:
        return each
    names, numbers = zip(*[(name, number) for name, number, _ in group])
    return [f"if {' == '.join(dict.fromkeys(numbers))}:", f"    {' = '.join(names)} = {group[0][2]}", "else:",
            *[f"    {line}" for line in each]]
