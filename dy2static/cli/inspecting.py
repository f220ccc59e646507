"""Commands that show what became of a function: ``code``, ``explain``, ``explore``, ``graph``."""
from __future__ import annotations

import json
from typing import Optional, Sequence

import click

from dy2static.cli.measuring import backward_option, runner
from dy2static.cli.target import call_of, compiled_of, inputs_option, target_argument
from dy2static.diagnostics.explain import Explanation


@click.command()
@target_argument
@click.option("--stages", is_flag=True, help="The source after each transformer.")
@click.option("--diff", is_flag=True, help="What each transformer changed.")
def code(target: str, stages: bool, diff: bool) -> None:
    """Print the converted source of a function."""
    compiled, _ = compiled_of(target)
    click.echo(compiled.stages(diff=diff) if stages or diff else compiled.code)


@click.command()
@target_argument
@inputs_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--strict", is_flag=True, help="Exit with status 1 where the call is not one compiled program.")
def explain(target: str, inputs: Sequence[str], as_json: bool, strict: bool) -> int:
    """Print, line by line, what of a call is compiled, and why the rest is not."""
    call = call_of(target, inputs)
    found = call.compiled.explain(*call.args, **call.kwargs)
    click.echo(json.dumps(as_data(found), indent=2) if as_json else found)
    return int(strict and (found.reason is not None or bool(found.cuts)))


def as_data(found: Explanation) -> dict:
    """An explanation as numbers, texts, lists and dicts."""
    return {"reason": found.reason, "at": None if found.at is None else str(found.at), "hint": found.hint, "counts": found.counts,
            "depends": found.depends, "segments": found.segments, "split_by": found.split_by,
            "cuts": [{"at": str(cut.at), "reason": cut.reason, "hint": cut.hint} for cut in found.cuts],
            "functions": [{"name": listing.name, "file": listing.file,
                           "lines": [{"number": line.number, "text": line.text, "marks": [mark._asdict() for mark in line.marks]}
                                     for line in listing.lines]} for listing in found.listings]}


@click.command()
@target_argument
@inputs_option
@click.option("--svg", metavar="FILE", help="Write a picture of it into a file instead.")
def graph(target: str, inputs: Sequence[str], svg: Optional[str]) -> None:
    """Print the graph of a call: operations with types, attributes and lines."""
    call = call_of(target, inputs)
    made = call.compiled.program(*call.args, **call.kwargs).graph
    if svg is None:
        click.echo(made)
    else:
        made.plot().save(svg)
        click.echo(f"wrote {svg}")


@click.command()
@target_argument
@inputs_option
@click.option("-o", "--output", default="explorer.html", show_default=True, metavar="FILE", help="The page.")
@click.option("--calls", default=20, show_default=True, type=click.IntRange(0), help="Calls that are timed for the times per line.")
@backward_option
def explore(target: str, inputs: Sequence[str], output: str, calls: int, backward: bool) -> None:
    """Write one page with source, stages, graph, generated code, times and memory of a call."""
    call = call_of(target, inputs)
    profile = call.compiled.profile()
    if calls:
        run = runner(call.compiled, call, backward)
        for _ in range(12):                             # native code is wanted then
            run()
        with profile:
            for _ in range(calls):
                run()
    call.compiled.explored(call.args, call.kwargs, profile if calls else None).save(output)
    click.echo(f"wrote {output}")


COMMANDS = (code, explain, graph, explore)
