"""How the benchmarks measure: all candidates alternately in one process, the median of many short blocks."""
import statistics
import time


def seconds_per_call(functions, blocks=40, block_seconds=0.01):
    """The median seconds per call of each function; every block runs each of them for about ``block_seconds``."""
    counts = [_calls_in(function, block_seconds) for function in functions]
    times = [[] for _ in functions]
    for _ in range(blocks):
        for function, count, found in zip(functions, counts, times):
            found.append(_time(function, count) / count)
    return [statistics.median(found) for found in times]


def _time(function, count):
    started = time.perf_counter()
    for _ in range(count):
        function()
    return time.perf_counter() - started


def _calls_in(function, seconds):
    """How often the function can be called in that time; warms it up as well."""
    for _ in range(3):
        function()
    return max(1, round(seconds / max(min(_time(function, 3) / 3 for _ in range(3)), 1e-7)))
