"""Every case of `fixtures/`: what it becomes, what is said about it, and what must hold of any conversion."""

import ast
import difflib
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from functools import cache
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "end_to_end"))
from cases import FIXTURES, KEYS, cases, python_of

import runtime
from migrate.analysis import analyse
from migrate.analysis.roles import roles
from migrate.options import Mode, Options, Target
from migrate.pipeline import run, run_text
from migrate.report.model import Kind
from migrate.source.files import load
from migrate.source.project import Project

ALL = cases()
CONVERTED = [case for case in ALL if case.after]
KEPT = [case for case in ALL if not case.after]
NOT_HERE = {"accelerate", "gym", "gymnasium", "lightning", "tqdm", "transformers"}  # never run


def named(some):
    return pytest.mark.parametrize("case", list(some), ids=lambda case: case.name)


def options(case, mode=Mode.PREVIEW):
    return Options(mode=mode, target=Target(case.table.get("target", "runtime")))


def converted(case, files):
    """The report of a run over files, and the content of each afterwards, by name."""
    report = _run(tuple(map(str, files)), options(case))
    changed = {Path(change.path).name: change.new for change in report.changes}
    return report, {file.name: changed.get(file.name, file.read_bytes()) for file in files}


@cache
def _run(paths, settings):
    """One run for all tests that look at it; a report is never changed."""
    return run(paths, settings)


def contents(files):
    return {file.name: file.read_bytes() for file in files}


def says(finding):
    """Its place (of a notebook with the number of the cell), code and message."""
    return ((finding.cell or 0, finding.line), finding.code, finding.message)


def at(entry):
    return (entry.get("cell", 0), entry["line"])


# ------------------------------------------------------------------ the cases themselves


def test_a_third_of_the_cases_must_not_change():
    assert len(ALL) >= 24
    assert 3 * len(KEPT) >= len(ALL)


@named(ALL)
def test_case_is_complete(case):
    assert case.table["why"]
    assert not set(case.table) - KEYS
    assert case.before
    assert [file.name for file in case.after] in (
        [],
        [case.before[0].name.replace("before", "after")],
        [file.name for file in case.before],
    )
    assert not (case.after and case.left), "a program is converted whole or left whole"


# ------------------------------------------------------------------ 1: before becomes after


@named(CONVERTED)
def test_before_becomes_after(case):
    _, new = converted(case, case.before)

    expected = contents(case.after)
    if len(expected) == 1:
        (new,), (expected,) = new.values(), expected.values()
    assert new == expected


@named(KEPT)
def test_refused_files_stay_as_they_are(case):
    report, _ = converted(case, case.before)

    assert report.changes == ()
    assert report.touched == ()


# ------------------------------------------------------------------ 2: what is said


@named(ALL)
def test_what_is_left_is_said(case):
    report, _ = converted(case, case.before)

    found = sorted(says(finding) for finding in report.of(Kind.LEFT))
    expected = sorted((at(left), left["code"], left["says"]) for left in case.left)
    assert [(line, code) for line, code, _ in found] == [(line, code) for line, code, _ in expected]
    for (_, _, message), (_, _, part) in zip(found, expected, strict=True):
        assert part in message
    assert all(finding.hint for finding in report.of(Kind.LEFT)), "each refusal names a way out"


@named(case for case in ALL if "note" in case.table)
def test_notes_are_given(case):
    report, _ = converted(case, case.before)

    found = [says(finding) for finding in report.of(Kind.NOTE)]
    for note in case.table["note"]:
        assert any((at(note), note["code"]) == (line, code) and note["says"] in text for line, code, text in found), (
            found
        )


@named(case for case in ALL if "roles" in case.table)
def test_roles_are_found(case):
    facts = analyse(Project(load([str(file) for file in case.before], lambda _: None).files))

    for place, role in case.table["roles"].items():
        line, name = place.split()
        nodes = [
            node
            for module in facts.editable
            for node in facts.tree(module.tree).nodes
            if isinstance(node, ast.Name) and node.id == name and node.lineno == int(line)
        ]
        assert nodes, f"there is no {name} in line {line}"
        # What is given a value may have had another role before; one place is enough.
        assert role in {found.value for node in nodes for found in roles(facts.values(node))}, place


@named(ALL)
def test_mistakes_are_found(case):
    report, _ = converted(case, case.before)

    found = [says(finding) for finding in report.of(Kind.FAULT)]
    assert [(line, code) for line, code, _ in found] == [(at(fault), fault["code"]) for fault in case.faults]
    assert all(fault["says"] in message for fault, (_, _, message) in zip(case.faults, found, strict=True))


@named(ALL)
def test_loops_are_flagged(case):
    report, _ = converted(case, case.before)

    loops = report.of(Kind.LOOP)
    assert bool(loops) is not (case.is_noop or bool(case.faults))
    assert all(loop.converts is bool(case.after) for loop in loops)


@named(ALL)
def test_exit_status(case):
    expected = 0 if case.is_noop else 1
    report, _ = converted(case, case.before)
    checked = run([str(file) for file in case.before], options(case, Mode.CHECK))

    assert checked.exit_status(Mode.CHECK) == expected
    assert checked.changes == ()
    assert report.exit_status(Mode.PREVIEW) == report.exit_status(Mode.DIFF) == expected
    assert not (case.is_noop and report.findings)


# ------------------------------------------------------------------ 3: a second run


@named(CONVERTED)
def test_second_run_changes_nothing(case):
    report, new = converted(case, case.after)

    assert new == contents(case.after)
    assert report.touched == ()
    assert [finding for finding in report.findings if finding.kind in (Kind.LOOP, Kind.LEFT)] == []
    assert report.exit_status(Mode.CHECK) == 0


# ------------------------------------------------------------------ 4: it is sound Python


@named(CONVERTED)
def test_imports_resolve(case):
    siblings = {file.stem for file in case.after}
    for file in case.after:
        for node in ast.walk(ast.parse(python_of(file))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules.append(node.module)
                if node.module == "runtime":
                    assert {alias.name for alias in node.names} <= set(runtime.__all__)
            for module in modules:
                top = module.partition(".")[0]
                assert top in siblings or top in NOT_HERE or find_spec(top), module


def test_no_name_is_left_undefined_or_unused():
    """Ruff finds names that lost their definition, and imports and variables that lost their use."""
    rules = "F401,F821,F841"
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", rules]
    done = subprocess.run(
        [*command, "--output-format", "json", str(FIXTURES)], capture_output=True, text=True, check=False
    )
    found = Counter()
    for problem in json.loads(done.stdout):
        path = Path(problem["filename"]).relative_to(FIXTURES)
        version = "after" if "after" in (path.parts[1], path.stem) else "before"
        found[version, (path.parts[0], problem["code"], problem["message"])] += 1

    new = [problem for version, problem in found if version == "after" and not found["before", problem]]
    assert new == []


# ------------------------------------------------------------------ 5 and 6: nothing else changes


@named(CONVERTED)
def test_statements_without_edits_keep_their_text(case):
    for before, after in _pairs(case, python_of):
        was, is_now = _texts(before), _texts(after)
        for meaning, texts in is_now.items():
            if meaning in was:
                assert texts <= was[meaning], f"written anew though nothing in it changed: {meaning}"


def _pairs(case, content=Path.read_bytes):
    return [(content(a), content(b)) for a, b in zip(case.before, case.after, strict=True)]


def _texts(content):
    """The ways in which each simple statement is written, by its meaning; keyed without layout."""
    source = content.decode("utf-8-sig")
    found = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            found.setdefault(ast.unparse(node), set()).add(ast.get_source_segment(source, node))
    return found


@named(CONVERTED)
def test_encoding_and_newlines_stay(case):
    for before, after in _pairs(case):
        assert before.startswith(b"\xef\xbb\xbf") == after.startswith(b"\xef\xbb\xbf")
        assert after.endswith(b"\n") == before.endswith(b"\n")
        endings = [set(re.findall(rb"\r\n|\r|\n", content)) for content in (before, after)]
        assert endings[0] == endings[1]


@named(CONVERTED)
def test_comments_are_kept_or_reported(case):
    report, _ = converted(case, case.before)
    lost = {Path(c.path).name: [line.partition(": ")[2] for line in c.lost_comments] for c in report.changes}

    for file, (before, after) in zip(case.before, _pairs(case, python_of), strict=True):
        missing = _comments(before) - _comments(after)
        assert missing == Counter(lost.get(file.name, ()))


def _comments(content):
    tokens = tokenize.tokenize(io.BytesIO(content).readline)
    return Counter(token.string for token in tokens if token.type == tokenize.COMMENT)


# ------------------------------------------------------------------ 7: order


@named(case for case in CONVERTED if len(case.before) > 1)
def test_order_of_files_does_not_matter(case):
    expected = contents(case.after)

    for files in permutations(case.before):
        assert converted(case, files)[1] == expected


@pytest.mark.long
@pytest.mark.parametrize("reverse", [False, True])
def test_cases_do_not_disturb_each_other(reverse):
    """All in one run, as in a repository of examples: each becomes what it becomes alone."""
    together = sorted((c for c in ALL if "target" not in c.table), key=lambda c: c.name, reverse=reverse)
    files = [file for case in together for file in case.before]
    changed = {change.path: change.new for change in _run(tuple(map(str, files)), Options()).changes}

    for case in together:
        alone = converted(case, case.before)[1]
        for file in case.before:
            assert changed.get(str(file), file.read_bytes()) == alone[file.name], file


# ------------------------------------------------------------------ the diff


@pytest.mark.parametrize("name", ["crlf", "two-files"])
def test_git_applies_the_diff(name, tmp_path):
    case = next(case for case in ALL if case.name == name)
    for file in case.before:
        (tmp_path / file.name).write_bytes(file.read_bytes())
    names = [file.name for file in case.before]
    _in(tmp_path, "git", "init", "--quiet", ".")
    _in(tmp_path, "git", "config", "core.autocrlf", "false")

    done = _in(tmp_path, sys.executable, "-m", "migrate", "--diff", *names, status=1)
    _in(tmp_path, "git", "apply", "--whitespace=nowarn", "-", given=done.stdout)

    expected = contents(case.after)
    for name_before, content in zip(names, expected.values(), strict=True):
        assert (tmp_path / name_before).read_bytes() == content


def _in(folder, *command, status=0, given=None):
    done = subprocess.run(command, cwd=folder, input=given, capture_output=True, check=False)
    assert done.returncode == status, done.stderr.decode()
    return done


# ------------------------------------------------------------------ the tutorial

TUTORIAL = """\
+from accelerate import Accelerator
+accelerator = Accelerator()
-device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
-model.to(device)
+train_dataloader, eval_dataloader, model, optimizer = accelerator.prepare(
+    train_dataloader, eval_dataloader, model, optimizer
+)
-        batch = {k: v.to(device) for k, v in batch.items()}
-        loss.backward()
+        accelerator.backward(loss)
"""


def _tutorial(blank_lines):
    """The tutorial's script with so many blank lines wherever it has one at module level."""
    text = (FIXTURES / "tutorial" / "before.py").read_text()
    head, transformers, program = text.partition("from transformers")
    return head + transformers + re.sub(r"\n\n+(?=\S)", "\n" * (blank_lines + 1), program)


@pytest.mark.parametrize("blank_lines", [1, 2, 3])
def test_tutorial_becomes_what_it_says(blank_lines):
    before = _tutorial(blank_lines)
    (change,) = run_text(before.encode(), "train.py", Options(target=Target.ACCELERATE)).changes

    old, new = before.splitlines(), change.new.decode().splitlines()
    assert list(_changed_lines(old, new)) == TUTORIAL.splitlines()
    assert run_text(change.new, "train.py", Options(target=Target.ACCELERATE)).touched == ()


@pytest.mark.parametrize("blank_lines", [1, 2, 3])
def test_tutorial_loses_no_blank_line(blank_lines):
    before = _tutorial(blank_lines)
    (change,) = run_text(before.encode(), "train.py", Options(target=Target.ACCELERATE)).changes

    after = change.new.decode()
    gap = "\n" * (blank_lines + 1)
    assert "-" not in list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""))
    assert "\n\naccelerator = Accelerator()\n\n" in after
    assert f"lr=3e-5){gap}train_dataloader, eval" in after
    assert f"optimizer\n){gap}num_epochs" in after


def _changed_lines(old, new):
    """The lines of a diff that come or go; blank lines take no part."""
    for line in difflib.unified_diff([x for x in old if x.strip()], [x for x in new if x.strip()], n=0, lineterm=""):
        if line[0] in "+-" and line[:3] not in ("+++", "---"):
            yield line
