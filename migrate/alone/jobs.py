"""Jobs of a cluster that start the processes of a program: each learns its place there, and tells the accelerator.

job = submitit.JobEnvironment()    what the launcher would say is said below: os.environ.update(RANK=..., ...)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import distributed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World

#: A port that the first process listens at; the environment may have another one.
_PORT = "os.environ.get('MASTER_PORT', '29500')"


def told(world: World) -> Iterator[tuple[ast.Assign, str]]:
    """The statements that give a job a name, and what is said below each."""
    for use in world.facts.calls_to(distributed.JOBS):
        statement = world.facts.tree(use.node).statement(use.node)
        if use.unit.module not in world.modules or world.is_left(use.node):
            continue
        if isinstance(statement, ast.Assign) and statement.value is use.node and len(statement.targets) == 1:
            if isinstance(target := statement.targets[0], ast.Name):
                job = target.id
                said = {
                    "RANK": f"str({job}.global_rank)",
                    "LOCAL_RANK": f"str({job}.local_rank)",
                    "WORLD_SIZE": f"str({job}.num_tasks)",
                    "MASTER_ADDR": f"{job}.hostnames[0]",
                    "MASTER_PORT": _PORT,
                }
                given = ", ".join(f"{name}={value}" for name, value in said.items())
                yield statement, f"os.environ.update({given})"
