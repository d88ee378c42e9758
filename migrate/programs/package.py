"""The package that converted code imports the accelerator from, and what of the project's own would hide it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

CLASS = b"Accelerator"
OTHER = {"runtime": "accelerate", "accelerate": "runtime"}


def hidden(facts: Facts, program: Program, package: str) -> Iterator[Refusal]:
    """Where `from runtime import Accelerator` would find a module of the project, which comes first on Python's path.

    A module that has an Accelerator of its own is what a project with a copy of the package has.
    """
    modules = {program.module, *(loop.unit.module for loop in program.training)}
    for module in sorted(modules, key=lambda module: module.path):
        own = facts.project.resolve(package, 0, module.file)
        if own is not None and CLASS not in own.content:
            yield Refusal(
                program.training[0].node,
                "MIG100",
                f"the project's own {own.path} hides the package {package}, which `from {package} import Accelerator`"
                " is to find",
                f"give {own.path} another name, or convert with --target {OTHER[package]}",
            )
            return
