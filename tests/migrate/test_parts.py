"""Files that have nothing to do with each other are told apart, by every way in which one can import another."""

import sys
from collections import Counter

import pytest

from migrate import pipeline
from migrate.options import Mode, Options
from migrate.source.files import load
from migrate.source.parts import parts
from migrate.source.project import Project

TRAINS = "import torch\n\n\ndef fit(loss):\n    loss.backward()\n"

SCRIPT = """
import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=4)
for (x,) in loader:
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
"""


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Project(load([str(folder)]).files)


def names(folder, project):
    return [{str(file.real.relative_to(folder)) for file in part.named} for part in parts(project)]


@pytest.mark.parametrize(
    "imports",
    [
        "import engine\n",
        "import os, engine as e\n",
        "from engine import fit\n",
        "from engine import (  # all of it\n    fit,\n)\n",
        "from engine import \\\n    fit\n",
        "def main():\n    from engine import fit\n    fit(1)\n",
        "import importlib\nimportlib.import_module('eng' + 'ine').fit(1)\n",
        "from . import engine\n",
        "from .engine import fit\n",
    ],
)
def test_a_file_stands_with_what_it_imports(tmp_path, imports):
    project = written(tmp_path, {"engine.py": TRAINS, "train.py": f"import torch\n{imports}"})

    assert names(tmp_path, project) == [{"engine.py", "train.py"}]


@pytest.mark.parametrize("name", ["NativeScaler", "ApexScaler"])
def test_a_scaler_of_a_library_trains_without_the_word_backward(tmp_path, name):
    script = SCRIPT.replace("loss.backward()\n    optimizer.step()", "scaler(loss, optimizer)")
    script = f"from timm.utils import {name}\nscaler = {name}()\n{script}"
    project = written(tmp_path, {"train.py": script, "other.py": "import torch\n"})

    assert names(tmp_path, project) == [{"train.py"}]


IN_SIGHT = (
    "importlib.import_module('engine')",
    "importlib.import_module('engine' if len(sys.argv) > 1 else 'eng' + 'ine')",
    "__import__('engine')",
    "importlib.import_module('.engine', __package__)",
)
COMPUTED = (
    "importlib.import_module(sys.argv[1])",
    "importlib.import_module(f'{sys.argv[1]}')",
    "importlib.import_module('.engine', sys.argv[1])",
    "importlib.import_module('%s.engine' % sys.argv[1])",
    "importlib.import_module(*sys.argv)",
    "importlib.import_module(name=sys.argv[1])",
    "map(importlib.import_module, sys.argv)",
    "getattr(importlib, 'import_module')(sys.argv[1])",
    "importlib.import_module('engine' + sys.argv[1])",
    "from importlib import import_module as load\nload(sys.argv[1])",
)


@pytest.mark.parametrize("load", [*IN_SIGHT, *COMPUTED])
def test_a_module_that_is_imported_by_name(tmp_path, load):
    """Where the name is in sight, that module is meant; where it is computed, any may be."""
    script = f"import importlib, sys, torch\n{load}\n"
    project = written(tmp_path, {"engine.py": TRAINS, "train.py": script, "other.py": SCRIPT})
    apart = [{"engine.py", "train.py"}, {"other.py"}]

    assert names(tmp_path, project) == (apart if load in IN_SIGHT else [set.union(*apart)])


BEGUN = (
    "importlib.import_module('models.' + sys.argv[1])",
    "importlib.import_module(f'models.{sys.argv[1]}')",
    "importlib.import_module(f'models.{sys.argv[1]}.net')",
    "importlib.import_module('models.%s' % sys.argv[1])",
    "importlib.import_module('models.{}'.format(sys.argv[1]))",
    "importlib.import_module(f'.models.{sys.argv[1]}', package=__package__)",
    "importlib.import_module('models.net' + sys.argv[1])",
    "importlib.import_module('models.' + sys.argv[1] if len(sys.argv) > 1 else 'engine')",
)


@pytest.mark.parametrize("load", BEGUN)
@pytest.mark.parametrize("init", [{}, {"models/__init__.py": ""}])
def test_a_module_of_which_the_name_begins_in_sight(tmp_path, load, init):
    """What lies below the package may be meant, and nothing else."""
    files = {"models/net_a.py": TRAINS, "models/deep/net.py": TRAINS, "engine.py": TRAINS, "other.py": SCRIPT, **init}
    project = written(tmp_path, {**files, "train.py": f"import importlib, sys, torch\n{load}\n"})

    below = {"models/net_a.py"} | ({"models/deep/net.py"} if "models.net" not in load else set())
    with_it = next(part for part in names(tmp_path, project) if "train.py" in part)
    assert with_it == {"train.py", *below, *init} | ({"engine.py"} if "engine" in load else set())


def test_a_library_of_which_a_module_is_computed(tmp_path):
    script = f"import importlib, sys\nimportlib.import_module(f'gym.envs.{{sys.argv[1]}}')\n{SCRIPT}"
    project = written(tmp_path, {"engine.py": TRAINS, "train.py": script})

    assert names(tmp_path, project) == [{"engine.py"}, {"train.py"}]


def test_scripts_stand_together_by_a_computed_module_that_was_not_named(tmp_path):
    computed = "import importlib, sys, torch\nimportlib.import_module('lib.' + sys.argv[1])\n"
    files = {"lib/engine.py": TRAINS, "one.py": computed, "two.py": "import torch, lib.engine\n", "other.py": TRAINS}
    written(tmp_path, files)
    named = [str(tmp_path / name) for name in ("one.py", "two.py", "other.py")]

    assert names(tmp_path, Project(load(named).files)) == [{"one.py", "two.py"}, {"other.py"}]


def test_files_of_one_name_in_two_folders(tmp_path):
    script = "import torch\nfrom engine import fit\n"
    files = {
        f"{folder}/{name}": text for folder in "ab" for name, text in (("engine.py", TRAINS), ("train.py", script))
    }
    project = written(tmp_path, files)

    assert names(tmp_path, project) == [{"a/engine.py", "a/train.py"}, {"b/engine.py", "b/train.py"}]


def test_two_scripts_of_one_module_stand_together(tmp_path):
    script = "import torch\nfrom lib.engine import fit\n"
    files = {"lib/engine.py": TRAINS, "one.py": script, "two.py": script, "other.py": TRAINS}
    project = written(tmp_path, files)

    assert names(tmp_path, project) == [{"lib/engine.py", "one.py", "two.py"}, {"other.py"}]


def test_scripts_stand_together_by_a_module_that_was_not_named(tmp_path):
    script = "import torch\nfrom engine import fit\n"
    written(tmp_path, {"engine.py": TRAINS, "one.py": script, "two.py": script, "other.py": TRAINS})
    named = [str(tmp_path / name) for name in ("one.py", "two.py", "other.py")]
    project = Project(load(named).files)

    assert names(tmp_path, project) == [{"one.py", "two.py"}, {"other.py"}]


def test_a_package_is_imported_with_what_lies_in_it(tmp_path):
    files = {"pkg/__init__.py": "from pkg.engine import fit\n", "pkg/engine.py": TRAINS, "pkg/names.py": "NAMES = 1\n"}
    project = written(tmp_path, {**files, "train.py": "import torch\nimport pkg.names\n"})

    assert names(tmp_path, project) == [set(files) | {"train.py"}]


def test_a_folder_that_is_added_to_the_path(tmp_path):
    added = "import os, sys, torch\nsys.path.append(os.path.join(os.path.dirname(__file__), 'lib'))\nimport engine\n"
    project = written(tmp_path, {"lib/engine.py": TRAINS, "train.py": added})

    assert names(tmp_path, project) == [{"lib/engine.py", "train.py"}]


def test_files_without_a_training_are_left_out(tmp_path):
    project = written(tmp_path, {"train.py": TRAINS, "setup.py": "import setuptools\n"})

    assert names(tmp_path, project) == [{"train.py"}]


def test_a_report_has_the_files_in_order(tmp_path):
    written(tmp_path, {f"{name}/train.py": SCRIPT for name in ("c", "a", "b")})
    given = [str(tmp_path / name / "train.py") for name in ("c", "a", "b")]

    report = pipeline.run(given, Options())

    assert [change.path for change in report.changes] == given
    assert [finding.path for finding in report.findings] == sorted(finding.path for finding in report.findings)
    assert report.files == 3


def calls(folder):
    """How many functions are called for a check of a folder."""
    count = Counter()
    pipeline.run([str(folder)], Options(mode=Mode.CHECK))  # what is imported and learnt once
    sys.setprofile(lambda frame, event, argument: count.update([event]))
    try:
        report = pipeline.run([str(folder)], Options(mode=Mode.CHECK))
    finally:
        sys.setprofile(None)
    assert len(report.touched) == 1
    return count["call"]


def test_the_work_for_files_that_import_each_other_grows_as_they_do(tmp_path):
    counted = []
    for size in (100, 200):
        plain = {f"mod{n}.py": f"import torch\nimport mod{n * 7 % size}\nimport mod{n + 1}\n" for n in range(size)}
        written(tmp_path / str(size), {"pyproject.toml": "", "train.py": f"import mod1\n{SCRIPT}", **plain})
        counted.append(calls(tmp_path / str(size)))

    assert counted[1] < 2.2 * counted[0]
