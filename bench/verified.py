"""Every runnable fixture that converts, and every program of the corpus that runs: what `migrate --verify` says of it.

    python bench/verified.py [--out FOLDER] [NAME ...]
    python bench/verified.py --tree DIR --corpus DIR [--out FOLDER] [NAME ...]
    python bench/verified.py --out FOLDER --document docs/coverage.md

A line for each, its verdicts that are not `pass` below it, and a table of how many verdicts there are of each kind;
with `--out` the whole of each as JSON, fixtures and programs in a folder each. The third form runs nothing: it writes
what lies in these folders into the document. The processes of the runs are forks of one that has imported torch, as in
the tests: with processes of their own it would take an hour. Exit status 1 if a contract is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import programs
from programs import Programs

from migrate import pipeline
from migrate.errors import VerifyError
from migrate.options import Options, Target
from migrate.verify import export
from migrate.verify.model import Outcome, Verification
from migrate.verify.verify import verify
from migrate.verify.wish import wish

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
LIMIT_S = 120.0
FIXTURES, PROGRAMS = "fixtures", "programs"
HEADING = "## Under `--verify`"
NEXT = re.compile(r"^## .*", re.MULTILINE | re.DOTALL)  # what comes after a section
INTRODUCTION = """
Written by `bench/verified.py` from the JSON of `migrate --verify`. What each verdict compares is in
[verify.md](verify.md); "not checked" (in the table of programs: not) is no promise, and says why below it.
"""

Document = dict[str, Any]


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
    name = f"train{case.script('before').suffix}"
    shutil.copy(case.script("before"), folder / name)
    return name


def table(documents: Mapping[str, Document]) -> Iterator[str]:
    """How many verdicts there are of each kind."""
    verdicts = [verdict for found in documents.values() for verdict in found.get("verdicts", ())]
    counts = Counter((v["contract"], v["processes"], v["outcome"]) for v in verdicts)
    yield "| verdict | " + " | ".join(outcome.value for outcome in Outcome) + " |"
    yield "|---|" + "---|" * len(Outcome)
    for code, count in sorted({(v["contract"], v["processes"]) for v in verdicts}, key=lambda each: (each[1], each[0])):
        numbers = " | ".join(str(counts[code, count, outcome.value]) for outcome in Outcome)
        yield f"| {code} on {count} | {numbers} |"


def fixtures(names: list[str]) -> Iterator[tuple[str, Document]]:
    """Each fixture with what was found."""
    from cases import cases
    from runner import Zygote

    zygote = Zygote(str(TESTS / "end_to_end" / "stubs"))
    for case in cases():
        if not case.table["runnable"] or not case.after or (names and case.name not in names):
            continue
        with tempfile.TemporaryDirectory() as name:
            try:
                yield case.name, json.loads(export.text(verified(case, zygote, Path(name).resolve())))
            except VerifyError as error:
                yield case.name, {"why": str(error)}
            finally:
                os.chdir(ROOT)
    zygote.close()


def of_programs(tree: Path, corpus: Path, names: list[str]) -> Iterator[tuple[str, Document]]:
    """Each program with what was found."""
    from runner import Zygote

    some = Programs(tree, corpus, Zygote)
    for entry in some.entries:
        if not names or entry["id"] in names:
            yield entry["id"], some.verified(entry)


def show(name: str, found: Document) -> None:
    if not found.get("verdicts"):
        print(f"{name}: {found.get('why', 'nothing was verified')}", flush=True)
        return
    print(f"{name}: {'FAIL' if found['exit_status'] else 'holds'}", flush=True)
    for verdict in found["verdicts"]:
        if verdict["outcome"] != Outcome.PASS.value:
            print(f"    {verdict['contract']} on {verdict['processes']} {verdict['outcome']}: {verdict['message']}")


def read(folder: Path) -> dict[str, Document]:
    """What was written there."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def section(out: Path) -> str:
    """The part of docs/coverage.md that is made of the JSON of fixtures and programs."""
    parts = [HEADING, INTRODUCTION]
    if some := read(out / FIXTURES):
        parts += [f"### Runnable fixtures that convert: {len(some)}\n", *table(some), ""]
        failing = {name: found for name, found in some.items() if found.get("exit_status", 1)}
        parts += [*(f"* {name}: {_failed(found)}" for name, found in failing.items()), ""]
    if some := read(out / PROGRAMS):
        parts += [f"### Programs of the corpus: {len(some)}\n", *programs.table(some)]
    return "\n".join(parts).rstrip() + "\n"


def _failed(found: Document) -> str:
    wrong = [v for v in found.get("verdicts", ()) if v["outcome"] == Outcome.FAIL.value]
    return "; ".join(f"{v['contract']} on {v['processes']}: {v['message']}" for v in wrong) or found["why"]


def put(document: Path, text: str) -> None:
    """Write a section in the place of its older self, or at the end."""
    before, heading, rest = document.read_text(encoding="utf-8").partition(HEADING)
    later = f"\n{end[0]}" if heading and (end := NEXT.findall(rest)) else ""
    document.write_text(before.rstrip("\n") + f"\n\n{text}{later}", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only these")
    parser.add_argument("--out", type=Path, help="a folder for the JSON of each")
    parser.add_argument("--tree", type=Path, help="the repositories, as <owner>__<name>: verify programs")
    parser.add_argument("--corpus", type=Path, help="runnable.json, make_data.py and stubs")
    parser.add_argument("--document", type=Path, help="write what lies in --out into this document")
    arguments = parser.parse_args()
    out = arguments.out and arguments.out.resolve()
    if arguments.document:
        put(arguments.document, section(out))
        return 0
    sys.path[:0] = [str(TESTS / "end_to_end"), str(TESTS / "migrate" / "verify")]
    if arguments.tree:
        kind, some = PROGRAMS, of_programs(arguments.tree.resolve(), arguments.corpus.resolve(), arguments.names)
    else:
        kind, some = FIXTURES, fixtures(arguments.names)
    documents: dict[str, Document] = {}
    for name, found in some:
        documents[name] = found
        show(name, found)
        if out:
            (out / kind).mkdir(parents=True, exist_ok=True)
            (out / kind / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(*table(documents), sep="\n")
    return int(any(found.get("exit_status") for found in documents.values()))


if __name__ == "__main__":
    sys.exit(main())
