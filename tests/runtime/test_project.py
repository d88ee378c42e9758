"""The folders of a run: what is given, what follows from it, and what contradicts."""

from __future__ import annotations

import pytest

from runtime import Accelerator, ProjectConfiguration
from runtime.errors import ConfigurationError


def test_the_accelerators_folder_fills_what_the_configuration_leaves_open(tmp_path):
    given = ProjectConfiguration(logging_dir="logs", automatic_checkpoint_naming=True, iteration=3)
    accelerator = Accelerator(cpu=True, project_dir=tmp_path, project_config=given)
    assert accelerator.project_configuration is given
    assert (accelerator.project_dir, accelerator.logging_dir, accelerator.save_iteration) == (tmp_path, "logs", 3)
    given.iteration = 7
    assert accelerator.save_iteration == 7


@pytest.mark.parametrize(
    ("arguments", "folders"),
    [
        ({}, (None, None)),
        ({"project_dir": "run"}, ("run", "run")),
        ({"project_config": ProjectConfiguration("run")}, ("run", "run")),
        ({"project_config": ProjectConfiguration("run"), "project_dir": "run"}, ("run", "run")),
    ],
)
def test_logs_lie_in_the_projects_folder(arguments, folders):
    accelerator = Accelerator(cpu=True, **arguments)
    assert (accelerator.project_dir, accelerator.logging_dir) == folders


def test_two_folders_contradict():
    with pytest.raises(ConfigurationError, match=r"project_dir='b' contradicts .*project_dir='a'"):
        Accelerator(cpu=True, project_dir="b", project_config=ProjectConfiguration("a"))


@pytest.mark.parametrize("arguments", [{"total_limit": 0}, {"iteration": -1}])
def test_numbers_that_keep_nothing_are_refused(arguments):
    with pytest.raises(ConfigurationError, match=next(iter(arguments))):
        ProjectConfiguration(**arguments)
