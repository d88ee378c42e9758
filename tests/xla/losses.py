"""Runs a converted program as it is, and writes the losses that it went back from as JSON.

python tests/xla/losses.py FILE SCRIPT [ARGUMENT ...]
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

from runtime import Accelerator

ENOUGH = 200  # of a program that goes on for long


def main(file: Path, script: str, *arguments: str) -> None:
    losses = []
    backward = Accelerator.backward

    def recorded(self, loss, **kwargs):
        if len(losses) < ENOUGH:
            losses.append(loss.detach().clone())  # read at the end: reading it here would cut the step
        backward(self, loss, **kwargs)

    Accelerator.backward = recorded
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        file.write_text(json.dumps([loss.float().sum().item() for loss in losses]))


main(Path(sys.argv[1]), *sys.argv[2:])
