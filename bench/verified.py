"""Every runnable fixture that converts, verified: what `migrate --verify` says of it.

    python bench/verified.py [--out FOLDER] [NAME ...]

A line for each fixture, its verdicts that are not `pass` below it, and a table of how many verdicts there are of each
kind; with `--out` the whole of each as JSON. The processes of the runs are forks of one that has imported torch, as in
the tests: with processes of their own it would take an hour. Exit status 1 if a contract is broken.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from migrate import pipeline
from migrate.errors import VerifyError
from migrate.options import Options, Target
from migrate.verify import export
from migrate.verify.model import Outcome, Verdict, Verification
from migrate.verify.verify import verify
from migrate.verify.wish import wish

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
LIMIT_S = 120.0


def verified(case: Any, zygote: Any, folder: Path) -> Verification:
    """One fixture, in a folder of its own."""
    script = lay_out(case, folder)
    os.chdir(folder)
    target = Target(case.table.get("target", "runtime"))
    paths = [script, *sorted(path.name for path in folder.glob("*.py") if path.name != script)]
    report = pipeline.run(paths, Options(target=target))
    wanted = wish(
        script,
        {change.path: change.new for change in report.changes},
        arguments=tuple(case.table.get("arguments", ())),
        processes=tuple(sorted({1, *case.table["processes"]})),
        limit_s=LIMIT_S,
        target=target,
    )
    return verify(wanted, start=zygote.run)


def lay_out(case: Any, folder: Path) -> str:
    """The files as a user has them; the name of the script."""
    before = case.folder / "before"
    if before.is_dir():
        shutil.copytree(before, folder, dirs_exist_ok=True)
        return case.script("before").name
    shutil.copy(case.script("before"), folder / "train.py")
    return "train.py"


def table(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """How many there are of each kind."""
    counts = Counter((v.contract.code, v.processes, v.outcome) for v in verdicts)
    yield "| verdict | " + " | ".join(outcome.value for outcome in Outcome) + " |"
    yield "|---|" + "---|" * len(Outcome)
    for code, count in dict.fromkeys((v.contract.code, v.processes) for v in sorted(verdicts, key=_order)):
        numbers = " | ".join(str(counts[code, count, outcome]) for outcome in Outcome)
        yield f"| {code} on {count} | {numbers} |"


def _order(verdict: Verdict) -> tuple[int, str]:
    return verdict.processes, verdict.contract.name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these fixtures")
    parser.add_argument("--out", type=Path, help="a folder for the JSON of each")
    arguments = parser.parse_args()
    sys.path[:0] = [str(TESTS / "end_to_end"), str(TESTS / "migrate" / "verify")]
    from cases import cases
    from runner import Zygote

    out = arguments.out and arguments.out.resolve()
    zygote = Zygote(str(TESTS / "end_to_end" / "stubs"))
    verdicts: list[Verdict] = []
    for case in cases():
        if not case.table["runnable"] or not case.after or (arguments.names and case.name not in arguments.names):
            continue
        with tempfile.TemporaryDirectory() as name:
            try:
                found = verified(case, zygote, Path(name).resolve())
            except VerifyError as error:
                print(f"{case.name}: {error}", flush=True)
                continue
            finally:
                os.chdir(ROOT)
        verdicts += found.verdicts
        print(f"{case.name}: {'FAIL' if found.failed else 'holds'}", flush=True)
        for verdict in found.verdicts:
            if verdict.outcome is not Outcome.PASS:
                print(f"    {verdict.contract.code} on {verdict.processes} {verdict.outcome.value}: {verdict.message}")
        if out:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{case.name}.json").write_text(export.text(found))
    zygote.close()
    print(*table(verdicts), sep="\n")
    return int(any(verdict.outcome is Outcome.FAIL for verdict in verdicts))


if __name__ == "__main__":
    sys.exit(main())
