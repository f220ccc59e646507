"""The documentation builds without a warning: every link, every name of the API reference."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def test_the_site_builds(tmp_path):
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(tmp_path)], cwd=str(tmp_path),
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert all(f'href="{page}.html' in index for page in pages - {"index"}), "every page is in the table of contents"
    assert "dy2static.to_static" in (tmp_path / "api.html").read_text(encoding="utf-8")
