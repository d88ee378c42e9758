"""One option each: its names and its help. `command.py` gives the defaults."""

from __future__ import annotations

from typing import Annotated

import typer

from migrate.cli.printing import Color, Format
from migrate.options import Hardware, Target


def _at_least_1(number: float | None) -> float | None:
    # In the place of `min=1`, whose message does not name the number.
    if number is not None and number < 1:
        raise typer.BadParameter(f"{number:g} is less than 1.")
    return number


Paths = Annotated[
    list[str] | None, typer.Argument(metavar="PATHS", help="Scripts, notebooks and folders; - is standard input.")
]

# --- what happens with the result
Write = Annotated[bool, typer.Option("--write", "-w", help="Convert the files: all of them, or none if one fails.")]
Diff = Annotated[bool, typer.Option("--diff", help="Show only the diff; `git apply` and `patch -p1` take it.")]
Check = Annotated[bool, typer.Option("--check", help="Show only findings; for hooks and continuous integration.")]

Interactive = Annotated[
    bool, typer.Option("--interactive", "-i", help="Show each program's diff and ask, then convert what is accepted.")
]
UndoPatch = Annotated[
    str, typer.Option("--undo-patch", metavar="FILE", help="With --write: write the way back, for `git apply`.")
]

# --- what is proven of it
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Run the first path, before and after, in copies of this folder, and compare. Executes your code. "
        "What comes after -- are its arguments.",
    ),
]
Steps = Annotated[
    int | None,
    typer.Option("--steps", metavar="N", callback=_at_least_1, help="With --verify: optimizer steps of each run. [20]"),
]
Processes = Annotated[
    str, typer.Option("--processes", metavar="N,...", help="With --verify: numbers of processes to run on. [1,2]")
]
TimeLimit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="SECONDS", callback=_at_least_1, help="With --verify: of each run. [300]"),
]
VerifyJson = Annotated[
    str, typer.Option("--verify-json", metavar="FILE", help="With --verify: write what was found as JSON, too.")
]

# --- what is converted, and how
To = Annotated[
    Target | None, typer.Option("--target", help="The package that converted scripts import; runtime if not given.")
]
For = Annotated[
    Hardware | None, typer.Option("--for", help="Also tell what is slow on this hardware in converted scripts.")
]
Select = Annotated[
    list[str] | None, typer.Option("--select", metavar="CODES", help="Only these: MIG105,prepare or MIG1.")
]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", metavar="CODES", help="All rules but these.")]
Review = Annotated[
    bool, typer.Option("--review", help="Also make edits that rest on what is only likely; the report lists them.")
]
Annotate = Annotated[bool, typer.Option("--annotate", help="With --review: put a comment at each of these edits.")]
NotebookLauncher = Annotated[
    bool,
    typer.Option(
        "--notebook-launcher", help="Notebooks: start what trains on several processes, by notebook_launcher."
    ),
]

# --- which findings
Since = Annotated[
    str, typer.Option("--since", metavar="REF", help="With --check: only loops touched since this git revision.")
]
Baseline = Annotated[
    str, typer.Option("--baseline", metavar="FILE", help="With --check: only what is not in this file of findings.")
]
UpdateBaseline = Annotated[bool, typer.Option("--update-baseline", help="Write the baseline: all that is found now.")]

# --- which files
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="Leave out what matches, such as 'legacy/*'; may be repeated."),
]
ForceExclude = Annotated[
    bool, typer.Option("--force-exclude", help="Leave out what is excluded also where it is named, as hooks do.")
]
NoGitignore = Annotated[bool, typer.Option("--no-gitignore", help="Look also at what git ignores.")]
Config = Annotated[str, typer.Option("--config", metavar="FILE", help="The pyproject.toml to read; else the nearest.")]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no pyproject.toml.")]
StdinName = Annotated[str, typer.Option("--stdin-filename", metavar="PATH", help="What standard input is called.")]

# --- how fast
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", metavar="N", callback=_at_least_1, help="Processes that look at programs. [as many as pay]"
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither use nor keep results of earlier runs.")]
CacheDir = Annotated[
    str,
    typer.Option("--cache-dir", metavar="DIR", help="Where these are. [.migrate_cache in the project's top folder]"),
]

# --- questions
Explain = Annotated[str, typer.Option("--explain", metavar="CODE", help="Explain a rule, by code or name.")]
ExplainRole = Annotated[
    str,
    typer.Option("--explain-role", metavar="FILE:LINE:NAME", help="Explain what a name is; PATHS are read as well."),
]
Rules = Annotated[bool, typer.Option("--rules", help="List the rules.")]
Version = Annotated[bool, typer.Option("--version", help="Show the version.")]

# --- how it is shown
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also list every edit.")]
OutputFormat = Annotated[
    Format, typer.Option("--output-format", help="How findings are written; without --check also what would change.")
]
ReportTo = Annotated[
    str, typer.Option("--report", metavar="FILE", help="Also write a page for reviewers: maps, changes with reasons.")
]
Coloured = Annotated[Color, typer.Option("--color", help="Use colours; auto: on a terminal, unless NO_COLOR is set.")]
Traceback = Annotated[bool, typer.Option("--traceback", help="Show where in migrate an error came from.")]
