"""Real programs, run before and after they were converted: the second half of `coverage.py`.

Every program runs in a fresh copy of its repository, on synthetic data, under the corpus's own `record.py`, which fixes
the seeds and writes down the loss of the first backward calls and the norm of the parameters after each optimizer step.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import saved
from corpus import joined

Record = dict[str, Any]
HERE = Path(__file__).resolve().parent
SECONDS = 300  # for one run
TIMES = re.compile(r"\d+\.\d+ ?s\b|[Tt]ime\S* *\S+")  # what differs from run to run


@dataclass(frozen=True, slots=True)
class Whole:
    """How a program is run to its end: nothing is learned, and the sizes are such that two does not divide them."""

    printed: str = ""  # the lines about an evaluation
    argv: tuple[str, ...] | None = None  # other options than those of the corpus
    size: int = 0  # images in each synthetic set


WHOLE = {
    "ex-mnist": Whole(r"Test set", ("--epochs", "1", "--no-accel", "--test-batch-size", "50", "--save-model"), 133),
    "ex-mnist-rnn": Whole(r"Test set", ("--epochs", "1", "--test-batch-size", "50", "--save-model"), 133),
    "ex-siamese": Whole("", ("--epochs", "1", "--dry-run", "--save-model"), 1033),  # its test pairs are drawn anew
    "ex-dcgan": Whole("", ("--dataset", "fake", "--batchSize", "8", "--niter", "1", "--manualSeed", "1"), 27),
    "ex-wordlm": Whole(r"End of training|end of epoch"),
    "ex-forward-forward": Whole(
        r"(train|test) error:", ("--epochs", "2", "--train_size", "133", "--test_size", "51", "--save_model"), 133
    ),
    "pytorch-cifar": Whole("", None, 37),
    "tcn-adding": Whole(r"Test set"),
    "tcn-copy": Whole(r"Validation|Test set|Average"),
    "pyGAT": Whole(r"Test set|loss_val"),
    "informer-ett": Whole(r"mse:|Vali Loss"),
    "rasbt-cnn-basic": Whole(r"accuracy|Accuracy"),
}


@dataclass(frozen=True, slots=True)
class Result:
    """One program: `None` where the question does not arise."""

    name: str
    script: str
    converts: bool
    why: str = ""  # not converted, or not run
    losses: int = 0
    is_same: bool | None = None  # E1: losses and parameters, to the last bit
    ranks_agree: bool | None = None  # the parameters after each step, on two processes
    evaluation: str = ""
    saved: str = ""  # what stands in its files, on two processes


def measure(tree: Path, corpus: Path, only: str = "") -> list[Result]:
    """Every program of the corpus that can be run."""
    programs = json.loads((corpus / "runnable.json").read_text())["programs"]
    chosen = [program for program in programs if only in program["repo"] and (tree / program["dir"]).is_dir()]
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(tree, corpus, Path(work), chosen)
        return [bench.result(program) for program in bench.programs]


class Bench:
    """Copies of the originals and of the converted programs, and the runs over them."""

    def __init__(self, tree: Path, corpus: Path, work: Path, programs: Sequence[Record]) -> None:
        self._corpus, self._work = corpus, work
        self.programs = [dict(program) for program in programs]
        for program in self.programs:
            for side in ("before", "after"):
                target = work / side / program["dir"]
                if not target.exists():
                    shutil.copytree(tree / program["dir"], target)
            if program["script"].endswith(".ipynb"):
                self._export(program)
        (work / "runnable.json").write_text(json.dumps({"programs": self.programs}))

    def _export(self, program: Record) -> None:
        exported = program["script"].removesuffix(".ipynb") + "__nb.py"
        for side in ("before", "after"):
            folder = self._work / side / program["dir"]
            (folder / exported).write_text(joined((folder / program["script"]).read_text()))
        program["script"] = exported

    def result(self, program: Record) -> Result:
        """Convert one program and run it."""
        name, script = program["id"], program["script"]
        converted, why = self._convert(program)
        print(f"{name}: {'converts' if converted else why}", flush=True)
        if not converted:
            return Result(name, script, False, why)
        before, after = (self._recorded(program, side) for side in ("before", "after"))
        if not before.get("ok"):
            said = " ".join(str(before.get("error", "")).split())
            return Result(name, script, True, f"the original does not run: {said[-120:]}")
        is_same = _trace(before) == _trace(after)
        error = "" if after.get("ok") else f"stops: {after.get('error', '')[-200:]}"
        two = self._ranks(program)
        agree = len(two) == 2 and bool(two[0]["losses"]) and two[0]["steps"] == two[1]["steps"]
        told, files = self._run_whole(program)
        made = Result(name, script, True, error, len(before["losses"]), is_same, agree, told, files)
        print(f"  same {is_same}, ranks agree {agree}, evaluation {told}, files {files} {error}", flush=True)
        return made

    def _convert(self, program: Record) -> tuple[bool, str]:
        """Whether a program converts with the whole repository, or with what its script needs; else the reason."""
        folder = self._work / "after" / program["dir"]
        wide = "." if sum(1 for _ in folder.rglob("*.py")) < 60 else program["script"]
        for named in dict.fromkeys((program["script"], wide)):
            run = self._migrate(folder, named)
            if self._differs(program):
                return True, ""
        left = next((line for line in run.stderr.splitlines() if re.search(r"MIG[19]\d\d", line)), "nothing changed")
        return False, " ".join(left.split())[:160]

    def _migrate(self, folder: Path, named: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "migrate", "--write", named]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)

    def _differs(self, program: Record) -> bool:
        """Whether anything of the program changed: its script, or a file that is named as what that imports."""
        before, after = (self._work / side / program["dir"] for side in ("before", "after"))
        script = after / program["script"]
        imported = re.findall(r"^\s*(?:from|import) ([\w.]+)", script.read_text(), re.MULTILINE)
        parts = {script.stem, *(name.rpartition(".")[2] for name in imported)}
        near = (path for path in script.parent.rglob("*.py") if path.stem in parts)
        return any(path.read_bytes() != (before / path.relative_to(after)).read_bytes() for path in near)

    # --- runs -------------------------------------------------------------------------------------------------------

    def _recorded(self, program: Record, side: str) -> Record:
        """What `record.py` writes about the first steps."""
        self._run_all(program, side, Path(sys.executable))
        return json.loads((self._work / "out.json").read_text()).get(program["id"], {})

    def _ranks(self, program: Record) -> list[Record]:
        """The records of two processes."""
        ranks = self._started(program, "after", 2, {})
        return [json.loads(path.read_text()) for path in sorted(ranks.glob("rank*.json"))]

    def _run_whole(self, program: Record) -> tuple[str, str]:
        """What is printed about the evaluation and saved: by the original alone, and by two processes converted."""
        if (whole := WHOLE.get(program["id"])) is None:
            return "", ""
        run = {**program, "n": 10**6, "argv": list(whole.argv or program["argv"])}
        sizes = ["--synth-n", str(whole.size)] if whole.size else []
        run["record_args"] = [*program.get("record_args", []), "--verbose", *sizes]
        printed, files = [], []
        for side, processes in (("before", 1), ("after", 2)):
            ranks = self._started(run, side, processes, {"FROZEN": "1", "SYNTH_N": str(whole.size or "")})
            lines = (ranks / "stdout").read_text().replace("\r", "\n").splitlines()
            printed.append([TIMES.sub("", line) for line in lines if whole.printed and re.search(whole.printed, line)])
            files.append(saved.files(ranks))
        return _compared(printed, "lines"), _compared(files, "files")

    def _started(self, program: Record, side: str, processes: int, variables: dict[str, str]) -> Path:
        """Run `record.py` in every process; the folder with one record a process, and what was printed."""
        ranks = self._work / "ranks"
        shutil.rmtree(ranks, ignore_errors=True)
        ranks.mkdir()
        start = f'"{sys.executable}" -m runtime launch --num_processes {processes} --cpu'
        shim = self._work / "python"
        shim.write_text(
            "#!/bin/sh\n"
            'case "$1" in\n'
            f'*record.py) exec {start} "{HERE / "rank.py"}" "$@" > "{ranks}/stdout" 2> "{ranks}/stderr" ;;\n'
            f'*) exec "{sys.executable}" "$@" ;;\n'
            "esac\n"
        )
        shim.chmod(0o755)
        self._run_all(program, side, shim, {"RANKS": str(ranks), **variables})
        return ranks

    def _run_all(self, program: Record, side: str, python: Path, variables: dict[str, str] | None = None) -> None:
        listed, out = self._work / "one.json", self._work / "out.json"
        listed.write_text(json.dumps({"programs": [program]}))
        out.unlink(missing_ok=True)
        command = [
            sys.executable,
            str(self._corpus / "run_all.py"),
            "--tree",
            str(self._work / side),
            "--out",
            str(out),
        ]
        command += ["--programs", str(listed), "--timeout", str(SECONDS), "--python", str(python)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})}
        subprocess.run(command, env=environment, capture_output=True, check=False)
        if not out.exists():
            out.write_text("{}")


def _compared(pair: Sequence[list[Any]], what: str) -> str:
    before, after = pair
    if not before and not after:
        return ""
    return f"same ({len(before)} {what})" if before == after else f"DIFFERS: {before[:1]} {after[:1]}"


def _trace(record: Record) -> tuple[list[float], list[float]]:
    return record.get("losses", []), [step["norm"] for step in record.get("steps", [])]


def table(results: Sequence[Result]) -> Iterator[str]:
    """The lines of the document."""
    yield "## Programs that were run"
    yield ""
    yield "On one process: the losses of the first backward calls and the norm of the parameters after each step,"
    yield "original against converted, to the last bit. On two processes (gloo): both have the same parameters after"
    yield "each step; and, with every step undone and sizes that two does not divide, the evaluation prints what the"
    yield "original prints on one, and the files that are saved are as many and hold the same: keys, classes, shapes,"
    yield "dtypes and weights (of an optimizer's state the values go by the gradients and are not compared). A program"
    yield "whose model draws random numbers in its evaluation, too (informer-ett: which keys its attention looks at)"
    yield "differs here, since two processes have drawn half as much before; under `--verify`, below, it does not."
    yield ""
    converted = [result for result in results if result.converts]
    yield f"{len(converted)} of {len(results)} convert; {sum(bool(r.is_same) for r in converted)} compute the same."
    yield ""
    yield "| program | converts | E1 | same on both processes | evaluation on two | files of two |"
    yield "|---|---|---|---|---|---|"
    for result in results:
        if not result.converts:
            yield f"| {result.name} | no: {result.why.replace('|', ' ')} | | | | |"
            continue
        same = f"same, {result.losses} losses" if result.is_same else f"NO {result.why}"
        same = "not run: " + result.why if result.is_same is None else same
        whole = f"{result.evaluation or 'none'} | {result.saved or 'none'}"
        yield f"| {result.name} | yes | {same} | {_said(result.ranks_agree)} | {whole} |"


def _said(answer: bool | None) -> str:
    return "" if answer is None else "yes" if answer else "NO"
