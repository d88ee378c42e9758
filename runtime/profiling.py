"""PyTorch's profiler with the arguments of a `ProfileKwargs`. Imported when a profile is asked for."""

from __future__ import annotations

from torch import profiler

from runtime.errors import ConfigurationError
from runtime.handlers import ProfileKwargs


def profiler_for(options: ProfileKwargs) -> profiler.profile:
    """A profiler that has not started.

    Raises:
        ConfigurationError: an activity that PyTorch does not have, or one that is not in a list.
    """
    given = options.activities
    if isinstance(given, (str, profiler.ProfilerActivity)):
        raise ConfigurationError(f"ProfileKwargs(activities={given!r}): activities are a list, [{given!r}].")
    schedule = None if options.schedule_option is None else profiler.schedule(**options.schedule_option)
    return profiler.profile(
        activities=None if given is None else [_activity(name) for name in given],
        schedule=schedule,
        on_trace_ready=options.on_trace_ready,
        record_shapes=options.record_shapes,
        profile_memory=options.profile_memory,
        with_stack=options.with_stack,
        with_flops=options.with_flops,
        with_modules=options.with_modules,
    )


def _activity(activity: str | profiler.ProfilerActivity) -> profiler.ProfilerActivity:
    known = {word.lower(): kind for word, kind in profiler.ProfilerActivity.__members__.items()}
    name = str(getattr(activity, "name", activity)).lower()
    if name not in known:
        raise ConfigurationError(f"ProfileKwargs(activities=[{name!r}]) is not known. Known: {', '.join(known)}.")
    return known[name]
