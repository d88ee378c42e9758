"""A small training program with holes: a rule's case fills one, and the rest of the program is known to convert."""

import ast
import difflib
import sys
import textwrap
from pathlib import Path

import pytest

from migrate.options import Options
from migrate.pipeline import run_text
from migrate.report.model import Kind

STAGE = Path(__file__).resolve().parents[2] / "end_to_end"
PATH = "program.py"
#: Every hole with what fills it when a case does not; the lines stand as deep as the hole does.
BEFORE = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{imports}
{setup}
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
{model}
criterion = nn.MSELoss()
{made}
optimizer = optim.SGD(model.parameters(), lr=0.1)
{ready}
for epoch in range(2):
    {start}
    for {target} in {over}:
        {batch}
        optimizer.zero_grad()
        output = {forward}
        loss = criterion(output, y)
        {backward}
        optimizer.step()
        {step}
    {epoch}
{end}
"""
#: The same program as the tool leaves it.
AFTER = (
    BEFORE.replace("import torch\n", "import torch\nfrom runtime import Accelerator\n", 1)
    .replace("{setup}", "{accelerator}\n{setup}")
    .replace("{ready}", "{prepare}\n{ready}")
)
FILLINGS = {
    "imports": "",
    "setup": "",
    "model": "model = nn.Linear(2, 1)",
    "made": "",
    "ready": "",
    "start": "",
    "target": "x, y",
    "over": "loader",
    "batch": "",
    "forward": "model(x)",
    "step": "",
    "epoch": "",
    "end": "",
}
BACKWARD = ("loss.backward()", "accelerator.backward(loss)")
ACCELERATOR = "accelerator = Accelerator()"
PREPARE = "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)"


def filled(template, holes):
    """The template with its holes filled; a line that held nothing but an empty hole is gone."""
    lines = []
    for line in template.splitlines():
        hole = line.strip()
        if hole.startswith("{") and hole.endswith("}"):
            indent = line[: len(line) - len(hole)]
            if text := holes[hole.strip("{}")].strip("\n"):
                lines += textwrap.indent(textwrap.dedent(text), indent).splitlines()
        else:
            lines.append(line.format(**holes))
    return "\n".join(lines) + "\n"


def both(holes):
    """The program before and after. A hole is a pair, (before, after), or one text that stays as it is."""
    pairs = {name: given if isinstance(given, tuple) else (given, given) for name, given in holes.items()}
    first = {"backward": BACKWARD[0]} | FILLINGS | {name: pair[0] for name, pair in pairs.items()}
    second = {"backward": BACKWARD[1], "accelerator": ACCELERATOR, "prepare": PREPARE} | FILLINGS
    return filled(BEFORE, first), filled(AFTER, second | {name: pair[1] for name, pair in pairs.items()})


def normal(text):
    """Without blank lines: where they stay is a matter of the edits' layout, which has tests of its own."""
    return "\n".join(line for line in text.splitlines() if line.strip())


def made_before_use(tree):
    """No statement of the module itself asks for the accelerator before one has made it."""
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name) and node.id == "accelerator"]
        if any(isinstance(name.ctx, ast.Store) for name in names):
            return
        assert not names, f"line {statement.lineno} needs the accelerator, which is not there yet"


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """The programs have a folder to themselves: who imports them is not looked for among our own files."""
    monkeypatch.chdir(tmp_path)


def convert(source, options):
    """The report and the new text. What comes out parses and makes before it uses; a second run changes nothing."""
    report = run_text(source.encode(), PATH, options)
    assert not report.problems
    assert not [finding for finding in report.findings if finding.code in {"MIG998", "MIG999"}]
    result = report.changes[0].new.decode() if report.changes else source
    made_before_use(ast.parse(result))
    again = run_text(result.encode(), PATH, options)
    assert not again.changes, again.changes[0].new.decode()
    return report, result


@pytest.fixture
def convert_text():
    """Convert a whole source; its report and the new text are given back."""

    def run(source, **options):
        return convert(textwrap.dedent(source).lstrip("\n"), Options(**options))

    return run


@pytest.fixture(scope="session")
def stage(tmp_path_factory):
    """Two processes that have imported PyTorch: what runs there does not wait for that."""
    sys.path.insert(0, str(STAGE))
    from executions import Stage  # late: most tests of rules run nothing

    with Stage(tmp_path_factory.mktemp("stage"), processes=2, limit_s=100) as open_stage:
        yield open_stage


@pytest.fixture
def numbers_printed(stage, tmp_path):
    """Run a source on so many processes of the CPU; the numbers that it prints are given back."""

    def run(source, processes):
        script = tmp_path / "script.py"
        script.write_text(source)
        here = Path.cwd()
        if processes == 1:
            ended = [stage.run(script, [], launched=True, there=here)]
        else:
            ended = stage.together(script, [], there=here)
        assert not any(each.status for each in ended), "\n".join(each.errors for each in ended)
        return [float(number.strip("[],")) for each in ended for number in each.output.split()]

    return run


@pytest.fixture
def on_pretended_gpu(stage, tmp_path):
    """Run a source as on the second of two GPUs that are only pretended: what it prints, or how its error ends."""

    def run(source, *arguments):
        script = tmp_path / "on_gpu.py"
        script.write_text(source)
        ended = stage.on_gpu(1, script, list(arguments), there=Path.cwd())
        return ended.output if ended.status == 0 else ended.errors.splitlines()[-1]

    return run


@pytest.fixture
def changed():
    """The program with these holes becomes the same program with the second halves of the pairs; its report.

    A hole of one text must stay as it is.
    """

    def check(**holes):
        before, after = both(holes)
        report, result = convert(before, Options())
        compare(normal(after), normal(result), report)
        return report

    return check


@pytest.fixture
def becomes():
    """A whole source becomes another one, to the last blank line; its report."""

    def check(before, after, **options):
        report, result = convert(textwrap.dedent(before).lstrip("\n"), Options(**options))
        compare(textwrap.dedent(after).lstrip("\n"), result, report)
        return report

    return check


@pytest.fixture
def unchanged(changed):
    """The program is converted, and what fills these holes stays as it is; its report."""

    def check(**holes):
        assert all(isinstance(given, str) for name, given in holes.items() if name not in ("accelerator", "prepare"))
        return changed(**holes)

    return check


@pytest.fixture
def refused():
    """The program with these holes is left as it is; the finding with this code, at the line that holds `at`."""

    def check(code, at, mentions=(), **holes):
        return refusal(both(holes)[0], code, at, mentions)

    return check


@pytest.fixture
def refused_text():
    """As `refused`, for a whole source."""

    def check(source, code, at, mentions=()):
        return refusal(textwrap.dedent(source).lstrip("\n"), code, at, mentions)

    return check


@pytest.fixture
def remark():
    """The only finding of a kind with this code, at the line that holds `at`; its message holds every mention."""
    return found


@pytest.fixture
def programs():
    """The program with these holes, before and after, with what the tool is expected to make of it."""
    return both


def compare(expected, result, report):
    if result != expected:
        lines = difflib.unified_diff(expected.splitlines(), result.splitlines(), "expected", "result", lineterm="")
        pytest.fail("\n".join([*lines, told(report)]), pytrace=False)


def refusal(source, code, at, mentions):
    report, result = convert(source, Options())
    assert result == source
    (loop, *_) = report.of(Kind.LOOP)
    assert not loop.converts
    assert code in loop.message
    return found(report, source, code, at, mentions, Kind.LEFT)


def found(report, source, code, at, mentions=(), kind=Kind.LEFT):
    lines = source.splitlines()
    one = [finding for finding in report.findings if finding.kind is kind and finding.code == code]
    assert len(one) == 1, told(report)
    (finding,) = one
    assert at in lines[finding.line - 1], f"at line {finding.line}: {lines[finding.line - 1]}"
    assert kind is Kind.NOTE or finding.hint
    for mention in mentions:
        assert mention in finding.message, finding.message
    return finding


def told(report):
    """What the tool said, for the message of a failing test."""
    return "\n".join(f"{f.line}: {f.code} {f.kind.value} {f.message}" for f in report.findings)
