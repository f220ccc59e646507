"""The files of a saved model: a folder with a manifest, the programs as JSON, and the arrays; written whole or not at all.

`manifest.json` has the version of the format, and the checksum and the size of every other file; it is read first.
"""
from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
from pathlib import Path, PurePath
from typing import Any, Callable, Dict, Mapping, Tuple, Union

import numpy as np
import safetensors
import safetensors.numpy

from ..errors import LoadError, SaveError
from ..record.documents import entry

#: The version of the format that is written, and the only one that is read.
VERSION = 1
_FORMAT = "dy2static model"
_MANIFEST, _PROGRAMS, _ARRAYS = "manifest.json", "programs.json", "arrays.safetensors"

_OCCUPIED = frozenset((errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR))

#: Files that are longer are none of ours: what they say would take ten times as much memory.
_LONGEST = {_MANIFEST: 2**24, _PROGRAMS: 2**29}

#: Never wait for what is no file, and never follow a link out of the folder.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))

#: So often a folder is put in its place again that others have put there meanwhile.
_MOST_TRIES = 100

#: What helps if a file of a model is not what it was.
_AGAIN = "copy or save the model again"
#: So long are the lines of `programs.json` where they can be.
_WIDTH = 140


def write(path: Union[str, os.PathLike], document: Mapping[str, Any], arrays: Mapping[str, np.ndarray], about: Mapping[str, Any],
          other: Mapping[str, bytes]) -> None:
    """Write a model into a folder, in place of a saved model that may be there.

    about: more entries of the manifest.  other: more files, by their paths in the folder.
    Raises `SaveError` where there is something else, and OSError where nothing can be written.
    """
    target = Path(path)
    if _is_other(target):
        raise SaveError(f"{target} exists, and is no saved model", hint="choose another name, or remove it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        around = tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:                            # it names the folder that was to be made beside it
        raise OSError(error.errno, f"no model can be saved here: {error.strerror}", str(target)) from None
    made = Path(around, "model")
    try:
        made.mkdir()                                    # unlike the folder around it, everybody may read it, if the umask allows
        (made / _PROGRAMS).write_text(readable(document) + "\n", encoding="utf-8")
        safetensors.numpy.save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, str(made / _ARRAYS))
        for name, contents in other.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(contents)
        os.chmod(made / _ARRAYS, (made / _PROGRAMS).stat().st_mode)
        names = (_PROGRAMS, _ARRAYS, *other)
        manifest = {"format": _FORMAT, "version": VERSION, **about,
                    "sha256": {name: _checksum((made / name).read_bytes()) for name in names},
                    "bytes": {name: (made / name).stat().st_size for name in names}}
        (made / _MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        for name, most in _LONGEST.items():
            if (made / name).stat().st_size > most:
                raise SaveError(f"{target} would be too large to be loaded: more than {most} bytes in {name}")
        _exchange(made, target)
    finally:
        shutil.rmtree(around, ignore_errors=True)


def _is_other(target: Path) -> bool:
    """Whether there is something that is neither a saved model nor an empty folder.

    Others may replace it meanwhile: only the names in a folder that stays in its place count.
    """
    for _ in range(_MOST_TRIES):
        try:
            before = os.stat(target)
            names = os.listdir(target)
            after = os.stat(target)
        except FileNotFoundError:
            return os.path.islink(target)
        except NotADirectoryError:
            return True
        if not names or _MANIFEST in names:
            return False
        if os.path.samestat(before, after) and before.st_mtime_ns == after.st_mtime_ns:
            return True
    return False


def _exchange(made: Path, target: Path) -> None:
    """Put a folder in the place of another, also while others do so: each of them is whole, and the last one stays."""
    for _ in range(_MOST_TRIES):
        if _put(made, target):
            return
        old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            os.rename(target, old / target.name)
            try:
                done = _put(made, target)
            except BaseException:
                os.rename(old / target.name, target)
                raise
        except FileNotFoundError:                       # somebody else has just moved it
            continue
        finally:
            shutil.rmtree(old, ignore_errors=True)
        if done:
            return
    raise SaveError(f"{target} could not be replaced: other processes keep writing it")


def _put(made: Path, target: Path) -> bool:
    """Whether there was nothing in the place of a folder that got a new name."""
    try:
        os.rename(made, target)
    except OSError as error:
        if error.errno in _OCCUPIED or os.path.lexists(target):     # it may be gone again by now
            return False
        raise
    return True


def read(path: Union[str, os.PathLike]) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, np.ndarray]]:
    """The manifest, the document and the arrays of a saved model.

    Raises FileNotFoundError where there is none, and `LoadError` for a version that is not known and for damaged files.
    """
    folder = Path(path)
    if not os.path.lexists(folder / _MANIFEST):
        raise FileNotFoundError(f"{folder} is no saved model: " + (
            f"it has no {_MANIFEST}" if folder.is_dir() else "there is no such folder" if not folder.exists() else
            "it is a file, not a folder" + "; `chainer.serializers.load_npz` reads parameters" * (folder.suffix == ".npz")))
    try:
        return _read(folder)
    except MemoryError:
        raise LoadError(f"{folder} does not fit into memory") from None


def _read(folder: Path) -> Tuple[Dict[str, Any], Dict[str, Any], Dict[str, np.ndarray]]:
    manifest = _document(_bytes_of(folder, _MANIFEST), folder / _MANIFEST)
    if manifest.get("format") != _FORMAT:
        raise LoadError(f"{folder / _MANIFEST} is not of a saved model")
    if type(manifest.get("version")) is not int or manifest["version"] != VERSION:
        raise LoadError(f"{folder} is of version {str(manifest.get('version'))[:40]} of the format; this is dy2static "
                        f"with version {VERSION}", hint="load it with the dy2static that saved it, and save it again")
    document = _document(contents(folder, _PROGRAMS, manifest), folder / _PROGRAMS)
    data = contents(folder, _ARRAYS, manifest)
    try:
        arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise LoadError(f"{folder / _ARRAYS} cannot be read: {error}", hint=_AGAIN) from None
    return manifest, document, arrays


def contents(folder: Path, name: str, manifest: Mapping[str, Any]) -> bytes:
    """One file of a model, whose size and checksum are those of the manifest.  Raises `LoadError`."""
    sums = entry(manifest, "sha256", dict, "the manifest")
    sizes = entry(manifest, "bytes", dict, "the manifest") if "bytes" in manifest else {}     # of models that were saved before
    found = _bytes_of(folder, name, sizes.get(name))
    if _checksum(found) != sums.get(name):
        raise _damaged(folder / name)
    return found


def _bytes_of(folder: Path, name: str, size: Any = None) -> bytes:
    """What is in a regular file of the folder, which is read only if it has the right size.  Raises `LoadError`."""
    path = folder / name
    try:
        _check_kind(path, os.lstat(path).st_mode, stat.S_ISREG)         # to open a device may already do something
        for parent in list(PurePath(name).parents)[:-1]:
            _check_kind(folder / parent, os.lstat(folder / parent).st_mode, stat.S_ISDIR)
        with open(os.open(path, _FLAGS), "rb") as file:
            seen = os.fstat(file.fileno())
            _check_kind(path, seen.st_mode, stat.S_ISREG)               # it may be another one by now
            if seen.st_size > _LONGEST.get(name, seen.st_size):
                raise LoadError(f"{path} is too long: {seen.st_size} bytes")
            if size is not None and seen.st_size != size:
                raise _damaged(path)
            return file.read(seen.st_size)
    except OSError as error:
        raise LoadError(f"{path} cannot be read: {error.strerror}") from None


def _check_kind(path: Path, mode: int, is_right: Callable[[int], bool]) -> None:
    if not is_right(mode):
        what = "file" if is_right is stat.S_ISREG else "folder"
        raise LoadError(f"{path} is no {what} of the model, but a link, a device or the like",
                        hint="copy the model with what its links lead to (cp -rL)")


def _damaged(path: Path) -> LoadError:
    return LoadError(f"{path} is damaged: it is not the file that was saved", hint=_AGAIN)


def _checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _document(data: bytes, path: Path) -> Dict[str, Any]:
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{path} is not JSON: {error}", hint=_AGAIN) from None
    if type(found) is not dict:
        raise LoadError(f"{path} has no entries", hint=_AGAIN)
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def readable(item: Any, indent: int = 0) -> str:
    """JSON with what fits on a line on one line."""
    if not isinstance(item, (dict, list)):
        return json.dumps(item, ensure_ascii=False)
    if isinstance(item, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {readable(value, indent + 1)}" for key, value in item.items()]
    else:
        parts = [readable(value, indent + 1) for value in item]
    opening, closing = "{}" if isinstance(item, dict) else "[]"
    if sum(map(len, parts)) + 2 * max(len(parts), 1) + indent <= _WIDTH and not any(["\n" in part for part in parts]):
        return f"{opening}{', '.join(parts)}{closing}"
    inner = " " * (indent + 1)
    return f"{opening}\n" + ",\n".join([inner + part for part in parts]) + f"\n{' ' * indent}{closing}"
