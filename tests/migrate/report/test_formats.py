"""Each format against what its readers ask for: schemas, limits, units of columns, and edits that make the new file."""

import ast
import itertools
import json
import os
import re
import types
import urllib.parse
from pathlib import Path

import jsonschema
import pytest

from migrate import __version__
from migrate.cli.printing import Format
from migrate.errors import SourceError
from migrate.options import Mode
from migrate.report.formats import FORMATS, About, github
from migrate.report.model import Change, Finding, Kind, Report, Summary
from migrate.report.pieces import pieces
from migrate.source.project import SourceFile

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs/findings.schema.json").read_text(encoding="utf-8"))
RULE = types.SimpleNamespace(
    code="MIG001", name="unconverted-loop", summary="a loop.", documentation="unconverted-loop: a loop.\n\nMore."
)
ABOUT = About(__version__, Mode.CHECK, {"MIG001": RULE})
WIDE = "# é\nif True:\n    'é𐐀'; x = 1\n"  # characters of two and of four bytes before column 11
BOM = b"\xef\xbb\xbf"


def golden():
    """Every pair of a file before and after the conversion that the fixtures promise."""
    found = []
    for before in sorted((ROOT / "fixtures").rglob("before*")):
        after = before.with_name(before.name.replace("before", "after"))
        files = before.rglob("*.py") if before.is_dir() else [before]
        for file in files:
            other = after / file.relative_to(before) if before.is_dir() else after
            if other.is_file() and other.read_bytes() != file.read_bytes() and other.read_bytes().strip():
                found.append((file, other))
    return found


GOLDEN = golden()


def crlf(content):
    return content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


VARIANTS = {
    "as it is": lambda content: content,
    "CRLF": crlf,
    "no final newline": lambda content: content.rstrip(b"\n"),
    "byte order mark": lambda content: BOM + content,
}


def report(path="train.py", content=b"import torch\nfor x in y:\n    loss.backward()\n", new=None, **more):
    """A run that has found a loop in line 2."""
    file = SourceFile(path, content)
    finding = Finding("MIG001", path, 2, 1, 3, "training loop", "migrate --write converts it", Kind.LOOP, True, "x:2")
    made = {"findings": (finding,), "files": 1, "sources": {path: file}, **more}
    return Report(changes=(Change(path, content, new),) if new is not None else (), **made)


def told(of, name, about=ABOUT):
    return json.loads(FORMATS[name](of, about))


def test_every_format_of_the_command_line_is_written():
    assert {each.value for each in Format} == {"text", *FORMATS}


# ------------------------------------------------------------------------------------------------------------- pieces


def applied(content, edits):
    """What an editor makes of replacements of whole lines; the text of each lacks the end of its last line."""
    lines = content.split(b"\n")
    for first, last, text in reversed(edits):
        tail = b"\r" if lines[last - 1].endswith(b"\r") else b""
        lines[first - 1 : last] = [*(text + tail).split(b"\n")]
    return b"\n".join(lines)


def test_fixtures_are_found():
    assert len(GOLDEN) > 100


@pytest.mark.parametrize("variant", VARIANTS)
def test_pieces_make_the_new_file(variant):
    for before, after in GOLDEN:
        old, new = VARIANTS[variant](before.read_bytes()), VARIANTS[variant](after.read_bytes())
        made = pieces(Change(str(before), old, new))
        assert all(piece.text for piece in made), before  # an empty text means two things
        assert all(one.last < other.first for one, other in itertools.pairwise(made)), before
        assert applied(old, [(p.first, p.last, p.text.encode()) for p in made]) == new, before


def test_pieces_of_another_encoding():
    old = b"# coding: latin-1\na = '\xe9'\n"
    (piece,) = pieces(Change("a.py", old, old.replace(b"a =", b"b =")))
    assert (piece.first, piece.last, piece.text, piece.end_column) == (2, 2, "b = 'é'", 8)


def test_piece_at_the_end_takes_in_the_line_above():
    assert [(p.first, p.last, p.text) for p in pieces(Change("a.py", b"a\nb\n", b"a\n"))] == [(1, 2, "a")]
    assert [(p.first, p.last, p.text) for p in pieces(Change("a.py", b"a\nb\n", b"a\nb\nc\n"))] == [(2, 2, "b\nc")]
    assert [(p.first, p.last, p.text) for p in pieces(Change("a.py", b"a\nb\n", b"x\na\n"))] == [(1, 2, "x\na")]


# --------------------------------------------------------------------------------------------------------------- json


def test_json_keeps_its_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    problems = (SourceError("cannot be read", "Leave it out.", path="b.py", line=3),)
    summaries = (Summary("train.py", "text", ("train.py",)),)
    full = report(
        new=b"import torch\nfor x in y:\n    accelerator.backward(loss)\n", problems=problems, summaries=summaries
    )
    for each in (Report(), full):
        validator.validate(told(each, "json"))
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**told(full, "json"), "more": 1})


def test_json_tells_the_place_and_whether_it_converts():
    (finding,) = told(report(), "json")["findings"]
    assert finding["location"] == {"row": 2, "column": 1}
    assert finding["end_location"] == {"row": 2, "column": 12}
    assert (finding["last_row"], finding["converts"], finding["name"]) == (3, True, "unconverted-loop")
    assert finding["source"] == "for x in y:"


# -------------------------------------------------------------------------------------------------------------- sarif


def test_sarif_has_what_github_asks_for():
    new = b"import torch\nfor x in y:\n    accelerator.backward(loss)\n"
    log = told(report("a b/train.py", new=new, problems=(SourceError("no", "out", path="b.py", line=3),)), "sarif")
    assert (log["version"], log["$schema"].endswith("sarif-schema-2.1.0.json")) == ("2.1.0", True)
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("migrate", __version__)
    (rule,) = driver["rules"]
    for key in ("shortDescription", "fullDescription", "help"):
        assert rule[key]["text"]
    (result,) = run["results"]
    assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "MIG001"
    assert result["level"] in {"none", "note", "warning", "error"}
    assert result["message"]["text"]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "a%20b/train.py"}
    assert location["physicalLocation"]["region"] == {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 12}
    assert re.fullmatch("[0-9a-f]{32}", result["partialFingerprints"]["primaryLocationLineHash"])
    assert run["columnKind"] == "unicodeCodePoints"
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_sarif_fixes_make_the_new_file_once():
    for before, after in GOLDEN[:40]:
        old, new = before.read_bytes(), after.read_bytes()
        run = report("train.py", old, new)
        other = Finding("MIG001", "train.py", 1, 1, 1, "another loop", "", Kind.LOOP, converts=True)
        (made,) = told(Report((*run.findings, other), changes=run.changes, sources=run.sources), "sarif")["runs"]
        (fix,) = [fix for result in made["results"] for fix in result.get("fixes", ())]
        (artifact,) = fix["artifactChanges"]
        assert urllib.parse.unquote(artifact["artifactLocation"]["uri"]) == "train.py"
        edits = []
        for each in artifact["replacements"]:
            deleted = each["deletedRegion"]
            assert deleted["startColumn"] == 1
            assert deleted["endColumn"] == len(old.decode().split("\n")[deleted["endLine"] - 1].rstrip("\r")) + 1
            edits.append((deleted["startLine"], deleted["endLine"], each["insertedContent"]["text"].encode()))
        assert applied(old, edits) == new


def test_a_sarif_fix_is_whole_where_programs_share_files():
    names = ("a.py", "b.py", "shared.py", "other.py")
    loops = tuple(Finding("MIG001", name, 1, 1, 1, "a loop", "", Kind.LOOP, converts=True) for name in names[:2])
    tied = (("a.py", "shared.py"), ("other.py", "shared.py"), ("b.py", "other.py"))
    run = Report(
        loops,
        tuple(Summary(files[0], "", files) for files in tied),
        tuple(Change(name, b"x\n", b"y\n") for name in names),
    )
    (made,) = told(run, "sarif")["runs"]
    (fix,) = [fix for result in made["results"] for fix in result.get("fixes", ())]
    assert [each["artifactLocation"]["uri"] for each in fix["artifactChanges"]] == sorted(names)


def test_sarif_of_nothing():
    (run,) = told(Report(), "sarif")["runs"]
    assert (run["results"], run["invocations"][0]["executionSuccessful"]) == ([], True)


@pytest.mark.skipif("SARIF_SCHEMA" not in os.environ, reason="SARIF_SCHEMA names no copy of OASIS' schema of 2.1.0")
def test_sarif_is_valid_by_the_schema_of_oasis():
    schema = json.loads(Path(os.environ["SARIF_SCHEMA"]).read_text(encoding="utf-8"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    problems = (SourceError("no", "out", path="b.py", line=3), SourceError("nowhere"))
    validator.validate(told(Report(), "sarif"))
    for before, after in GOLDEN:
        validator.validate(
            told(report("a b/train.py", before.read_bytes(), after.read_bytes(), problems=problems), "sarif")
        )
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**told(Report(), "sarif"), "version": "2.2.0"})


# ------------------------------------------------------------------------------------------------------------- rdjson


@pytest.mark.parametrize(("mark", "bytes_before"), [(b"", 0), (BOM, 3)])
def test_rdjson_counts_bytes(mark, bytes_before):
    content = mark + WIDE.encode()
    line = WIDE.splitlines()[2]
    column = line.index("x") + 1
    findings = (
        Finding("MIG001", "a.py", 3, column, 3, "m", "", Kind.LOOP),
        Finding("MIG001", "a.py", 1, 1, 1, "m", "", Kind.LOOP),
    )
    made = told(Report(findings, sources={"a.py": SourceFile("a.py", content)}), "rdjson")
    third, first = (each["location"]["range"] for each in made["diagnostics"])
    raw = content.split(b"\n")
    assert raw[2][third["start"]["column"] - 1 : third["end"]["column"] - 1] == b"x = 1"
    assert first["start"]["column"] == 1 + bytes_before
    assert raw[0][first["start"]["column"] - 1 : first["end"]["column"] - 1] == "# é".encode()


@pytest.mark.parametrize("variant", VARIANTS)
def test_rdjson_suggestions_make_the_new_file(variant):
    for before, after in GOLDEN[:40]:
        old, new = VARIANTS[variant](before.read_bytes()), VARIANTS[variant](after.read_bytes())
        made = told(report("train.py", old, new), "rdjson")["diagnostics"]
        edits = []
        for each in made:
            for suggestion in each.get("suggestions", ()):
                assert suggestion["range"] == each["location"]["range"]  # reviewdog takes no other
                assert {"column"}.isdisjoint(suggestion["range"]["start"] | suggestion["range"]["end"])
                lines = suggestion["range"]
                edits.append((lines["start"]["line"], lines["end"]["line"], suggestion["text"].encode()))
        assert applied(old, edits) == new


def test_rdjson_words():
    (diagnostic,) = told(report(), "rdjson")["diagnostics"]
    assert (diagnostic["severity"], diagnostic["code"]) == ("WARNING", {"value": "MIG001"})
    assert diagnostic["message"] == "training loop\nmigrate --write converts it"


# ------------------------------------------------------------------------------------------------------ github, gitlab


def test_github_annotation():
    assert FORMATS["github"](report(), ABOUT) == (
        "::warning title=migrate (MIG001),file=train.py,line=2,endLine=2,col=1,endColumn=12::"
        "training loop%0Amigrate --write converts it\n"
    )


def test_github_says_all_and_annotates_within_its_limits():
    loops = [Finding("MIG001", "a.py", n, 1, n, f"loop {n}", "", Kind.LOOP) for n in range(1, 31)]
    faults = [Finding("MIG002", "a.py", n, 1, n, f"fault {n}", "", Kind.FAULT) for n in range(31, 34)]
    lines = FORMATS["github"](Report((*loops, *faults)), ABOUT).splitlines()
    assert [line.startswith("::error") for line in lines[:4]] == [True, True, True, False]  # the worst come first
    assert sum(line.startswith("::warning") for line in lines) == github.MOST
    assert all(any(f"loop {n}" in line.split("::")[-1] for line in lines) for n in range(1, 31))
    assert not any(line.startswith("::") for line in lines[13:])


def test_github_joins_a_loop_and_why_it_is_left():
    loop = Finding("MIG001", "a.py", 2, 1, 3, "loop", "", Kind.LOOP, converts=False, loop="a.py:2")
    left = Finding("MIG104", "b.py", 7, 1, 7, "two models", "split it", Kind.LEFT, loop="a.py:2")
    (line,) = FORMATS["github"](Report((loop, left)), ABOUT).splitlines()
    assert line.endswith("::loop%0AMIG104 in b.py:7: two models (split it)")


def test_github_cannot_be_given_commands_by_a_file():
    name = "a,b:c\n::error::x.py"
    loop = Finding("MIG001", name, 2, 1, 3, "100% ::error::\nx", "", Kind.LOOP)
    (line,) = FORMATS["github"](Report((loop,)), ABOUT).splitlines()
    assert line.startswith("::warning title=migrate (MIG001),file=a%2Cb%3Ac%0A%3A%3Aerror%3A%3Ax.py,")
    assert line.endswith("::100%25 ::error::%0Ax")
    many = Report((loop,) * 12)
    assert sum(line.startswith("::") for line in FORMATS["github"](many, ABOUT).splitlines()) == github.MOST


def test_gitlab_report():
    (entry,) = told(report(), "gitlab")
    assert entry["location"] == {"path": "train.py", "lines": {"begin": 2}}
    assert entry["severity"] in {"info", "minor", "major", "critical", "blocker"}
    assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}


@pytest.mark.parametrize("name", ["gitlab", "json"])
def test_fingerprints_stay_when_lines_move_and_are_each_their_own(name):
    def marks(content):
        loops = [n + 1 for n, line in enumerate(content.splitlines()) if b"for" in line]
        findings = tuple(Finding("MIG001", "a.py", n, 1, n, "loop", "", Kind.LOOP) for n in loops)
        made = told(Report(findings, sources={"a.py": SourceFile("a.py", content)}), name)
        return [each["fingerprint"] for each in (made["findings"] if name == "json" else made)]

    before = marks(b"for x in y:\n    pass\nfor x in y:\n    pass\n")
    assert len(set(before)) == 2
    assert marks(b"import a\n\nif b:\n    for  x in y:\n        pass\nfor x in y:\n    pass\n") == before
    assert marks(b"for z in y:\n    pass\n") != before[:1]


@pytest.mark.parametrize("name", FORMATS)
def test_any_bytes_in_names_and_lines(name):
    path = os.fsdecode(b"caf\xe9.py")
    made = FORMATS[name](report(path, "import torch\nfor é in '\u2028':\n    loss.backward()\n".encode()), ABOUT)
    assert made.encode("utf-8", "surrogateescape")
    assert ast.literal_eval(repr(made)) == made
