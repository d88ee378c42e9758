"""Where a run keeps its files: the folders of a project, and how its checkpoints are named and counted."""

from __future__ import annotations

import os
from dataclasses import dataclass

from runtime.errors import ConfigurationError, refuse_other_kind


@dataclass(slots=True)
class ProjectConfiguration:
    """The folders of a run; names, defaults and meaning as in Accelerate.

    Not frozen: scripts set `iteration` when they resume, and `Accelerator(project_dir=...)` fills in the folders.

    Raises:
        ConfigurationError: `total_limit` is less than 1, or `iteration` is negative.
    """

    project_dir: str | os.PathLike[str] | None = None
    logging_dir: str | os.PathLike[str] | None = None
    """What trackers write into; the project's folder where it is not given."""
    automatic_checkpoint_naming: bool = False
    """`save_state()` names its folder by itself: checkpoints/checkpoint_<iteration> in the project's folder."""
    total_limit: int | None = None
    """Checkpoints of automatic names that are kept; the oldest go."""
    iteration: int = 0
    """The number of the next checkpoint with an automatic name."""
    save_on_each_node: bool = False
    """Files are written by one process of each machine (for machines without a common file system)."""

    def __post_init__(self) -> None:
        if self.total_limit is not None and self.total_limit < 1:
            raise ConfigurationError(
                f"ProjectConfiguration(total_limit={self.total_limit!r}) would keep no checkpoint. "
                "Give at least 1, or None to keep all."
            )
        if self.iteration < 0:
            raise ConfigurationError(f"ProjectConfiguration(iteration={self.iteration!r}): checkpoints count from 0.")
        self.set_directories(self.project_dir)

    def set_directories(self, project_dir: str | os.PathLike[str] | None = None) -> None:
        """Make `project_dir` the project's folder, and what trackers write into if that is not given."""
        self.project_dir = project_dir
        if self.logging_dir is None:
            self.logging_dir = project_dir


def project_settings(
    configuration: ProjectConfiguration | None, project_dir: str | os.PathLike[str] | None
) -> ProjectConfiguration:
    """The configuration itself (a new one for None), with the constructor's `project_dir` where it names no folder.

    Raises:
        ConfigurationError: both name a folder, and not the same one; or it is something else.
    """
    refuse_other_kind("project_config", configuration, ProjectConfiguration)
    if configuration is None:
        return ProjectConfiguration(project_dir)
    if configuration.project_dir is None:
        configuration.set_directories(project_dir)
    elif project_dir is not None and os.fspath(project_dir) != os.fspath(configuration.project_dir):
        raise ConfigurationError(
            f"project_dir={os.fspath(project_dir)!r} contradicts ProjectConfiguration(project_dir="
            f"{os.fspath(configuration.project_dir)!r}). Keep one of them."
        )
    return configuration
