"""What a program is made of, found without running it: roles of values, loops, who calls whom. `ast` only."""

from migrate.analysis.facts import Facts
from migrate.analysis.solve import solve
from migrate.source.memory import uncollected
from migrate.source.project import Project


def analyse(project: Project) -> Facts:
    """The facts of a project: of the named files and of those of their own modules that they import."""
    with uncollected():
        return Facts(project, solve(project))


__all__ = ["Facts", "analyse"]
