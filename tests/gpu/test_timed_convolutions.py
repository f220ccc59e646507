"""How algorithms of cuDNN are measured on a device: by replays of a graph, with a CuPy that only counts."""
import types

import pytest

from dy2static.native.cudnn import CudnnError
from dy2static.native.device import CupyDevice


class OutOfMemoryError(Exception):
    pass


class CUDARuntimeError(Exception):
    pass


class Timeline:
    """A CuPy whose clock moves by what runs: ``host`` milliseconds for a call, ``device`` for what is in it."""

    def __init__(self, can_record=True, has_memory=True):
        self.clock, self.recorded, self.host, self.device, self.runs = 0.0, None, 5.0, 1.0, 0
        timeline = self

        class Stream:
            ptr = 7

            def __init__(self, non_blocking=False):
                assert non_blocking

            def synchronize(self):
                assert timeline.recorded is None

            def begin_capture(self):
                timeline.recorded = 0

            def end_capture(self):
                count, timeline.recorded = timeline.recorded, None
                if not can_record:
                    raise CUDARuntimeError("the capture was ended by an error")
                return types.SimpleNamespace(launch=lambda stream: timeline.replay(count))

        class Event:
            def record(self, stream):
                self.time = timeline.clock

            def synchronize(self):
                pass

        def zeros(size, dtype):
            if not has_memory:
                raise OutOfMemoryError
            return types.SimpleNamespace(data=types.SimpleNamespace(ptr=size))

        self.zeros = zeros
        self.cuda = types.SimpleNamespace(
            Stream=Stream, Event=Event, get_current_stream=lambda: Stream(non_blocking=True),
            get_elapsed_time=lambda begin, end: end.time - begin.time, memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            runtime=types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError))

    def replay(self, count):
        self.clock += count * self.device

    def run(self, addresses, stream):
        """A convolution."""
        assert addresses == [64, 32, 16] and stream == 7
        self.runs += 1
        if self.recorded is None:
            self.clock += self.host
        else:
            self.recorded += 1


def device(timeline):
    made = CupyDevice.__new__(CupyDevice)
    made._cupy = timeline
    return made


def test_the_time_of_the_device_counts():
    """Not that in which the host launches the kernels."""
    timeline = Timeline()
    assert device(timeline)._timed([64, 32, 16], timeline.run) == pytest.approx(1e-3)


def test_what_cannot_be_recorded_is_measured_call_by_call():
    timeline = Timeline(can_record=False)
    assert device(timeline)._timed([64, 32, 16], timeline.run) == pytest.approx(5e-3)


def test_an_algorithm_that_fails_while_it_is_recorded_is_measured_call_by_call():
    timeline = Timeline()

    def run(addresses, stream):
        if timeline.recorded is not None:
            raise CudnnError("not while a stream is recorded")
        timeline.run(addresses, stream)
    assert device(timeline)._timed([64, 32, 16], run) == pytest.approx(5e-3)
    assert timeline.recorded is None


def test_without_memory_it_is_an_error_of_cudnn():
    timeline = Timeline(has_memory=False)
    with pytest.raises(CudnnError, match="no memory"):
        device(timeline)._timed([64, 32, 16], timeline.run)
    assert timeline.runs == 0
