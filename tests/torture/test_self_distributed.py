"""Programs that distribute themselves, put together: converted they do alone what they did (E1), and on two processes
train, evaluate and write what the originals do there (E2 to E5).
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import self_distributed
from executions import Ran
from test_idioms import FROZEN, PORTIONS, converted_into, differing, held, lines

pytestmark = pytest.mark.torture


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_the_contracts_hold_of_programs_that_distribute_themselves(portion, record, is_late, tmp_path):
    kind = "programs that distribute themselves"
    held(kind, self_distributed.made, portion, performed, record, is_late, tmp_path)


def performed(program, folder, stage):
    """Whether a program was converted, and what is wrong with it then."""
    if not converted_into(program, folder).changes:
        return False, ""
    before, after = (Path(folder) / version / "program.py" for version in ("before", "after"))
    return True, alone(program, before, after, stage) or together(program, before, after, stage)


def alone(program, before, after, stage):
    """What differs on one process: alone, where the original runs so, or as the only one that torchrun starts."""
    is_alone = not program.tags.isdisjoint({"alone, too", "spawns"})
    first = original(program, before, [], 1) or stage.run(before, [], launched=not is_alone)
    second = stage.run(after, [], launched=not is_alone)
    if first.status:
        return f"the original fails alone:\n{first.errors[-900:]}"
    if second.status or (is_alone and second.output != first.output) or [*second.files] != [*first.files]:
        return f"E1:\n{first.output}\n{second.output}\n{second.errors[-900:]}"
    return "" if lines(second, "lr") == lines(first, "lr") else f"rates:\n{first.output}\n{second.output}"


def original(program, before, arguments, processes):
    """How a program ends that starts its processes itself, as so many of its own; None where that is the launcher."""
    if "spawns" not in program.tags:
        return None
    work = tempfile.mkdtemp(dir=before.parent)
    command = [sys.executable, str(before), "--gpus", str(processes), *arguments]
    ended = subprocess.run(command, check=False, cwd=work, capture_output=True, text=True, timeout=120)
    return Ran(ended.returncode, ended.stdout, ended.stderr, dict.fromkeys(sorted(os.listdir(work)), ""))


def together(program, before, after, stage):
    """What differs on two processes: what they say and write, and how they train where both go over the data alike."""
    shared = "reads again" in program.tags
    for arguments in ([], FROZEN):
        first = original(program, before, arguments, 2) or stage.together(before, arguments, shared=shared)[0]
        second, other = stage.together(after, arguments, shared=shared)
        if first.status:
            return f"the original fails on two processes:\n{first.errors[-900:]}"
        if second.status or other.status:
            return f"on two processes:\n{second.errors[-900:]}\n{other.errors[-900:]}"
        if other.output or (other.files and not shared) or [*second.files] != [*first.files]:
            return f"E4:\n{other.output}\n{other.files}\n{first.files}\n{second.files}"
        compared = ["train", "val"] if "in order" in program.tags else ["val"] if arguments else []
        if kind := differing(first, second, ("lr", *compared)):
            return f"{kind} {arguments}:\n{first.output}\n{second.output}"
    return ""
