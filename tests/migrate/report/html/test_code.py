"""Files side by side: no line is lost, each change has its reason, rows that belong together stand together."""

import io
import re
import tokenize
from itertools import pairwise

import pytest

from migrate.report.html.align import differing, pairs
from migrate.report.html.rows import lines_of, runs
from migrate.report.html.syntax import coloured, painted
from migrate.report.model import Edit

OLD = "import torch\n\nfor x in loader:\n    loss = f(x)\n    loss.backward()\n    step()\n"
NEW = OLD.replace("loss.backward()", "accelerator.backward(loss)")


def rows_of(old, new, edits=(), pointed=()):
    return runs(lines_of(old), lines_of(new), edits, pointed)


def test_every_line_of_both_sides_is_there_once_and_in_order(reports):
    for report in reports.values():
        for change in report.changes:
            found = [row for run in rows_of(change.old, change.new, change.edits) for row in run.rows]
            assert [row.old for row in found if row.old is not None] == list(range(len(lines_of(change.old).texts)))
            assert [row.new for row in found if row.new is not None] == list(range(len(lines_of(change.new).texts)))


def test_every_change_of_the_fixtures_has_a_rule(reports, about):
    codes = [
        run.codes for r in reports.values() for c in r.changes for run in rows_of(c.old, c.new, c.edits) if run.changes
    ]
    assert len(codes) > 50
    assert all(codes)
    assert {code for each in codes for code in each} <= about.rules.keys()


@pytest.mark.parametrize(
    ("name", "line", "code"),
    [
        ("gan/before.py", "accelerator.backward(errG)", "MIG105"),
        ("gan/before.py", "netG = Generator()", "MIG102"),
        ("gan/before.py", "from runtime import Accelerator", "MIG100"),
        ("gan/before.py", "dataloader, netG, netD", "MIG104"),
        ("gan/before.py", "real = data[0]", "MIG103"),
        ("ddp-helpers/before", "accelerator.backward(loss)", "MIG105"),
    ],
)
def test_a_change_has_the_rule_that_made_it(reports, name, line, code):
    for change in reports[name].changes:
        new = lines_of(change.new).texts
        for run in rows_of(change.old, change.new, change.edits):
            if run.changes and any(row.new is not None and new[row.new].strip().startswith(line) for row in run.rows):
                assert code in run.codes
                return
    pytest.fail(f"{line} is in no change")


def test_what_a_program_of_several_processes_loses_has_a_rule(reports):
    gone = {
        lines_of(change.old).texts[row.old].strip(): run.codes
        for change in reports["ddp-helpers/before"].changes
        for run in rows_of(change.old, change.new, change.edits)
        if run.changes
        for row in run.rows
        if row.old is not None
    }
    assert "MIG111" in next(codes for line, codes in gone.items() if "init_process_group" in line)


def test_an_edit_without_a_block_of_its_own_goes_to_no_other():
    found = rows_of(OLD.encode(), NEW.encode(), [Edit("MIG105", 5, 5), Edit("MIG100", 1, 1)])
    assert [run.codes for run in found if run.changes] == [("MIG105",)]


def test_unchanged_lines_are_folded_unless_something_points_at_them():
    old = "".join(f"x{n} = {n}\n" for n in range(50)).encode()
    new = old.replace(b"x40 = 40", b"x40 = 0")
    folded = [(run.rows[0].old, run.rows[-1].old) for run in rows_of(old, new) if run.folded]
    assert folded == [(0, 36), (44, 49)]
    folded = [(run.rows[0].old, run.rows[-1].old) for run in rows_of(old, new, pointed=[11]) if run.folded]
    assert folded == [(0, 8), (12, 36), (44, 49)]


def test_endings_are_a_difference():
    found = rows_of(b"a\r\nb\r\n", b"a\r\nb\n")
    assert [run.changes for run in found] == [False, True]
    assert lines_of(b"a\r\nb\r\nc").ends == ("\r\n", "\r\n", "")
    assert lines_of(b"a\x0cb\nc\n").texts == ("a\x0cb", "c")
    assert lines_of(b"# coding: latin-1\n\xe9\n").texts[1] == "é"
    assert lines_of(b"\xe9\n").texts == ("\udce9",)
    assert lines_of(b"# coding: nonsense\nx\n").texts[1] == "x"


def test_lines_that_are_alike_stand_side_by_side():
    old = ["loss.backward()", "optimizer.step()"]
    new = ["if accelerator.is_main_process:", "    accelerator.backward(loss)", "    optimizer.step()"]
    assert (1, 2) in pairs(old, new)
    found = pairs(old, new)
    for side in (0, 1):
        numbers = [pair[side] for pair in found if pair[side] is not None]
        assert numbers == sorted(numbers) == list(range(len((old, new)[side])))


def test_lines_without_a_pair_share_a_row():
    assert pairs(["device = 1"], ["wholly(other)"]) == [(0, 0)]
    assert pairs([], ["a"]) == [(None, 0)]
    assert pairs(["a"], []) == [(0, None)]
    many = [f"line {number}" for number in range(100)]
    assert pairs(many, many[:50])[-1] == (99, None)


def test_what_differs():
    left, right = differing("x = x.to(device)", "x = x")
    assert ["x = x.to(device)"[a:b] for a, b in left] == [".to(device)"]
    assert right == []
    assert differing("one thing", "zwölf Dinge ganz anders") == ([], [])


def test_colours_cover_what_they_say():
    line = "def f(x): return 'a' + str(1)  # done"
    found = {line[start:end]: name for start, end, name in coloured([line])[0]}
    assert found == {"def": "k", "f": "d", "return": "k", "'a'": "s", "1": "n", "# done": "c"}
    assert coloured(["x = (", "'''open"]) == [[], []]  # as far as it is Python
    assert coloured(["'''a", "b'''"]) == [[(0, 4, "s")], [(0, 4, "s")]]


@pytest.mark.parametrize("line", ["x = f('<b>', \"&\")  # é\u202e", "", "\tif x:", "f'{a!r} <'", "x\x0c = 1"])
def test_painting_keeps_the_text(line):
    html = str(painted(line, coloured([line])[0], [(0, 1), (2, 5)]))
    assert re.sub(r"<[^>]*>", "", html).count("&lt;") == line.count("<")
    bare = re.sub(r"<[^>]*>", "", html)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#x27;", "'"), ("&amp;", "&")):
        bare = bare.replace(entity, character)
    assert bare == line.replace("\u202e", "U+202E").replace("\x0c", "U+000C")
    opened = re.findall(r"<(/?)(\w+)", html)
    assert sum(1 if not slash else -1 for slash, _ in opened) == 0


def test_ranges_of_colours_do_not_overlap(reports):
    for change in reports["plateau/before.py"].changes:
        for spans in coloured(lines_of(change.new).texts):
            assert all(one[1] <= other[0] for one, other in pairwise(sorted(spans)))
        assert list(tokenize.tokenize(io.BytesIO(change.new).readline))
