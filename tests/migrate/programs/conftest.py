"""A program in, its decisions out."""

import textwrap

import pytest

from migrate.analysis import analyse
from migrate.programs.conversion import convert
from migrate.programs.limits import limits
from migrate.programs.loops import Loops
from migrate.programs.program import programs
from migrate.source.project import Project, SourceFile


@pytest.fixture
def decide():
    """The only program of a source, and its conversion (None if it is refused)."""

    def run(source, package="runtime"):
        facts = analyse(Project([SourceFile("program.py", textwrap.dedent(source).encode())]))
        loops = Loops(facts)
        (program,) = programs(facts, loops)
        program.refusals += limits(facts, loops, program)
        return program, convert(facts, loops, program, package)

    return run


@pytest.fixture
def analysed():
    """The facts and loops of a source, or of several files by name; all are named."""

    def run(source, **files):
        sources = {"program": source, **files}
        named = [SourceFile(f"{name}.py", textwrap.dedent(text).encode()) for name, text in sources.items()]
        facts = analyse(Project(named))
        return facts, Loops(facts)

    return run
