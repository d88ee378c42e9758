"""The analysis never crashes; and where it did, that would cost one file, which would say so."""

from pathlib import Path

import hypothesmith
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate import pipeline
from migrate.analysis import analyse, statements
from migrate.options import Mode, Options
from migrate.report.model import Kind
from migrate.source.project import Project, SourceFile

FIXTURES = Path(__file__).parents[3] / "fixtures"
PROGRAMS = sorted(FIXTURES.glob("*/before.py"))

#: Words that make the analysis look: put where a generated program has names of its own.
HEAD = b"import torch\nfrom torch import nn, optim\nfrom torch.utils.data import DataLoader\n"


def check(content):
    """Analyse it, and say what the tool would do with it; whatever it is, nothing of ours may break."""
    project = Project([SourceFile("program.py", content)])
    report = pipeline.convert(project, Options(mode=Mode.CHECK))
    assert not report.causes, content
    if project.files:
        assert not analyse(project).broken, content


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(hypothesmith.from_grammar())
def test_any_program_of_the_grammar(text):
    check(HEAD + text.encode("utf-8", "surrogatepass"))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(hypothesmith.from_node())
def test_any_program_of_nodes(text):
    check(HEAD + text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.parent.name)
def test_a_program_cut_anywhere(path):
    """As an editor sees it while somebody types: most cuts do not parse, those at the end of a line often do."""
    lines = path.read_bytes().splitlines(keepends=True)
    step = max(1, len(lines) // 6)
    for end in range(1, len(lines), step):
        check(b"".join(lines[:end]))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(PROGRAMS), data=st.data())
@pytest.mark.long
def test_a_program_with_lines_taken_out_and_put_elsewhere(path, data):
    lines = path.read_bytes().splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        line = lines.pop(data.draw(st.integers(0, len(lines) - 1)))
        if data.draw(st.booleans()):
            lines.insert(data.draw(st.integers(0, len(lines))), line)
    check(b"".join(lines))


LOOP = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
{more}
net = nn.Linear(1, 1)
opt = optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(torch.zeros(4, 1))
for x in loader:
    opt.zero_grad()
    loss = net(x).sum()
    loss.backward()
    opt.step()
"""


@pytest.fixture
def broken_analysis(monkeypatch):
    """An analysis that fails on every `while`."""

    def fail(state, statement, frame):
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setitem(statements._KINDS, statements.ast.While, fail)


def test_a_bug_of_ours_costs_one_file(broken_analysis):
    good = SourceFile("good.py", LOOP.format(more="").encode())
    bad = SourceFile("bad.py", LOOP.format(more="while x: pass").encode())

    report = pipeline.convert(Project([good, bad]), Options())

    assert [change.path for change in report.changes] == ["good.py"]
    assert [(f.code, f.path) for f in report.of(Kind.LEFT) if "bug of ours" in f.message] == [("MIG999", "bad.py")]
    assert report.exit_status(Mode.DIFF) == 2


def test_a_program_that_imports_the_file_is_left_too(broken_analysis, tmp_path):
    main, helper = tmp_path / "main.py", tmp_path / "helper.py"
    main.write_text(LOOP.format(more="from helper import data"))
    helper.write_text("import torch\ndata = 1\nwhile data: pass\n")

    report = pipeline.convert(Project([SourceFile("main.py", main.read_bytes(), real=main)]), Options())

    assert not report.changes
    assert any(f.code == "MIG999" and f.path == "main.py" for f in report.of(Kind.LEFT))
    assert any(f.code == "MIG999" and f.path.endswith("helper.py") for f in report.of(Kind.LEFT))
