"""Commands that run a function and take the time: ``profile``, ``bench``."""
from __future__ import annotations

import json
import statistics
import time
from typing import Any, Callable, List, Sequence

import chainer
import chainer.functions as F
import click
import numpy as np

from dy2static.cli.target import Call, call_of, inputs_option, target_argument

_calls = click.option("--calls", default=100, show_default=True, type=click.IntRange(1), help="How many calls are timed.")
backward_option = click.option("--backward", is_flag=True, help="Also the gradients of the sum of the result.")


@click.command()
@target_argument
@inputs_option
@_calls
@backward_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def profile(target: str, inputs: Sequence[str], calls: int, backward: bool, as_json: bool) -> None:
    """Print where the time of compiled calls goes, by operation and line."""
    call = call_of(target, inputs)
    run = runner(call.compiled, call, backward)
    for _ in range(3):
        run()
    with call.compiled.profile() as found:
        for _ in range(calls):
            run()
    if as_json:
        records = [{**record._asdict(), "places": list(map(str, record.places))} for record in found.records]
        click.echo(json.dumps({"calls": found.calls, "seconds": found.seconds, "records": records}, indent=2))
    else:
        click.echo(found)


@click.command()
@target_argument
@inputs_option
@_calls
@backward_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def bench(target: str, inputs: Sequence[str], calls: int, backward: bool, as_json: bool) -> None:
    """Measure a function as it was written and compiled, alternately in one process."""
    call = call_of(target, inputs)
    runs = {"eager": runner(call.eager, call, backward), "compiled": runner(call.compiled, call, backward)}
    begin = time.perf_counter()
    runs["compiled"]()
    first = time.perf_counter() - begin
    for run in runs.values():
        for _ in range(12):                             # long enough for native code to be wanted
            run()
    times: dict = {name: [] for name in runs}
    for _ in range(calls):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(found) for name, found in times.items()}
    ratio = medians["eager"] / medians["compiled"]
    if as_json:
        click.echo(json.dumps({**{f"{name}_seconds": median for name, median in medians.items()}, "ratio": ratio,
                               "first_call_seconds": first, "calls": calls, "stats": call.compiled.stats()}, indent=2))
        return
    click.echo(f"{call.name}: medians of {calls} calls, alternately{', with gradients' if backward else ''}")
    for name, median in medians.items():
        click.echo(f"  {name:<9} {median * 1e6:12,.1f} µs")
    click.echo(f"  eager takes {ratio:.2f} times as long; the first compiled call took {first * 1e3:,.0f} ms")
    if call.compiled.stats()["fallbacks"]:
        click.echo("  calls ran eagerly: see `dy2static explain`")


def runner(function: Callable[..., Any], call: Call, backward: bool) -> Callable[[], Any]:
    """Calls a function; backward: with the gradients of the sum of its results."""
    if not backward:
        return lambda: function(*call.args, **call.kwargs)
    args = [_leaf(given) for given in call.args]
    kwargs = {name: _leaf(given) for name, given in call.kwargs.items()}

    def run() -> None:
        results: List[Any] = [function(*args, **kwargs)]
        while isinstance(results[0], (tuple, list)):
            results = list(results[0]) + results[1:]
        total = sum([F.sum(result) for result in results if isinstance(result, chainer.Variable)])
        if not isinstance(total, chainer.Variable):
            raise click.ClickException("no Variable comes back, so there are no gradients: leave --backward out")
        total.backward()
    return run


def _leaf(given: Any) -> Any:
    return chainer.Variable(given) if isinstance(given, np.ndarray) and given.dtype.kind == "f" else given


COMMANDS = (profile, bench)
