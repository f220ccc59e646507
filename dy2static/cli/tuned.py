"""``tuned``: which algorithms were measured to be the fastest (``DY2STATIC_TUNE=1``)."""
from __future__ import annotations

import json
from typing import Any, Dict, List

import click

from dy2static.native import store, tuning


@click.group()
def tuned() -> None:
    """The algorithms that were measured with DY2STATIC_TUNE=1, which later processes with this setting use."""


@tuned.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--changed", is_flag=True, help="Only where another algorithm than that of the rules has won.")
def list_(as_json: bool, changed: bool) -> None:
    """Print each table: for each choice, the microseconds of its candidates, that of the rules first; * marks the winner."""
    tables: List[Dict[str, Any]] = [{"file": path, "machine": machine, "entries": {
        subject: entry for subject, entry in entries.items() if not changed or entry["winner"] != next(iter(entry["nanoseconds"]))}}
        for path, machine, entries in tuning.kept()]
    if as_json:
        click.echo(json.dumps(tables, indent=2))
        return
    for table in tables:
        click.echo(table["machine"] or f"{table['file']} is damaged: it counts as empty")
        for subject, entry in sorted(table["entries"].items()):
            click.echo(f"  {subject}: {_candidates(entry)}")
    click.echo(f"{len(tables)} tables in {store.directory()}")


def _candidates(entry: Dict[str, Any]) -> str:
    return ", ".join([f"{'*' if name == entry['winner'] else ''}{name} {'-' if ns is None else f'{ns / 1e3:,.1f}'}"
                      for name, ns in entry["nanoseconds"].items()])


@tuned.command()
def clear() -> None:
    """Remove all tables; processes that run keep what they have read."""
    count = tuning.clear()
    click.echo(f"removed {count} tables from {store.directory()}")


COMMANDS = (tuned,)
