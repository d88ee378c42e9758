"""One process: the launcher turns into the script, so that signals, exit status and traceback are the script's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from runtime.launch.spec import LaunchSpec


def command(spec: LaunchSpec) -> list[str]:
    """The command line that runs the target in a fresh interpreter."""
    if spec.no_python:
        return [spec.target, *spec.arguments]
    target = ["-m", spec.target] if spec.as_module else [spec.target]
    return [sys.executable, *target, *spec.arguments]


def run(spec: LaunchSpec, variables: Mapping[str, str]) -> int:
    """The exit status of the script, where the platform has no exec; elsewhere this does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":  # exec on Windows starts another process and lets this one end at once
        words = command(spec)
        os.execvpe(words[0], words, dict(variables))
    return subprocess.run(command(spec), env=dict(variables), check=False).returncode
