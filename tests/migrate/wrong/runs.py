"""What `--verify` says of a fixture and of a result that is called its conversion."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cases import Case, cases
from table import Setting, WrongConversion

from migrate.options import Target
from migrate.verify.launching import Start
from migrate.verify.model import Outcome, Verification
from migrate.verify.order import Order
from migrate.verify.trials import SEED
from migrate.verify.verify import verify
from migrate.verify.wish import wish

LIMIT_S = 60.0
Told = Mapping[tuple[str, int], Any]  # (code, processes) -> verdict


class Runs:
    """Verifications, each in a folder of its own; one of a right result serves all mistakes that are made in it."""

    def __init__(self, start: Callable[..., Any], folder: Path) -> None:
        self._start = start
        self._folder = folder
        self._count = 0
        self.right = cache(self._right)

    def wrong(self, entry: WrongConversion) -> Told:
        """The verdicts about the fixture's result with the mistake in it."""
        files = results(case_named(entry.setting.fixture))
        files[entry.file] = entry.in_place_of(files[entry.file])
        return self._told(entry.setting, files)

    def _right(self, setting: Setting) -> Told:
        """The verdicts about the fixture's result as it is."""
        return self._told(setting, results(case_named(setting.fixture)))

    def _told(self, setting: Setting, files: Mapping[str, str]) -> Told:
        case = case_named(setting.fixture)
        self._count += 1
        folder = self._folder / f"{self._count}" / case.name
        script = lay_out(case, folder)
        if setting.first:
            self._train(folder / script, setting.first)
        here = Path.cwd()
        os.chdir(folder)
        try:
            found = self._verify(setting, case, script, files)
        finally:
            os.chdir(here)
        return {(each.contract.code, each.processes): each for each in found.verdicts}

    def _verify(self, setting: Setting, case: Case, script: str, files: Mapping[str, str]) -> Verification:
        target = Target(case.table.get("target", "runtime"))
        given = tuple(case.table.get("arguments", ())) if setting.arguments is None else setting.arguments
        asked = wish(
            script,
            {name: text.encode() for name, text in files.items()},
            arguments=given,
            steps=setting.steps,
            processes=setting.processes,
            limit_s=setting.limit_s,
            target=target,
        )
        return verify(asked, start=self._start)

    def _train(self, script: Path, arguments: tuple[str, ...]) -> None:
        """Run the original, as its user has done it some time ago."""
        work = self._folder / f"{self._count}" / "before"
        work.mkdir()
        order = Order(
            script=str(script),
            arguments=arguments,
            folder=str(script.parent),
            root=str(script.parent),
            records=str(work),
            writable=(str(work),),
            seed=SEED,
            steps=1000,
            per_pass=0,
            limit_s=LIMIT_S,
        )
        order.write(work / "order.json")
        done = self._start(Start(), work / "order.json", work, LIMIT_S)
        assert done.status == 0, done.output


def case_named(name: str) -> Case:
    """A fixture."""
    return next(case for case in cases() if case.name == name)


def results(case: Case) -> dict[str, str]:
    """What the files of a fixture become, by the name under which they are converted."""
    if len(case.after) == 1 and case.after[0].stem == "after":
        return {"train.py": case.after[0].read_text(encoding="utf-8")}
    return {file.name: file.read_text(encoding="utf-8") for file in case.after}


def lay_out(case: Case, folder: Path) -> str:
    """Put the files there as their user has them; the name of the script."""
    before = case.folder / "before"
    if before.is_dir():
        shutil.copytree(before, folder)
        return case.script("before").name
    folder.mkdir(parents=True)
    shutil.copy(case.script("before"), folder / "train.py")
    return "train.py"


def is_broken(told: Told, verdict: tuple[str, int]) -> bool:
    """Whether a verdict says so."""
    return verdict in told and told[verdict].outcome is Outcome.FAIL
