"""Pictures of what commands print, for README.md and docs/verify.md. `python docs/terminal.py` makes them anew.

Each command is run as it stands in the picture, on a copy of a fixture; the pictures are SVG: their text can be found.
"""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDTH = 104  # columns
#: Rich's own pattern, without the fonts that it fetches from the net.
PATTERN = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; \
font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """A command, what it is run on, and where its picture goes."""

    name: str
    command: str
    fixture: str
    statuses: frozenset[int] = frozenset({0})


PICTURES = (
    Picture("check", "migrate train.py --check", "classifier", frozenset({1})),
    Picture("verify", "migrate train.py --verify --quiet", "classifier"),
)


def main() -> int:
    """Write the pictures that are named, or all; 2 for a name that is none, 1 where a command ends otherwise."""
    names = sys.argv[1:] or [picture.name for picture in PICTURES]
    known = {picture.name: picture for picture in PICTURES}
    if unknown := [name for name in names if name not in known]:
        print(f"terminal: no picture {unknown[0]!r}; there are {', '.join(known)}")
        return 2
    for name in names:
        picture = known[name]
        status, printed = ran(picture)
        if status not in picture.statuses:
            print(f"terminal: `{picture.command}` ended with {status}:\n{printed}")
            return 1
        (IMAGES / f"{name}.svg").write_text(drawn(picture.command, printed), encoding="utf-8")
    return 0


def ran(picture: Picture) -> tuple[int, str]:
    """The exit status of a command, and all that it prints to a terminal."""
    variables = {"PYTHONPATH": str(ROOT), "COLUMNS": str(WIDTH), "OMP_NUM_THREADS": "1"}
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with tempfile.TemporaryDirectory(prefix="migrate-terminal-") as folder:
        shutil.copyfile(ROOT / "fixtures" / picture.fixture / "before.py", Path(folder, "train.py"))
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(picture.command), "--color", "always"],
            cwd=folder, env={**inherited, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False,
        )  # fmt: skip
    return done.returncode, done.stdout


def drawn(command: str, printed: str) -> str:
    """The picture of a terminal in which a command was run."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text.from_ansi(printed.rstrip() + "\n"))
    return console.export_svg(title=command, theme=MONOKAI, code_format=PATTERN, unique_id="terminal")


if __name__ == "__main__":
    sys.exit(main())
