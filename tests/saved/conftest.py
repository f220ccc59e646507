"""A saved model, read by the tests of its files and of forged ones."""
import hashlib
import json

import numpy as np
import pytest
from saved_model import Model

from dy2static import InputSpec, save


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    np.random.seed(0)
    path = tmp_path_factory.mktemp("saved") / "model"
    save(Model(), path, [InputSpec([None, 4])])
    return path


@pytest.fixture(scope="session")
def document(saved):
    """What is in the file of programs, with every fourth of them: those left out are alike, for other states and modes."""
    document = json.loads((saved / "programs.json").read_text())
    programs = document["programs"] = document["programs"][::4]
    kept = sorted({program["graph"] for program in programs})
    for program in programs:
        program["graph"] = kept.index(program["graph"])
    document["graphs"] = [document["graphs"][number] for number in kept]
    return document


@pytest.fixture
def forged(saved, tmp_path):
    """Write a document with the right checksums; the folder."""
    def write(document, **manifest):
        text = json.dumps(document).encode()
        said = json.loads((saved / "manifest.json").read_text())
        said["sha256"]["programs.json"], said["bytes"]["programs.json"] = hashlib.sha256(text).hexdigest(), len(text)
        (tmp_path / "programs.json").write_bytes(text)
        (tmp_path / "arrays.safetensors").write_bytes((saved / "arrays.safetensors").read_bytes())
        (tmp_path / "manifest.json").write_text(json.dumps({**said, **manifest}))
        return tmp_path
    return write
