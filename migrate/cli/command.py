"""The command: its options, and which answer is asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from migrate import __version__, pipeline
from migrate.cli import catalogue, flags
from migrate.cli.arguments import Command
from migrate.cli.asked import Asked
from migrate.cli.conversion import convert
from migrate.cli.examples import epilog
from migrate.cli.guard import guarded
from migrate.cli.printing import Color, Format
from migrate.options import question
from migrate.report.stream import emit

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(cls=Command, epilog=epilog(), context_settings={"help_option_names": ["-h", "--help"]})
def migrate(
    context: typer.Context,
    paths: flags.Paths = None,
    write: flags.Write = False,
    only_diff: flags.Diff = False,
    check: flags.Check = False,
    interactive: flags.Interactive = False,
    undo_patch: flags.UndoPatch = "",
    target: flags.To = None,
    hardware: flags.For = None,
    select: flags.Select = None,
    ignore: flags.Ignore = None,
    review: flags.Review = False,
    annotate: flags.Annotate = False,
    notebook_launcher: flags.NotebookLauncher = False,
    stdin_filename: flags.StdinName = "",
    exclude: flags.Exclude = None,
    force_exclude: flags.ForceExclude = False,
    no_gitignore: flags.NoGitignore = False,
    since: flags.Since = "",
    baseline: flags.Baseline = "",
    update_baseline: flags.UpdateBaseline = False,
    config: flags.Config = "",
    isolated: flags.Isolated = False,
    jobs: flags.Jobs = None,
    no_cache: flags.NoCache = False,
    cache_dir: flags.CacheDir = "",
    explain: flags.Explain = "",
    explain_role: flags.ExplainRole = "",
    rules: flags.Rules = False,
    quiet: flags.Quiet = False,
    verbose: flags.Verbose = False,
    color: flags.Coloured = Color.AUTO,
    output_format: flags.OutputFormat = Format.TEXT,
    report: flags.ReportTo = "",
    version: flags.Version = False,
    show_traceback: flags.Traceback = False,
    verify: flags.Verify = False,
    steps: flags.Steps = None,
    processes: flags.Processes = "",
    time_limit: flags.TimeLimit = None,
    verify_json: flags.VerifyJson = "",
) -> None:
    """Convert PyTorch training scripts to run on any device and any number of processes.

    Without options, shows what would change and changes nothing. Only the paths named are ever written; the project's
    modules that they import are read.
    """
    given = dict(locals())
    asked = Asked(arguments=given.pop("context").obj or (), **given)
    answer = next((answer for is_asked, answer in ANSWERS if is_asked(asked)), convert)
    raise typer.Exit(guarded(lambda: answer(asked), shows_traceback=asked.show_traceback))


def _say(text: str) -> int:
    emit(text, sys.stdout)
    return 0


#: What is asked for other than a conversion: the first that applies is answered, with the exit status.
ANSWERS: tuple[tuple[Callable[[Asked], bool], Callable[[Asked], int]], ...] = (
    (lambda asked: asked.version, lambda _: _say(f"migrate {__version__}\n")),
    (lambda asked: asked.rules, lambda _: _say(catalogue.table(catalogue.every()))),
    (lambda asked: bool(asked.explain), lambda asked: _say(catalogue.explained(asked.explain, catalogue.every()))),
    (
        lambda asked: bool(asked.explain_role),
        lambda asked: _say(pipeline.explain_role(question(asked.explain_role), asked.paths or [], asked.options)),
    ),
)
