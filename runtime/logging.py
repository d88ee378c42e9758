"""Loggers that know which process speaks. Only what asks for it is touched: never the root logger."""

from __future__ import annotations

import logging
import os
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from runtime.errors import WorldError
from runtime.world import World, current_world

if TYPE_CHECKING:
    _LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:
    _LoggerAdapter = logging.LoggerAdapter  # Python 3.10 has no generic one


class MultiProcessAdapter(_LoggerAdapter):
    """A logger whose calls take two more arguments; messages begin with `[RANK i]`.

    main_process_only: True (the default): only the main process logs.
    in_order: True: all processes log, one after the other; every process must make the call.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__(logger, {})
        self._told: set[tuple[Any, ...]] = set()

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs.setdefault("stacklevel", 2)  # the line that logged, not the one below
        return f"[RANK {World.from_environment(os.environ).rank}] {msg}", kwargs

    def log(self, level: int, msg: Any, *args: Any, **kwargs: Any) -> None:
        """Log on the processes that are to speak.

        Raises:
            WorldError: `in_order` among processes that have not been joined yet.
        """
        main_process_only, in_order = kwargs.pop("main_process_only", True), kwargs.pop("in_order", False)
        if not self.isEnabledFor(level):
            return
        world = World.from_environment(os.environ)
        msg, options = self.process(msg, kwargs)
        if not in_order:
            if world.rank == 0 or not main_process_only:
                self.logger.log(level, msg, *args, **options)
            return
        joined = current_world()
        if joined.size != world.size:
            raise WorldError("in_order=True needs processes that wait for each other. Make the Accelerator first.")
        from runtime.collectives import barrier  # few programs log in turn

        for rank in range(joined.size):
            if rank == joined.rank:
                self.logger.log(level, msg, *args, **options)
            barrier(joined)

    def warning_once(self, msg: Any, *args: Any, **kwargs: Any) -> None:
        """`warning`, the first time that this logger is given this message with these arguments."""
        key = (str(msg), *map(str, args))
        if key not in self._told:
            self._told.add(key)
            # Not by way of `warning`, which is a level more for Python 3.10 and none for newer ones.
            self.log(logging.WARNING, msg, *args, **{"stacklevel": 3, **kwargs})


def get_logger(name: str, log_level: str | None = None) -> MultiProcessAdapter:
    """The logger of that name, for many processes; works before there is an `Accelerator`, too.

    Args:
        name: as for `logging.getLogger`.
        log_level: of this logger and those below it; else ACCELERATE_LOG_LEVEL, else it stays.
    """
    logger = logging.getLogger(name)
    level = log_level or os.environ.get("ACCELERATE_LOG_LEVEL")
    if level is not None:
        logger.setLevel(level.upper())
    return MultiProcessAdapter(logger)
