"""Real programs under `migrate --verify`: the second half of `verified.py`.

Every program of the corpus's `runnable.json` is put, with made-up data, into a fresh copy of its repository, and is
verified there as `migrate SCRIPT --verify -- ARGUMENTS` would do it. What stands for packages and for a GPU that are
not there is in `shims/`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate import pipeline
from migrate.errors import MigrateError
from migrate.options import Options
from migrate.report.model import Kind
from migrate.verify import export
from migrate.verify.verify import verify
from migrate.verify.wish import wish

Entry = dict[str, Any]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LIMIT_S = 120.0  # for one run of a program
MANY = 60  # files of Python: of a larger repository the script alone is named
#: Programs that put a folder above their own on the path: they are verified from the top of the repository.
FROM_THE_TOP = {"tcn-adding", "tcn-copy", "sam-cifar", "minGPT-adder"}
#: Images in the synthetic sets, where those of the corpus are too many for the time that there is.
SIZES = {"ex-mnist": 640, "ex-mnist-rnn": 640, "ex-vae": 640, "ex-siamese": 640, "ex-forward-forward": 640}
COLUMNS = (
    ("runs", 1), ("E1", 1), ("E6", 1), ("runs", 2), ("ranks", 2), ("E2", 2), ("E3", 2), ("E4", 2), ("E5", 2), ("E6", 2),
)  # fmt: skip
SHOWN = {"pass": "pass", "fail": "**FAIL**", "not checked": "not"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program is verified."""

    folder: Path
    script: str
    paths: tuple[str, ...]  # beside the script


class Programs:
    """The programs of a corpus."""

    def __init__(self, tree: Path, corpus: Path, opened: Callable[[str], Any]) -> None:
        self._tree, self._corpus, self._opened = tree, corpus, opened
        listed = json.loads((corpus / "runnable.json").read_text(encoding="utf-8"))["programs"]
        self.entries: list[Entry] = [entry for entry in listed if (tree / entry["dir"]).is_dir()]

    def verified(self, entry: Entry) -> dict[str, Any]:
        """What `--verify` says of one program; without verdicts, why there are none."""
        kept = dict(os.environ)
        os.environ.update(self._variables(entry))
        zygote = self._opened(str(HERE / "shims"))
        os.environ["PYTHONPATH"] = "." if entry["id"] in FROM_THE_TOP else ""
        try:
            with tempfile.TemporaryDirectory() as name:
                place = self._laid_out(entry, Path(name).resolve())
                os.chdir(place.folder)
                return _verified(entry, place, zygote)
        except MigrateError as error:
            return {"why": str(error)}
        finally:
            os.chdir(ROOT)
            zygote.close()
            os.environ.clear()
            os.environ.update(kept)

    def _laid_out(self, entry: Entry, work: Path) -> Place:
        top = work / entry["dir"]
        shutil.copytree(self._tree / entry["dir"], top)
        (top / ".git").mkdir(exist_ok=True)  # as in a clone: here the project begins, whose other folders can be read
        for make in entry.get("prep", ()):
            into = top / entry.get("prep_dir", "")
            subprocess.run([sys.executable, str(self._corpus / "make_data.py"), make, str(into)], check=True)
        path = top / entry["script"]
        folder = top if entry["id"] in FROM_THE_TOP else top / entry.get("cwd", str(Path(entry["script"]).parent))
        is_small = sum(1 for _ in folder.rglob("*.py")) < MANY
        return Place(folder, str(path.relative_to(folder)), (".",) if is_small else ())

    def _variables(self, entry: Entry) -> Mapping[str, str]:
        shims = entry.get("record_args", [])
        size = shims[shims.index("--synth-n") + 1] if "--synth-n" in shims else SIZES.get(entry["id"], "")
        variables = {"CORPUS": str(self._corpus), "CORPUS_SHIMS": " ".join(shims)}
        return {**variables, **({"SYNTH_N": str(size)} if size else {})}


def _verified(entry: Entry, place: Place, zygote: Any) -> dict[str, Any]:
    """With the files near it, which may print, too; and if that does not convert it, with the script alone."""
    said: list[str] = []
    for paths in dict.fromkeys((place.paths, ())):
        report = pipeline.run([place.script, *paths], Options())
        if report.changes:
            changes = {change.path: change.new for change in report.changes}
            wanted = wish(place.script, changes, arguments=tuple(entry["argv"]), limit_s=LIMIT_S)
            return dict(json.loads(export.text(verify(wanted, start=zygote.run))))
        said += [f"{each.code}: {each.message}" for each in report.findings if each.kind is Kind.LEFT]
    return {"why": f"it is not converted; {said[0]}" if said else "it is not converted"}


# --- the document ---------------------------------------------------------------------------------------------------


def table(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A row for each program, and what is not a pass below, with its reason."""
    heads = [f"{code} on {count}" for code, count in COLUMNS]
    yield f"| program | {' | '.join(heads)} |"
    yield "|---|" + "---|" * len(COLUMNS)
    for name, each in found.items():
        if not each.get("verdicts"):
            yield f"| {name} | not verified: {_plain(each.get('why', ''))} |" + " |" * (len(COLUMNS) - 1)
            continue
        verdicts = {(v["contract"], v["processes"]): v for v in each["verdicts"]}
        cells = [SHOWN[verdicts[column]["outcome"]] if column in verdicts else "" for column in COLUMNS]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    for name, each in found.items():
        reasons: dict[str, list[str]] = {}
        for verdict in each.get("verdicts", ()):
            if verdict["outcome"] != "pass":
                word = "FAIL " if verdict["outcome"] == "fail" else ""
                reasons.setdefault(_plain(verdict["message"]), []).append(
                    f"{word}{verdict['contract']} on {verdict['processes']}"
                )
        if reasons:
            yield f"* {name}: " + "; ".join(f"{', '.join(codes)}: {why}" for why, codes in reasons.items())


def _plain(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("*", "\\*")
