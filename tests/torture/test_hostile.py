"""Files that nobody should have: names that are commands, a gigabyte, nesting without end, modules that bite."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from cases import FIXTURES

import migrate

pytestmark = pytest.mark.torture
ROOT = str(Path(migrate.__file__).resolve().parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": ROOT, "PYTHONDONTWRITEBYTECODE": "1"}
OLD = (FIXTURES / "grad-scaler" / "before.py").read_bytes()  # a short one
NEW = (FIXTURES / "grad-scaler" / "after.py").read_bytes()


def command(*arguments, cwd, memory=None, **environment):
    """The command as a user starts it; `memory`: how many bytes it may take."""

    def limit():
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    done = subprocess.run(
        [sys.executable, "-m", "migrate", *arguments],
        cwd=cwd,
        env=ENVIRONMENT | environment,
        capture_output=True,
        preexec_fn=limit,
        check=False,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")[-3000:]
    return done


# --------------------------------------------------------------------------------------------- names

NAMES = [
    b"a b.py", b"-rf.py", b"--write.py", b"$(touch pwned).py", b"`touch pwned`.py", b"a;touch pwned;.py", b"a\nb.py",
    b"a\n+++ b/other.py", b"a\n::error::x.py", b"\x1b[2J\x1b]0;x\x07.py", b"\xff\xfe.py", b"\xc3\xa9\xe2\x80\xae.py",
    b"'\".py", b"%s%n{0}.py", b"a\\b.py", b"[bold]x[/bold].py", b"<script>x.py", b"*.py", b"con.py",
    b"a" * 200 + b".py", b".py",
    b"a\r.py", b"a\t.py", "\u2028.py".encode(), "\uff04.py".encode(),
]  # fmt: skip
FORMATS = ("text", "json", "sarif", "github", "gitlab", "rdjson")


@pytest.fixture
def named(tmp_path):
    for name in NAMES:
        path = Path(os.fsdecode(bytes(tmp_path) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(OLD)
    return tmp_path


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_names_are_told(named, form, record):
    done = command("--check", "--output-format", form, ".", cwd=named)
    assert done.returncode == 1, done.stderr.decode(errors="replace")[-2000:]
    # documents are read as UTF-8; lines for people and shells have the bytes of the name
    text = done.stdout.decode("utf-8", "surrogateescape" if form in ("text", "github") else "strict")
    assert not any(ord(letter) < 32 and letter != "\n" for letter in text), "a control character"
    if form in ("json", "sarif", "gitlab"):
        json.loads(text)
    if form == "github":
        commands = [line for line in text.splitlines() if line.lstrip().startswith("::")]
        assert len(commands) == 10
        assert all(line.startswith("::warning title=migrate ") for line in commands)
    record("writing", "hostile names", runs=1, broken=0)


def test_hostile_names_are_written(named):
    done = command("--write", ".", cwd=named)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    contents = [path.read_bytes() for path in named.rglob("*") if path.is_file()]
    assert contents == [NEW] * len(NAMES)
    assert not list(named.rglob("pwned"))


def test_a_diff_with_hostile_names_applies(named):
    for arguments in (["init", "--quiet", "."], ["config", "core.autocrlf", "false"]):
        subprocess.run(["git", *arguments], cwd=named, check=True)  # noqa: S607 (whichever git is there)
    done = command("--diff", "--no-cache", ".", cwd=named)
    applying = ["git", "apply", "--whitespace=nowarn", "-"]
    subprocess.run(applying, cwd=named, input=done.stdout, check=True)
    contents = [path.read_bytes() for path in named.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert contents == [NEW] * len(NAMES)


def test_pages_and_questions_with_hostile_names(named):
    done = command("--report", "page.html", ".", cwd=named)
    assert done.returncode == 1, done.stderr.decode(errors="replace")[-2000:]
    assert b"<script>x.py" not in (named / "page.html").read_bytes()
    for name in NAMES[:8]:
        text = os.fsdecode(name)
        done = command("--explain-role", f"./{text}:12:model", cwd=named)
        assert done.returncode in (0, 2)


# --------------------------------------------------------------------------------------------- size

GIGABYTE = 2**30


@pytest.mark.parametrize(
    "arguments", [["."], ["huge.py", "train.py"], ["uses.py", "train.py"]], ids=["found", "named", "imported"]
)
@pytest.mark.parametrize("ending", [".py", ".ipynb"])
def test_a_gigabyte_costs_one_file(arguments, ending, tmp_path, record):
    """In less memory than it would take to read it."""
    (tmp_path / "train.py").write_bytes(OLD)
    (tmp_path / "uses.py").write_bytes(b"import torch\nimport huge\n")
    huge = tmp_path / f"huge{ending}"
    huge.write_bytes(b"import torch\n")
    os.truncate(huge, GIGABYTE)
    names = [name.replace(".py", ending) if name.startswith("huge") else name for name in arguments]
    done = command("--write", *names, cwd=tmp_path, memory=GIGABYTE * 3 // 4)
    assert (tmp_path / "train.py").read_bytes() == NEW, done.stderr.decode()[-2000:]
    assert done.returncode == (2 if arguments[0] == "huge.py" else 0)
    assert ("huge" in done.stderr.decode()) == (arguments[0] != "uses.py")
    assert huge.stat().st_size == GIGABYTE
    record("writing", "files of a gigabyte", runs=1, broken=0)


# --------------------------------------------------------------------------------------------- nesting

#: Shapes of nested code: what stands before, inside and behind, for each level.
SHAPES = {
    "sum": ("1 + ", "1", ""),
    "sum from the left": ("", "1", " + 1"),
    "power": ("2 ** ", "2", ""),
    "minus": ("-", "1", ""),
    "not": ("not ", "x", ""),
    "attributes": ("", "x", ".y"),
    "calls": ("", "x", "()"),
    "items": ("", "x", "[0]"),
    "methods": ("", "x", ".to(y)"),
    "lambda": ("lambda: ", "1", ""),
    "conditional": ("1 if x else ", "1", ""),
    "parentheses": ("(", "1", ")"),
    "lists": ("[", "1", "]"),
    "dictionaries": ("{1: ", "1", "}"),
    "arguments": ("f(", "1", ")"),
    "keywords": ("f(x=", "1", ")"),
    "comprehensions": ("[y for y in ", "x", "]"),
    "walrus": ("(y := ", "1", ")"),
    "comparison": ("x < ", "1", ""),
    "strings": ("'a' ", "'b'", ""),
    "starred": ("[*", "x", "]"),
    "await": ("await ", "x", ""),
}
LEVELS = (50, 90, 200, 600, 950, 2000, 10_000, 100_000)
BLOCKS = (
    "if x:",
    "for x in y:",
    "while x:",
    "with x:",
    "try:",
    "def f():",
    "class A:",
    "async def f():",
    "match x:\n case 1:",
)


@pytest.mark.parametrize("shape", SHAPES)
def test_deep_expressions_cost_one_file(shape, tmp_path, record):
    """In a program that converts, so that every stage sees them; a stack that overflows would end the process."""
    before, inside, behind = SHAPES[shape]
    lines = OLD.decode().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if line.startswith("model = "))
    for levels in LEVELS:
        code = f"deep = {before * levels}{inside}{behind * levels}\n"
        if shape == "await":
            code = f"async def deep():\n    {code}"
        (tmp_path / f"deep{levels}.py").write_text("".join([*lines[:place], code, *lines[place:]]))
    (tmp_path / "good.py").write_bytes(OLD)
    done = command("--write", ".", cwd=tmp_path)
    assert done.returncode in (0, 1, 2), f"ended by signal {-done.returncode}"
    assert (tmp_path / "good.py").read_bytes() == NEW
    assert b"bug of ours" not in done.stdout + done.stderr, done.stderr.decode()[-3000:]
    record("writing", "deep nesting", runs=len(LEVELS), broken=0)


@pytest.mark.parametrize("block", BLOCKS)
def test_deep_blocks_cost_one_file(block, tmp_path, record):
    for levels in (10, 19, 50, 95, 150):
        code, depth = "", 0
        for _ in range(levels):
            for line in block.split("\n"):
                code, depth = f"{code}{' ' * depth}{line.strip()}\n", depth + 1
        code += " " * depth + "deep = 1\n"
        if block == "try:":
            code += "".join(" " * level + "finally: pass\n" for level in reversed(range(levels)))
        (tmp_path / f"deep{levels}.py").write_bytes(OLD + code.encode())
    (tmp_path / "good.py").write_bytes(OLD)
    done = command("--write", ".", cwd=tmp_path)
    assert done.returncode in (0, 1, 2), f"ended by signal {-done.returncode}"
    assert (tmp_path / "good.py").read_bytes() == NEW
    assert b"bug of ours" not in done.stdout + done.stderr, done.stderr.decode()[-3000:]
    record("writing", "deep nesting", runs=5, broken=0)
