"""A compiler in a process of its own, which ends with this process, even if that is killed."""
from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from typing import Optional, Sequence, Set, Tuple

_GRACE = 1                  # seconds between asking a compiler to end and ending it
_GLANCE = 0.001             # between two looks at one that is about to end
_LONGEST = 0.05             # for one look

# The shell leads a session of its own: what interrupts the user's program is not meant for the compiler.  Its standard error is
# a pipe of which this process alone has the other end: `read` comes back when this process is no more, whatever ended it.
# A compiler takes its temporary files with it on SIGTERM; what it started may ignore that.
_SCRIPT = f"""
exec 3<&2 2>&1
also=$1
shift
{{ read -r _ <&3; trap "" TERM; rm -f -- "$0" "$also"; kill -TERM 0; sleep {_GRACE}; kill -KILL 0; }} &
trap "stopped=1" TERM
"$@" 3<&-
status=$?
[ -z "$stopped" ] || kill -KILL 0
kill -KILL $!
wait 2>/dev/null
exit $status
"""

_open: Set[int] = set()     # this process's ends of the pipes


class Process:
    """A command with a text as its standard input, for a file that it writes.  Raises OSError.

    held: a file that stays open until the command has ended, and its path: it is removed with the other one.
    pid: also that of its process group, in which are all processes that it starts.
    """

    def __init__(self, command: Sequence[str], text: str, output: str, held: Optional[Tuple[int, str]] = None):
        self._said, self._lock = tempfile.TemporaryFile(), threading.Lock()
        theirs, self._pipe = os.pipe()
        _open.add(self._pipe)
        try:
            with tempfile.TemporaryFile() as file:      # a pipe would have to be filled while the compiler reads it
                file.write(text.encode())
                file.seek(0)
                also = output if held is None else held[1]
                self._process = subprocess.Popen(["/bin/sh", "-c", _SCRIPT, output, also, *command], stdin=file,
                                                 stdout=self._said, stderr=theirs, start_new_session=True,
                                                 pass_fds=() if held is None else held[:1])
        except BaseException:
            self._close()
            raise
        finally:
            os.close(theirs)
        self.pid = self._process.pid

    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, but so many seconds at most, and not long."""
        watched = select.poll()
        watched.register(self._pipe, 0)                 # an error is reported when nothing is left that could read from it:
        watched.poll(1000 * min(max(seconds, 0), _LONGEST))     # a process that another thread has forked might be
        if not self.is_over():
            time.sleep(_GLANCE)                         # the shell is about to end

    def result(self) -> Tuple[int, str]:
        """Its exit status, and the beginning of its messages, unless it was stopped; once, after it has ended."""
        words = b""
        with self._lock:                                # another thread may stop it
            if not self._said.closed:
                self._said.seek(0)
                words = self._said.read(2000)
                self._close()
        return self._process.returncode, words.decode(errors="replace")

    def stop(self) -> None:
        """End it, with all processes that it has started."""
        try:
            os.killpg(self.pid, signal.SIGTERM)
            self._process.wait(_GRACE)
        except ProcessLookupError:
            self._process.wait()
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)         # the leader has not been waited for: the number is still its own
            self._process.wait()
        with self._lock:
            self._close()

    def leave(self) -> None:
        """Leave it to the parent process, after a fork."""
        self._process.returncode = 0
        self._close()

    def _close(self) -> None:
        if self._pipe in _open:
            _open.remove(self._pipe)
            os.close(self._pipe)
        self._said.close()


def _leave_pipes() -> None:
    """In a forked process: compilers are to end with the one that started them."""
    while _open:
        os.close(_open.pop())


os.register_at_fork(after_in_child=_leave_pipes)
