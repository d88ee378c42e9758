"""`runtime test`: whether this setup computes what it should."""

from __future__ import annotations

import inspect
import os
from typing import Any

from runtime.cli.launch import CONTEXT as LAUNCH_CONTEXT
from runtime.cli.launch import ConfigPath, carry_out, launch_command

_CHECKS = "runtime.launch.selftest"
_OTHERS = {"script", "arguments", "explain_only", "dry_run_only", "module", "no_python"}  # there is no script

CONTEXT: dict[str, Any] = {**LAUNCH_CONTEXT, "allow_interspersed_args": True}


def test_command(config_file: ConfigPath = None, **given: Any) -> None:  # noqa: PT028  a command, and no test
    """Check this setup: collectives, a training on all processes as on one, evaluation, checkpoints, precisions.

    \b
    Examples:
      runtime test                        as `runtime launch` would start a script here
      runtime test --cpu -n 2             two processes on the CPU
      runtime test --num_machines 2 --machine_rank 0 --main_process_ip 10.0.0.1 -n 16    on every machine

    It takes less than a minute, writes nothing but a temporary folder, and has the options of `runtime launch`. The
    exit status is 0 if no check failed, 1 if one did, and 2 if nothing was started.
    """
    from runtime.launch.request import request  # late: not to print help
    from runtime.launch.start import launch

    as_module = {**given, "module": True}
    carry_out(
        "test",
        lambda: request(_CHECKS, (), as_module, os.environ, config_file=config_file),
        lambda asked: launch(asked.spec),
    )


test_command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [item for item in inspect.signature(launch_command).parameters.values() if item.name not in _OTHERS]
)
