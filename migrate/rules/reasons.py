"""Why something is left to a person: the codes that are only ever reasons, with their documentation.

A rule that refuses says so under its own code. These say what stands in the way before any rule begins.
"""

from __future__ import annotations

from dataclasses import dataclass

from migrate.codes import NAMES


@dataclass(frozen=True, slots=True)
class Reason:
    """A code that stands for a reason, never for an edit."""

    code: str
    name: str
    documentation: str

    @property
    def summary(self) -> str:
        """The first line of the documentation, without the name."""
        return self.documentation.splitlines()[0].partition(": ")[2]


def _reason(code: str, summary: str, why: str, way_out: str) -> Reason:
    name = NAMES[code]
    return Reason(code, name, f"{name}: {summary}\n\n{why}\n\nWhat to do: {way_out}")


REASONS: tuple[Reason, ...] = (
    _reason(
        "MIG111",
        "the program joins a process group, or starts its processes, by itself.",
        "The accelerator does both. A program that always does it is refused; one that does it in a branch keeps it.",
        "take init_process_group, mp.spawn and what depends on the rank out, or do not take that branch.",
    ),
    _reason(
        "MIG901",
        "no place in the program names the model, the optimizer and the loader together.",
        "prepare takes all of them in one call, so a function, a module or an __init__ must have them all.",
        "make them in one place, or name the file that makes them: migrate main.py engine.py.",
    ),
    _reason(
        "MIG902",
        "it is not known which optimizer trains what.",
        "Parameters that are updated by hand, or by an optimizer that is made out of sight, would not be prepared.",
        "train with a torch.optim optimizer over model.parameters() that is made in the named files.",
    ),
    _reason(
        "MIG904",
        "a function needs the accelerator and cannot be given it.",
        "Its signature would change, and not all of its callers are seen, or one calls it with * or **.",
        "call it by its name, or give it an `accelerator` parameter by hand.",
    ),
    _reason(
        "MIG905",
        "the analysis stopped at its bound before it was done.",
        "What it knows then may be incomplete, and an edit could rest on it.",
        "name fewer files at a time, and report the program to us.",
    ),
    _reason(
        "MIG906",
        "the file already makes an accelerator, and a loop in it does not use it.",
        "A second accelerator would be made beside the first.",
        "write accelerator.backward(loss) in that loop by hand.",
    ),
    _reason(
        "MIG907",
        "a function trains, and nothing in the named files calls it, in a loop or with its model.",
        "The loop around it, the model, the optimizer or the loader are somewhere else: annotations say what they are\n"
        "likely to be, and nothing is edited on that; without the objects nothing can be prepared.",
        "name the files that call it too: migrate . or migrate train.py engine.py; or convert with --review, and look.",
    ),
    _reason(
        "MIG908",
        "the cells of a notebook were last run in another order than they stand in.",
        "What is understood goes by the order in which they stand, as when all of them are run from the top.\n"
        "The numbers that the kernel gave them say that the outputs in the notebook came about in another way.",
        "run all cells from the top, in a new kernel, before you compare results.",
    ),
    _reason(
        "MIG909",
        "a loop that would be converted with this one is ignored.",
        "What a comment or per-file-ignores silences stays as it is, and files of one program change together.",
        "take the `# migrate: ignore` of that loop out, or give it a program of its own.",
    ),
    _reason(
        "MIG910",
        "what a cell of a notebook does cannot be started on several processes.",
        "With --notebook-launcher the training becomes a function, which runs in processes of its own:\n"
        "it has no kernel, and of what it makes only what it returns comes back.",
        "change the cell as the message says, or convert without --notebook-launcher.",
    ),
    _reason(
        "MIG998",
        "libcst cannot edit the file without changing parts that nobody asked to change.",
        "A few files do not survive its round trip, or nest deeper than it can follow.",
        "convert the file by hand; the findings say where.",
    ),
    _reason(
        "MIG999",
        "a bug of ours.",
        "The result did not pass its own checks, so nothing was written.",
        "report it with the file; --traceback shows where it happened.",
    ),
)
