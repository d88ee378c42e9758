"""Where a new import goes."""

from __future__ import annotations

import pytest

HEAD = "from runtime import Accelerator"
TABLE = {
    "alphabetical among third party": (
        "import os\n\nimport torch\nfrom alpha import a\nfrom torch import nn\n\nx\n",
        f"import os\n\nimport torch\nfrom alpha import a\n{HEAD}\nfrom torch import nn\n\nx\n",
    ),
    "at the end": (
        "import torch\nfrom alpha import a\n\nx\n",
        f"import torch\nfrom alpha import a\n{HEAD}\n\nx\n",
    ),
    "behind plain imports": ("import torch\nimport zlib_x\n\nx\n", f"import torch\nimport zlib_x\n{HEAD}\n\nx\n"),
    "not sorted: before the first greater": (
        "from torch import nn\nfrom alpha import a\nimport torch\n\nx\n",
        f"{HEAD}\nfrom torch import nn\nfrom alpha import a\nimport torch\n\nx\n",
    ),
    "sorted by module over both styles": (
        "from alpha import a\nimport numpy\nfrom torch import nn\nimport zebra\n\nx\n",
        f"from alpha import a\nimport numpy\n{HEAD}\nfrom torch import nn\nimport zebra\n\nx\n",
    ),
    "standard library in the same block": (
        "import argparse\nimport torch\nfrom typing import Any\nfrom alpha import a\n\nx\n",
        f"import argparse\nimport torch\nfrom typing import Any\nfrom alpha import a\n{HEAD}\n\nx\n",
    ),
    "local modules come after": (
        "import torch\nfrom torch import nn\n\nfrom .model import Net\nfrom model import Other\n\nx\n",
        f"import torch\n{HEAD}\nfrom torch import nn\n\nfrom .model import Net\nfrom model import Other\n\nx\n",
    ),
    "only the standard library": ("import os\nimport sys\n\nx\n", f"import os\nimport sys\n\n{HEAD}\n\nx\n"),
    "only the standard library, then a function": (
        "import os\n\n\ndef f(): pass\n",
        f"import os\n\n{HEAD}\n\n\ndef f(): pass\n",
    ),
    "only local modules": ("from .model import Net\n\nx\n", f"{HEAD}\n\nfrom .model import Net\n\nx\n"),
    "future": (
        '"""doc"""\n\nfrom __future__ import annotations\n\nx\n',
        f'"""doc"""\n\nfrom __future__ import annotations\n\n{HEAD}\n\nx\n',
    ),
    "docstring": ('"""doc"""\n\nx\n', f'"""doc"""\n\n{HEAD}\n\nx\n'),
    "nothing": ("x\n", f"{HEAD}\n\nx\n"),
    "a shebang": ("#!/bin/x\nx\n", f"#!/bin/x\n\n{HEAD}\n\nx\n"),
    "a comment stays with its import": (
        "import torch\n# nets\nfrom torchvision import models  # all\n\nx\n",
        f"import torch\n{HEAD}\n# nets\nfrom torchvision import models  # all\n\nx\n",
    ),
    "below a heading": (
        '"""doc"""\n\n# Imports\nimport torch\nfrom torch import nn\n\nx\n',
        f'"""doc"""\n\n# Imports\nimport torch\n{HEAD}\nfrom torch import nn\n\nx\n',
    ),
    "first below a heading": (
        "import os\n\n# Third party\n# (pinned)\nfrom torch import nn\n\nx\n",
        f"import os\n\n# Third party\n# (pinned)\n{HEAD}\nfrom torch import nn\n\nx\n",
    ),
    "not below a comment on one import": (
        "import torch\nfrom torch import nn\n\n# for the curves\nfrom torchmetrics import Mean\n\nx\n",
        f"import torch\n{HEAD}\nfrom torch import nn\n\n# for the curves\nfrom torchmetrics import Mean\n\nx\n",
    ),
    "never inside try": (
        "import torch\ntry:\n    from zeta import z\nexcept ImportError:\n    z = None\n\nx\n",
        f"import torch\n{HEAD}\ntry:\n    from zeta import z\nexcept ImportError:\n    z = None\n\nx\n",
    ),
    "behind what must run first": (
        "import os\nos.environ['A'] = '1'\nimport torch\n\nx\n",
        f"import os\nos.environ['A'] = '1'\nimport torch\n{HEAD}\n\nx\n",
    ),
    "not below functions": (
        "import torch\n\ndef f(): pass\n\nimport zeta\n",
        f"import torch\n{HEAD}\n\ndef f(): pass\n\nimport zeta\n",
    ),
    "a line of several": (
        "import os; import torch; import zeta\nx\n",
        f"import os; import torch; import zeta\n{HEAD}\nx\n",
    ),
    "a line that imports and uses": (
        "import torch\nimport os; os.chdir('a'); from zeta import z\nimport abc\n\nx\n",
        f"import torch\n{HEAD}\nimport os; os.chdir('a'); from zeta import z\nimport abc\n\nx\n",
    ),
    "between two imports of a line": (
        "import torch\nimport mat; mat.use('a'); from mat import x\nx\n",
        f"import torch\nimport mat; mat.use('a'); from mat import x\n{HEAD}\nx\n",
    ),
    "several lines": (
        "from alpha import (\n    a,\n    b,\n)\nfrom zeta import (\n    c,\n)\n\nx\n",
        f"from alpha import (\n    a,\n    b,\n)\n{HEAD}\nfrom zeta import (\n    c,\n)\n\nx\n",
    ),
    "there already": ("import torch\nfrom runtime import Accelerator\n\nx\n", None),
    "there with others": ("from runtime import (\n    Accelerator,\n    other,\n)\n\nx\n", None),
    "there below other code": ("import torch\n\nx = 1\ndef f():\n    x\nfrom runtime import Accelerator\n", None),
    "the module is there": (
        "from runtime import set_seed\n\nx\n",
        "from runtime import Accelerator, set_seed\n\nx\n",
    ),
    "the module is there, in lines": (
        "from runtime import (\n    Abc,\n    set_seed,\n)\n\nx\n",
        "from runtime import (\n    Abc,\n    Accelerator,\n    set_seed,\n)\n\nx\n",
    ),
    "under another name": (
        "from runtime import Accelerator as A\n\nx\n",
        "from runtime import Accelerator as A, Accelerator\n\nx\n",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_place(edit, name):
    source, result = TABLE[name]
    e = edit(source)
    second = edit("model = 1\n", path="model.py")
    e.plan = type(e.plan)([e.file, second.file])
    e.do("add_import", "train.py", "runtime", "Accelerator")
    assert e.text() == (source if result is None else result)
    assert (e.plan.touched == ()) == (result is None)


@pytest.mark.parametrize("name", [name for name in TABLE if TABLE[name][1]])
def test_a_second_run_adds_nothing(edit, name):
    e = edit(TABLE[name][1])
    e.do("add_import", "train.py", "runtime", "Accelerator")
    assert e.plan.touched == ()


OWN = {
    "among Python's own": ("import argparse\nimport os\n\nimport torch\n\nfrom model import Net\n\nx\n", "argparse\n"),
    "above all others": ("import torch\nfrom torch import nn\n\nx\n", ""),
    "in a block of all": ("import os\nimport torch\nfrom torch import nn\n\nx\n", ""),
}


@pytest.mark.parametrize("name", OWN)
def test_a_module_of_python_itself(edit, name):
    source, above = OWN[name]
    e = edit(source)
    e.do("add_import", "train.py", "logging")
    first = f"import {above}" if above else ""
    gap = "\n" if "import os" not in source else ""
    assert e.text() == f"{first}import logging\n{gap}{source.removeprefix(first)}"


def test_what_is_put_beside_it_stands_below_it(edit):
    e = edit("import torch\nx = 1\n")
    e.do("insert_after", e.stmt("import torch"), "accelerator = Accelerator()")
    e.do("add_import", "train.py", "runtime", "Accelerator")
    assert e.text() == "import torch\nfrom runtime import Accelerator\naccelerator = Accelerator()\nx = 1\n"


def test_several_names_share_a_statement(edit):
    e = edit("import torch\n\nx\n")
    e.do("add_import", "train.py", "runtime", "set_seed", rule="A").do(
        "add_import", "train.py", "runtime", "Accelerator", rule="B"
    ).do("add_import", "train.py", "runtime", "Accelerator", rule="C").do("add_import", "train.py", "numpy", rule="D")
    assert e.text() == "import numpy\nimport torch\nfrom runtime import Accelerator, set_seed\n\nx\n"
    assert [edit.rule for edit in e.plan.edits()] == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    ("source", "names", "result"),
    [
        ("from a import b, c, d\n", ["c"], "from a import b, d\n"),
        ("from a import b, c, d\n", ["d"], "from a import b, c\n"),
        ("from a import (\n    b,\n    c,\n)\n", ["c"], "from a import (\n    b,\n)\n"),
        ("from a import b as c, d\n", ["c"], "from a import d\n"),
        ("import a, b.c\n", ["b.c"], "import a\n"),
        ("from a import b, c\nx\n", ["b", "c"], "x\n"),
        ("try:\n    import a\nexcept E:\n    a = None\n", ["a"], "try:\n    pass\nexcept E:\n    a = None\n"),
    ],
)
def test_drop(edit, source, names, result):
    e = edit(source)
    stmt = next(s for s in e.file.index.statements if hasattr(s, "names"))
    for name in names:
        e.do("drop_import", stmt, name)
    assert e.text() == result


def test_a_plain_import_stands_above_those_of_names(edit):
    e = edit("from numpy import array\nfrom torch import nn\n\nx\n")
    e.do("add_import", "train.py", "torch")
    assert e.text() == "import torch\nfrom numpy import array\nfrom torch import nn\n\nx\n"


def test_dropping_twice_is_agreed(edit):
    e = edit("from a import b, c\n")
    e.do("drop_import", e.stmt("from"), "b").do("drop_import", e.stmt("from"), "b")
    assert e.text() == "from a import c\n"
    with pytest.raises(ValueError, match="does not import z"):
        e.do("drop_import", e.stmt("from"), "z")


def test_an_import_takes_the_place_of_a_dropped_one(edit):
    e = edit("import torch\nfrom torch.cuda.amp import GradScaler\n\nx\n")
    e.do("drop_import", e.stmt("from"), "GradScaler").do("add_import", "train.py", "runtime", "Accelerator")
    assert e.text() == f"import torch\n{HEAD}\n\nx\n"
