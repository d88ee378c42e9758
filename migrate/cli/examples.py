"""What `--help` and docs/cli.md show: for every option a command that uses it."""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    """A command line, and what it does."""

    command: str
    what: str


EXAMPLES = (
    Example("migrate train.py", "show the diff, and what was understood"),
    Example("migrate train.py --write", "convert the file"),
    Example("migrate train.ipynb", "the same of a notebook, cell by cell"),
    Example("migrate train.ipynb --notebook-launcher", "and start its training on several processes"),
    Example("migrate src/ --interactive", "decide program by program"),
    Example("migrate train.py --write --undo-patch back.patch", "`git apply back.patch` takes the conversion back"),
    Example("migrate src/ --diff | git apply", "take the changes as a patch"),
    Example("migrate src/ --report report.html", "one page to review: what was understood, each change and why"),
    Example("migrate src/ --check", "list the training loops that are still plain PyTorch"),
    Example("migrate src/ --check --output-format github", "the same as annotations of a pull request"),
    Example("migrate . --check --since origin/main", "only loops that this branch touched"),
    Example("migrate . --check --baseline known.json", "only loops that are not known yet"),
    Example("migrate . --check --baseline known.json --update-baseline", "make them known: later, new loops fail"),
    Example("migrate . --check --exclude 'legacy/*'", "leave files out"),
    Example("migrate legacy/a.py --check --force-exclude", "leave out also what is named, as hooks name files"),
    Example("migrate . --check --no-gitignore", "look also at what git ignores"),
    Example("migrate . --check --config ci/pyproject.toml", "with the settings of another file"),
    Example("migrate . --check --isolated", "with no settings but those of the command line"),
    Example("migrate . --check --jobs 1", "one process; without it as many as pay"),
    Example("migrate . --check --no-cache", "without the results of earlier runs"),
    Example("migrate . --check --cache-dir ~/.cache/migrate", "with results that are kept elsewhere"),
    Example("migrate train.py --verify", "run the original and the converted program, and compare them"),
    Example("migrate train.py --verify --write -- --epochs 1", "with arguments of the script; write if all is well"),
    Example("migrate train.py --verify --steps 100 --processes 1,2,4", "more of it"),
    Example("migrate train.py --verify --time-limit 60 --verify-json out.json", "a minute a run; keep what was found"),
    Example("migrate - < train.py > converted.py", "from standard input to standard output"),
    Example("migrate - --stdin-filename src/train.py < buffer", "what an editor asks for when it saves"),
    Example("migrate train.py --target accelerate", "convert to Hugging Face Accelerate"),
    Example("migrate train.py --for tpu", "also tell what makes a TPU wait"),
    Example("migrate train.py --ignore MIG117,one-seed", "without these rules"),
    Example("migrate train.py --select MIG1", "with these rules alone"),
    Example("migrate train.py --review --annotate", "also what rests on annotations alone, with a comment at each"),
    Example("migrate --rules", "list the rules"),
    Example("migrate --explain MIG105", "what a rule does, and what it leaves alone"),
    Example("migrate --explain-role train.py:31:model", "what `model` on line 31 is, and why migrate thinks so"),
    Example("migrate src/ --write --quiet", "say nothing but what went wrong"),
    Example("migrate train.py --verbose", "also list every edit"),
    Example("migrate train.py --color always | less -R", "colours in a pipe"),
    Example("migrate train.py --traceback", "where in migrate an error came from, for a report"),
    Example("migrate --install-completion", "teach your shell the options"),
    Example("migrate --show-completion", "what that would do, to put it somewhere else"),
    Example("migrate --version", "which migrate this is"),
)
STATUS = (
    (0, "nothing to do, or all done"),
    (1, "loops are not converted, files would change, or (with --write) something is left to you or to be reviewed"),
    (1, "with --verify: a contract is broken"),
    (2, "wrong usage, unreadable or unparsable input, or a bug of ours; nothing is half written"),
    (2, "with --verify: the original cannot be run"),
)


def epilog() -> str:
    """The end of `--help`; a line with \\b alone keeps the lines of its paragraph as they are."""
    width = 42
    shown = [
        f"  {each.command:{width}}  {each.what}" if len(each.command) <= width else f"  {each.command}   {each.what}"
        for each in EXAMPLES
    ]
    return "\n".join(
        ("\b", "Examples:", *shown, "", "\b", "Exit status:", *(f"  {code}  {what}" for code, what in STATUS))
    )
