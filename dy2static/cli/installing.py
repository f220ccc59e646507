"""Commands about this Python: ``doctor``, the start-up hook, kernels, passes, completion of words in a shell."""
from __future__ import annotations

import json

import click
from click.shell_completion import get_completion_class

from dy2static.backends.pipelines import pipelines as passes
from dy2static.cli.found import facts
from dy2static.compat import doctor as chainer_doctor
from dy2static.compat import hook
from dy2static.errors import BackendError
from dy2static.native import hotpath, kernels, store


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON: what was found, without the edits of Chainer.")
def doctor(as_json: bool) -> None:
    """Say what was found here, what is missing, what that costs, and how to install it."""
    found = facts()
    if as_json:
        click.echo(json.dumps([fact._asdict() for fact in found], indent=2))
        return
    for line in chainer_doctor.report():
        click.echo(line)
    click.echo("\nwhat programs run on:")
    for fact in found:
        click.echo(f"  {fact.name:<16} {fact.found}")
        if fact.cost:
            click.echo(f"  {'':<16} without it: {fact.cost}; {fact.remedy}")


@click.command("install-hook")
def install_hook() -> None:
    """Make `import chainer` work here without dy2static before it."""
    click.echo(f"wrote {hook.write()}: from now on plain `import chainer` works in this environment")


@click.command("remove-hook")
def remove_hook() -> None:
    """Undo install-hook."""
    click.echo(f"removed {hook.path()}" if hook.remove() else "no hook is installed in this environment")


@click.command()
def pipelines() -> None:
    """Say which passes graphs go through, and when."""
    click.echo(passes())


@click.command("build-kernels")
def build_kernels() -> int:
    """Compile the kernels of native code ahead of the first program that needs them."""
    try:
        compiled, count = kernels.build_all(hotpath.start)
    except BackendError as reason:
        click.echo(f"programs run on NumPy: {reason}")
        return 1
    click.echo(f"compiled {compiled} of {count} libraries of kernels into {store.directory()}")
    return 0


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what completes words in a shell: `eval "$(dy2static completion bash)"`."""
    made = get_completion_class(shell)
    if made is None:
        raise click.ClickException(f"there is no completion for {shell}")
    click.echo(made(context.find_root().command, {}, "dy2static", "_DY2STATIC_COMPLETE").source())


COMMANDS = (doctor, install_hook, remove_hook, pipelines, build_kernels, completion)
