"""The page of ops in ONNX says what the declarations say."""
import pathlib

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from onnx_page import page  # noqa: E402

PAGE = pathlib.Path(__file__).parent.parent.parent / "docs" / "onnx_ops.md"


def test_page_of_onnx_ops(update_golden):
    text = page()
    if update_golden:
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "run `pytest tests/export/test_onnx_page.py --update-golden`"
