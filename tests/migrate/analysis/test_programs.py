r"""What the analysis finds in small programs. The program is the test; what is expected stands in its comments.

`programs/*.py` hold the programs, each file those of one subject:

    # === what this program shows
    # xfail: why it is not found yet                 (only where it must be: the program then has to fail)
    from torch import nn
    net = nn.Linear(1, 1)  #: model

A program of several files gives each a line `# --- train.py`, `# --- nets/small.py`; they are written to a folder. The
first file is the one that is named to the tool, the others are met through imports (`# --- data.py named` names one
more). Lines are counted from 1 at the line after the line that starts the program, or its file.

An expectation is a comment `#: ...` at the end of a line. It speaks of the statement that starts or ends there.

    x = make()           #: model                    exactly these roles, no other: the value of what the line gives
    x = make()           #: optimizer, model         either may be, and nothing else
    x = make()           #: nothing                  unknown: no value at all
    a, b = make()        #: a: model, b: optimizer, scheduler     expressions of the line, by their text
    self.net.fit(x)      #: self.net: model; x: batch             `;` does what `,` does
    x = make()           #: model@3                  made on line 3 (`model@nets/small.py:3` in another file)
    x = make()           #: model@3#2                the second object that calls of a function make there
    x = make()           #: model likely             as sure as that; without a word it is proven
    x = "cuda"           #: text(cuda)               the name of the value: of a text, a library name, a class
    def f(a, b=1):       #: a: model, b: number      what the parameters may be
    for x in y:          #: training by optimizer@7 over dataloader@5; x: batch
    while z:             #: evaluation over dataloader@5, dataloader@6
    for x in y:          #: neither                  a loop that is no training and no evaluation loop

What a line gives is the target of an assignment or `with`, the value of `return`, `yield` or an expression, the test of
an `if`. Where a text stands on the line twice, the one that is bound counts: in `net = f(net)`, `net` is the new one.
`by` and `over` may be left out, they are then not looked at; `over nothing` says that no loader is known.
"""

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from migrate.analysis import analyse
from migrate.analysis.roles import Certainty, Role
from migrate.analysis.syntax import LOOPS
from migrate.programs.loops import Loops
from migrate.source.project import Project, SourceFile

FOLDER = Path(__file__).parent / "programs"

_START = re.compile(r"^# === (.+)\n", re.MULTILINE)
_PART = re.compile(r"^# --- (\S+)( named)?\n", re.MULTILINE)
_XFAIL = re.compile(r"# xfail: (.+)\n")
_ITEM = re.compile(
    rf"(?P<role>{'|'.join(sorted((re.escape(role.value) for role in Role), key=len, reverse=True))})"
    r"(?:\((?P<name>[^()]*)\))?(?:@(?P<place>(?:[\w./-]+:)?\d+(?:#\d+)?))?(?: (?P<certainty>likely|guessed))?"
)
_PLACED = r"(?:{0}@(?:[\w./-]+:)?\d+(?:#\d+)?(?:, {0}@(?:[\w./-]+:)?\d+(?:#\d+)?)*|nothing)"
_LOOP = re.compile(
    rf"(?P<kind>training|evaluation|neither)(?: by (?P<by>{_PLACED.format('optimizer')}))?"
    rf"(?: over (?P<over>{_PLACED.format('dataloader')}))?"
)


class Mistake(Exception):
    """The test itself is wrong."""


@dataclass(frozen=True)
class Program:
    """One program as it stands in a file of programs."""

    name: str
    text: str

    @cached_property
    def xfail(self):
        match = _XFAIL.match(self.text)
        return match[1] if match else None

    @cached_property
    def files(self):
        """Path → text and whether it is named, the file that the tool is given first."""
        parts = _PART.split(self.text)
        if len(parts) == 1:
            return {"program.py": (self.text, True)}
        triples = zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
        return {path: (text, index == 0 or bool(named)) for index, (path, named, text) in enumerate(triples)}


def programs_in(text):
    """The programs of one file; only comments may stand before the first."""
    before, *rest = _START.split(text)
    if before.strip() and not all(line.startswith("#") for line in before.strip().splitlines()):
        raise Mistake("code before the first `# === name`")
    return [Program(name.strip(), body) for name, body in zip(rest[::2], rest[1::2], strict=True)]


# --- expectations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """One thing that a value is expected to be."""

    role: str
    name: str | None = None
    place: str | None = None
    certainty: str = "proven"


@dataclass(frozen=True)
class Roles:
    """What an expression of a line (None: what the line gives) is expected to be."""

    subject: str | None
    items: tuple[Item, ...]


@dataclass(frozen=True)
class LoopKind:
    """What a loop is expected to do; the places of optimizers and loaders are None where nothing is said."""

    kind: str
    by: frozenset[str] | None
    over: frozenset[str] | None


def parsed(text):
    """The expectations of one comment."""
    found, subject, items = [], None, None
    loop = _LOOP.match(text)
    if loop is not None and text[loop.end() :].strip()[:1] in ("", ";"):
        found.append(LoopKind(loop["kind"], _places(loop["by"]), _places(loop["over"])))
        text = text[loop.end() :].strip().removeprefix(";")
    for part in re.split(r"[;,]\s+", text.strip()) if text.strip() else ():
        match = re.fullmatch(r"(?:(?P<subject>.+?):\s+)?(?P<item>.+)", part.strip())
        if match["subject"] is not None or items is None:
            subject, items = _text(match["subject"]), []
            found.append((subject, items))
        if match["item"] != "nothing":
            item = _ITEM.fullmatch(match["item"])
            if item is None:
                raise Mistake(f"no expectation: {part!r}")
            items.append(Item(item["role"], item["name"], item["place"], item["certainty"] or "proven"))
    if not found:
        raise Mistake("an empty expectation; `#: nothing` says that nothing is known")
    return [one if isinstance(one, LoopKind) else Roles(one[0], tuple(one[1])) for one in found]


def _places(text):
    return None if text is None else frozenset(re.findall(r"@(\S+?)(?:,|$)", text))


def _text(subject):
    """An expression in the form that `ast.unparse` gives it."""
    try:
        return subject and ast.unparse(ast.parse(subject, mode="eval").body)
    except SyntaxError:
        raise Mistake(f"no expression: {subject!r}") from None


def comments(text):
    """Line → what its comment expects."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        token.start[0]: token.string.removeprefix("#:").strip()
        for token in tokens
        if token.type == tokenize.COMMENT and token.string.startswith("#:")
    }


# --- checking ---------------------------------------------------------------------------------------------------------


class Check:
    """The analysed program beside what is expected of it."""

    def __init__(self, program, folder):
        self.folder = folder
        (folder / "pyproject.toml").touch()
        for path, (text, _) in program.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        named = [
            SourceFile(path, (folder / path).read_bytes(), real=(folder / path).resolve())
            for path, (_, is_named) in program.files.items()
            if is_named
        ]
        self.facts = analyse(Project(named))
        self.loops = Loops(self.facts)
        self.trees = {self._path(module): module.tree for module in self.facts.modules}
        self.program = program

    def _path(self, module):
        return module.file.real.relative_to(self.folder.resolve()).as_posix()

    def failures(self):
        """Everything that is not as expected, each as one line."""
        found = [f"{path}: {error!r}" for path, error in self.facts.broken.items()]
        if self.facts.cut_short:
            found.append("the analysis was cut short")
        expected = 0
        for path, (text, _) in self.program.files.items():
            tree = self.trees.get(path) or ast.parse(text)
            for line, comment in comments(text).items():
                expected += 1
                try:
                    problems = [p for one in parsed(comment) for p in self._compare(one, tree, line, path)]
                except Mistake as mistake:
                    problems = [str(mistake)]
                found += [f"{path}:{line}: {problem}" for problem in problems]
        return found if expected else ["a program that expects nothing shows nothing"]

    def _compare(self, expected, tree, line, path):
        statement = statement_at(tree, line)
        if isinstance(expected, LoopKind):
            return self._compare_loop(expected, statement, path)
        found = self._values(statement, expected.subject)
        wanted = {(item.role, item.name, item.place, item.certainty) for item in expected.items}
        named = {item.role for item in expected.items if item.name is not None}
        placed = {item.role for item in expected.items if item.place is not None}
        seen = {}
        for value in found:
            role = value.role.value
            key = (role, value.name if role in named else None, self._place(value, path) if role in placed else None)
            seen[key] = min(seen.get(key, Certainty.PROVEN), value.certainty)
        got = {(*key, certainty.name.lower()) for key, certainty in seen.items()}
        what = expected.subject or "the line"
        return [] if got == wanted else [f"{what} is {_say(got)}, expected {_say(wanted)}"]

    def _place(self, value, path):
        if value.origin is None:
            return None
        file = self._path(self.facts.module(value.origin))
        line = self._line(value.origin)
        return line if file == path else f"{file}:{line}"

    def _line(self, node):
        """The line, with a number where calls of a function make several objects there."""
        twins = self.facts.twins(node)
        number = twins.index(node) + 1
        return f"{getattr(node, 'lineno', 0)}" + (f"#{number}" if number > 1 else "")

    def _values(self, statement, subject):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            unit = next((unit for unit in self.facts.functions if unit.node is statement), None)
            if subject is None or (unit is not None and subject not in unit.parameter_names):
                raise Mistake("of the line of a `def`, expect something of its parameters")
            return unit.parameters.get(subject, frozenset()) if unit is not None else frozenset()
        nodes = [given(statement)] if subject is None else spelt(statement, subject)
        return frozenset().union(*(self.facts.values(node) for node in nodes))

    def _compare_loop(self, expected, statement, path):
        if not isinstance(statement, LOOPS):
            raise Mistake("a kind of loop is expected of a line that starts no loop")
        facts = [loop for loop in (*self.loops.training, *self.loops.evaluation) if loop.node is statement]
        kinds = {loop.kind.value for loop in facts} or {"neither"}
        problems = [] if kinds == {expected.kind} else [f"the loop is {sorted(kinds)}, expected {expected.kind}"]
        for loop in facts:
            by = self._lines(self.loops.trained_by(loop), path) if loop.kind.value == "training" else set()
            over = self._lines(loop.loaders, path)
            for word, got, wanted in (("by", by, expected.by), ("over", over, expected.over)):
                if wanted is not None and got != wanted:
                    problems.append(f"{loop.kind.value} {word} {sorted(got)}, expected {sorted(wanted)}")
        return problems

    def _lines(self, nodes, path):
        files = {node: self._path(self.facts.module(node)) for node in nodes}
        return {self._line(node) if files[node] == path else f"{files[node]}:{self._line(node)}" for node in nodes}


def _say(keys):
    return (
        " and ".join(
            f"{role}{f'({name})' if name is not None else ''}{f'@{place}' if place else ''}"
            f"{'' if certainty == 'proven' else f' {certainty}'}"
            for role, name, place, certainty in sorted(keys, key=str)
        )
        or "nothing"
    )


def statement_at(tree, line):
    """The statement that a comment at the end of a line speaks of: the smallest that the line is part of."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno and _starts_or_ends(node, line)
    ]
    if not around:
        raise Mistake("the line holds no statement")
    return min(around, key=lambda node: (node.end_lineno - node.lineno, -node.col_offset))


def _starts_or_ends(node, line):
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if body is None:
        return True
    return line < getattr(body[0], "lineno", line + 1)


def given(statement):
    """The expression that stands for what a line gives."""
    if isinstance(statement, ast.Assign):
        first = statement.targets[0]
        return first if isinstance(first, (ast.Name, ast.Attribute)) else statement.value
    if isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        return statement.target
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return statement.items[0].optional_vars or statement.items[0].context_expr
    if isinstance(statement, (ast.Expr, ast.Return)) and statement.value is not None:
        inner = statement.value
        return inner.value if isinstance(inner, (ast.Yield, ast.Await)) and inner.value is not None else inner
    if isinstance(statement, ast.If):
        return statement.test
    raise Mistake("the line gives no value: name an expression of it, as in `#: x: model`")


def spelt(statement, text):
    """The expressions of a statement that read so: those that are bound, else all of them."""
    found, waiting = [], [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.expr) and ast.unparse(node) == text:
            found.append(node)
        waiting.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))
    if not found:
        raise Mistake(f"the line holds no {text!r}")
    return [node for node in found if isinstance(getattr(node, "ctx", None), ast.Store)] or found


# --- the tests --------------------------------------------------------------------------------------------------------


def _cases():
    return [
        pytest.param(program, id=f"{path.stem}::{program.name}", marks=_marks(program))
        for path in sorted(FOLDER.glob("*.py"))
        for program in programs_in(path.read_text(encoding="utf-8"))
    ]


def _marks(program):
    return [pytest.mark.xfail(reason=program.xfail, strict=True)] if program.xfail else []


@pytest.mark.parametrize("program", _cases())
def test_program(program, tmp_path):
    assert not Check(program, tmp_path).failures()


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_file_of_programs_is_well_formed(path):
    programs = programs_in(path.read_text(encoding="utf-8"))
    names = [program.name for program in programs]
    assert names
    assert len(names) == len(set(names)), "each program has a name of its own"
    for program in programs:  # also of those that are to fail: they fail for their reason, not for a slip of the pen
        for text, _ in program.files.values():
            assert all(parsed(comment) for comment in comments(text).values())


_NET = "from torch import nn\nnet = nn.Linear(1, 1)"
_LOOP_PROGRAM = """from torch import nn, optim
from torch.utils.data import DataLoader
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters())
for x in DataLoader(data):  #: {}
    net(x).sum().backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        (f"{_NET}  #: optimizer\n", "program.py:2: the line is model, expected optimizer"),
        (f"{_NET}  #: nothing\n", "program.py:2: the line is model, expected nothing"),
        (f"{_NET}  #: model, optimizer\n", "program.py:2: the line is model, expected model and optimizer"),
        (f"{_NET}  #: model@1\n", "program.py:2: the line is model@2, expected model@1"),
        (f"{_NET}  #: model likely\n", "program.py:2: the line is model, expected model likely"),
        (f"{_NET}  #: net: dataloader\n", "program.py:2: net is model, expected dataloader"),
        ("x = 'cuda'  #: text(cpu)\nimport torch\n", "program.py:1: the line is text(cuda), expected text(cpu)"),
        (f"{_NET}  #: mdoel\n", "program.py:2: no expectation: 'mdoel'"),
        (f"{_NET}  #:\n", "program.py:2: an empty expectation; `#: nothing` says that nothing is known"),
        (f"{_NET}  #: other: model\n", "program.py:2: the line holds no 'other'"),
        (f"{_NET}  #: training\n", "program.py:2: a kind of loop is expected of a line that starts no loop"),
        (f"{_NET}\n", "a program that expects nothing shows nothing"),
        (_LOOP_PROGRAM.format("neither"), "program.py:5: the loop is ['training'], expected neither"),
        (_LOOP_PROGRAM.format("training by optimizer@3"), "program.py:5: training by ['4'], expected ['3']"),
        (_LOOP_PROGRAM.format("training over nothing"), "program.py:5: training over ['5'], expected []"),
        (_LOOP_PROGRAM.format("training; x: model"), "program.py:5: x is batch, expected model"),
    ],
)
def test_a_wrong_expectation_fails(source, failure, tmp_path):
    assert Check(Program("wrong", source), tmp_path).failures() == [failure]


@pytest.mark.parametrize(
    "expectation", ["training by optimizer@4 over dataloader@5", "training", "training; x: batch", "x: batch@5"]
)
def test_a_right_expectation_passes(expectation, tmp_path):
    assert not Check(Program("right", _LOOP_PROGRAM.format(expectation)), tmp_path).failures()


def test_files_are_told_apart(tmp_path):
    source = (
        "# --- main.py\nfrom nets.small import net\nx = net  #: model@nets/small.py:2\n"
        f"# --- nets/small.py\n{_NET}  #: model@2\n# --- nets/__init__.py\n"
    )

    assert list(Program("files", source).files) == ["main.py", "nets/small.py", "nets/__init__.py"]
    assert not Check(Program("files", source), tmp_path).failures()
