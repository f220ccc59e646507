"""A clock of a test's own for calls that are measured in both ways (`dispatch.pace`)."""
import types

from dy2static import config
from dy2static.dispatch import pace, pacing


def measure(monkeypatch, compiled, python):
    """Let calls be measured: they take what these functions give, in seconds."""
    now = [0.0]
    monkeypatch.setattr(config.PACE, "value", 1)

    def timed(function, seconds):
        def call(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            finally:
                now[0] += seconds()
        return call

    def measured(self, compiled_call, python_call, args, kwargs, call=pace.Pace.call):
        return call(self, timed(compiled_call, compiled), timed(python_call, python), args, kwargs)

    def clock():
        now[0] += python()                              # between two looks at it, outside of measured calls, one of Python's is made
        return now[0]
    monkeypatch.setattr(pace.Pace, "call", measured)
    monkeypatch.setattr(pace, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(pacing, "time", types.SimpleNamespace(perf_counter=clock))
