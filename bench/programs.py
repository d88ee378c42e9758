"""Real programs under `migrate --verify`: the second half of `verified.py`.

Every program of the corpus's `runnable.json` is put, with made-up data, into a fresh copy of its repository, and
verified there by the command, as its user would: `migrate SCRIPT --verify --output-format json -- ARGUMENTS`. What
stands for packages and for a GPU that are not there is in `shims/`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import joined

Entry = dict[str, Any]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LIMIT_S = 90  # for one run of a program
WHOLE_S = 900  # for a verification
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

    def __init__(self, tree: Path, corpus: Path) -> None:
        self._tree, self._corpus = tree, corpus
        listed = json.loads((corpus / "runnable.json").read_text(encoding="utf-8"))["programs"]
        self.entries: list[Entry] = [entry for entry in listed if (tree / entry["dir"]).is_dir()]

    def verified(self, entry: Entry) -> dict[str, Any]:
        """What `--verify` says of one program; without verdicts, why there are none."""
        with tempfile.TemporaryDirectory() as name:
            return self._verified(entry, self._laid_out(entry, Path(name).resolve()))

    def _laid_out(self, entry: Entry, work: Path) -> Place:
        top = work / entry["dir"]
        shutil.copytree(self._tree / entry["dir"], top)
        for make in entry.get("prep", ()):
            into = top / entry.get("prep_dir", "")
            subprocess.run([sys.executable, str(self._corpus / "make_data.py"), make, str(into)], check=True)
        path = top / entry["script"]
        if path.suffix == ".ipynb":
            exported = path.with_name(path.stem.replace("-", "_") + "_exported.py")
            exported.write_text(joined(path.read_text(encoding="utf-8")), encoding="utf-8")
            path = exported
        folder = top if entry["id"] in FROM_THE_TOP else top / entry.get("cwd", str(Path(entry["script"]).parent))
        some = [each for each in sorted(folder.rglob("*.py")) if each != path]
        near = [str(each.relative_to(folder)) for each in some] if len(some) < MANY else []
        return Place(folder, str(path.relative_to(folder)), tuple(near))

    def _verified(self, entry: Entry, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for paths in dict.fromkeys(((), place.paths)):  # the script alone first: what others need is not asked of it
            done = self._run(entry, place, paths)
            found = _read(done)
            if found.get("verdicts"):
                return found
        return found

    def _run(self, entry: Entry, place: Place, paths: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "migrate", place.script, *paths, "--verify", "--output-format", "json"]
        command += ["--time-limit", str(LIMIT_S), "--", *entry["argv"]]
        try:
            return subprocess.run(
                command,
                cwd=place.folder,
                env=self._environment(entry),
                capture_output=True,
                text=True,
                timeout=WHOLE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 2, "", f"Error: not over after {WHOLE_S} s")

    def _environment(self, entry: Entry) -> Mapping[str, str]:
        shims = entry.get("record_args", [])
        size = shims[shims.index("--synth-n") + 1] if "--synth-n" in shims else SIZES.get(entry["id"], "")
        here = ["."] if entry["id"] in FROM_THE_TOP else []
        paths = [str(HERE / "shims"), str(ROOT), *here]
        variables = {"CORPUS": str(self._corpus), "CORPUS_SHIMS": " ".join(shims), "PYTHONPATH": os.pathsep.join(paths)}
        return {**os.environ, **variables, "OMP_NUM_THREADS": "1", **({"SYNTH_N": str(size)} if size else {})}


def _read(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = None
    if isinstance(found, dict) and "verdicts" in found:
        return found
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("Error", "error"))] or lines
    return {"why": said[-1][:300] if said else f"exit status {done.returncode}"}


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
