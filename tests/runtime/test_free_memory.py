"""Memory that compilations leave free in the heap goes back to the system."""
import gc
import re

import numpy as np
import pytest

from dy2static import to_static
from dy2static.runtime import collection


def resident():
    """MiB that the process has in memory."""
    with open("/proc/self/status", encoding="ascii") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


@pytest.mark.skipif(collection._functions() is None, reason="the C library is not glibc 2.33 or later")
def test_free_memory_goes_back():
    held = [bytearray(60_000) for _ in range(2000)]         # 114 MiB
    kept = held[::40]
    full = resident()
    del held
    collection.give_back()
    assert resident() < full - 80 and len(kept) == 50


def test_only_long_compilations_look_for_it(monkeypatch):
    calls = []
    monkeypatch.setattr(collection, "give_back", lambda: calls.append(gc.isenabled()))
    monkeypatch.setattr(collection, "_was_long", [False])
    to_static(lambda x: x + 1)(np.ones(3, "f"))
    monkeypatch.setattr(collection, "_LONG", 0)
    assert not calls
    to_static(lambda x: x + 2)(np.ones(3, "f"))
    assert calls and calls[-1] and collection._was_long == [True]
    before = len(calls)
    to_static(lambda x: x + 3)(np.ones(3, "f"))
    assert calls[before] is False and len(calls) > before + 1        # before it, too, the collector being off already


def test_nothing_where_the_library_is_another(monkeypatch):
    monkeypatch.setattr(collection, "_functions", lambda: None)
    collection.give_back()
