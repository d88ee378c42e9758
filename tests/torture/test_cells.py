"""Notebooks put together, converted for `notebook_launcher`: alone they say and write what they did (E1), and on two
processes that share batches they train, evaluate and write as one does (E2 to E5).
"""

import cells
import pytest
from test_idioms import PORTIONS, compared, differing, held, unlike

from migrate.options import Options
from migrate.pipeline import run_text

pytestmark = pytest.mark.torture
#: What a batch's share has another loss of, or another number for, than the batch.
NOT_COMPARED = frozenset({"sum of losses", "mean of some", "draws"})
STARTING = "Starting "


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_the_contracts_hold_of_notebooks(portion, record, is_late, tmp_path):
    held("notebooks that start processes", cells.made, portion, performed, record, is_late, tmp_path)


def performed(notebook, folder, stage):
    """Whether a notebook was converted, and what is wrong with it then."""
    report = run_text(notebook.content, cells.NAME, Options(notebook_launcher=True))
    if not report.changes:
        return False, ""
    (change,) = report.changes
    versions = {"before": notebook.content, "after": change.new, "two": cells.on_two(change.new)}
    for version, content in versions.items():
        (folder / version).mkdir(parents=True)
        (folder / version / cells.NAME).write_bytes(content)
    ran = {version: stage.run(folder / version / cells.NAME, [], launched=False) for version in versions}
    return True, unlike(ran["before"], ran["after"]) or together(notebook.program, ran["before"], ran["two"], report)


def together(program, before, two, report):
    """What differs on two processes that the notebook starts: nothing but the order in which numbers are added up."""
    if two.status:
        return f"on two processes:\n{two.output}\n{two.errors[-2500:]}"
    said = [line for line in two.lines if not line.startswith(STARTING)]
    if len(said) != len(before.lines) or [*two.files] != [*before.files]:
        return f"E4:\n{before.output}\n{two.output}\n{[*before.files]} {[*two.files]}"
    kinds = [] if program.tags & NOT_COMPARED else compared(report)
    kind = differing(before, two, (*kinds, "lr"))
    return f"{kind}:\n{before.output}\n{two.output}" if kind else ""
