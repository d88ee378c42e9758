"""The site of the documentation: it is built without a warning, and every page is in it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")
ROOT = Path(__file__).resolve().parents[2]
#: What names other places: `src="https://..."`, `url(//...)`. A link that a reader may follow is none.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//|<link[^>]*\shref=["']?(?:https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return folder


def test_every_page_is_there(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    pages = {page.with_name("index.html") if page.name == "README.html" else page for page in pages}
    assert [str(page) for page in sorted(pages) if not (site / page).is_file()] == []


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    of_rules = {page for page in pages if page.startswith("rules/MIG")}  # their table leads to them
    assert sorted(page for page in pages - of_rules if f": {page}" not in nav) == []


def test_nothing_is_loaded_from_elsewhere(site):
    loading = [str(page.relative_to(site)) for page in site.rglob("*.html") if LOADED.search(page.read_text("utf-8"))]
    assert loading == []


def test_links_to_files_of_the_repository_become_their_names(site):
    start = (site / "index.html").read_text(encoding="utf-8")
    assert "<code>fixtures/classifier/before.py</code>" in start
    assert 'href="rules/MIG105.html"' in start
