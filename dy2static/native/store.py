"""Compiled libraries, what programs are made from, and converted functions on disk, by the hash of what they were made from.

Code is loaded from this directory, so it must be the user's own and closed to everybody else; every file ends with a
checksum, so that one that was cut off or damaged is made again.  A file appears under its name when it is complete, and two
processes that make the same one make equal ones: a `Claim` only saves the second one the work.
"""
from __future__ import annotations

import atexit
import errno
import hashlib
import os
import shutil
import stat
import tempfile
import time
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .. import config
from .announce import announce
from .elf import is_whole

try:
    import fcntl
except ImportError:                     # Windows
    fcntl = None                        # type: ignore[assignment]

_MARK = b"dy2static"
_FOOTER = len(_MARK) + hashlib.sha256().digest_size
_OF_SHELLS = 10                 # a shell uses the numbers of files below
_LEFTOVER_SECONDS = 3600        # what a process that died was writing
_LIBRARY = ".so"
TEXT, CODE = ".text", ".code"       # what programs are made from; code of converted functions
MEASURED = ".measured"              # algorithms of a GPU
_KINDS = (_LIBRARY, TEXT, CODE, MEASURED)
_checked: Dict[str, str] = {}       # wanted directory -> the one that is used
_open: Set[int] = set()             # the files of claims


def fetch(key: str, make: Callable[[str], None]) -> str:
    """The path of the library with this key; ``make(path)`` writes it where there is no sound one.

    Raises OSError where nothing can be written, and what ``make`` raises.
    """
    path = find(key)
    while path is None:
        draft = Draft(key)
        try:
            make(draft.path)
            path = draft.publish()
        except BaseException:
            draft.discard()
            raise
    return path


def has(key: str) -> bool:
    """Whether there is a sound library with this key."""
    return _is_sound(os.path.join(directory(), key + _LIBRARY))


def find(key: str) -> Optional[str]:
    """The path of the library with this key, if there is a sound one."""
    path = os.path.join(directory(), key + _LIBRARY)
    if not _is_sound(path):
        return None
    _touch(path)
    return path


def text(key: str, kind: str = TEXT) -> Optional[bytes]:
    """What `keep_text` wrote under this key; None where there is nothing that is sound.  kind: `TEXT`, `CODE` or `MEASURED`."""
    path = os.path.join(directory(), key + kind)
    found = _sound(path)
    if found is not None:
        _touch(path)
    return found


def keep_text(key: str, content: bytes, kind: str = TEXT) -> None:
    """Keep a text under a key, in place of any other one; where nothing can be written, it is not kept.

    kind: `TEXT`, `CODE` or `MEASURED`.
    """
    path = os.path.join(directory(), key + kind)
    draft = ""
    try:
        handle, draft = tempfile.mkstemp(prefix=".new-", dir=directory())
        with open(handle, "wb") as file:
            file.write(content + _MARK + _checksum(path, content))
        os.chmod(draft, 0o600)
        os.replace(draft, path)
    except OSError as reason:
        announce("texts", f"programs are made anew by each process: {reason}; name another directory in DY2STATIC_CACHE_DIR")
        if draft:
            _remove(draft)
        return
    if key.startswith("0"):                     # as of libraries
        shrink(directory(), path)


def body(key: str) -> Optional[bytes]:
    """What was made under this key, as the compiler wrote it; None where there is no sound library."""
    found = _sound(os.path.join(directory(), key + _LIBRARY))
    return found if found is not None and is_whole(found) else None


class Claim:
    """Says to other processes that one makes the library with this key, as long as its file is open in a process.

    Where files cannot be locked, all processes make what they need.
    """

    def __init__(self, key: str):
        self._file: Optional[int] = None
        self._path = os.path.join(directory(), f".new-{key}.claim")

    def take(self) -> bool:
        """Whether no other process makes the library now.  The file is to be closed, with `release`, by who holds it."""
        if fcntl is None:
            return True
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if self._file < _OF_SHELLS:
                self._file, low = fcntl.fcntl(self._file, fcntl.F_DUPFD_CLOEXEC, _OF_SHELLS), self._file
                os.close(low)
            _open.add(self._file)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            return False
        except OSError:                 # no locks on this file system, or no file: the library is made all the same
            self.release()
        return True

    def release(self) -> None:
        """Close the file in this process; processes that were given it still hold the claim."""
        if self._file is not None:
            if self._file in _open:             # not after a fork
                _open.remove(self._file)
                os.close(self._file)
            self._file = None

    @property
    def held(self) -> Optional[Tuple[int, str]]:
        """The open file and its path; None where there is none."""
        return None if self._file is None else (self._file, self._path)

    def remove(self) -> None:
        """Remove the file, when the library has been made."""
        _remove(self._path)


def _leave_claims() -> None:
    """In a forked process: the claims are those of its parent, however long this process lives."""
    while _open:
        os.close(_open.pop())


if hasattr(os, "register_at_fork"):     # not on Windows
    os.register_at_fork(after_in_child=_leave_claims)


class Draft:
    """A library that is being written to ``path`` until `publish` is called.  Raises OSError where that is impossible."""

    def __init__(self, key: str, claim: Optional[Claim] = None):
        self._key, self._claim = key, claim
        try:
            self._open()
        except OSError as reason:
            _temporary(str(reason))
            self._open()

    def _open(self) -> None:
        self._folder = directory()
        handle, self.path = tempfile.mkstemp(prefix=".new-", dir=self._folder)
        os.close(handle)

    def publish(self) -> Optional[str]:
        """Where the library is from now on; None where it cannot stay there: then it is to be made again.

        Raises OSError for a file that is not complete: with a checksum it would be taken for sound.
        """
        path = os.path.join(self._folder, self._key + _LIBRARY)
        try:
            with open(self.path, "rb") as file:
                body = file.read()
            complete = is_whole(body)
            if complete:
                with open(self.path, "ab") as file:     # the loader ignores what follows the last section
                    file.write(_MARK + _checksum(path, body))
                os.chmod(self.path, 0o700)
                os.replace(self.path, path)
        except OSError as reason:
            self.discard()
            if self._folder != os.path.join(config.cache_home(), "native"):
                raise
            _temporary(str(reason))
            return None
        if not complete:
            self.discard()
            raise OSError(errno.EIO, "the file is cut off", self.path)
        self._give_up()
        if self._key.startswith("0"):           # one in sixteen: looking at all files takes longer than loading one
            shrink(self._folder, path)
        return path

    def discard(self) -> None:
        """Forget it."""
        _remove(self.path)
        self._give_up()

    def _give_up(self) -> None:
        if self._claim is not None:
            self._claim.remove()


def directory() -> str:
    """The directory libraries lie in: made where it is missing, a temporary one where it cannot be trusted."""
    wanted = os.path.join(config.cache_home(), "native")
    if wanted not in _checked:
        reason = _make_private(wanted)
        if reason:
            _temporary(reason)
        else:
            _checked[wanted] = wanted
    return _checked[wanted]


def _temporary(reason: str) -> None:
    """A directory of this process's, from now on in place of the one wanted."""
    wanted = os.path.join(config.cache_home(), "native")
    announce("store", f"compiled programs are not kept on disk: {reason}; name another directory in DY2STATIC_CACHE_DIR")
    _checked[wanted] = temporary_folder()


def temporary_folder() -> str:
    """A new directory that other users cannot read, removed when this process ends."""
    folder, owner = tempfile.mkdtemp(prefix="dy2static-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:            # a child that was forked leaves it to its parent
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _make_private(folder: str) -> str:
    """Make a directory with mode 0700; returns why it cannot be used, or an empty text."""
    try:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        seen = os.lstat(folder)             # not stat: a link could be led elsewhere later
    except OSError as reason:
        return str(reason)
    if not stat.S_ISDIR(seen.st_mode):
        return f"{folder} is not a directory"
    if seen.st_uid != os.geteuid():
        return f"{folder} belongs to another user"
    if seen.st_mode & 0o077:
        return f"{folder} is open to other users (mode {stat.S_IMODE(seen.st_mode):04o}, not 0700)"
    return ""


def _is_sound(path: str) -> bool:
    """Whether a file is the user's own and what was once written."""
    found = _sound(path)
    return found is not None and (not path.endswith(_LIBRARY) or is_whole(found))


def _sound(path: str) -> Optional[bytes]:
    """What was once written into a file of the user's own; None for another one."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            seen = os.fstat(file.fileno())
            content = file.read() if stat.S_ISREG(seen.st_mode) else b""
    except OSError:
        return None
    body, footer = content[:-_FOOTER], content[-_FOOTER:]
    is_ours = seen.st_uid == os.geteuid() and not seen.st_mode & 0o022
    return body if is_ours and footer == _MARK + _checksum(path, body) else None


def _without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting, even if it is a pipe without a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _checksum(path: str, body: bytes) -> bytes:
    # with the name: a sound file under another's name is not what was asked for
    return hashlib.sha256(os.path.basename(path).encode() + b"\0" + body).digest()


def _touch(path: str) -> None:
    """Note that a file was used: its time of change, since times of access are often not kept."""
    try:
        os.utime(path)
    except OSError:
        pass            # removed or not ours to touch: it is loaded all the same


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass            # another process was faster


class Entry(NamedTuple):
    """One library or text: its file's name, bytes, the time of its last use (seconds since 1970), and whether it is sound."""

    name: str
    size: int
    used: float
    is_sound: bool


def entries() -> List[Entry]:
    """All libraries and texts, those used last first."""
    found = []
    with os.scandir(directory()) as files:
        for file in files:
            if file.name.endswith(_KINDS):
                try:
                    seen = file.stat(follow_symlinks=False)
                    found.append(Entry(file.name, seen.st_size, seen.st_mtime, _is_sound(file.path)))
                except FileNotFoundError:
                    continue                            # another process has removed it meanwhile
    return sorted(found, key=lambda entry: -entry.used)


def remove(found: Sequence[Entry]) -> None:
    """Remove these libraries and texts."""
    for entry in found:
        _remove(os.path.join(directory(), entry.name))


def shrink(folder: str, keep: str) -> None:
    """Remove the files used least recently until the rest fits ``DY2STATIC_CACHE_MB``; never the one named."""
    files: List[Tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                seen = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if entry.name.endswith(_KINDS):
                files.append((seen.st_mtime, seen.st_size, entry.path))
            elif entry.name.startswith(".new-") and seen.st_mtime < time.time() - _LEFTOVER_SECONDS:
                _remove(entry.path)
    size, limit = sum(file[1] for file in files), int(config.CACHE_MB.value) << 20
    for _, bytes_, path in sorted(files):
        if size <= limit:
            break
        if path != keep:
            _remove(path)
            size -= bytes_
