"""The table of the zoo: what of each model is lowered, and whether it trains as eagerly.

    python tests/models [--sizes] [PART OF A NAME ...]

--sizes: with batches of another size in every step, for which captures are made until the sizes are free.
"""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import dy2static  # noqa: E402, F401  (before chainer)
from models.training import train, train_with_sizes  # noqa: E402
from models.zoo import ZOO  # noqa: E402

HEAD = f"{'model':<45} {'nodes':>6} {'lowered':>8} {'opaque':>7} {'host':>5} {'numpy':>6}  {'FunctionNodes':<14} captures  again"


def main(parts, sizes=()):
    """Train those whose names have one of the parts, or all; with batches of these sizes, if there are any."""
    print(HEAD)
    nodes = lowered = failed = 0
    for name, entry in ZOO.items():
        if parts and not any(part.lower() in name.lower() for part in parts):
            continue
        started = time.perf_counter()
        try:
            report = train_with_sizes(entry._replace(warm=4), sizes) if sizes else train(entry)
        except Exception as error:
            failed += 1
            print(f"{name:<45} {type(error).__name__}: {error}")
            continue
        segments = "+".join(map(str, report.segments))
        print(f"{name:<45} {report.nodes:6} {report.lowered / max(report.nodes, 1):8.1%} {report.opaque:7} {report.host:5} "
              f"{report.numpy:6}  {segments:<14} {report.captures:8} {report.recaptures:6}"
              f"  {'same' if not report.problems else 'DIFFERENT'}  {time.perf_counter() - started:.1f} s", flush=True)
        for problem in report.problems[:3]:
            print("   ", problem[:400])
        nodes, lowered, failed = nodes + report.nodes, lowered + report.lowered, failed + bool(report.problems)
    print(f"{'together':<45} {nodes:6} {lowered / max(nodes, 1):8.1%}")
    return failed


if __name__ == "__main__":
    sys.exit(main([part for part in sys.argv[1:] if part != "--sizes"], (4, 3, 5, 7, 2, 16) if "--sizes" in sys.argv else ()))
