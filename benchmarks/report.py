"""Records of `measure.py` to figures, and figures to the tables of docs/performance.md and README.md."""
import json
import math
import re
import statistics

import environments
import workloads

QUIET = 0.3                 # with two threads and more only blocks count during which others used fewer processors
WRONG = 1e-3                # relative difference to eager Chainer from which numbers are called wrong
TITLES = [column.title for column in environments.COLUMNS]
MARKER = re.compile(r"(<!-- begin: ([a-z0-9 ]+) -->\n).*?(<!-- end -->)", re.S)


# ---- records to figures

def results_of(machine, times, memory=(), long=()):
    """All figures as plain data: {"machine", "versions", "threads": {"1": {column: {cell: figures}}}, "memory", "long"}."""
    threads = sorted({record["threads"] for record in times})
    return {
        "machine": dict(machine),
        "versions": {r["column"]: r["version"] for r in times if "version" in r},
        "threads": {str(count): _columns([r for r in times if r["threads"] == count]) for count in threads},
        "memory": _nested(memory, lambda records: records[-1].get("peak_mib")),
        "long": _long(long),
    }


def _columns(records):
    """{column: {cell: figures}} of one number of threads."""
    base = {r["cell"]: r["check"] for r in reversed(records) if r["column"] == environments.BASE.title and "check" in r}
    speed = {(r["cell"], r["round"]): estimate(r)[0] for r in records if r["column"] == environments.BASE.title and "blocks" in r}
    return _nested(records, lambda found: _figures(found, base.get(found[0]["cell"]), speed))


def _nested(records, of):
    """{column: {cell: of(records of both)}}"""
    found = {}
    for record in records:
        found.setdefault(record["column"], {}).setdefault(record["cell"], []).append(record)
    return {column: {cell: of(some) for cell, some in cells.items()} for column, cells in found.items()}


def _figures(records, expected, base_speed):
    """The figures of one cell of one column: of the fastest of its modes that computes what eager Chainer does."""
    modes = {}
    for record in records:
        modes.setdefault(record["mode"], []).append(record)
    return min((_of_mode(some, expected, base_speed) for some in modes.values()), key=lambda f: (f.get("us", math.inf)))


def _of_mode(records, expected, base_speed):
    good = [r for r in records if "blocks" in r]
    if not good:
        return {"mode": records[0]["mode"], "cannot": records[0].get("error", "not measured")[:200]}
    worst = max(difference(expected, r["check"]) for r in good)
    if worst > WRONG:
        return {"mode": good[0]["mode"], "cannot": f"wrong: differs by {worst:.0e}"}
    by_round = {r["round"]: estimate(r) for r in good}
    quiet = {turn: us for turn, (us, is_quiet) in by_round.items() if is_quiet}
    counted = quiet or {turn: us for turn, (us, _) in by_round.items()}
    cell = good[0]["cell"]
    ratios = [us / base_speed[cell, turn] for turn, us in counted.items() if (cell, turn) in base_speed]
    first, later = [[r["first_s"] for r in good if r["cold"] == cold] for cold in (True, False)]
    figures = {
        "mode": good[0]["mode"], "us": _short(statistics.median(counted.values())),
        "ratio": _short(statistics.median(ratios)) if ratios else None, "quiet": bool(quiet), "rounds": len(counted),
        "first_s": _short(first[0]) if first else None, "second_s": _short(statistics.median(later)) if later else None,
        "difference": _short(worst),
    }
    if "captures" in good[0]:
        figures.update({name: max(r[name] for r in good) for name in ("captures", "recaptures", "fallbacks")})
    return figures


def estimate(record):
    """(microseconds per call, whether the machine was quiet enough to count) of one record.

    On one thread the processor time of a call stands for what a quiet machine would take, unless it counts threads
    that only wait, and the wall time is less.
    """
    blocks = record["blocks"]
    if record["threads"] == 1:
        return statistics.median(min(wall, own) for wall, _, own in blocks), True
    quiet = [wall for wall, others, _ in blocks if others < QUIET]
    return (statistics.median(quiet), True) if quiet else (min(wall for wall, _, _ in blocks), False)


def difference(expected, found):
    """The largest relative difference; numbers that are tiny next to the largest are compared with it."""
    if not expected or not found:
        return 0.0
    if len(expected) != len(found) or not all(map(math.isfinite, found)):
        return math.inf
    largest = max(map(abs, expected))
    return max(abs(a - b) / max(abs(a), 1e-2 * largest, 1e-6) for a, b in zip(expected, found))


def _long(records):
    """{column: {cell: relative difference to eager Chainer after the last step}}"""
    last = _nested(records, lambda some: some[-1].get("check"))
    base = last.pop(environments.BASE.title, {})
    return {column: {cell: _short(difference(base[cell], check)) for cell, check in cells.items() if base.get(cell) and check}
            for column, cells in last.items()}


def _short(number):
    return float(f"{number:.4g}")


# ---- figures to tables

def fill(page, results):
    """The page with what stands between its markers made anew."""
    def section(match):
        return match[1] + {**SECTIONS, **README_SECTIONS}[match[2]](results).rstrip() + "\n" + match[3]
    return MARKER.sub(section, page)


def sections_of(page):
    """The names of the page's markers, in order."""
    return [match[2] for match in MARKER.finditer(page)]


def machine(results):
    about = results["machine"]
    if not about:
        return "Nothing has been measured yet."
    lines = [f"Measured on {about['date']} at commit `{about['commit']}`: {about['processor']}, {about['processors']} processors, "
             f"{about['system']}, Python {about['python']}."]
    versions = sorted(set(results["versions"].values()))
    lines.append(f"{'; '.join(versions)}.")
    if about["left_out"]:
        lines.append(f"Not installed, or not for this CPU, and left out: {', '.join(about['left_out'])}.")
    return "\n".join(lines)


def times(results, threads):
    """Microseconds per call, and the ratio to eager Chainer in the same round."""
    columns = results["threads"].get(str(threads), {})
    if not columns:
        return "Not measured yet."
    titles = [title for title in TITLES if title in columns] + [t for t in columns if t not in TITLES]
    return table(["", *titles], [[cell, *(_time(columns[title].get(cell)) for title in titles)] for cell in workloads.CELLS
                                 if any(cell in columns[title] for title in titles)])


def _time(figures):
    if figures is None:
        return ""
    if "cannot" in figures:
        return "wrong" if figures["cannot"].startswith("wrong") else "no"
    ratio = "" if figures["ratio"] is None else f" ({short_ratio(figures['ratio'])})"
    return microseconds(figures["us"]) + ratio + ("" if figures["quiet"] else "*")


def speedups(results):
    """dy2static next to eager Chainer and to the fastest peer, of every cell."""
    columns = results["threads"].get("1", {})
    ours = {title: cells for title, cells in columns.items() if title.startswith("dy2static")}
    peers = {title: columns[title] for title in TITLES if title in columns and not title.startswith(("dy2static", "Chainer"))}
    rows = []
    for cell in workloads.CELLS:
        best, title = _fastest(ours, cell)
        if best is None:
            continue
        peer, peer_title = _fastest(peers, cell)
        eager = columns.get(environments.BASE.title, {}).get(cell, {}).get("us")
        limit = columns.get(environments.LIMITS.title, {}).get(cell, {}).get("us")
        rows.append([cell, title, microseconds(best), f"{eager / best:.2f}" if eager else "",
                     f"{peer / best:.2f} ({peer_title}, {microseconds(peer)})" if peer else "",
                     f"{best / limit:.2f}" if limit else ""])
    if not rows:
        return "Not measured yet."
    return table(["", "fastest of ours", "µs", "eager Chainer / ours", "fastest peer / ours", "ours / products alone"], rows)


def headline(results):
    """Times as fast as eager Chainer, of a few workloads: the table of README.md."""
    rows = []
    for words, workload in HEADLINE.items():
        ratios = [_times_as_fast(results, f"{workload}.{kind}") for kind in ("infer", "grad", "train")]
        rows.append([words, *["" if ratio is None else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}" for ratio in ratios]])
    made = results["machine"]
    return "\n\n".join([table(["", "inference", "loss and gradients", "training step"], rows),
                        f"Measured on {made['date']}: {made['processor']}, Python {made['python']}, "
                        f"{results['versions'][environments.BASE.title]}."])


#: Workloads of the table in README.md.
HEADLINE = {"MLP 16-64-64-4, batch 8": "W2", "MLP 784-1000-1000-10, batch 100": "W1", "language model of two LSTM layers": "W4",
            "small VGG with batch normalization": "W5", "transformer block": "W11",
            "damped Newton iteration, `while` and `if` on array values": "W7"}


def _times_as_fast(results, cell):
    columns = results["threads"].get("1", {})
    best, _ = _fastest({title: cells for title, cells in columns.items() if title.startswith("dy2static")}, cell)
    eager = columns.get(environments.BASE.title, {}).get(cell, {}).get("us")
    return eager / best if best and eager else None


def _fastest(columns, cell):
    found = [(cells[cell]["us"], title) for title, cells in columns.items() if "us" in cells.get(cell, {})]
    return min(found, default=(None, None))


def losses(results):
    """Where a peer is faster than the fastest of ours, farthest behind first."""
    columns = results["threads"].get("1", {})
    found = []
    for cell in workloads.CELLS:
        ours, _ = _fastest({t: c for t, c in columns.items() if t.startswith("dy2static")}, cell)
        peers = [(cells[cell]["us"], title) for title, cells in columns.items()
                 if title in TITLES and not title.startswith("dy2static") and "us" in cells.get(cell, {})]
        ahead = sorted((us / ours, title) for us, title in peers if ours and us < ours)
        if ahead:
            found.append((ahead[0][0], f"- {cell}: " + ", ".join(f"{title} {short_ratio(ratio)}" for ratio, title in ahead)))
    return "\n".join(line for _, line in sorted(found)) or ("Nowhere." if columns else "Not measured yet.")


def first_calls(results):
    """Seconds of the first call: with empty caches / in a second process."""
    columns = results["threads"].get("1", {})
    wanted = [title for title in TITLES if title in columns and title not in ("Chainer, AVX-512 BLAS", "Paddle", "PyTorch")]
    rows = [[cell, *(_first(columns[title].get(cell, {})) for title in wanted)] for cell in workloads.CELLS
            if any("us" in columns[title].get(cell, {}) for title in wanted)]
    return table(["", *wanted], rows) if rows else "Not measured yet."


def _first(figures):
    both = [figures.get("first_s"), figures.get("second_s")]
    return "" if both == [None, None] else " / ".join("-" if s is None else f"{s:.2f}" if s < 10 else f"{s:.0f}" for s in both)


def captures(results):
    """What each cell captures, after how many calls it stops, and how far it is from eager."""
    columns = {title: cells for title, cells in results["threads"].get("1", {}).items() if title.startswith("dy2static")}
    rows = [[cell, title, str(f["captures"]), str(f["recaptures"]), str(f["fallbacks"]), f"{f['difference']:.0e}",
             _number(results["long"].get(title, {}).get(cell), ".0e")]
            for cell in workloads.CELLS for title, cells in columns.items() if "captures" in (f := cells.get(cell, {}))]
    if not rows:
        return "Not measured yet."
    return table(["", "", "captures", "recaptures", "calls that ran eagerly", "difference to eager", "after 100 steps"], rows)


def memory(results):
    """MiB that a training step adds to what the process held before the model was made."""
    columns = results["memory"]
    cells = [cell for cell in workloads.CELLS if any(cell in found for found in columns.values())]
    if not cells:
        return "Not measured yet."
    return table(["", *columns], [[cell, *(_number(columns[title].get(cell), ".0f") for title in columns)] for cell in cells])


def cannot(results):
    """What the columns cannot do, and why."""
    lines = []
    for title, cells in results["threads"].get("1", {}).items():
        why = {}
        for cell, figures in cells.items():
            if "cannot" in figures and title != environments.LIMITS.title:
                why.setdefault(figures["cannot"].splitlines()[0].replace("|", "/"), []).append(cell)
        lines += [f"- {title}: {', '.join(found)}: {reason}" for reason, found in why.items()]
    return "\n".join(lines) or "Nothing."


def described(results):
    return table(["", ""], [[cell, text] for cell, text in workloads.CELLS.items()])


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def microseconds(us):
    """Three digits, with thousands apart."""
    return f"{us:.3g}" if us < 1000 else f"{round(us, 2 - int(math.log10(us))):,.0f}"


def short_ratio(ratio):
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def _number(value, form):
    return "" if value is None else format(value, form)


def slug(text):
    """The text as a name of a folder."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def as_json(results):
    """The figures with one cell per line, so that changes can be read."""
    text = json.dumps(results, indent=1, sort_keys=True)
    return re.sub(r"\{[^{}]*\}", lambda flat: " ".join(flat[0].split()), text) + "\n"


SECTIONS = {
    "machine": machine, "speedups": speedups, "losses": losses, "one thread": lambda results: times(results, 1),
    "two threads": lambda results: times(results, 2), "first calls": first_calls, "captures": captures, "memory": memory,
    "cannot": cannot, "workloads": described,
}

#: Those of README.md.
README_SECTIONS = {"headline": headline}
