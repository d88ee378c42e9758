"""The command line with an engine that makes one obvious edit: what is shown where, and with which status."""

import dataclasses
import functools
import inspect
import json
import os
import pty
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate import __version__, cli, pipeline
from migrate.cli import app, catalogue, command, plain
from migrate.cli.asked import Asked
from migrate.engine import Conversion, Engine
from migrate.errors import EditError
from migrate.options import Mode, Options
from migrate.report import text
from migrate.report.model import Change, Edit, Finding, Kind, Outcome, Report, Summary
from migrate.report.place import region
from migrate.source.project import SourceFile

PLAIN = b"import torch\nfor x in y:\n    loss.backward()\n"
DONE = b"import torch\nfor x in y:\n    accelerator.backward(loss)\n"
HARD = b"import torch\nfor x in y:\n    loss.backward(gradient=g)\n"


def plan(project, options):
    """One loop a file that says `backward`; what has `gradient` is left; `crash` crashes."""
    found, touched, programs = [], [], []
    for file in project.files:
        text = file.content
        if b"crash" in text:
            raise ZeroDivisionError("crash in the analysis")
        if b"loss.backward(gradient" in text:
            found.append(Finding("MIG001", file.path, 2, 1, 3, "plain loop", "", Kind.LOOP, converts=False))
            found.append(Finding("MIG105", file.path, 3, 5, 3, "gradient=g", "reduce the loss", Kind.LEFT))
        elif b"loss.backward()" in text and options.wants("MIG105"):
            touched.append(file.path)
            found.append(Finding("MIG001", file.path, 2, 1, 3, "plain loop", "", Kind.LOOP, converts=True))
            found.append(Finding("MIG117", file.path, 1, 1, 1, "by the way", "", Kind.NOTE))
        if b"# with " in text:
            other = text.split(b"# with ")[1].split()[0].decode()
            programs.append(Summary(file.path, "a program", (file.path, other)))
    return Conversion(Outcome(tuple(found), tuple(programs)), tuple(touched))


def apply(file, conversion):
    if b"uneditable" in file.content:
        raise EditError("libcst does not give this file back", "Reformat line 3.", path=file.path)
    new = file.content.replace(b"loss.backward()", b"accelerator.backward(loss)")
    if b"idle" in file.content:
        new = file.content
    if b"forever" in file.content:
        new += b"loss.backward()\n"
    if b"garble" in file.content:
        new += b"def ("
    return types.SimpleNamespace(content=new, lost_comments=("4: # gone",) if b"# gone" in file.content else ())


def check(file, change, conversion):
    return ["a comment is missing"] if b"uncommented" in file.content else []


def edits(file, conversion):
    return [Edit("MIG104", 1, 1, "import accelerator"), Edit("MIG105", 3, 3), Edit("MIG112", 1, 3)]


ENGINE = Engine(plan, apply, check, edits=edits)
CATALOGUE = (
    types.SimpleNamespace(
        code="MIG001", name="plain-loop", summary="a loop.", documentation="plain-loop: a loop.\n\nDetails."
    ),
    types.SimpleNamespace(
        code="MIG105",
        name="backward-call",
        summary="goes through.",
        documentation="backward-call: goes through.\n\nDetails.",
    ),
)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pipeline, "run", functools.partial(pipeline.run, engine=ENGINE))
    monkeypatch.setattr(pipeline, "run_text", functools.partial(pipeline.run_text, engine=ENGINE))
    monkeypatch.setattr(catalogue, "every", lambda: CATALOGUE)


def migrate(*arguments, stdin=None):
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin, prog_name="migrate")


def write(**files):
    for name, content in files.items():
        Path(f"{name}.py").write_bytes(content)


# ------------------------------------------------------------------------------------- status of each mode and input

STATUS = {  # preview and --diff, --check, --write
    "done": (DONE, 0, 0, 0),
    "nothing": (b"x = 1\n", 0, 0, 0),
    "empty": (b"", 0, 0, 0),
    "plain": (PLAIN, 1, 1, 0),
    "hard": (HARD, 1, 1, 1),
    "broken": (b"def (\n", 2, 2, 2),
}


@pytest.mark.parametrize("case", STATUS)
def test_exit_status(case):
    content, preview, check_status, write_status = STATUS[case]
    write(a=content)
    assert migrate("a.py").exit_code == preview
    assert migrate("a.py", "--diff").exit_code == preview
    assert migrate("a.py", "--check").exit_code == check_status
    assert migrate("-", "--diff", stdin=content).exit_code == preview
    assert migrate("-", "--check", stdin=content).exit_code == check_status
    assert migrate("-", stdin=content).exit_code == write_status
    assert Path("a.py").read_bytes() == content
    assert migrate("a.py", "--write").exit_code == write_status
    assert migrate("a.py", "-w").exit_code == (write_status if case != "plain" else 0)  # again: nothing more to do


def test_trouble_wins_over_findings():
    write(a=PLAIN, b=HARD, broken=b"import torch, (\n")
    assert migrate(".", "--check").exit_code == 2
    assert migrate("a.py", "missing.py", "--write").exit_code == 2
    assert Path("a.py").read_bytes() == DONE  # the others are processed


def test_status_of_left_without_a_loop():
    left = Finding("MIG113", "a.py", 1, 1, 1, "m", "", Kind.LEFT)
    assert Report((left,)).exit_status(Mode.WRITE) == 1
    assert Report((left,)).exit_status(Mode.CHECK) == 0
    assert Report(touched=("a.py",)).exit_status(Mode.CHECK) == 1


# ------------------------------------------------------------------------------------------------ what is shown where


def test_preview():
    write(a=PLAIN + b"# with b.py\n", hard=HARD)
    result = migrate(".")
    assert result.stdout.startswith("--- a/a.py\n+++ b/a.py\n@@ ")
    assert result.stderr == (
        "a.py: a program\n"
        "\n"
        "a.py:1:1 MIG117 by the way\n"
        "a.py:2:1 MIG001 plain loop\n"
        "\n"
        "hard.py:2:1 MIG001 plain loop\n"
        "hard.py:3:5 MIG105 gradient=g\n"
        "    reduce the loss\n"
        "\n"
        "1 file would change, 1 loop would be converted, 1 loop not converted, 1 place left to you.\n"
    )
    assert "a.py:3 MIG105" not in result.stderr
    told = migrate(".", "-v").stderr
    for line in ("1 MIG104 adds import accelerator", "3 MIG105 changes line 3", "1 MIG112 changes line 1 to 3"):
        assert f"a.py:{line}\n" in told


def test_diff_is_only_the_diff():
    write(a=PLAIN)
    result = migrate("a.py", "--diff")
    assert result.stdout == migrate("a.py").stdout
    assert result.stderr == "1 file would change, 1 loop would be converted.\n"
    subprocess.run([shutil.which("git"), "apply", "-"], input=result.stdout_bytes, check=True)
    assert Path("a.py").read_bytes() == DONE


def test_check_shows_findings_as_its_result():
    write(a=PLAIN, hard=HARD)
    result = migrate(".", "--check")
    assert result.stdout == (
        "a.py:2:1 MIG001 plain loop\n    2 | for x in y:\n      | ^\n\n"
        "hard.py:2:1 MIG001 plain loop\n    2 | for x in y:\n      | ^\n"
        "hard.py:3:5 MIG105 gradient=g\n    3 |     loss.backward(gradient=g)\n      |     ^\n    reduce the loss\n"
    )
    assert result.stderr == "1 file would change, 2 loops not converted, 1 place left to you.\n"


def test_formats_are_the_result():
    write(a=PLAIN, hard=HARD)
    result = migrate(".", "--check", "--output-format", "json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [(f["filename"], f["code"], f["converts"]) for f in document["findings"]] == [
        ("a.py", "MIG001", True),
        ("hard.py", "MIG001", False),
        ("hard.py", "MIG105", None),
    ]
    assert document["changes"] == []
    assert result.stderr == "1 file would change, 2 loops not converted, 1 place left to you.\n"
    document = json.loads(migrate(".", "--output-format", "json").stdout)
    assert [change["filename"] for change in document["changes"]] == ["a.py"]
    document = json.loads(migrate("-", "--output-format", "json", stdin=PLAIN).stdout)
    assert document["changes"][0]["edits"][0]["content"] == "    accelerator.backward(loss)"
    document = json.loads(migrate(".", "--write", "--output-format", "json").stdout)
    assert (document["written"], Path("a.py").read_bytes()) == (True, DONE)
    assert [f["code"] for f in document["findings"]] == ["MIG117", "MIG001", "MIG105"]  # what still is to be said


def test_source_line_of_wide_characters_and_tabs(tmp_path):
    line = "\tif 'é你': loss.backward(gradient=g)".encode()
    file = SourceFile("a.py", line)
    finding = Finding("MIG105", "a.py", 1, 12, 1, "m", "", Kind.LEFT)
    shown = list(text.excerpt(region(finding, Report(sources={"a.py": file})), text.Style()))
    assert shown == ["    1 |  if 'é你': loss.backward(gradient=g)", "      |             ^"]
    far = Finding("MIG105", "a.py", 1, 4000, 1, "m", "", Kind.LEFT)
    file = SourceFile("a.py", b"x = [" + b"1, " * 2000 + b"]")
    (only,) = text.excerpt(region(far, Report(sources={"a.py": file})), text.Style())
    assert len(only) < 140


def test_write_says_what_it_did():
    write(a=PLAIN + b"# gone\n")
    result = migrate("a.py", "--write")
    assert result.stdout == ""
    assert result.stderr == (
        "a.py:1:1 MIG117 by the way\n\n"
        "a.py:4: # gone (dropped with its statement)\n\n"
        "1 file converted, 1 loop converted.\n"
    )
    assert Path("a.py").read_bytes() == DONE + b"# gone\n"


def test_nothing_to_do_is_said():
    write(a=DONE)
    assert migrate("a.py").stderr == migrate("a.py", "-w").stderr == "No changes.\n"
    assert migrate("a.py", "--check").stderr == "No plain training loops.\n"
    Path("empty").mkdir()
    result = migrate("empty")
    assert (result.exit_code, result.stderr) == (0, "empty: no Python files in this folder\n\nNo changes.\n")


def test_quiet_keeps_results_and_errors():
    write(a=PLAIN, broken=b"import torch, (\n")
    result = migrate(".", "-q")
    assert result.stdout.startswith("--- a/a.py")
    assert result.stderr.startswith("migrate: broken.py:1: syntax error: ")
    assert result.stderr.count("\n") == 1


def test_standard_input():
    result = migrate("-", stdin=PLAIN.replace(b"\n", b"\r\n"))
    assert (result.exit_code, result.stdout_bytes) == (0, DONE.replace(b"\n", b"\r\n"))
    assert migrate("-", stdin=DONE).stdout_bytes == DONE
    assert migrate("-", "--write", stdin=PLAIN).stdout_bytes == DONE
    assert migrate("-", stdin=b"def (\n# \xe9").stdout_bytes == b"def (\n# \xe9"  # whole, also where that fails
    named = migrate("-", "--diff", "--stdin-filename", "src/a.py", stdin=PLAIN)
    assert named.stdout.startswith("--- a/src/a.py\n")
    assert not Path("src").exists()
    assert migrate("-", "--check", "--stdin-filename", "src/a.py", stdin=HARD).stdout.startswith("src/a.py:2:1 MIG001")
    assert "<stdin>:1: syntax error" in migrate("-", stdin=b"def (\n").stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no path is given"),
        (["a.py", "-"], "- (standard input) cannot be mixed with paths"),
        (["a.py", "--stdin-filename", "b.py"], "--stdin-filename names standard input, which is not read"),
        (["a.py", "--check", "--write"], "--write and --check exclude each other"),
        (["a.py", "--diff", "--check"], "--diff and --check exclude each other"),
        (["a.py", "--diff", "-i"], "--interactive and --diff exclude each other"),
        (["a.py", "--diff", "--output-format", "json"], "--diff is a format of its own"),
        (["-", "--write", "--output-format", "json"], "standard output cannot hold both the code and findings"),
        (["a.py", "--select", "MIG15"], "'MIG15' is not a rule. Did you mean MIG125?"),
        (["a.py", "--ignore", "backward"], "'backward' is not a rule. Did you mean backward-call?"),
        (["--explain", "xyz"], "'xyz' is not a rule. `migrate --rules` lists them."),
        (["missing.py"], "missing.py: cannot be read: no such file or directory. Check the spelling"),
        (
            ["--", "--epochs"],
            "--epochs: cannot be read: no such file or directory. After -- stand paths; with --verify",
        ),
    ],
)
def test_wrong_usage_is_one_line(arguments, says):
    result = migrate(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    line = result.stderr.splitlines()[0]
    assert line.startswith(f"migrate: {says}")


def test_a_link_that_leads_nowhere():
    Path("a.py").symlink_to("gone.py")
    assert "a.py: cannot be read: no such file or directory. It is a link that leads" in migrate("a.py").stderr


@pytest.mark.parametrize(
    "arguments", [["--jobs", "0"], ["--verify", "--steps", "0"], ["--verify", "--time-limit", "0"]]
)
def test_numbers_that_are_too_small_are_named(arguments):
    result = migrate("a.py", *arguments)
    assert (result.exit_code, "0 is less than 1" in result.stderr) == (2, True)


def test_rules_and_explanations():
    assert migrate("--rules").stdout == ("MIG001  plain-loop     a loop.\nMIG105  backward-call  goes through.\n")
    explained = "MIG105 backward-call: goes through.\n\nDetails.\n"
    for word in ("MIG105", "mig105", "backward-call"):
        assert migrate("--explain", word).stdout == explained
    assert migrate("--explain", "MIG").stdout.count("Details.") == 2
    assert migrate("--version").stdout == f"migrate {__version__}\n"


def test_selection():
    write(a=PLAIN)
    assert migrate("a.py", "--ignore", "MIG1").exit_code == 0
    assert migrate("a.py", "--select", "backward-call,MIG001").exit_code == 1
    assert migrate("a.py", "--select", "MIG001").exit_code == 0
    wants = [Options(select=("MIG1",), ignore=("MIG10",)).wants(code) for code in ("MIG105", "MIG110", "MIG001")]
    assert wants == [False, True, False]
    assert Options(select=("MIG105",), ignore=("MIG1",)).wants("MIG105")
    assert not Options(select=("MIG105",), ignore=("MIG105",)).wants("MIG105")
    assert Options().wants("MIG105")


# --------------------------------------------------------------------------------------------------- bugs of our own


def stays(name, content):
    return Path(f"{name}.py").read_bytes() == content


def test_crash_in_the_analysis_costs_one_file():
    crash = PLAIN + b"# crash\n"
    write(a=PLAIN, b=crash, c=PLAIN)
    result = migrate(".", "--write")
    assert result.exit_code == 2
    assert "b.py:1:1 MIG999 a bug of ours: ZeroDivisionError: crash in the analysis. The file stays" in result.stderr
    assert "Traceback" not in result.stderr
    assert (stays("a", DONE), stays("b", crash), stays("c", DONE)) == (True, True, True)
    assert "in plan\n    raise ZeroDivisionError" in migrate("b.py", "--traceback").stderr


def test_crash_that_no_file_has_alone_is_told_of_all():
    def together(project, options):
        if len(project.files) > 1:
            raise RuntimeError("two at once")
        return plan(project, options)

    write(a=PLAIN, b=PLAIN)
    report = pipeline.run(["."], Options(), engine=Engine(together, apply, check))
    assert [(f.code, f.path) for f in report.findings] == [("MIG999", "a.py"), ("MIG999", "b.py")]
    assert report.changes == ()


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        (b"uneditable", "libcst does not give this file back"),
        (b"uncommented", "a comment is missing"),
        (b"forever", "a second run would change the result again"),
        (b"garble", "syntax error: "),
        (b"idle", "edits were planned that change nothing"),
    ],
)
def test_result_that_fails_a_check_is_dropped(word, reason):
    bad = PLAIN + b"# " + word + b"\n"
    write(a=PLAIN, bad=bad)
    result = migrate(".", "--write")
    assert result.exit_code == 2
    assert f"bad.py:1:1 MIG999 a bug of ours: {reason}" in result.stderr
    assert "1 file converted, 1 loop converted, 1 loop not converted, 1 bug of ours.\n" in result.stderr
    assert (stays("a", DONE), stays("bad", bad)) == (True, True)


def test_file_that_cannot_be_edited_is_left_not_broken(monkeypatch):
    monkeypatch.setattr(EditError, "is_our_bug", False)
    bad = PLAIN + b"# uneditable\n"
    write(bad=bad)
    result = migrate("bad.py", "--write")
    assert result.exit_code == 1
    assert (
        "bad.py:1:1 MIG998 libcst does not give this file back. The file stays as it was\n    Reformat" in result.stderr
    )
    assert stays("bad", bad)


def test_files_of_one_program_stand_or_fall_together():
    texts = {
        "a": PLAIN + b"# with b.py\n",
        "b": PLAIN + b"# with c.py\n",
        "c": PLAIN + b"# uneditable\n",
        "d": PLAIN,
    }
    write(**texts)
    result = migrate(".", "--write")
    assert result.exit_code == 2
    assert "c.py:1:1 MIG999" in result.stderr
    assert "The files stay as they were (with a.py, b.py)" in result.stderr
    assert result.stderr.count("MIG999") == 1
    assert (stays("a", texts["a"]), stays("b", texts["b"]), stays("c", texts["c"]), stays("d", DONE)) == (True,) * 4


def test_loop_that_a_second_run_still_finds():
    def forgets(project, options):
        conversion = plan(project, options)
        loops = tuple(Finding("MIG001", f.path, 2, 1, 3, "", "", Kind.LOOP, converts=True) for f in project.files)
        return Conversion(Outcome(loops), conversion.touched)

    write(a=PLAIN)
    report = pipeline.run(["a.py"], Options(), engine=Engine(forgets, apply, check))
    assert report.changes == ()
    failure, loop = report.findings
    assert "still finds a plain training loop" in failure.message
    assert loop.converts is False


def test_save_that_fails_converts_nothing(monkeypatch):
    write(a=PLAIN)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    result = migrate("a.py", "--write")
    assert result.exit_code == 2
    assert "migrate: a.py: cannot be written: no space left on device. Nothing was written.\n" in result.stderr
    assert "converted, " not in result.stderr.replace("not converted", "")
    assert stays("a", PLAIN)


def test_interruption(monkeypatch):
    monkeypatch.setattr(pipeline, "run", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    result = migrate("a.py")
    assert (result.exit_code, result.stderr) == (130, "migrate: interrupted\n")


def test_interruption_before_anything_is_done(monkeypatch, capsys):
    """While modules are imported, which takes a while on a cold disk."""
    monkeypatch.setattr(cli, "_answer", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "migrate: interrupted\n")


def test_bug_outside_any_file(monkeypatch):
    monkeypatch.setattr(pipeline, "run", lambda *_, **__: (_ for _ in ()).throw(ZeroDivisionError("oh")))
    result = migrate("a.py")
    assert result.exit_code == 2
    assert result.stderr.startswith("migrate: a bug of ours: ZeroDivisionError: oh. Please report it")
    assert result.stderr.count("\n") == 1
    assert "Traceback" in migrate("a.py", "--traceback").stderr


# ------------------------------------------------------------------------------------------ terminals, pipes, processes


def shell(*arguments, **settings):
    return subprocess.run([sys.executable, "-m", "migrate", *arguments], capture_output=True, check=False, **settings)


def test_help_teaches_and_imports_neither_torch_nor_libcst():
    code = (
        "import sys\nfrom migrate.cli import app\n"
        "try:\n    app(['--help'])\n"
        "except SystemExit:\n    print(sorted({'torch', 'libcst', 'runtime'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert "Examples:" in result.stdout
    assert "Exit status:" in result.stdout
    assert result.stdout.endswith("[]\n")


def test_check_imports_neither_torch_nor_libcst():
    write(a=PLAIN)
    code = (
        "import sys\nfrom migrate.cli import app\n"
        "try:\n    app(['a.py', '--check'])\n"
        "except SystemExit:\n    print(sorted({'torch', 'libcst', 'runtime'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert "MIG999" not in result.stdout
    assert result.stdout.endswith("[]\n")


def loaded_after(*arguments):
    """The status of a run of the console script, what it wrote, and the modules that it has loaded."""
    code = (
        f"import sys\nsys.argv = ['migrate', *{list(arguments)!r}]\nfrom migrate.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print('LOADED', end.code, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    said, _, listed = done.stdout.partition("LOADED ")
    status, *names = listed.split()
    return int(status), said, set(names)


def test_hooks_do_not_wait_for_what_they_do_not_need():
    write(plain=b"import os\nimport torch\n\nprint(os.sep)\n", broken=b"def (\n", loop=PLAIN)
    status, said, names = loaded_after("--check", "plain.py")
    assert (status, said) == (0, "")
    assert not names & {"typer", "difflib", "libcst", "torch", "migrate.analysis", "migrate.rules"}
    status, said, names = loaded_after("loop.py", "--check", "--force-exclude")
    assert (status, "typer" in names, "libcst" in names) == (1, False, False)
    assert loaded_after("broken.py", "--check")[0] == 2
    status, said, names = loaded_after("plain.py", "--check", "--color", "never")
    assert (status, "typer" in names) == (0, True)


def test_command_lines_mean_the_same_with_and_without_typer():
    parameters = inspect.signature(command.migrate).parameters
    # typer's own context holds what comes after --, which is a field here
    assert {name: each.default for name, each in parameters.items() if name != "context"} == {
        field.name: field.default for field in dataclasses.fields(Asked) if field.name != "arguments"
    }
    switches = {name for name in plain.SWITCHES if name.startswith("--")}
    shown = {name: set() for name in switches}
    for name in switches:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(command, "convert", lambda asked, name=name: shown[name].add(repr(asked)) or 0)
            migrate("a.py", name)
        assert shown[name] == {repr(plain.asked(["a.py", name]))}
    assert plain.asked(["a.py", "--cache-dir", "kept", "--check"]) == Asked(
        paths=["a.py"], check=True, cache_dir="kept"
    )
    assert plain.asked(["-w", "-"]) == plain.asked(["-", "--write"])
    for other in (
        ["--help"],
        ["--check"],
        ["--chek", "a.py"],
        ["-qw", "a.py"],
        ["a.py", "--", "-b.py"],
        ["--since", "x"],
        ["a.py", "--cache-dir"],
        ["a.py", "--cache-dir", "--check"],
        ["a.py", "--cache-dir=kept"],
        [""],
    ):
        assert plain.asked(other) is None


def environment(**more):
    root = Path(pipeline.__file__).parent.parent
    return {**os.environ, "PYTHONPATH": str(root), **more}


def test_run_as_a_module():
    result = shell("--version", env=environment())
    assert (result.returncode, result.stdout) == (0, f"migrate {__version__}\n".encode())
    result = shell("missing.py", env=environment())
    assert result.returncode == 2
    assert result.stderr.startswith(b"migrate: missing.py: cannot be read")


DRIVER = """
import functools, importlib.util, sys
spec = importlib.util.spec_from_file_location("tests_of_cli", {here!r})
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
tests.pipeline.run = functools.partial(tests.pipeline.run, engine=tests.ENGINE)
sys.argv[0] = "migrate"
tests.app(prog_name="migrate")
"""


def driver(*arguments):
    return [sys.executable, "-c", DRIVER.format(here=__file__), *arguments]


def test_shells_complete_options_and_their_values():
    for words, offered in (("migrate --verb", ["--verbose"]), ("migrate --target a", ["accelerate"])):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_MIGRATE_COMPLETE": "complete_bash"}
        done = subprocess.run(
            [sys.executable, "-m", "migrate"], env={**os.environ, **asked}, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == offered


def test_reader_that_goes_away():
    for number in range(300):
        Path(f"a{number}.py").write_bytes(PLAIN * 20)
    with subprocess.Popen(driver("."), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
    assert b"Traceback" not in said
    assert b"BrokenPipe" not in said
    assert b"300 files would change" in said
    assert process.returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device is full here")
def test_a_full_disk_is_no_bug_of_ours():
    write(a=PLAIN)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            driver("a.py", "--diff"), stdout=full, stderr=subprocess.PIPE, env=environment(), check=False
        )
    said = "migrate: standard output cannot be written: no space left on device. Make room, or lead it elsewhere.\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "migrate", "--help"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    said = "migrate: no space left on device. Make room, or lead the output elsewhere.\n"
    assert (done.returncode, done.stderr.decode()) == (2, said)


@pytest.mark.parametrize(
    ("arguments", "variables", "coloured"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),
        ([], {"TERM": "dumb"}, False),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_colours_on_a_terminal(arguments, variables, coloured):
    write(a=PLAIN)
    status, said = on_a_terminal("a.py", *arguments, **variables)
    assert status == 1
    assert b"accelerator.backward(loss)" in said
    assert (b"\x1b[" in said) is coloured


def on_a_terminal(*arguments, **variables):
    controller, terminal = pty.openpty()
    env = environment(**{"TERM": "xterm", **variables})
    process = subprocess.Popen(driver(*arguments), stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    said = b""
    while True:
        try:
            part = os.read(controller, 4096)
        except OSError:  # Linux: the other side has closed
            break
        if not part:
            break
        said += part
    os.close(controller)
    return process.wait(), said


def test_progress_of_long_runs(monkeypatch):
    for number in range(320):
        Path(f"a{number}.py").write_bytes(b"x = 1\n")
    Path("train.py").write_bytes(PLAIN)
    monkeypatch.delenv("CI", raising=False)
    assert b"\r" not in on_a_terminal(".")[1].replace(b"\r\n", b"")  # it is over before a person wonders
    monkeypatch.setattr("migrate.cli.progress.SHOWN_AFTER_S", 0.0)
    monkeypatch.setattr("migrate.cli.progress.EVERY_S", 0.0)
    said = shown_on_a_terminal(".", "--color", "never")
    assert "\r\x1b[Kmigrate: reading 320 files" in said
    assert f"\r\x1b[Kmigrate: analysing [{'#' * 30}] 1 of 1\r\x1b[K" in said
    assert "migrate: reading" not in shown_on_a_terminal(".", "--quiet")
    monkeypatch.setenv("CI", "true")
    assert "migrate: reading" not in shown_on_a_terminal(".")
    assert "migrate: reading" not in migrate(".").output  # not a terminal


def shown_on_a_terminal(*arguments):
    """What a run in this process writes to standard error, which takes itself for a terminal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("migrate.cli.progress._is_watched", lambda: not os.environ.get("CI"))
        return migrate(*arguments).stderr


def test_modules_in_the_current_folder_are_not_run():
    bite = "import os\nos._exit(77)\n"
    for name in (
        "typer",
        "rich",
        "libcst",
        "difflib",
        "json",
        "random",
        "tomllib",
        "dataclasses",
        "textwrap",
        "platform",
    ):
        Path(f"{name}.py").write_text(bite)
    write(a=PLAIN)
    root = str(Path(pipeline.__file__).parents[1])
    command = [sys.executable, "-m", "migrate", "--check", "a.py"]
    done = subprocess.run(command, env=environment(PYTHONPATH=root), capture_output=True, check=False)
    assert done.returncode == 1, done.stderr


def test_no_colours_in_a_pipe():
    write(a=PLAIN)
    assert "\x1b" not in migrate("a.py").output
    assert "\x1b[32m" in migrate("a.py", "--color", "always").stdout


def test_any_text_on_any_terminal():
    name = os.fsdecode(b"caf\xe9-\xe4\xbd\xa0.py")
    try:
        Path(name).write_bytes(b"# coding: cp1252\n# \x80\n" + HARD)
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    for encoding in ("ascii", "cp1252", "utf-8"):
        result = subprocess.run(
            driver(".", "--check"), capture_output=True, check=False, env=environment(PYTHONIOENCODING=encoding)
        )
        assert result.returncode == 1, result.stderr
        assert (b"caf\xe9-\xe4\xbd\xa0.py:2" if encoding == "utf-8" else b"caf\\udce9-\\u4f60.py:2") in result.stdout
        assert b"MIG105 gradient=g" in result.stdout


def test_message_cannot_break_its_line_or_drive_the_terminal():
    from migrate.report import text

    finding = Finding("MIG105", "a.py", 1, 1, 1, "bad \x1b[31m\nname é", "", Kind.LEFT)
    assert text.findings(Report((finding,)), Kind, text.Style()) == "a.py:1:1 MIG105 bad \\x1b[31m name é\n"
    change = Change("a.py", b"", b"", ("1: # \x07",))
    assert text.lost_comments([change]) == "a.py:1: # \\x07 (dropped with its statement)\n"
