"""Pages of real conversions, and of one whose every text is hostile."""

import types
from pathlib import Path

import pytest

from migrate import pipeline
from migrate.cli import catalogue
from migrate.errors import SourceError
from migrate.options import Mode, Options
from migrate.report.formats.about import About
from migrate.report.html import page
from migrate.report.map import Arrow, Flow, Frame, Map, Part, Place, Thing
from migrate.report.model import Change, Edit, Finding, Kind, Report, Summary
from migrate.source.project import SourceFile

ROOT = Path(__file__).resolve().parents[4]
#: Two models; a refusal; several files; a scheduler; two programs that share a file; a loop over phases; no loader.
FIXTURES = (
    "gan/before.py",
    "model-parallel/before.py",
    "ddp-helpers/before",
    "plateau/before.py",
    "two-scripts/before",
    "phases/before.py",
    "no-dataloader/before.py",
)
EVIL = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"' `a` &amp; \u202edesrever\u2066\u200b \udcff\x07"
)
EVIL_PATH = '"><b>\u202eevil\udcfe.py'


@pytest.fixture(scope="session")
def about():
    return About("1.0", Mode.PREVIEW, {rule.code: rule for rule in catalogue.every()})


@pytest.fixture(scope="session")
def reports():
    return {name: pipeline.run([str(ROOT / "fixtures" / name)], Options(report=True)) for name in FIXTURES}


@pytest.fixture(scope="session")
def pages(reports, about):
    return {**{name: page(report, about) for name, report in reports.items()}, "hostile": page(_hostile(), about)}


@pytest.fixture(scope="session")
def evil():
    return EVIL


def _hostile():
    """A report in which nothing can be trusted."""
    old = f"import torch\nx = '''{EVIL.replace(chr(0xDCFF), '')}'''\ny = 1\n".encode()
    new = old.replace(b"y = 1", f"y = 2  # {EVIL.replace(chr(0xDCFF), '')}".encode())
    place = Place(EVIL_PATH, 2)
    things = tuple(Thing(part, EVIL, EVIL, place, EVIL) for part in Part)
    frame = Frame(
        True, place, EVIL, EVIL, place, tuple(range(5)), (Arrow(0, 1, Flow.BATCHES), Arrow(3, 1, Flow.UPDATES))
    )
    kinds = (Kind.LEFT, Kind.REVIEW, Kind.NOTE, Kind.FAULT, Kind.LOOP)
    return Report(
        findings=tuple(Finding("MIG105", EVIL_PATH, 2, 1, 2, EVIL, EVIL, kind, loop=EVIL) for kind in kinds),
        summaries=(Summary(EVIL_PATH, EVIL, (EVIL_PATH, EVIL), map=Map(things, (frame,), ((place, EVIL),))),),
        changes=(Change(EVIL_PATH, old, new, (f"2: {EVIL}",), edits=(Edit("MIG105", 3, 3), Edit(EVIL, 3, 3))),),
        touched=(EVIL_PATH,),
        problems=(SourceError(EVIL, EVIL, path=EVIL_PATH, line=3),),
        remarks=(EVIL,),
        files=1,
        sources={EVIL_PATH: SourceFile(EVIL_PATH, old)},
    )


@pytest.fixture
def hostile():
    return _hostile()


@pytest.fixture
def curve():
    """A run as `--verify` tells of it."""
    return _curve


def _curve(name, losses, processes=1, frozen=False):
    return types.SimpleNamespace(name=name, processes=processes, is_frozen=frozen, splits=False, losses=tuple(losses))


@pytest.fixture
def verified():
    """What `--verify` found."""
    return _verified


def _verified(*curves, outcome="pass", text="as it should be"):
    contract = types.SimpleNamespace(code="E1", title="same on one process")
    verdict = types.SimpleNamespace(
        contract=contract,
        processes=1,
        outcome=types.SimpleNamespace(value=outcome),
        message=text,
        difference=None if outcome == "pass" else text,
    )
    return types.SimpleNamespace(
        script="train.py", arguments=("--lr", text), steps=20, verdicts=(verdict,), runs=curves, remarks=(text,)
    )
