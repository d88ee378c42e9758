"""Programs that distribute themselves, put together: converted they do alone what they did (E1), and on two processes
train, evaluate and write what the originals do there (E2 to E5).
"""

from pathlib import Path

import pytest
import self_distributed
from test_idioms import CLOSE, FROZEN, NUMBER, PORTIONS, converted_into, held, lines

pytestmark = pytest.mark.torture


@pytest.mark.parametrize("portion", range(PORTIONS))
def test_the_contracts_hold_of_programs_that_distribute_themselves(portion, record, is_late, tmp_path):
    held(self_distributed, portion, performed, record, is_late, tmp_path, "programs that distribute themselves")


def performed(program, folder, stage):
    """Whether a program was converted, and what is wrong with it then."""
    if not converted_into(program, folder).changes:
        return False, ""
    before, after = (Path(folder) / version / "program.py" for version in ("before", "after"))
    return True, alone(program, before, after, stage) or together(program, before, after, stage)


def alone(program, before, after, stage):
    """What differs on one process: alone, where the original runs so, or as the only one that torchrun starts."""
    is_alone = "alone, too" in program.tags
    first, second = (stage.run(script, [], launched=not is_alone) for script in (before, after))
    if first.status:
        return f"the original fails alone:\n{first.errors[-900:]}"
    if second.status or (is_alone and second.output != first.output) or [*second.files] != [*first.files]:
        return f"E1:\n{first.output}\n{second.output}\n{second.errors[-900:]}"
    return "" if lines(second, "lr") == lines(first, "lr") else f"rates:\n{first.output}\n{second.output}"


def together(program, before, after, stage):
    """What differs on two processes: what they say and write, and how they train where both go over the data alike."""
    shared = "reads again" in program.tags
    for arguments in ([], FROZEN):
        (first, _), (second, other) = (stage.together(script, arguments, shared=shared) for script in (before, after))
        if first.status:
            return f"the original fails on two processes:\n{first.errors[-900:]}"
        if second.status or other.status:
            return f"on two processes:\n{second.errors[-900:]}\n{other.errors[-900:]}"
        if other.output or (other.files and not shared) or [*second.files] != [*first.files]:
            return f"E4:\n{other.output}\n{other.files}\n{first.files}\n{second.files}"
        compared = ["train", "val"] if "in order" in program.tags else ["val"] if arguments else []
        for kind in ("lr", *compared):
            told, now = ([[*map(float, NUMBER.findall(each))] for each in lines(ran, kind)] for ran in (first, second))
            if told != [pytest.approx(numbers, rel=CLOSE, abs=CLOSE) for numbers in now]:
                return f"{kind} {arguments}:\n{first.output}\n{second.output}"
    return ""
