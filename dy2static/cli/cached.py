"""``cache``: the compiled libraries, the generated code, and what was measured on GPUs, on disk."""
from __future__ import annotations

import json
import time

import click

from dy2static.native import store


@click.group()
def cache() -> None:
    """What later processes load: compiled libraries, the generated code of programs, and what was measured on GPUs."""


@cache.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_(as_json: bool) -> None:
    """Print each file, its bytes and when it was used last."""
    found = store.entries()
    if as_json:
        click.echo(json.dumps([entry._asdict() for entry in found], indent=2))
        return
    for entry in found:
        used = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.used))
        note = "" if entry.is_sound else "  (damaged: it is made again when needed)"
        click.echo(f"{entry.size:>12,}  {used}  {entry.name}{note}")
    click.echo(f"{len(found)} files in {store.directory()}")


@cache.command()
def size() -> None:
    """Print how many bytes all files take together."""
    found = store.entries()
    click.echo(f"{sum(entry.size for entry in found):,} bytes in {len(found)} files in {store.directory()}")


@cache.command()
def clear() -> None:
    """Remove all files; processes that run keep what they have loaded."""
    found = store.entries()
    store.remove(found)
    click.echo(f"removed {len(found)} files from {store.directory()}")


@cache.command()
def verify() -> int:
    """Check every file; exit with status 1 where one is damaged."""
    damaged = [entry.name for entry in store.entries() if not entry.is_sound]
    for name in damaged:
        click.echo(f"damaged: {name}")
    click.echo(f"{len(store.entries()) - len(damaged)} files are sound, {len(damaged)} are damaged")
    return int(bool(damaged))


COMMANDS = (cache,)
