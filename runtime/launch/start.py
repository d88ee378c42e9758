"""From what was asked to an exit status."""

from __future__ import annotations

import os
import sys

from runtime.launch import forked, single
from runtime.launch.env import child_environment, environment
from runtime.launch.refusals import check
from runtime.launch.share import divide
from runtime.launch.spec import LaunchSpec


def launch(spec: LaunchSpec) -> int:
    """Run the script of `spec` and give back its exit status. On one process this process becomes the script.

    Raises:
        LaunchError: nothing was started; the message is for the user.
    """
    check(spec)
    share = divide(spec, os.environ)
    if share.notice:
        sys.stderr.write(f"runtime launch: {share.notice}\n")
    variables = child_environment(spec, share, os.environ)
    if spec.place is not None or (share.processes == 1 and not spec.needs_watching):
        return single.run(spec, variables)

    forked.take_over(spec, share, variables)
    from runtime.launch import agent  # late: imports torch, which one process does not need here

    with environment(variables):
        return agent.run(spec, share)
