"""Who calls a function with what, and whether its signature can change."""

import ast
import textwrap

import pytest

from migrate.analysis import analyse
from migrate.analysis.sites import Way
from migrate.source.project import Project, SourceFile


def facts_of(folder, files, named=None):
    sources = []
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(textwrap.dedent(text), encoding="utf-8")
        if named is None or path in named:
            sources.append(SourceFile(path, (folder / path).read_bytes(), real=(folder / path).resolve()))
    (folder / "pyproject.toml").touch()
    return analyse(Project(sources))


def unit_of(facts, name):
    """The function `f`, or the method `C.f`."""
    owner, _, name = name.rpartition(".")
    (unit,) = [u for u in facts.functions if u.name == name and (u.owner.name if u.owner else "") == owner]
    return unit


def signature_of(folder, source, name="train"):
    facts = facts_of(folder, {"main.py": f"import torch\n{textwrap.dedent(source)}"})
    return facts.signatures.of(unit_of(facts, name))


def test_every_argument_is_told(tmp_path):
    signature = signature_of(
        tmp_path,
        """
        def train(model, loader, *rest, epochs=1):
            pass
        train(1, loader=2)
        train(1, 2, 3, epochs=4)
        """,
    )

    first, second = signature.sites
    assert [(p.node.value, p.way, p.parameter) for p in first.passed] == [
        (1, Way.POSITION, "model"),
        (2, Way.KEYWORD, "loader"),
    ]
    assert [(p.node.value, p.parameter) for p in second.passed] == [
        (1, "model"),
        (2, "loader"),
        (3, None),
        (4, "epochs"),
    ]
    assert signature.can_change
    assert not first.is_starred


def test_a_constructor_is_called_by_its_class(tmp_path):
    source = """
        class Base:
            def __init__(self, device):
                self.device = device
        class Trainer(Base):
            def __init__(self, model, device):
                super().__init__(device)
        class Other(Base):
            pass
        Trainer(1, "cuda")
        isinstance(Other("cuda"), (Trainer, Other))
    """
    signature = signature_of(tmp_path, source, "Base.__init__")

    assert signature.can_change
    assert [site.call.bound for site in signature.sites] == [True, True]
    assert [site.passed[0].parameter for site in signature.sites] == ["device", "device"]
    assert signature_of(tmp_path, source, "Trainer.__init__").can_change


CAN = {
    "decorated, with what leaves it alone": """
        @torch.no_grad()
        def train(model): ...
        train(1)
    """,
    "decorated by the project, which hands on what it is given": """
        import functools
        def timed(function):
            @functools.wraps(function)
            def inner(*args, **kwargs):
                return function(*args, **kwargs)
            return inner
        @timed
        def train(model): ...
        train(1)
    """,
    "called with two stars": """
        def train(model): ...
        def run(options):
            train(1, **options)
        run({})
    """,
    "called under another name": """
        import main as own
        def train(model): ...
        def run():
            train(1)
        run()
    """,
}


@pytest.mark.parametrize("name", CAN)
def test_can_change(name, tmp_path):
    signature = signature_of(tmp_path, CAN[name])

    assert signature.obstacles == ()
    assert len(signature.sites) == 1


LISTED = {
    "alone": ("__all__ = (train,)", True),
    "and read": ("__all__ = [train]\nfor each in __all__:\n    each(2)", False),
    "beside another name": ("steps = __all__ = [train]", False),
}


@pytest.mark.parametrize("name", LISTED)
def test_a_function_that_a_module_lists_among_what_it_exports(name, tmp_path):
    text, can_change = LISTED[name]
    signature = signature_of(tmp_path, "def train(model): ...\ntrain(1)\n" + text)

    assert (signature.obstacles == ()) == can_change


ASKED = {
    "for its truth": "if not train: ...",
    "in a part of a test": "while train and other: ...",
    "in an expression": "x = 1 if train else 2",
    "whether it is there": "if train is not None: ...",
}


@pytest.mark.parametrize("name", ASKED)
def test_a_function_that_is_only_asked_for_its_truth_can_change(name, tmp_path):
    signature = signature_of(tmp_path, "other = 1\ndef train(model): ...\ntrain(1)\n" + ASKED[name])

    assert signature.obstacles == ()


CANNOT = {
    "chosen by its truth": ("other = 1\ndef train(model): ...\ntrain(1)\nrun = train or other", "used as a value"),
    "one of both": ("def train(model): ...\ntrain(1)\nrun = train if train else None", "used as a value in main.py:4"),
    "never called": ("def train(model): ...", "nothing that was read calls it"),
    "used as a value": ("def train(model): ...\ntrain(1)\nsteps = [train]", "used as a value in main.py:4"),
    "bound in part, and called with more": (
        "from functools import partial\ndef train(model, n=1): ...\nrun = partial(train)\nrun(1, 2)",
        "called with more than it needs",
    ),
    "called with a star": ("def train(model): ...\ntrain(*parts)", "called with * or **"),
    "with two stars for more": ("def train(model, **more): ...\ntrain(1, **options)", "called with * or **"),
    "or another": (
        "def train(model): ...\ndef other(model): ...\ndef run(step):\n    step(1)\nrun(train)\nrun(other)",
        "used as a value",
    ),
    "decorated": ("import hydra\n@hydra.main()\ndef train(model): ...\ntrain()", "it is called by hydra.main()"),
    "kept by a decorator": (
        "kept = []\ndef keep(f):\n    kept.append(f)\n    return f\n@keep\ndef train(model): ...\ntrain(1)",
        "used as a value",
    ),
    "where a library is missing": (
        "try:\n    from fast import train\nexcept ImportError:\n    def train(model): ...\ntrain(1)",
        "may enter something else",
    ),
}


@pytest.mark.parametrize("name", CANNOT)
def test_cannot_change(name, tmp_path):
    source, why = CANNOT[name]
    signature = signature_of(tmp_path, source)

    assert not signature.can_change
    assert any(why in obstacle.why for obstacle in signature.obstacles), signature.obstacles
    assert all(obstacle.way_out for obstacle in signature.obstacles)


def test_a_call_in_code_that_nothing_calls(tmp_path):
    (obstacle,) = signature_of(tmp_path, "def go(x): ...\ngo(1)\ndef later():\n    go(2)", "go").obstacles

    assert "the call in main.py:5 is in code that nothing calls" in obstacle.why


METHODS = {
    "a property": ("class T:\n    @property\n    def step(self): ...\nT().step", "T.step", "is a property"),
    "what Python calls": ("class T:\n    def __len__(self): ...\nlen(T())", "T.__len__", "Python calls it"),
    "what a library may call": (
        "class T(torch.nn.Module):\n    def forward(self, x): ...\nT()(1)",
        "T.forward",
        "torch.nn.Module may call it",
    ),
    "an override with other parameters": (
        "class A:\n    def step(self, x): ...\nclass B(A):\n    def step(self, y, z=0): ...\nA().step(1)\nB().step(1)",
        "A.step",
        "B.step() in main.py has other parameters",
    ),
    "an override with other names, by one of which it is called": (
        "class A:\n    def step(self, x): ...\nclass B(A):\n    def step(self, y): ...\nA().step(1)\nB().step(y=1)",
        "A.step",
        "B.step() in main.py has other parameters",
    ),
    "a class that is a value": (
        "class T:\n    def __init__(self, x): ...\nT(1)\nkinds = {'t': T}",
        "T.__init__",
        "used as a value in main.py:5",
    ),
    "a call that may enter a stranger with other parameters": (
        "class A:\n    def go(self, x): ...\nclass B:\n    def go(self, x, y=0): ...\n[t.go(1) for t in (A(), B())]",
        "A.go",
        "B.go() in main.py has other parameters",
    ),
    "a call that may enter a method or a function": (
        "class A:\n    def step(self, x): ...\ndef go(x): ...\ndef run(f):\n    f(1)\nrun(A().step)\nrun(go)",
        "A.step",
        "used as a value",
    ),
    "a call in code that nothing calls, where the object may be": (
        "class A:\n    def go(self): ...\nkept = A()\nkept.go()\ndef later():\n    kept.go()",
        "A.go",
        "is in code that nothing calls",
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_that_cannot_change(name, tmp_path):
    source, unit, why = METHODS[name]
    signature = signature_of(tmp_path, source, unit)

    assert any(why in obstacle.why for obstacle in signature.obstacles), signature.obstacles


def test_methods_that_one_call_may_enter_change_together(tmp_path):
    source = """
        class A:
            def step(self, x): ...
        class B:
            def step(self, x): ...
        agent = A() if len("a") else B()
        agent.step(1)
    """
    signature = signature_of(tmp_path, source, "A.step")

    assert signature.obstacles == ()
    assert [unit.owner.name for unit in signature.family] == ["B"]


CHOSEN = """
import sys
import torch
if len(sys.argv) > 1:
    from words import load
else:
    from letters import load
load("train.txt")
"""
CHOSEN_FROM = {
    "the same parameters": ("def load(path): ...\n", "def load(path): ...\n", ""),
    "others": ("def load(path): ...\n", "def load(path, size=4): ...\n", "has other parameters"),
    "used as a value": ("def load(path): ...\n", "def load(path): ...\nkept = [load]\n", "used as a value"),
    "of a library": ("def load(path): ...\n", "from numpy import load\n", "may enter something else"),
}


@pytest.mark.parametrize("name", CHOSEN_FROM)
def test_functions_of_two_files_that_one_call_may_enter_change_together(name, tmp_path):
    words, letters, why = CHOSEN_FROM[name]
    facts = facts_of(tmp_path, {"main.py": CHOSEN, "words.py": words, "letters.py": letters})
    found = [unit for unit in facts.functions if unit.name == "load"]

    for unit in found:
        signature = facts.signatures.of(unit)
        assert {unit, *signature.family} == set(found)
        assert [o.why for o in signature.obstacles if why in o.why] if why else not signature.obstacles


def test_a_call_of_a_name_in_code_that_nothing_calls_cannot_be_of_an_object_in_hand(tmp_path):
    source = """
        class A:
            def go(self): ...
        class Log:
            def later(self):
                self.mean.go()
        def run():
            agent = A()
            agent.go()
        run()
    """
    assert signature_of(tmp_path, source, "A.go").obstacles == ()


def test_methods_that_override_each_other_change_together(tmp_path):
    source = """
        class Base:
            def step(self, x):
                raise NotImplementedError
            def run(self):
                self.step(1)
        class A(Base):
            def step(self, x): ...
        class B(Base):
            def step(self, x): ...
        A().run()
        B().run()
    """
    facts = facts_of(tmp_path, {"main.py": f"import torch\n{textwrap.dedent(source)}"})
    units = {name: unit_of(facts, f"{name}.step") for name in ("Base", "A", "B")}

    for unit in units.values():
        signature = facts.signatures.of(unit)
        assert {unit, *signature.family} == set(units.values())
        assert signature.can_change, signature.obstacles
    assert facts.signatures.of(units["A"]).sites[0].call.node is facts.signatures.of(units["B"]).sites[0].call.node


def test_what_is_exported_is_known_to_be(tmp_path):
    files = {
        "main.py": "import torch\nfrom lib import train\nimport user\ntrain(1)\n",
        "lib/__init__.py": "from .engine import train\n",
        "lib/engine.py": '__all__ = ["train"]\ndef train(model): ...\n',
        "user.py": "from lib.engine import train\n",
    }
    facts = facts_of(tmp_path, files, named=["main.py", "lib/__init__.py", "lib/engine.py"])
    signature = facts.signatures.of(unit_of(facts, "train"))

    found = [path.removeprefix(f"{tmp_path.resolve()}/") for path in signature.exported]
    assert sorted(found) == ["lib/__init__.py", "lib/engine.py", "user.py"]
    assert signature.can_change  # every call is seen


def test_a_caller_that_was_not_named(tmp_path):
    files = {
        "main.py": "import torch\nimport user\ndef train(model): ...\n",
        "user.py": "import main\nmain.train(1)\n",
    }
    facts = facts_of(tmp_path, files, named=["main.py"])
    (obstacle,) = facts.signatures.of(unit_of(facts, "train")).obstacles

    assert obstacle.unnamed.endswith("user.py")


def test_a_call_of_a_class_enters_its_constructor(tmp_path):
    source = "import torch\nclass A:\n    def __init__(self): ...\nclass B(A): ...\nclass C: ...\nB()\nC()\n"
    facts = facts_of(tmp_path, {"main.py": source})
    b, c = [use.node for use in facts.calls]

    assert facts.targets(b) == (unit_of(facts, "A.__init__"),)
    assert facts.targets(c) == ()


HANDED = {
    "spawned": (
        "import torch.multiprocessing as mp\ndef train(rank, device): ...\nmp.spawn(train, args=('cuda',), nprocs=2)",
        "torch.multiprocessing.spawn() calls it with what it is given in main.py:4",
    ),
    "in a thread": (
        "import threading\ndef train(x): ...\nthreading.Thread(target=train, kwargs={'x': 1}).start()\ntrain(2)",
        "threading.Thread() calls it with what it is given in main.py:4",
    ),
    "for each element": ("def train(device): ...\nlist(map(train, [1, 2]))", "builtins.map() calls it"),
    "one of several": ("import fire\ndef train(device): ...\nfire.Fire({'train': train})", "fire.Fire() calls it"),
    "by a command line": (
        "import click\n@click.command()\ndef train(device): ...\ntrain()",
        "it is called by click.command(), and with what is not up to the program",
    ),
    "by a command line, without a call": (
        "import click\n@click.command\ndef train(device): ...\ntrain()",
        "it is called by click.command(), and with what is not up to the program",
    ),
}


@pytest.mark.parametrize("name", HANDED)
def test_a_library_that_calls_it_stands_in_the_way(name, tmp_path):
    source, why = HANDED[name]
    signature = signature_of(tmp_path, source)

    assert why in signature.obstacles[0].why
    assert not any("used as a value" in obstacle.why for obstacle in signature.obstacles)
    assert signature.callers_known


def test_what_a_library_passes_is_told_as_far_as_it_is_written(tmp_path):
    source = """
        import threading
        import torch.multiprocessing as mp
        def train(rank, model, *rest, device=None):
            pass
        mp.spawn(train, args=(1, 2), nprocs=2)
        threading.Thread(target=train, args=(3,), kwargs={"device": 4}).start()
        threading.Thread(target=train, args=parts, kwargs=options).start()
    """
    sites = signature_of(tmp_path, source).sites
    told = [[(ast.unparse(p.node), p.way, p.parameter) for p in site.passed] for site in sites]

    assert told == [
        [("1", Way.POSITION, "model"), ("2", Way.POSITION, None)],
        [("3", Way.POSITION, "rank"), ("4", Way.KEYWORD, "device")],
        [("parts", Way.STAR, None), ("options", Way.STAR, None)],
    ]
    assert [site.call.handed.often for site in sites] == [False] * 3


def test_what_is_handed_over_and_kept_is_used_as_a_value(tmp_path):
    source = "import threading\ndef train(x): ...\nthreading.Thread(target=train, args=(train,)).start()"
    signature = signature_of(tmp_path, source)

    assert any("used as a value in main.py:4" in obstacle.why for obstacle in signature.obstacles)


SECOND_NAME = """
def train(model): ...
def quick(model): ...
def main(fast):
    run = train
    if fast:
        run = {other}
    {use}
"""


def test_functions_under_a_second_name_change_together(tmp_path):
    signature = signature_of(tmp_path, SECOND_NAME.format(other="quick", use="run(1)") + "main(True)")

    assert signature.can_change
    assert [unit.name for unit in signature.family] == ["quick"]


@pytest.mark.parametrize("use", ["run(1)\n    return run", "run(1)\n    hooks = [run]", "global run\n    run(1)"])
def test_a_second_name_that_is_handed_on_stands_in_the_way(tmp_path, use):
    signature = signature_of(tmp_path, SECOND_NAME.format(other="quick", use=use) + "main(True)")

    assert any("used as a value" in obstacle.why for obstacle in signature.obstacles)


def test_functions_of_other_parameters_under_a_second_name_stay(tmp_path):
    source = (
        SECOND_NAME.format(other="quick", use="run(1)")
        .replace("quick(model)", "quick(net)")
        .replace("run(1)", "run(model=1)")
    )
    signature = signature_of(tmp_path, source + "main(True)")

    assert not signature.can_change
