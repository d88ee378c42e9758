"""docs/examples.md shows pieces of what `migrate` really makes of the fixtures that it is about."""

import difflib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
PIECES = re.findall(r"^<!-- (\S+) -->\n```diff\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def difference(name):
    """The whole of both texts as a diff: what `after` is is checked by the tests of the fixtures."""
    case, _, file = name.partition("/")
    before, after = (
        ROOT / "fixtures" / case / (f"{side}/{file}" if file else f"{side}.py") for side in ("before", "after")
    )
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    return list(difflib.unified_diff(old, new, n=len(old), lineterm=""))[3:]


def test_there_are_pieces_of_all_four():
    assert {name.partition("/")[0] for name, _ in PIECES} == {"vision-trainer", "language-dicts", "gan", "ddp-amp"}
    assert PAGE.count("```diff") == len(PIECES)


@pytest.mark.parametrize("number", range(len(PIECES)))
def test_piece_is_one_of_the_diff(number):
    name, text = PIECES[number]
    piece, whole = [line.rstrip() for line in text.splitlines()], [line.rstrip() for line in difference(name)]
    assert any(whole[start : start + len(piece)] == piece for start in range(len(whole)))
