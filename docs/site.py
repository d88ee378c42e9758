"""What the site needs beside its pages: README.md as its start, and no links to files that are not in it."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Callable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s#]+)(?P<heading>#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
START = "index.md"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The site's pages, and README.md as the first."""
    readme = Path(config.config_file_path).parent / "README.md"
    text = readme.read_text(encoding="utf-8")
    files.append(File.generated(config, START, content=_rewritten(text, _below_docs)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page whose links stay in the site: what leads to a file of the repository becomes the name of that file."""
    folder = posixpath.dirname(page.file.src_uri)
    known = files.src_uris

    def kept(target: str) -> str | None:
        path = posixpath.normpath(posixpath.join(folder, target))
        if path == "../README.md":
            return posixpath.relpath(START, folder or ".")
        for name in (path, posixpath.join(path, "README.md")):
            if name in known:
                return posixpath.relpath(name, folder or ".")
        return None

    return _rewritten(markdown, kept)


def _below_docs(target: str) -> str:
    """A link of README.md as one of a page in docs/."""
    return os.path.relpath(target, "docs").replace(os.sep, "/")


def _rewritten(text: str, kept: Callable[[str], str | None]) -> str:
    """The text with every link outside of blocks of code asked for its new target; None takes the link away."""

    def link(found: re.Match[str]) -> str:
        shown, target, heading = found["text"], found["target"], found["heading"] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        new = kept(target)
        if new is not None:
            return f"[{shown}]({new}{heading})"
        return shown if "`" in shown else f"{shown} (`{posixpath.normpath(target).lstrip('./')}`)"

    parts = FENCED.split(text)
    return "".join(part if number % 2 else LINK.sub(link, part) for number, part in enumerate(parts))
