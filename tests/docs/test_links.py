"""Every link of every page leads somewhere: to a file, and to a heading in it."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "bench/*.md", "fixtures/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md" or path.parent == ROOT
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
OUTSIDE = ("http://", "https://", "mailto:")


def links(path):
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    return [link for link in LINK.findall(text) if not link.startswith(OUTSIDE)]


def anchor(heading):
    """As GitHub makes it of a heading: lower case, no punctuation, hyphens for spaces."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}


def broken(path):
    for link in links(path):
        name, _, heading = link.partition("#")
        target = path.parent / unquote(name) if name else path
        if not target.resolve().is_relative_to(ROOT) or not target.exists():
            yield f"{link}: no such file"
        elif heading and target.suffix == ".md" and unquote(heading) not in anchors(target):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert list(broken(path)) == []


def test_what_leads_nowhere_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b` heading\n[x](#a-b-heading) [y](#other) [z](gone.md) [o](../o.md) `[n](no.md)` [w](https://a.b)\n"
    )
    assert list(broken(page)) == ["#other: no such heading", "gone.md: no such file", "../o.md: no such file"]
