"""What was measured on a GPU, kept on disk for later processes: the algorithms of products, and those of convolutions.

Products have one table for a device, driver, version of the libraries and text of the launcher (``launch_tuning.c``).  Two
processes that measure at the same time may each write a table without the entries of the other one; the process whose entries are
gone adds them again with its next ones, and otherwise they are measured again.  A convolution has a file of its own.  The store
takes a damaged file for none, and removes those that were used least recently.
"""
from __future__ import annotations

import ctypes
import hashlib
import json
import threading
from typing import Any, Collection, Dict, List, Optional, Tuple

from .. import config
from . import store

#: Records of one table; those that were measured first go.
MOST_RECORDS = 4096

#: Records that the launcher writes at a time.
_ROOM = 64


def key_of(*parts: object) -> str:
    """The name of what depends on these."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def kept_order(key: str, names: Collection[Tuple[int, int]]) -> Optional[List[Tuple[int, int]]]:
    """The names in the order that was kept under a key; None where there is none, or one of other names.  key: "" has none."""
    content = store.text(key, store.MEASURED) if key and config.KEEP.value else None
    order = [] if content is None else [(first, second) for first, second in json.loads(content)]
    return order if sorted(order) == sorted(names) else None


def keep_order(key: str, order: Collection[Tuple[int, int]]) -> None:
    """Keep an order under a key; not if this is ""."""
    if key and config.KEEP.value:
        store.keep_text(key, json.dumps(list(order)).encode(), store.MEASURED)


class Products:
    """The algorithms of products on one device: those that earlier processes have measured, and those that this one does.

    library, device: of the launcher.  key: the name of the table; "": nothing is read or kept.
    """

    def __init__(self, library: Any, device: Any, key: str):
        for function in (library.launch_record_size, library.launch_sort_size, library.launch_fresh):
            function.restype = ctypes.c_int64
        self._library, self._device, self._key = library, device, key if config.KEEP.value else ""
        self._size, self._sort_size = library.launch_record_size(), library.launch_sort_size()
        self._mine: Dict[bytes, bytes] = {}
        self._lock = threading.Lock()
        known = self._read()
        self._known = ctypes.create_string_buffer(b"".join(known.values()), self._size * len(known))       # the launcher reads it
        library.launch_recall(device, self._known, ctypes.c_int64(len(known)))

    def keep(self) -> None:
        """Keep what this process has measured since the last call."""
        room = ctypes.create_string_buffer(self._size * _ROOM)
        with self._lock:
            count = _ROOM
            while count == _ROOM:
                count = self._library.launch_fresh(self._device, room, ctypes.c_int64(_ROOM))
                self._mine.update(self._records(room.raw[:count * self._size]))
            if self._key:
                found = {**self._read(), **self._mine}
                store.keep_text(self._key, b"".join(list(found.values())[-MOST_RECORDS:]), store.MEASURED)

    def _read(self) -> Dict[bytes, bytes]:
        """The records of the table by their sorts."""
        return self._records(store.text(self._key, store.MEASURED) or b"" if self._key else b"")

    def _records(self, content: bytes) -> Dict[bytes, bytes]:
        records = [content[k:k + self._size] for k in range(0, len(content), self._size)]
        return {record[:self._sort_size]: record for record in records if len(record) == self._size}
