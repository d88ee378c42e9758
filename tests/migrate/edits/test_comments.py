from __future__ import annotations

from migrate.edits.comments import comments, lost


def test_comments_are_not_strings():
    found = comments(b"a = '# no'  # yes\n# two\n")
    assert [(comment.line, comment.text) for comment in found] == [(1, "# yes"), (2, "# two")]


def test_nothing_is_lost_when_lines_move():
    assert lost(b"a  # x\nb # y\n", b"if c:\n    a  # x\nb # y\n") == []


def test_of_equal_comments_the_one_without_a_match_is_lost():
    before = b"a  # x\nb  # y\nc  # x\nd  # z\n"
    assert [str(comment) for comment in lost(before, b"a  # x\nb  # y\nd  # z\n")] == ["3: # x"]
    assert [str(comment) for comment in lost(before, b"b  # y\nc  # x\nd  # z\n")] == ["1: # x"]


def test_all_are_lost():
    assert [comment.line for comment in lost(b"# a\n# a\n", b"b = '# a'\n")] == [1, 2]
