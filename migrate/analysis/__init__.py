"""What a program is made of, found without running it: roles of values, loops, who calls whom. `ast` only."""

from migrate.analysis import by_use
from migrate.analysis.facts import Facts
from migrate.analysis.known import TABLES, Tables
from migrate.analysis.solve import solve
from migrate.source.memory import uncollected
from migrate.source.project import Project


def analyse(project: Project, known: Tables = TABLES) -> Facts:
    """The facts of a project: of the named files and of those of their own modules that they import.

    `known` is what is known of libraries: ours, or a user's rows before ours.
    """
    with uncollected():
        state = solve(project, known=known)
        if rows := by_use.rows(state):
            state = solve(project, known=known.beside(rows))
        return Facts(project, state)


__all__ = ["Facts", "analyse"]
