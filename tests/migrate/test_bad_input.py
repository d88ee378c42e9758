"""Input that nobody wants to meet: a clear message or a right conversion; never a traceback, never another byte."""

import ast
import functools
import sys
import time
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate import pipeline
from migrate.cli import app
from migrate.engine import Conversion, Engine
from migrate.errors import SourceError
from migrate.report.model import Finding, Kind, Outcome
from migrate.source.parse import DEEPEST, parse

LOOP = b"import torch\nfor x in y:\n    loss.backward()\n"


def deepest(node):
    """Recursive on purpose, with several frames a level, as analyses and libcst are."""
    return 1 + max((one for one in map(one_deeper, ast.iter_child_nodes(node))), default=0)


def one_deeper(node):
    return functools.partial(deepest, node)()


def plan(project, options):
    found, touched = [], []
    for file in project.files:
        deepest(file.tree)
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "loss.backward":
                line, column, end_line = file.place(node)
                found.append(Finding("MIG001", file.path, line, column, end_line, "loop", "", Kind.LOOP, converts=True))
                touched.append(file.path)
    return Conversion(Outcome(tuple(found)), tuple(dict.fromkeys(touched)))


def apply(file, conversion):
    return types.SimpleNamespace(content=converted(file.content), lost_comments=())


def converted(content):
    return content.replace(b"loss.backward()", b"accelerator.backward(loss)")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine = Engine(plan, apply, lambda file, change, conversion: [])
    monkeypatch.setattr(pipeline, "run", functools.partial(pipeline.run, engine=engine))


def migrate(*arguments):
    result = CliRunner().invoke(app, list(arguments), prog_name="migrate")
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


# ---------------------------------------------------------------------------------------------------------- refused

PYTHON_2 = "looks like Python 2 "
REFUSED = {
    "syntax": (LOOP + b"def (\n", 4, "syntax error: "),
    "unclosed": (LOOP + b"f(1\n", 4, "syntax error: '(' was never closed"),
    "indentation": (LOOP + b"  x\n", 4, "syntax error: unindent does not match"),
    "tabs and spaces": (LOOP + b"if x:\n        y\n\tz\n", 6, "syntax error: inconsistent use of tabs"),
    "print": (LOOP + b"print 'epoch', x\n", 4, PYTHON_2 + "(print statement at line 4). Convert it with 2to3 first."),
    "print in a block": (LOOP + b"if x: print x\n", 4, PYTHON_2 + "(print statement at line 4)"),
    "print >>": (b"import torch\nprint >>sys.stderr, 'x'; exec 'x'\n", 2, PYTHON_2 + "(exec statement at line 2)"),
    "exec": (b"exec 'x' in y\n", 1, PYTHON_2 + "(exec statement at line 1)"),
    "except": (
        LOOP + b"try:\n    pass\nexcept Error, e:\n    pass\n",
        6,
        PYTHON_2 + "(`except Error, name` at line 6)",
    ),
    "raise": (LOOP + b"raise Error, 'x'\n", 4, PYTHON_2 + "(`raise Error, message` at line 4)"),
    "unequal": (LOOP + b"if a <> b: pass\n", 4, PYTHON_2 + "(the operator <> at line 4)"),
    "backquotes": (LOOP + b"s = `x`\n", 4, PYTHON_2 + "(backquotes at line 4)"),
    "octal": (LOOP + b"os.chmod(p, 0777)\n", 4, PYTHON_2 + "(a number like 0777 or 10L at line 4)"),
    "long": (LOOP + b"n = 10L\n", 4, PYTHON_2 + "(a number like 0777 or 10L at line 4)"),
    "ur": (LOOP + b"s = ur'x'\n", 4, PYTHON_2 + "(a ur'' string at line 4)"),
    "tuple parameter": (
        LOOP + b"def f(a, (b, c)): pass\n",
        4,
        PYTHON_2 + "(a parameter that unpacks a tuple at line 4)",
    ),
    "magic": (LOOP + b"%matplotlib inline\n", 4, "%matplotlib is a command of IPython. Take the line out, or name the"),
    "shell": (LOOP + b"if x:\n    !unzip `ls`\n", 5, "!unzip is a command of IPython. Take the line out"),
    "async": (LOOP + b"x.cuda(async=True)\n", 4, "Python 3.7. PyTorch's argument is called non_blocking now."),
    "nul": (LOOP + b"x = '\0'\n", 4, "there is a NUL byte, so this is not Python source"),
    "utf-16": ("import torch\n".encode("utf-16"), 1, "this is UTF-16"),
    "not utf-8": (LOOP + b"# caf\xe9\n", 4, "byte 0xe9 is not utf-8. Save the file as UTF-8, or name its encoding"),
    "not utf-8, in the first line": (b"# caf\xe9\n" + LOOP, 1, "byte 0xe9 is not utf-8. Save the file as UTF-8, or"),
    "not what the cookie says": (b"# coding: ascii\n\n# \xc3\xa9\n", 3, "byte 0xc3 is not ascii"),
    "unknown encoding": (b"# coding: klingon\n" + LOOP, 1, "the encoding is not known: unknown encoding: klingon"),
    "bom and cookie disagree": (b"\xef\xbb\xbf# coding: latin-1\n" + LOOP, 1, "the encoding is not known"),
    "parentheses": (LOOP + b"x = " + b"(" * 3000 + b"1" + b")" * 3000 + b"\n", 4, "too many nested parentheses"),
    "indentations": (
        LOOP + b"".join(b" " * n + b"if x:\n" for n in range(150)) + b" " * 150 + b"y\n",
        104,
        "too many levels",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_place_and_way_out(case):
    content, line, says = REFUSED[case]
    Path("bad.py").write_bytes(content)
    Path("good.py").write_bytes(LOOP)
    result = migrate("bad.py", "good.py", "--write")
    assert result.exit_code == 2
    (said,) = (one for one in result.stderr.splitlines() if one.startswith("migrate: "))
    place, what = said.removeprefix("migrate: ").split(": ", 1)
    assert says in what
    assert what.endswith((".", "-*-", ")."))
    assert place == f"bad.py:{line}"
    assert Path("bad.py").read_bytes() == content
    assert Path("good.py").read_bytes() == converted(LOOP)  # the others are processed


NEWER = {  # by the first Python that reads it
    "except*": (b"try:\n    pass\nexcept* (A, B):\n    pass\n", 3, (3, 11), "`except*`"),
    "a star in an index": (b"\nx = a[0, *b]\n", 2, (3, 11), "a star in an index"),
    "a star in an annotation": (b"def f(*args: *Ts): pass\n", 1, (3, 11), "a star in an annotation"),
    "a type": (b"\ntype Loss = Callable[[Tensor], Tensor]\n", 2, (3, 12), "a `type` statement"),
    "a generic function": (b"\nasync def f[T: int, *Ts](x: T) -> T: ...\n", 2, (3, 12), "type parameters"),
    "a generic class": (b"\nclass A[T](B): ...\n", 2, (3, 12), "type parameters"),
    "its own quotes": (b'\nprint(f"{d["loss"]:.3f}")\n', 2, (3, 12), "an f-string that holds its own quotes"),
    "its own quotes, later": (
        b"print(rf'{{}} {', '.join(f'{a}' for a in b)}')\n",
        1,
        (3, 12),
        "an f-string that holds its own quotes",
    ),
    "a line break": (b"x = f'{\n  a\n}'\n", 1, (3, 12), "an f-string with a line break between its braces"),
    "a backslash": (b"x = f'{\"\\n\".join(a)}'\n", 1, (3, 12), "a backslash or a comment between the braces"),
    "a comment": (b"x = f'''{\n  a  # why\n}'''\n", 3, (3, 12), "a backslash or a comment between the braces"),
    "a default": (b"\nclass A[T = int]: ...\n", 2, (3, 13), "a type parameter with a default"),
    "several classes": (
        b"try:\n    pass\nexcept ValueError, np.Error:\n    pass\n",
        3,
        (3, 14),
        "`except` with several classes and no parentheses",
    ),
    "a t-string": (b"\nx = t'{a}'\n", 2, (3, 14), "a t-string"),
}


@pytest.mark.parametrize("case", NEWER)
def test_syntax_of_a_newer_python_is_read_by_that_or_named(case):
    content, line, (major, minor), sign = NEWER[case]
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    if sys.version_info >= (major, minor):
        assert parse(content, "new.py").body
        return
    with pytest.raises(SourceError) as said:
        parse(content, "new.py")
    assert str(said.value).startswith(f"new.py:{line}: looks like Python {major}.{minor} ({sign}")
    assert str(said.value).endswith(f"line {line}). Run migrate with Python {major}.{minor} or newer (this is {this}).")


@pytest.mark.parametrize("line", ["print(f'{a')", "print(f'{a b}', c)", "x = type[y", "x = [*a b]"])
def test_what_no_python_reads_is_a_plain_syntax_error(line):
    with pytest.raises(SourceError, match=r"t.py:1: syntax error: .* Mend it"):
        parse(f"{line}\n".encode(), "t.py")


DEEP = {
    "sum": lambda n: b"x = " + b" + ".join([b"1"] * n),
    "minus": lambda n: b"x = " + b"-" * n + b"1",
    "attributes": lambda n: b"x = a" + b".b" * n,
    "calls": lambda n: b"x = a" + b"()" * n,
    "elif": lambda n: b"if x:\n  pass\n" + b"elif x:\n  pass\n" * n,
    "lambda": lambda n: b"x = " + b"lambda: " * n + b"1",
}


@pytest.mark.parametrize("levels", [300, 900, 2000, 3000, 20_000])
@pytest.mark.parametrize("case", DEEP)
def test_deep_nesting_costs_the_file_not_the_run(case, levels):
    content = LOOP + DEEP[case](levels) + b"\n"
    Path("deep.py").write_bytes(content)
    Path("good.py").write_bytes(LOOP)
    limit = sys.getrecursionlimit()
    result = migrate("deep.py", "good.py", "--write")
    assert sys.getrecursionlimit() == limit
    assert Path("good.py").read_bytes() == converted(LOOP)
    if levels < DEEPEST:
        assert (result.exit_code, Path("deep.py").read_bytes()) == (0, converted(content))
    else:
        assert (result.exit_code, Path("deep.py").read_bytes()) == (2, content)
        assert f"has more than {DEEPEST} levels. Split it into several statements." in result.stderr


def test_deep_file_says_where():
    content = b"import torch\n\nx = (" + b"\n + 1" * 1500 + b")\n"
    with pytest.raises(SourceError) as raised:
        parse(content, "deep.py")
    assert 3 <= raised.value.line <= 1503


# -------------------------------------------------------------------------------------------------------- converted

CONVERTED = {
    "crlf": LOOP.replace(b"\n", b"\r\n"),
    "cr": LOOP.replace(b"\n", b"\r"),
    "mixed": LOOP.replace(b"torch\n", b"torch\r\n"),
    "bom": b"\xef\xbb\xbf" + LOOP,
    "bom and crlf": b"\xef\xbb\xbf" + LOOP.replace(b"\n", b"\r\n"),
    "latin-1": b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + LOOP,
    "cookie in line 2": b"#!/usr/bin/env python\n# vim: set fileencoding=cp1252 :\n# \x80\n" + LOOP,
    "tabs": LOOP.replace(b"    ", b"\t"),
    "no final newline": LOOP.rstrip(b"\n"),
    "form feed": LOOP.replace(b"for", b"\x0cfor"),
    "blanks at the end": LOOP + b"\n\n    \n\t\n",
    "line separators": LOOP + "s = '\u2028\u0085'\n".encode(),
    "escape that Python warns of": LOOP + rb"s = '\d'" + b"\n",
}


@pytest.mark.parametrize("case", CONVERTED)
def test_converted_without_another_byte(case):
    content = CONVERTED[case]
    Path("a.py").write_bytes(content)
    Path("a.py").chmod(0o750)
    assert migrate("a.py").exit_code == 1
    assert Path("a.py").read_bytes() == content
    assert migrate("a.py", "--write").exit_code == 0
    assert Path("a.py").read_bytes() == converted(content) != content
    assert Path("a.py").stat().st_mode & 0o777 == 0o750
    assert migrate("a.py", "--write").stderr == "No changes.\n"


@pytest.mark.parametrize("content", [b"", b"\n", b"# torch", b"\xef\xbb\xbf", b"x = 1", b"   \n\t"])
def test_file_with_nothing_in_it_is_not_touched(content):
    Path("a.py").write_bytes(content)
    before = Path("a.py").stat()
    for mode in ("--write", "--check", "--diff"):
        assert migrate("a.py", mode).exit_code == 0
    after = Path("a.py").stat()
    assert Path("a.py").read_bytes() == content
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_file_of_20_000_lines():
    content = LOOP + b"".join(b"def f%d(x):\n    return x + %d  # \xc3\xa9\n\n\n" % (n, n) for n in range(5000)) + LOOP
    Path("long.py").write_bytes(content)
    start = time.perf_counter()
    result = migrate("long.py", "--write")
    assert result.exit_code == 0
    assert Path("long.py").read_bytes() == converted(content)
    assert time.perf_counter() - start < 30  # seconds, on a slow machine; here it is about one
    Path("long.py").write_bytes(content)
    assert migrate("long.py", "--diff").stdout.count("\n") == 16  # the header and two short hunks


def test_folder_of_bad_files_is_read_to_its_end():
    for number, (content, _, _) in enumerate(REFUSED.values()):
        Path(f"bad{number:02}.py").write_bytes(content if b"torch" in content else b"# torch\n" + content)
    Path("zz.py").write_bytes(LOOP)
    result = migrate(".", "--write")
    assert result.exit_code == 2
    assert result.stderr.count("migrate: bad") == len(REFUSED)
    assert Path("zz.py").read_bytes() == converted(LOOP)


def test_symbolic_link_named():
    Path("real").mkdir()
    Path("real/a.py").write_bytes(LOOP)
    Path("link.py").symlink_to("real/a.py")
    assert migrate("link.py", "--write").exit_code == 0
    assert Path("link.py").is_symlink()
    assert Path("real/a.py").read_bytes() == converted(LOOP)


def test_good_python_3_is_not_taken_for_python_2():
    for source in (b"print('x')\n", b"print\n", b"x = 0o777 + 0 + 00\n", b"f'{x!r}'\n", b"exec('x')\n"):
        assert isinstance(parse(source, "a.py"), ast.Module)
    bad = [b"print('x'))\n", b"def f(a, b=(1, 2):\n    pass\n", b"x = = 1\n", b"import torch as\n", b"print(f'{x'\n"]
    for source in (*bad, b"x = '`' ''a\n", b"print('007' 10\n", b"x = 'a <> b' +\n"):
        with pytest.raises(SourceError, match="syntax error"):
            parse(source, "a.py")
