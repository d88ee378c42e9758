"""What a run tells about itself while it goes: numbers for its trackers, and profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runtime.errors import ConfigurationError
from runtime.handlers import Handlers, ProfileKwargs
from runtime.processes import Processes
from runtime.project import ProjectConfiguration
from runtime.world import World

if TYPE_CHECKING:
    from torch.profiler import profile

    from runtime.tracking import GeneralTracker
    from runtime.tracking.choice import Tracker


class Reporting(Processes):
    """The part of `Accelerator` that trackers and the profiler are reached through.

    Only processes that write have trackers: the main one, and others for trackers whose `main_process_only` is False.
    """

    project_configuration: ProjectConfiguration
    _handlers: Handlers

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.trackers: list[GeneralTracker] = []
        self.log_with: list[Tracker] = []

    def _choose_trackers(self, log_with: Any) -> None:
        if log_with is not None:
            from runtime.tracking import chosen

            self.log_with = chosen(log_with, self.project_configuration.logging_dir, is_telling=self.is_main_process)

    def init_trackers(
        self,
        project_name: str,
        config: dict[str, Any] | None = None,
        init_kwargs: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Start the trackers of `log_with`; those of an earlier call are finished.

        Args:
            project_name: names the run's folder, project or experiment.
            config: the settings of the run, which every tracker keeps.
            init_kwargs: arguments for single trackers by name: `{"wandb": {"tags": ["first"]}}`.
        """
        self._finish_trackers()
        for choice in self.log_with:
            if choice.main_process_only and not self.is_main_process:
                continue
            tracker: Any = choice
            if isinstance(choice, type):
                kind: Any = choice  # the constructor is that of the kind, see GeneralTracker
                folder = (self.project_configuration.logging_dir,) if choice.requires_logging_directory else ()
                tracker = kind(project_name, *folder, **(init_kwargs or {}).get(choice.name, {}))
            tracker.start()
            self.trackers.append(tracker)
        if config is not None:
            for tracker in self.trackers:
                tracker.store_init_configuration(config)

    def log(self, values: dict[str, Any], step: int | None = None, log_kwargs: dict[str, Any] | None = None) -> None:
        """Values of this moment to all trackers; those of the main process are kept, nothing is joined.

        Args:
            values: numbers, texts, or what the tracker understands; tensors of one element are numbers.
            step: the step of the run.
            log_kwargs: arguments for `log` of single trackers by name.

        Raises:
            ConfigurationError: there are trackers, and `init_trackers` has not been called.
        """
        if self.log_with and not self.trackers and self.is_main_process:
            raise ConfigurationError("log() before init_trackers(project_name): nothing would be kept. Call it first.")
        from runtime.tracking.base import number  # late: most scripts have no trackers

        for tracker in self.trackers:
            tracker.log(values, step=number(step), **(log_kwargs or {}).get(tracker.name, {}))

    def get_tracker(self, name: str, unwrap: bool = False) -> Any:
        """The tracker of that name, or what is behind it (`unwrap`: a SummaryWriter, a run).

        On processes that do not write: an object all of whose methods do nothing.

        Raises:
            ConfigurationError: there is no such tracker, or `init_trackers` has not been called.
        """
        for tracker in self.trackers:
            if tracker.name == name:
                return tracker.tracker if unwrap else tracker
        known = [choice.name for choice in self.log_with]
        if name not in known:
            raise ConfigurationError(f"there is no tracker {name!r}. There are: {', '.join(known) or 'none'}.")
        if self.is_main_process:
            raise ConfigurationError(f"get_tracker({name!r}) before init_trackers(project_name). Call it first.")
        from runtime.tracking import Silent

        return Silent(name)

    def _finish_trackers(self) -> None:
        """Finish all of them; the first error is raised when all had their turn."""
        errors = []
        while self.trackers:
            try:
                self.trackers.pop(0).finish()
            except Exception as error:  # noqa: BLE001  raised below
                errors.append(error)
        if errors:
            raise errors[0]

    @contextmanager
    def profile(self, profile_handler: ProfileKwargs | None = None) -> Iterator[profile]:
        """`torch.profiler.profile` around the body; call `step()` of what it gives where there is a schedule.

        With `output_trace_dir` every process writes `profile_<rank>.json` there, unless `on_trace_ready` has saved the
        trace, which PyTorch does once, or the body raises. Processes do not wait for each other: one alone may profile.

        Raises:
            ConfigurationError: an activity that PyTorch does not have.
        """
        from runtime.profiling import profiler_for

        options = profile_handler or self._handlers.profile
        with profiler_for(options) as profiler:
            yield profiler
        if options.output_trace_dir is not None:
            os.makedirs(options.output_trace_dir, exist_ok=True)
            path = os.path.join(options.output_trace_dir, f"profile_{self.process_index}.json")
            try:
                profiler.export_chrome_trace(path)
            except RuntimeError:
                if options.on_trace_ready is None:
                    raise
