"""The text of ``docs/op_coverage.md``: made of the matrices of functions and links, and of the reasons beside the lowerings."""
import collections

import call_matrix
import chainer.functions as F
import link_matrix

from dy2static.lowering.reasons import reason_of
from dy2static.lowering.registry import LOWERINGS

_BITS = {"e": "16", "f": "32", "d": "64"}
_ORDERS = {1: "values", 2: "gradients", 3: "second gradients"}

_HEAD = """# Coverage of Chainer's functions and links

`pytest tests/ops/test_coverage_page.py --update-golden` generates this page from the test matrices. The lists of functions and links
are read from Chainer. Each row of a matrix is a call that is compiled and compared with the same call in eager mode.

- *lowered*: becomes primitive ops. *composed*: calls other functions of Chainer, which are lowered.
- *in part*: lowered, except for the calls in the third column.
- *whole*: becomes an opaque node, which runs Chainer's own forward and backward. It is exact, but is not fused with other operations.
- *eager*: is not compiled. The call runs in eager mode, with one warning.
"""


def page():
    """The whole page."""
    functions, links = _functions(), _links()
    totals = collections.Counter(line.kind for line in functions)
    compiled = len(link_matrix.ROWS) - sum(row.eager is not None for row in link_matrix.ROWS.values())
    return "\n".join([
        _HEAD,
        f"Functions: {len(functions)} entries, {totals['lowered']} lowered, {totals['composed']} composed, "
        f"{totals['in part']} lowered in part, {totals['whole']} whole, {totals['eager']} eager, 0 failing. {len(call_matrix.ROWS)} rows, "
        f"{len(call_matrix.EAGER)} of them run in eager mode.",
        "",
        f"Links: {len(link_matrix.ENTRIES)} entries, {len(links)} compared, {len(link_matrix.WITHOUT)} without a row, 0 failing. "
        f"{len(link_matrix.ROWS)} rows, {len(link_matrix.ROWS) - compiled} of them run in eager mode.",
        "",
        "## Functions",
        "",
        "The last column lists the compared float types (in bits) and the highest compared derivative that Chainer has.",
        "",
        "| function | how | calls that stay whole or run in eager mode | compared |",
        "|---|---|---|---|",
        *[f"| `{line.name}` | {line.kind} | {line.rest} | {line.compared} |" for line in functions],
        "",
        "## Links",
        "",
        "The tests compare values, gradients, parameters after steps of an optimizer, persistent values, state and random numbers.",
        "",
        "| link | rows | calls that stay whole or run in eager mode |",
        "|---|---|---|",
        *links,
        "",
        "Without a row:",
        "",
        *[f"- `{name}`: {reason}" for name, reason in sorted(link_matrix.WITHOUT.items())],
        ""])


Line = collections.namedtuple("Line", "name kind rest compared")


def _rows_by_entry():
    """Per function the rows that call it; those that call nothing else, if there are any."""
    found = collections.defaultdict(list)
    for case in call_matrix.ROWS:
        called, applied = call_matrix.entries_of(case)
        for name in called:
            found[name].append((case, len(called), applied))
    return {name: [row for row in rows if row[1] == 1] or rows for name, rows in found.items()}


def _functions():
    rows = _rows_by_entry()
    return [_function(name, rows[name]) for name in call_matrix.ENTRIES]


def _function(name, rows):
    notes, orders, lowered, own = collections.defaultdict(list), {}, False, False
    module = getattr(F, name).__module__
    for case, _, applied in rows:
        found = call_matrix.matrix_row(case)
        own = own or any(cls.__module__ == module for cls in applied)
        for dtype, count in found.compared.items():
            orders[dtype] = max(count, orders.get(dtype, 0))
        if str(case) in call_matrix.EAGER:
            notes[f"eager, {call_matrix.EAGER[str(case)]}"].append(case)
            continue
        for cls in sorted(found.opaque, key=lambda cls: cls.__name__):
            notes[f"{cls.__name__}, if its lowering declines" if cls in LOWERINGS else f"{cls.__name__}: {reason_of(cls)}"].append(case)
        lowered = lowered or not found.opaque
    whole = any(not note.startswith("eager") for note in notes)
    kind = "eager" if not lowered and not whole else "whole" if not lowered else "in part" if whole else "lowered" if own or not _applies(rows) else "composed"
    compared = f"{' '.join(_BITS[dtype] for dtype in 'efd' if dtype in orders)}, {_ORDERS[max(orders.values())]}"
    return Line(name, kind, "; ".join(note if lowered is False and ": " in note else f"{note}: {_some(cases)}"
                                      for note, cases in notes.items()), compared)


def _applies(rows):
    return any(applied for *_, applied in rows)


def _some(cases):
    """The first rows by name."""
    names = [str(case).replace("|", "/").replace("\n", " ") for case in cases[:2]]
    return ", ".join(names) + (f" and {len(cases) - 2} more" if len(cases) > 2 else "")


def _links():
    found = collections.defaultdict(list)
    for name in link_matrix.ROWS:
        found[name.split()[0]].append(name)
    lines = []
    for entry, names in sorted(found.items()):
        notes = {}
        for name in names:
            reason = link_matrix.ROWS[name].eager
            if reason is not None:
                notes[f"eager: {reason}"] = None
            else:
                opaque, _ = link_matrix.matrix_row(name)
                notes.update({f"{cls.__name__}: {reason_of(cls)}": None for cls in sorted(opaque, key=lambda cls: cls.__name__)})
        lines.append(f"| `{entry}` | {len(names)} | {'; '.join(notes)} |")
    return lines
