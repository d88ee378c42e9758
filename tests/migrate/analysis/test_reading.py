"""Which of the files met in a folder are read: what may lead to a training loop, and who shares its functions."""

from pathlib import Path

import pytest

from migrate.analysis import analyse
from migrate.source.project import Project, SourceFile
from migrate.source.reach import imported_names

ENGINE = """
import torch
def fit(model, loader, optimizer):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
"""
HELPERS = """
import torch
def evaluate(model, loader, device):
    for x in loader:
        model(x.to(device))
def title(text):
    return text.upper()
"""
MAIN = """
import engine
from helpers import evaluate
def main():
    engine.fit(1, 2, 3)
    evaluate(1, 2, 3)
main()
"""
FILES = {
    "engine.py": ENGINE,
    "helpers.py": HELPERS,
    "main.py": MAIN,
    "score.py": "import torch\nfrom helpers import evaluate\nevaluate(1, 2, 'cpu')\n",
    "banner.py": "import torch\nfrom helpers import title\nprint(title('a'))\n",
    "export.py": "import torch\ntorch.save(torch.zeros(1), 'zeros.pt')\n",
}


@pytest.fixture
def read(tmp_path):
    """The names of the files that are read when a folder with these files is named."""

    def run(files, named=()):
        sources = []
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            sources.append(SourceFile(name, text.encode(), real=path, found=name not in named))
        return {Path(module.path).as_posix() for module in analyse(Project(sources)).modules}

    return run


def test_what_trains_what_leads_there_and_what_that_needs(read):
    assert {"engine.py", "main.py", "helpers.py"} <= read(FILES)


def test_who_shares_a_function_of_the_program(read):
    """score.py never trains, but what becomes of `evaluate` concerns it."""
    assert "score.py" in read(FILES)


def test_not_who_only_shares_what_no_rule_looks_at(read):
    assert read(FILES).isdisjoint({"banner.py", "export.py"})


def test_what_is_named_itself(read):
    assert "export.py" in read(FILES, named={"export.py"})


def test_through_packages_and_several_steps(read):
    files = {
        "pkg/__init__.py": "from .inner import (\n    fit,\n)\n",
        "pkg/inner.py": ENGINE,
        "steps.py": "from pkg import fit\ndef steps():\n    fit(1, 2, 3)\n",
        "main.py": "from steps import steps\nsteps()\n",
        "other.py": "import torch\n",
    }
    assert read(files) == {"pkg/__init__.py", "pkg/inner.py", "steps.py", "main.py"}


def test_who_imports_by_a_name_that_is_not_written_out(read):
    files = {"engine.py": ENGINE, "main.py": "import importlib\nimportlib.import_module('eng' + 'ine').fit(1, 2, 3)\n"}
    assert "main.py" in read(files)


def test_a_folder_in_which_nothing_trains(read):
    assert read({"export.py": FILES["export.py"], "score.py": FILES["score.py"]}) == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"import a.b as c, d\n", b"import a b as c d"),
        (b"    from .x import (y,\n  z)\n", b"from x import y z"),
        (b"from a import b, \\\n    c\nd = 1\n", b"from a import b c"),
        (b"from a.b \\\r\n    import c\r\n", b"from a b import c"),
        (b"# a banner \\\nimport a\n", b"import a"),
        (b"import a, imports\nfrom b import (c,\n import_d)\n", b"import a imports from b c import_d"),
        (b"important = 1\nx = 'import y'\n", b""),
    ],
)
def test_the_names_in_imports(text, names):
    assert imported_names(text) == frozenset(names.split())
