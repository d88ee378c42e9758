"""The self-check finds what an edit must not do; each failure is made by hand."""

from __future__ import annotations

import ast

import pytest

from migrate.edits import Plan, PlannedFile
from migrate.edits.apply import apply
from migrate.selfcheck import check, names
from migrate.source.address import Index

SOURCE = b"""\
import a  # first
x = 1

# about f
def f(y):
    # why
    y = g(y)  # call
    return y
if x:
    z = 2
else:  # never
    z = 3
"""


@pytest.fixture
def planned():
    tree = ast.parse(SOURCE)
    file = PlannedFile("t.py", tree, Index(tree), SOURCE)
    plan = Plan([file])
    plan.remove(tree.body[1], rule="R")  # x = 1
    plan.fold(tree.body[3], keep="body", rule="R")
    return file, plan, apply(file, plan).content


def test_a_right_result_passes(planned):
    file, plan, after = planned
    assert (
        after
        == SOURCE[: SOURCE.index(b"x = 1")].replace(b"\nx", b"\n")
        + SOURCE[SOURCE.index(b"\n# about") : SOURCE.index(b"if x")]
        + b"z = 2\n"
    )
    assert check(SOURCE, after, file, plan) == []
    assert plan.lost_comments == {"t.py": ("11: # never",)}


@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        (b"return y", b"return (y", "the result does not parse: "),
        (b"y = g(y)", b"y = g(y, a=1, a=1)", "the result does not compile: "),
        (b"return y", b"return  y", "line 8 is not in the result as it was: return y"),
        (b"    return y\n", b"", "line 8 is not in the result as it was: return y"),
        (b"y = g(y)", b"y = g(y )", "line 7 is not in the result as it was: y = g(y)  # call"),
        (b"import a  # first\n", b"import a  # first\r\n", "line 1 is not in the result as it was: import a  # first"),
        (b"  # call", b"", "a comment is gone and not reported: # call"),
        (b"    # why\n", b"", "a comment is gone and not reported: # why"),
        (b"z = 2", b"z = 4", "line 10 is not in the result as it was: z = 2"),
        (b"def f(y):", b"def f(y, w):", "line 5 is not in the result as it was: def f(y):"),
    ],
)
def test_a_wrong_result_is_named(planned, old, new, failure):
    file, plan, after = planned
    assert after.count(old) == 1
    failures = check(SOURCE, after.replace(old, new), file, plan)
    assert any(found.startswith(failure) for found in failures), failures


def test_a_comment_that_no_edit_concerns_may_not_be_lost_even_if_reported(planned):
    file, plan, after = planned
    plan.lost_comments["t.py"] = ("11: # never", "6: # why")
    after = after.replace(b"    # why\n", b"")
    assert "a comment is gone where no edit is: # why" in check(SOURCE, after, file, plan)


def test_lines_may_not_change_places(planned):
    file, plan, after = planned
    lines = after.splitlines(keepends=True)
    lines[-2:] = lines[:-3:-1]
    failures = check(SOURCE, b"".join(lines).replace(b"    return y", b"return_(y)"), file, plan)
    assert failures


def test_comments_at_the_end_of_a_block_go_with_its_last_statement():
    source = b"if x:\n    z = 2\n    def f(y):\n        pass\n        # deeper\n\n        # last\n    # of if\nx = 1\n"
    tree = ast.parse(source)
    file = PlannedFile("t.py", tree, Index(tree), source)
    plan = Plan([file])
    plan.remove(tree.body[0].body[1], rule="R")
    after = apply(file, plan).content

    assert check(source, after, file, plan) == []
    assert plan.lost_comments == {"t.py": ("5: # deeper", "7: # last")}
    gone = after.replace(b"    # of if\n", b"")
    assert "a comment is gone where no edit is: # of if" in check(source, gone, file, plan)


def test_names_that_nothing_has_bound_are_named_if_they_were_not_there_before():
    after = SOURCE.replace(b"y = g(y)", b"y = g(other(y))")

    assert names(SOURCE, SOURCE) == []  # which reads g
    assert names(SOURCE, after) == ["line 7 of the result reads other, which nothing has bound by then"]
    assert names(after, after) == []
