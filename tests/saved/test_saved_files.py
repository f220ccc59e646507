"""Files of saved models that are damaged or strange: `load` gives a model or a `LoadError`."""
import json
import os
import threading

import chainer
import chainer.links as L
import numpy as np
import pytest
from saved_model import FILES

from dy2static import InputSpec, LoadError, load, save
from dy2static.errors import SaveError
from dy2static.saved import files

# Damage --------------------------------------------------------------------------------------------------------------


def damaged(saved, tmp_path, name, change):
    for other in FILES:
        data = (saved / other).read_bytes()
        data = change(data) if other == name else data
        if data is not None:
            (tmp_path / other).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.99])
def test_truncated(saved, tmp_path, name, share):
    with pytest.raises(LoadError):
        load(damaged(saved, tmp_path, name, lambda data: data[:int(len(data) * share)]))


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize("place", [0, 7, 100, -1])
def test_flipped_bits(saved, tmp_path, name, place):
    def flip(data):
        return data[:place] + bytes([data[place] ^ 16]) + (data[place + 1:] if place != -1 else b"")
    with pytest.raises(LoadError, match="damaged"):
        load(damaged(saved, tmp_path, name, flip))


@pytest.mark.parametrize("name", FILES)
def test_missing(saved, tmp_path, name):
    with pytest.raises(FileNotFoundError if name == "manifest.json" else LoadError):
        load(damaged(saved, tmp_path, name, lambda data: None))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"\xff\xfe", b"{", b"[" * 100000, b'{"format": "dy2static model"}', b"NaN"])
def test_other_contents(saved, tmp_path, name, text):
    with pytest.raises(LoadError):
        load(damaged(saved, tmp_path, name, lambda data: text))


def a_link_to_a_device(path, other):
    path.symlink_to("/dev/zero")


def a_link_to_a_file(path, other):
    path.symlink_to(other)


def a_link_to_nothing(path, other):
    path.symlink_to("nothing")


def a_pipe(path, other):
    os.mkfifo(path)


def a_folder(path, other):
    path.mkdir()


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("put", [a_link_to_a_device, a_link_to_a_file, a_link_to_nothing, a_pipe, a_folder])
def test_no_files(saved, tmp_path, name, put):
    """Nothing is read of them, and nobody waits for them."""
    put(damaged(saved, tmp_path, name, lambda data: None) / name, saved / name)
    with pytest.raises(LoadError, match=f"{name} is no file of the model"):
        load(tmp_path)
    with pytest.raises(LoadError, match=f"{name} is no file of the model"):
        load(tmp_path, native=True)


@pytest.mark.parametrize("name", FILES)
def test_sizes_before_contents(saved, tmp_path, name):
    """A file of another size is refused before it is read: this one has 50 GB, which the disk does not."""
    with open(damaged(saved, tmp_path, name, lambda data: data) / name, "r+b") as file:
        file.truncate(50 << 30)
    with pytest.raises(LoadError, match="damaged" if name == "arrays.safetensors" else "too long"):
        load(tmp_path)


def test_what_does_not_fit_into_memory(saved, tmp_path, monkeypatch):
    """The manifest may say so much, too; models that were saved without sizes are read as ever."""
    manifest = json.loads((saved / "manifest.json").read_text())
    damaged(saved, tmp_path, "", lambda data: data)
    for sizes in ({"bytes": {**manifest["bytes"], "arrays.safetensors": 1 << 60}}, {"bytes": {}}):
        (tmp_path / "manifest.json").write_text(json.dumps({**manifest, **sizes}))
        if not sizes["bytes"]:
            load(tmp_path)
        with open(tmp_path / "arrays.safetensors", "r+b") as file:
            file.truncate(1 << 42)
        with pytest.raises(LoadError, match="does not fit into memory" if not sizes["bytes"] else "damaged"):
            load(tmp_path)
        (tmp_path / "arrays.safetensors").write_bytes((saved / "arrays.safetensors").read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps({key: value for key, value in manifest.items() if key != "bytes"}))
    loaded = load(tmp_path)
    monkeypatch.setitem(files._LONGEST, "programs.json", 1000)
    with pytest.raises(LoadError, match="too long"):
        load(tmp_path)
    with pytest.raises(SaveError, match="too large to be loaded"):
        save(loaded, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_link_to_the_folder(saved, tmp_path):
    (tmp_path / "latest").symlink_to(saved)
    load(tmp_path / "latest")


def test_nothing_there(tmp_path):
    for path in (tmp_path, tmp_path / "none", str(tmp_path / "none"), __file__):
        with pytest.raises(FileNotFoundError):
            load(path)


@pytest.mark.parametrize("said", [
    {"version": 2}, {"version": 0}, {"version": "1"}, {"version": True}, {"version": None}, {"version": [1]}, {"version": "x" * 9999},
    {"format": "onnx"}, {"format": None}, {"sha256": {}}, {"sha256": []}, {"sha256": {"programs.json": 1}}])
def test_manifests(forged, document, said):
    with pytest.raises(LoadError) as caught:
        load(forged(document, **said))
    assert len(str(caught.value)) < 600


# Saving --------------------------------------------------------------------------------------------------------------


def small(seed=0):
    np.random.seed(seed)
    model = chainer.Sequential(L.Linear(3, 2))
    return model


SPEC = [InputSpec([2, 3])]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def answers(path):
    with chainer.using_config("train", False):
        return load(path)(X).array


@pytest.mark.parametrize("stops", ["write", "readable", "_checksum", "_exchange", "rename"])
def test_a_crash_leaves_the_old_model(tmp_path, monkeypatch, stops):
    path = tmp_path / "model"
    save(small(), path, SPEC)
    before = answers(path)

    def stop(*args, **kwargs):
        raise KeyboardInterrupt
    rename = os.rename
    if stops == "write":
        monkeypatch.setattr(files.safetensors.numpy, "save_file", stop)
    elif stops == "rename":                             # of the new one into its place
        tries = iter((rename, stop, rename))             # it is there; the old one has been moved; that is put back
        monkeypatch.setattr(files.os, "rename", lambda a, b: (next(tries) if b == path else rename)(a, b))
    else:
        monkeypatch.setattr(files, stops, stop)
    with pytest.raises(KeyboardInterrupt):
        save(small(1), path, SPEC)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["model"]
    np.testing.assert_array_equal(answers(path), before)


@pytest.mark.parametrize("what", ["a file", "a folder with something in it", "a link to a folder"])
def test_other_things_are_not_overwritten(tmp_path, what):
    path = tmp_path / "x"
    if what == "a file":
        path.write_text("mine")
    else:
        (tmp_path / "y").mkdir()
        (tmp_path / "y" / "mine").write_text("mine")
        (tmp_path / "y").rename(path) if what.startswith("a folder") else path.symlink_to(tmp_path / "y")
    with pytest.raises(SaveError, match="no saved model"):
        save(small(), path, SPEC)
    assert (path if what == "a file" else path / "mine").read_text() == "mine"


def test_an_empty_folder_is_taken(tmp_path):
    save(small(), tmp_path, SPEC)
    assert sorted(os.listdir(tmp_path)) == sorted(FILES)


@pytest.mark.parametrize("name", ["with space", "ünï", "a.b.c", "-x", "x" * 200, "'quote\"", "new\nline", "deep/er/still", "%s{0}"])
def test_names_of_folders(tmp_path, name):
    save(small(), tmp_path / name, SPEC)
    save(small(1), str(tmp_path / name), SPEC)
    np.testing.assert_array_equal(answers(tmp_path / name), small(1)(X).array)


def test_two_at_once(tmp_path):
    """Of those who save into one folder each is whole, and the last stays."""
    errors = []

    def work(seed):
        try:
            for _ in range(3):
                save(small(seed), tmp_path / "model", SPEC)
        except Exception as error:
            errors.append(error)
    save(small(), tmp_path / "model", SPEC)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert answers(tmp_path / "model").shape == (2, 2)
    assert os.listdir(tmp_path) == ["model"]


def test_a_folder_that_another_process_is_removing_is_not_taken_for_something_else(tmp_path, monkeypatch):
    """Its names are read while another process has put a new model in its place, and removes the old one."""
    save(small(), tmp_path / "model", SPEC)
    listdir, asked = os.listdir, []

    def listed(path):
        if path != tmp_path / "model" or asked:
            return listdir(path)
        asked.append(path)
        save(small(1), path, SPEC)
        return ["programs.json"]                        # the rest of the old one is gone
    monkeypatch.setattr(os, "listdir", listed)
    save(small(2), tmp_path / "model", SPEC)
    assert asked
    np.testing.assert_array_equal(answers(tmp_path / "model"), small(2)(X).array)


def test_the_umask_holds_and_never_changes(tmp_path, monkeypatch):
    """It belongs to the whole process: threads that save at a time would lose it."""
    mask = os.umask(0o027)
    try:
        with monkeypatch.context() as context:
            context.delattr(os, "umask")
            save(small(), tmp_path / "model", SPEC)
    finally:
        os.umask(mask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "model", *(tmp_path / "model").iterdir()]}
    assert modes.pop("model") == 0o750 and set(modes.values()) == {0o640}


LAYOUTS = {
    "Fortran order": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "strides": np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::2],
    "backwards": np.arange(6, dtype=np.float32).reshape(2, 3)[::-1, ::-1],
    "no axes": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32), "one number for all": np.broadcast_to(np.float32(3), (2, 3)),
    "float16": np.arange(3, dtype=np.float16), "float64": np.arange(3.0), "bool": np.array([True, False, True]),
    "int8": np.arange(3, dtype=np.int8), "uint64": np.array([2**64 - 1] * 3, np.uint64),
    "read-only": np.frombuffer(np.arange(3, dtype=np.float32).tobytes(), np.float32)}


class Holds(chainer.Chain):
    def __init__(self, array):
        super().__init__()
        self.add_persistent("table", array)

    def forward(self, x):
        return x + 1, self.table * 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_arrays(tmp_path, layout):
    array = LAYOUTS[layout]
    save(Holds(array), tmp_path / "m", SPEC)
    found = load(tmp_path / "m")
    assert found.table.dtype == array.dtype.newbyteorder("=") and found.table.shape == array.shape
    np.testing.assert_array_equal(found.table, array)
    _, given = found(X)
    np.testing.assert_array_equal(given, array * 1)
    found.table[...] = 0                                # may be written


def test_shared_arrays_stay_shared(tmp_path):
    model = chainer.Chain()
    with model.init_scope():
        model.a, model.b = L.Linear(3, 3), L.Linear(3, 3)
    model.b.W = model.a.W
    model.b.b.array = model.a.b.array
    model.__class__ = type("Tied", (chainer.Chain,), {"forward": forward_tied})
    save(model, tmp_path / "m", SPEC)
    found = load(tmp_path / "m")
    assert found.a.W is found.b.W and found.a.b is not found.b.b and found.a.b.array is found.b.b.array


def forward_tied(self, x):
    return self.b(self.a(x))
