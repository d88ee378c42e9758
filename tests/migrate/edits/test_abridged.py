"""What libcst gets of a file, and that nothing of the rest is lost."""

from __future__ import annotations

import pytest

from migrate.edits.abridged import abridged

CLASS = "class Net:\n    # one\n    @decorated(a, b)\n    def run(self, x):\n        return x * 2  # two\n\n    # end\n"
SHORT = {
    "a simple statement": ("print(a, b, c)  # said\nx()\n", "KEPT_0_  # said\nx()\n"),
    "of a line": ("first = one(1); x(); last = two(2)\n", "KEPT_0_; x(); KEPT_1_\n"),
    "short ones": ("y = 1\nx()\n", "y = 1\nx()\n"),
    "a block": (f"{CLASS}x()\n", "class Net:\n    # one\n    KEPT_0_  # two\n\n    # end\nx()\n"),
    "each branch": (
        "if a:\n    one(1, 2, 3)\nelif b:\n    two(1, 2, 3)\nelse: three(1, 2)\nx()\n",
        "if a:\n    KEPT_0_\nelif b:\n    KEPT_1_\nelse: KEPT_2_\nx()\n",
    ),
    "beside the edit": ("for a in b:\n    one(1, 2, 3)\n    x()\n", "for a in b:\n    KEPT_0_\n    x()\n"),
    "over lines": ("one(\n    1,\n)\nx()\n", "KEPT_0_\nx()\n"),
    "wide characters": ('say("käse 🧀")\nx()\n', "KEPT_0_\nx()\n"),
}


@pytest.mark.parametrize("name", SHORT)
def test_names_stand_for_what_no_edit_touches(edit, name):
    before, short = SHORT[name]
    e = edit(before)
    e.do("rewrite", e.expr("x()"), "changed()")
    text = abridged(e.file, e.plan.settled(e.file))
    assert text.text.decode() == short
    assert text.restored(text.text).decode() == before
    assert e.text() == before.replace("x()", "changed()")


UNTOUCHED = {
    "a name that stands for something": "KEPT_0_ = 1\nprint(a, b, c)\nx()\n",
    "a byte order mark": "\ufeffprint(a, b, c)\nx()\n",
    "another encoding": "# coding: latin-1\nprint(a, b, c)\nx()\n",
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_where_places_are_not_sure_all_is_read(edit, name):
    e = edit(UNTOUCHED[name].encode())
    e.do("rewrite", e.expr("x()"), "changed()")
    assert abridged(e.file, e.plan.settled(e.file)).kept == ()
    assert e.bytes() == UNTOUCHED[name].replace("x()", "changed()").encode()


def test_lines_that_move_are_moved_by_libcst(edit):
    e = edit("y()\none(\n    1,\n)\nsecond(2, 2)\nx()\n")
    e.do("wrap", e.stmt("y()"), e.stmt("x()"), "with a")
    assert abridged(e.file, e.plan.settled(e.file)).text == b"y()\none(\n    1,\n)\nKEPT_0_\nx()\n"
    assert e.text() == "with a:\n    y()\n    one(\n        1,\n    )\n    second(2, 2)\n    x()\n"


def test_what_libcst_loses_elsewhere_is_kept(edit):
    e = edit("if a:\n    try:\n        b()\n    except (c) :\n        d()\nx()\n")
    e.do("rewrite", e.expr("x()"), "changed()")
    assert e.text() == "if a:\n    try:\n        b()\n    except (c) :\n        d()\nchanged()\n"
