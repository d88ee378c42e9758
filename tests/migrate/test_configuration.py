"""What is looked at, told and converted: settings, patterns, git, comments, a baseline."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate.cli import app
from migrate.configuration import configured
from migrate.errors import UsageError
from migrate.options import Options, Target
from migrate.source import git as asked
from migrate.source.comments import ignores, skips
from migrate.source.files import Selection, load
from migrate.source.patterns import Patterns
from migrate.source.section import KEYS

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:{comment}
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
PLAIN = PROGRAM.format(comment="")
TWO = (
    PLAIN
    + """
for x, y in loader:  # migrate: ignore[MIG001] a baseline, kept as it is
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
"""
)
GIT = shutil.which("git") or "git"
IDENTITY = ["-c", "user.name=Tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false"]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="asks git")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))


def write(name, text=PLAIN):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def migrate(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), prog_name="migrate")


def found(*arguments):
    """The places of the loops that `--check` tells."""
    result = migrate(*arguments, "--check", "--output-format", "json")
    assert result.exit_code in (0, 1), result.stderr
    told = json.loads(result.stdout)["findings"]
    return [f"{each['filename']}:{each['location']['row']}" for each in told if each["kind"] == "loop"]


def git(*arguments):
    done = subprocess.run([GIT, *IDENTITY, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def commit(*arguments):
    if not Path(".git").exists():
        git("init", "--quiet", "--initial-branch", "main")
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message", "all", *arguments)


# ----------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("exclud = ['a']", "[tool.migrate] holds 'exclud'. Did you mean 'exclude'?"),
        ("force_exclude = true", "Did you mean 'force-exclude'?"),
        ("wibble = 1", "[tool.migrate] holds 'wibble'. Allowed: target, for, select,"),
        ("exclude = 'a'", "exclude is 'a'. It should be a list of patterns"),
        ("review = 1", "review is 1. It should be true or false."),
        ("target = 'acelerate'", "target is 'acelerate'. Allowed: runtime, accelerate."),
        ("select = ['MIG15']", "'MIG15' is not a rule. Did you mean MIG1"),
        ("per-file-ignores = ['a']", "It should be a table of lists"),
        ("[tool.migrate.per-file-ignores]\n'a' = 'MIG001'", "It should be a table of lists"),
        ("exclude = [", "Mend it, or read none: --isolated."),
        ("exclude = ['[z-a]']", "[tool.migrate] '[z-a]' is no pattern: bad character range z-a"),
        ("[tool.migrate.per-file-ignores]\n'[z-a]' = ['MIG1']", "[tool.migrate] '[z-a]' is no pattern"),
    ],
)
def test_wrong_settings_are_one_line_with_the_way_out(text, says):
    write("pyproject.toml", f"[tool.migrate]\n{text}\n")
    write("train.py")
    result = migrate("train.py", "--check")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith("migrate: pyproject.toml: ")
    assert says in result.stderr


def test_settings_that_are_not_there():
    result = migrate("train.py", "--config", "missing.toml")
    says = "migrate: missing.toml: it cannot be read: no such file or directory. Name another file.\n"
    assert (result.exit_code, result.stderr) == (2, says)


def test_every_key_is_documented():
    text = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert all(f"`{key}`" in text for key in KEYS)


def test_the_command_line_comes_before_the_settings():
    write("pyproject.toml", "[tool.migrate]\ntarget = 'accelerate'\nselect = ['prepare']\nreview = true\n")
    here = Path.cwd()
    assert configured(Options(), [here]).target is Target.ACCELERATE
    assert configured(Options(), [here]).select == ("MIG104",)
    assert configured(Options(), [here]).review
    assert configured(Options(given=frozenset({"target"})), [here]).target is Target.RUNTIME
    assert configured(Options(config=""), [here]).target is Target.RUNTIME
    write("other.toml", "[tool.migrate]\ntarget = 'runtime'\n")
    assert configured(Options(config="other.toml"), [here]).target is Target.RUNTIME
    with pytest.raises(UsageError, match="cannot be read"):
        configured(Options(config="missing.toml"), [here])
    write("train.py")
    assert "from accelerate import" in migrate("train.py", "--diff", "--select", "MIG1").stdout
    assert "from runtime import" in migrate("train.py", "--diff", "--isolated").stdout


def test_standard_input_without_a_name_has_the_settings_of_the_current_folder():
    write("pyproject.toml", "[tool.migrate]\ntarget = 'accelerate'\n")
    result = CliRunner().invoke(app, ["-"], input=PLAIN)
    assert "from accelerate import Accelerator" in result.stdout


def test_options_that_exclude_each_other():
    write("train.py")
    for arguments, says in (
        (["--since", "HEAD"], "--since and --baseline say which findings are new"),
        (["--check", "--config", "a", "--isolated"], "--config and --isolated exclude each other"),
        (["--check", "--since", "HEAD", "--baseline", "b", "--update-baseline"], "not those --since a revision"),
        (["--check", "--update-baseline"], "--update-baseline does not know which file"),
    ):
        result = migrate("train.py", *arguments)
        assert (result.exit_code, says in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("arguments", "why", "way_out"),
    [
        (["--ignore", "MIG105"], "MIG105 (backward-call), which is ignored", "take it out of what is ignored: MIG105"),
        (["--ignore", "MIG1"], " more, which are ignored", "take them out of what is ignored: MIG104,MIG113,"),
        (["--select", "MIG001"], " more, which are not selected", "select them too: --select ...,MIG104,MIG113,"),
    ],
)
def test_a_rule_that_the_conversion_needs_and_is_left_out_is_told_with_all_like_it(arguments, why, way_out):
    write("a.py")
    result = migrate("a.py", "--check", *arguments)
    assert result.exit_code == 1
    assert "MIG001 training loop in plain PyTorch, not converted\n" in result.stdout
    assert "MIG001 the conversion needs MIG1" in result.stdout
    assert (why in result.stdout, way_out in result.stdout) == (True, True), result.stdout
    if "--select" in arguments:
        needed = re.search(r"\.\.\.,(\S+)", result.stdout)[1]
        assert "--write converts it" in migrate("a.py", "--check", "--select", needed).stdout


# ----------------------------------------------------------------------------------------------------- patterns, files


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("old", ["old", "a/old/b.py"], ["older.py", "a/bold/b.py"]),
        ("*_old.py", ["a_old.py", "a/b_old.py"], ["a_old.pyc", "old.py"]),
        ("legacy/*", ["legacy/a.py", "legacy/a/b.py"], ["legacy.py", "a/legacy/b.py"]),
        ("/legacy", ["legacy", "legacy/a.py"], []),
        ("a/**/b.py", ["a/b.py", "a/x/y/b.py"], ["a/xb.py", "b.py"]),
        ("**/gen/*.py", ["gen/a.py", "x/gen/a.py"], ["gen.py"]),
        ("a[0-9].py", ["a1.py"], ["ab.py"]),
        ("a[!0-9].py", ["ab.py"], ["a1.py"]),
        ("a?.py", ["ab.py"], ["a.py", "a/.py"]),
        ("a.b(", ["a.b("], ["axb("]),
        ("a[", ["a["], ["a"]),
        ("a[!]", ["a[!]"], ["a", "ab"]),
        ("a[]]", ["a]"], ["a", "a[]]"]),
    ],
)
def test_patterns(glob, matching, others):
    patterns = Patterns(Path.cwd(), (glob,))
    assert [name for name in matching if not patterns.match(Path.cwd() / name)] == []
    assert [name for name in others if patterns.match(Path.cwd() / name)] == []
    assert not Patterns(Path.cwd(), ()).match(Path.cwd() / "a")


def test_a_pattern_that_means_nothing_is_no_bug_of_ours():
    write("a.py")
    result = migrate("a.py", "--check", "--exclude", "[z-a]")
    assert result.exit_code == 2
    assert result.stderr.startswith("migrate: '[z-a]' is no pattern: bad character range z-a. Write what stands in")


def test_exclusion():
    for name in ("a.py", "legacy/b.py", "x/c_old.py", "x/d.py"):
        write(name)
    assert found(".") == ["a.py:8", "legacy/b.py:8", "x/c_old.py:8", "x/d.py:8"]
    assert found(".", "--exclude", "legacy", "--exclude", "*_old.py") == ["a.py:8", "x/d.py:8"]
    assert found("legacy/b.py", "--exclude", "legacy") == ["legacy/b.py:8"]  # taken at its word
    assert found("legacy/b.py", "a.py", "--exclude", "legacy", "--force-exclude") == ["a.py:8"]
    write("pyproject.toml", "[tool.migrate]\nexclude = ['legacy/*', 'x/c*']\n")
    assert found(".") == ["a.py:8", "x/d.py:8"]
    assert found("x") == ["x/d.py:8"]  # patterns are relative to the file, not to the current folder
    os.chdir("x")
    assert found(".") == ["d.py:8"]
    assert found("../legacy/b.py", "--force-exclude") == []


def test_force_leaves_out_installations_too():
    write("venv/lib/a.py")
    assert len(load(["venv/lib/a.py"]).files) == 1
    assert load(["venv/lib/a.py"], selection=Selection(force=True)).files == []
    assert load([str(Path("venv/lib/a.py").absolute())], selection=Selection(force=True)).files == []


@pytest.mark.parametrize("above", [".work", "build"])
def test_the_folders_above_a_project_are_nobody_s_installations(above):
    path = write(f"{above}/project/a.py").absolute()
    write(f"{above}/project/setup.py", "")
    write(f"{above}/project/.cache/b.py")
    hidden = path.with_name(".cache") / "b.py"
    os.chdir(path.parent)
    assert found(path, hidden, "--force-exclude") == [f"{path}:8"]
    os.chdir("/")
    assert [file.path for file in load([str(path), str(hidden)], selection=Selection(force=True)).files] == [str(path)]


@needs_git
def test_what_git_ignores_is_not_looked_at():
    for name in ("a.py", "made/b.py", "made/kept.py", "x/c.py", "x/d.gen.py", "other/made/e.py", "other/f.py"):
        write(name)
    write(".gitignore", "made/*\n*.gen.py\n!made/kept.py\n")
    commit()
    os.chdir("other")
    git("init", "--quiet")
    write(".gitignore", "f.py\n")
    os.chdir("..")
    assert found(".") == ["a.py:8", "made/kept.py:8", "other/made/e.py:8", "x/c.py:8"]
    assert found("x") == ["x/c.py:8"]
    assert found("x/d.gen.py") == ["x/d.gen.py:8"]
    assert len(found(".", "--no-gitignore")) == 7
    write("pyproject.toml", "[tool.migrate]\nrespect-gitignore = false\n")
    assert len(found(".")) == 7


# ------------------------------------------------------------------------------------------------------------ comments


def test_comments_by_line():
    text = b"""\
for x in y:  # migrate: ignore[MIG001]
    pass
# migrate: ignore[mig1, MIG2] why
for a in (
    b,  # not this
):
    z()  # migrate: ignore
z()  # migrate: ignored
z()  # see migrate: ignore-file
s = "# migrate: ignore"
# migrate: ignore[]
z()
"""
    assert ignores(text) == {1: ("MIG001",), 4: ("mig1", "MIG2"), 5: ("mig1", "MIG2"), 6: ("mig1", "MIG2"), 7: ("",)}
    assert ignores(b"for x in y:  # other\n    pass\n") == {}
    assert ignores(b"def (  # migrate: ignore\n") == {}
    assert skips(b"#!/usr/bin/env python\n# migrate: skip-file\nx = 1\n")
    assert not skips(b"x = '# migrate: skip-file'\n")


def test_an_ignored_loop_is_neither_told_nor_converted():
    path = write("train.py", PROGRAM.format(comment="  # migrate: ignore[MIG001] by hand"))
    result = migrate("train.py", "--check")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "1 finding ignored.\n")
    before = path.read_bytes()
    assert migrate("train.py", "--write").exit_code == 0
    assert path.read_bytes() == before
    assert migrate("train.py", "--diff").stdout == ""
    write("train.py", PROGRAM.format(comment="  # migrate: ignore[MIG105]"))
    assert found("train.py") == ["train.py:8"]


@pytest.mark.parametrize("named", ["mig0", "unconverted-loop", "Unconverted-Loop", "MIG105, MIG001"])
def test_a_comment_names_rules_as_the_command_line_does(named):
    write("train.py", PROGRAM.format(comment=f"  # migrate: ignore[{named}]"))
    assert found("train.py") == []


def test_a_comment_that_names_no_rule_is_told_of():
    write("train.py", PROGRAM.format(comment="  # migrate: ignore[MIG0011, loop]"))
    told = (
        "train.py:8: in `# migrate: ignore[...]`, 'MIG0011' is not a rule. Did you mean MIG001? "
        "`migrate --rules` lists them.\n"
    )
    for _ in range(2):  # also of what is kept
        result = migrate("train.py", "--check")
        assert (result.exit_code, result.stderr.count(told)) == (1, 1)
        assert result.stderr.count("train.py:8: in ") == 2
    assert migrate("train.py", "--check", "--quiet").stderr == ""


def test_a_loop_beside_an_ignored_one_is_told_why_it_stays():
    path = write("train.py", TWO)
    result = migrate("train.py", "--check")
    assert result.exit_code == 1
    assert "train.py:8:1 MIG909 the loop at train.py:14 is ignored" in result.stdout
    assert "--write converts it" not in result.stdout
    assert "train.py:14:" not in result.stdout.replace("at train.py:14", "")
    assert migrate("train.py", "--write").exit_code == 1
    assert path.read_text(encoding="utf-8") == TWO


def test_ignores_per_file():
    write("legacy/a.py")
    write("b.py")
    write("pyproject.toml", "[tool.migrate.per-file-ignores]\n'legacy/*' = ['unconverted-loop']\n")
    assert found(".") == ["b.py:8"]
    assert migrate(".", "--write").exit_code == 0
    assert Path("legacy/a.py").read_text(encoding="utf-8") == PLAIN
    assert Path("b.py").read_text(encoding="utf-8") != PLAIN


def test_a_file_that_asks_to_be_skipped():
    write("a.py", "# migrate: skip-file\n" + PLAIN)
    assert found(".") == []
    result = migrate("a.py", "--check")
    assert (result.exit_code, "a.py: left alone, it says `# migrate: skip-file`" in result.stderr) == (0, True)


# ---------------------------------------------------------------------------------------------------- since, baseline


@needs_git
def test_since_tells_touched_loops_alone():
    for name in ("old.py", "inside.py", "above.py", "sub/é b.py", "taken.py"):
        write(name)
    commit()
    git("checkout", "--quiet", "-b", "topic")
    write("inside.py", PLAIN.replace("mse_loss", "l1_loss"))
    write("above.py", PLAIN.replace("0.1", "0.2"))
    write("taken.py", PLAIN.replace("    optimizer.zero_grad()\n", ""))
    write("sub/é b.py", PLAIN.replace("loss.backward()", "loss.backward()  # here"))
    commit()
    write("new.py")
    assert found(".", "--since", "main") == ["inside.py:8", "new.py:8", "sub/é b.py:8", "taken.py:8"]
    git("checkout", "--quiet", "main")  # what main did meanwhile is no matter of the topic
    write("old.py", PLAIN.replace("mse_loss", "l1_loss"))
    commit()
    git("checkout", "--quiet", "topic")
    assert "old.py:8" not in found(".", "--since", "main")
    os.chdir("sub")
    assert found(".", "--since", "main") == ["é b.py:8"]
    result = migrate(".", "--check", "--since", "missing")
    assert (result.exit_code, "git does not know the revision 'missing'" in result.stderr) == (2, True)


@needs_git
@pytest.mark.parametrize("revision", ["nowhere", "--stat", "--output=lost"])
def test_since_what_is_no_revision(revision):
    write("a.py")
    commit()
    write("a.py", PLAIN.replace("mse_loss", "l1_loss"))
    result = migrate("a.py", "--check", f"--since={revision}")
    assert result.exit_code == 2, result.output
    assert f"git does not know the revision {revision!r}" in result.stderr
    assert not Path("lost").exists()


@needs_git
@pytest.mark.parametrize(
    ("revision", "says"),
    [
        ("main..topic", "'main..topic' is a range of revisions. Name its start: --since main."),
        ("main...", "'main...' is a range of revisions. Name its start: --since main."),
        ("HEAD:a.py", "git does not know the revision 'HEAD:a.py'"),
        ("HEAD^{tree}", "git does not know the revision 'HEAD^{tree}'"),
        ("--", "git does not know the revision '--'"),
    ],
)
def test_since_what_names_no_single_commit(revision, says):
    write("a.py")
    commit()
    git("branch", "topic")
    write("a.py", PLAIN.replace("mse_loss", "l1_loss"))  # a range would compare its ends, without this
    result = migrate("a.py", "--check", f"--since={revision}")
    assert (result.exit_code, says in result.stderr) == (2, True), result.output


@needs_git
def test_since_a_tag_that_has_a_message():
    write("a.py")
    write("b.py")
    commit()
    git("tag", "--annotate", "--message=first", "v1")
    write("a.py", PLAIN.replace("mse_loss", "l1_loss"))
    assert found(".", "--since", "v1") == ["a.py:8"]


@needs_git
def test_since_a_file_that_git_does_not_keep_is_new():
    write("old.py")
    write(".gitignore", "made.py\ninside/\n")
    commit()
    write("made.py")
    write("inside/a.py")
    os.chdir("inside")
    commit()  # another work tree
    os.chdir("..")
    assert found("old.py", "made.py", "inside/a.py", "--since", "HEAD") == ["made.py:8"]


@needs_git
@pytest.mark.parametrize(
    "setting", ["diff.interHunkContext=99", "diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.dstPrefix=new/"]
)
def test_since_does_not_go_by_how_somebody_likes_to_see_diffs(setting):
    write("a.py", "print(1)\n" + PLAIN + "\nprint(2)\n")
    write("b.py")
    commit()
    git("config", *setting.split("="))
    write("a.py", "print(3)\n" + PLAIN + "\nprint(4)\n")
    write("b.py", PLAIN.replace("mse_loss", "l1_loss"))
    assert found(".", "--since", "HEAD") == ["b.py:8"]


@needs_git
def test_since_a_file_got_another_name():
    for number, name in enumerate(("kept.py", "changed.py", "é moved.py")):
        write(name, f"{PLAIN}\n# {number} {name}\n")
    commit()
    git("config", "diff.renames", "false")
    git("mv", "kept.py", "named.py")
    Path("sub").mkdir()
    git("mv", "é moved.py", "sub/é moved.py")
    git("mv", "changed.py", "sub/changed.py")
    write("sub/changed.py", PLAIN.replace("mse_loss", "l1_loss") + "\n# 1 changed.py\n")
    assert found(".", "--since", "HEAD") == ["sub/changed.py:8"]
    commit()
    assert found(".", "--since", "HEAD~") == ["sub/changed.py:8"]


def test_since_outside_of_a_repository():
    write("a.py")
    result = migrate("a.py", "--check", "--since", "HEAD")
    assert (result.exit_code, "is in no repository" in result.stderr) == (2, True)


@needs_git
@pytest.mark.parametrize("name", ["a b.py", "é.py", 'q".py', "back\\slash.py", "tab\t.py", "new\nline.py"], ids=ascii)
def test_since_with_odd_names(name):
    write(name, "x = 1\n")
    commit()
    write(name, "x = 1\ny = 2\n++ z\n")
    touched = asked.touched("HEAD", Path.cwd())
    assert touched.any_of(Path.cwd() / name, 2, 2)
    assert not touched.any_of(Path.cwd() / name, 1, 1)


def test_a_baseline_counts_what_a_check_tells():
    noted = PLAIN.replace(
        "    optimizer.step()\n", "    optimizer.step()\n    rows = model(x)\nprint(rows)\n"
    )  # MIG114
    write("a.py", noted)
    assert "MIG114" in migrate("a.py").stderr
    result = migrate(".", "--check", "--baseline", "known.json", "--update-baseline")
    assert result.stderr == "known.json: 1 finding written\n\n1 finding ignored.\n"


def test_baseline():
    write("a.py")
    write("sub/b.py", "def f():\n" + "".join(f"    {line}\n" for line in PLAIN.splitlines()) + "f()\n")
    result = migrate(".", "--check", "--baseline", "known.json")
    assert (result.exit_code, "there is no such baseline. Write one: --update-baseline." in result.stderr) == (2, True)
    result = migrate(".", "--check", "--baseline", "known.json", "--update-baseline")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "known.json: 2 findings written\n\n2 findings ignored.\n"
    entry = json.loads(Path("known.json").read_text(encoding="utf-8"))["findings"][0]
    assert entry == {"file": "a.py", "code": "MIG001", "line": "for x, y in loader:", "count": 1}
    result = migrate(".", "--check", "--baseline", "known.json")
    assert (result.exit_code, result.stderr) == (0, "2 findings ignored.\n")
    write(
        "a.py",
        "import os\n\n\n" + PLAIN + "\nfor x, y in loader:\n    model(x).sum().backward()\n    optimizer.step()\n",
    )
    assert found(".", "--baseline", "known.json") == ["a.py:17"]  # moved lines are known, a second loop is not
    write("pyproject.toml", "[tool.migrate]\nbaseline = 'known.json'\n")
    os.chdir("sub")
    assert found(".") == []
    os.chdir("..")
    write("c.py", PLAIN)
    assert "no longer found" not in migrate("c.py", "--check").stderr  # what was not looked at may still be there
    Path("sub/b.py").unlink()
    assert "1 finding no longer found" in migrate(".", "--check").stderr
    assert "1 finding no longer found" in migrate("c.py", "--check").stderr
    Path("c.py").unlink()
    assert migrate(".", "--write").exit_code == 0  # a baseline is about checks
    assert "from runtime" in Path("a.py").read_text(encoding="utf-8")


def test_a_baseline_that_is_updated_for_some_files_keeps_what_is_known_of_others():
    for name in ("a.py", "b.py", "c.py"):
        write(name)
    update = ("--check", "--baseline", "known.json", "--update-baseline")
    migrate(".", *update)
    Path("a.py").write_text("", encoding="utf-8")
    Path("b.py").unlink()
    assert "known.json: 1 finding written" in migrate("a.py", *update).stderr
    entries = json.loads(Path("known.json").read_text(encoding="utf-8"))["findings"]
    assert [entry["file"] for entry in entries] == ["c.py"]


def entry(**other):
    return json.dumps({"version": 1, "findings": [{"file": "a.py", "code": "MIG001", "line": "x", "count": 1} | other]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 2}',
        '{"version": 1, "findings": [{}]}',
        entry(file=1),
        entry(count="1"),
        entry(count=float("inf")),
        "[" * 100_000,
    ],
    ids=lambda text: text[-30:],
)
def test_a_baseline_that_is_none(text):
    write("a.py")
    write("known.json", text)
    result = migrate("a.py", "--check", "--baseline", "known.json")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("migrate: known.json: ")


def test_a_baseline_with_names_that_no_file_can_have():
    write("a.py")
    write("known.json", entry(file="a" * 5000))
    assert "1 finding no longer found" in migrate("a.py", "--check", "--baseline", "known.json").stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_baseline_that_is_a_pipe_is_not_waited_for():
    write("a.py")
    os.mkfifo("pipe")
    result = migrate("a.py", "--check", "--baseline", "pipe")
    assert (result.exit_code, "pipe: this baseline is no ordinary file" in result.stderr) == (2, True)


def test_a_baseline_that_is_a_link_keeps_what_is_known_of_others():
    write("sub/a.py")
    write("sub/b.py")
    Path("known.json").symlink_to("sub/known.json")
    update = ("--check", "--baseline", "known.json", "--update-baseline")
    migrate(".", *update)
    migrate("sub/a.py", *update)
    entries = json.loads(Path("sub/known.json").read_text(encoding="utf-8"))["findings"]
    assert [entry["file"] for entry in entries] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a.py", "a.py is there already, and is no baseline of migrate. Name another file, or delete it."),
        ("findings.json", "findings.json is there already, and is no baseline of migrate."),
        ("a.py/known.json", "a.py is no folder. Make it first, or name another file."),
        ("missing/known.json", "missing is no folder. Make it first, or name another file."),
        ("", "--update-baseline does not know which file. Give --baseline FILE, too."),
    ],
)
def test_a_baseline_is_written_over_nothing_else(name, says):
    path, other = write("a.py"), write("findings.json", '{"version": 1, "tool": {}, "findings": []}')
    before = path.read_bytes(), other.read_bytes()
    result = migrate("a.py", "--check", "--baseline", name, "--update-baseline")
    assert (result.exit_code, says in result.stderr) == (2, True), result.stderr
    assert (path.read_bytes(), other.read_bytes()) == before


def test_a_baseline_is_not_written_of_half_a_run():
    write("a.py")
    write("b.py", "import torch\ndef (\n")
    assert migrate(".", "--check", "--baseline", "known.json", "--update-baseline").exit_code == 2
    assert not Path("known.json").exists()
