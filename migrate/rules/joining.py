"""The lines that join what each process has of a training loop: numbers, lists, dictionaries and meters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.syntax import unused_name
from migrate.programs.shares.undivided import undivided
from migrate.programs.values.divided import OF_LISTS, Joined
from migrate.programs.values.lengths import measured
from migrate.rules.averaging import each_averaged
from migrate.rules.layout import Place, assignment, place

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection

    from migrate.programs.conversion import Conversion
    from migrate.programs.shares.joins import Join
    from migrate.programs.values.accumulators import Accumulator
    from migrate.rules.draft import Draft


def joining(conversion: Conversion, draft: Draft, accumulator: Accumulator) -> list[str]:
    """A line that joins a number, a tensor or a list; Accelerate joins the items of a dictionary one by one."""
    accelerator, loop = conversion.access.name(accumulator.loop.node), accumulator.loop.node
    whole, name = of_shares(conversion, accumulator), draft.quoted(loop, accumulator.name)
    if not accumulator.is_dictionary:
        return [f"{name} = {_whole(conversion, draft, whole, name, accelerator)}"]
    if conversion.package == "runtime":
        given = name if whole.joined is Joined.SUM else f'{name}, reduction="mean"'
        return [f"{name} = {accelerator}.reduce({given})"]
    at = place(conversion.facts.file(loop), loop)
    key = unused_name(conversion.facts.tree(loop), "name", "key", "each_name")
    item = f"{name}[{key}]"
    return [f"for {key} in {name}:", f"{at.unit}{item} = {_whole(conversion, draft, whole, item, accelerator)}"]


def of_shares(conversion: Conversion, accumulator: Accumulator) -> Accumulator:
    """Where a batch is one of all processes together, each sees as many, and its share of each.

    Of the means of these shares the mean is that of the batches, of their sums the sum, whatever they are divided by.
    """
    splits = conversion.program.handed is not None and conversion.program.handed.splits
    summed = Joined.LIST if accumulator.joined in OF_LISTS else Joined.SUM
    if not splits and _is_of_all_data(conversion, accumulator.lengths):
        return replace(accumulator, joined=summed)
    if not splits or accumulator.grows is None or accumulator.joined is Joined.LIST:
        return accumulator
    averaged = Joined.MEANS if accumulator.joined in OF_LISTS else Joined.MEAN
    return replace(accumulator, joined=summed if accumulator.grows else averaged)


def _is_of_all_data(conversion: Conversion, lengths: Collection[ast.Call]) -> bool:
    """Whether a number is divided by lengths of loaders as they were before prepare alone."""
    made = {length: measured(conversion.facts, length) for length in lengths}
    return bool(made) and not any(conversion.is_prepared_at(length, loaders) for length, loaders in made.items())


def _whole(conversion: Conversion, draft: Draft, accumulator: Accumulator, name: str, accelerator: str) -> str:
    """What a number, a tensor or a list is over all processes."""
    if not accumulator.is_number:
        assert accumulator.joined is not None
        return f'{accelerator}.reduce({name}, reduction="{accumulator.joined.value}")'
    if accumulator.joined is Joined.LIST:
        return f"{accelerator}.gather_for_metrics({name})"
    if accumulator.joined is Joined.STEPS:
        each, step = _entry_and_step(conversion, accumulator)
        gathered = f"zip(*{accelerator}.gather_for_metrics([{name}]))"
        return f"[{each} for {step} in {gathered} for {each} in {step}]"
    if accumulator.joined is Joined.MEANS:
        return draft.quoted(accumulator.loop.node, each_averaged(conversion, accelerator, name))
    splits = conversion.program.handed is not None and conversion.program.handed.splits
    if conversion.package == "runtime" and accumulator.joined is Joined.MEAN and not splits:
        if any(undivided(conversion.facts, accumulator.loop, accumulator)):  # a count is a whole number on one process
            return f'{accelerator}.reduce({name}, reduction="mean")'
    share = f" / {accelerator}.num_processes" if accumulator.joined is Joined.MEAN else ""
    return f"sum({accelerator}.gather_for_metrics([{name}])){share}"


def _entry_and_step(conversion: Conversion, accumulator: Accumulator) -> tuple[str, str]:
    tree = conversion.facts.tree(accumulator.loop.node)
    return unused_name(tree, "each", "entry", "each_entry"), unused_name(tree, "step", "of_step", "each_step")


def meters_joined(conversion: Conversion, after: ast.stmt, joined: list[Join]) -> list[str]:
    """Two lines for a meter; for several meters of a kind a loop over them."""
    accelerator = conversion.access.name(after)
    at = place(conversion.facts.file(after), after)
    lines: list[str] = []
    for kind in dict.fromkeys(map(_kind, joined)):
        sums, derived, of_arrays, lists = kind
        targets = [join.target for join in joined if _kind(join) == kind]
        it = targets[0] if len(targets) == 1 else _meter_name(conversion, after)
        names = [f"{it}.{name}" for name in sums]
        code = _reduced(conversion, names, accelerator, at, of_arrays=of_arrays) if names else []
        kept = [f"{it}.{name}" for name in lists]
        code += [f"{name}[:] = {each_averaged(conversion, accelerator, name)}" for name in kept]
        code += [f"{it}.{name} = {expression.format(it=it)}" for name, expression in derived]
        if len(targets) > 1:
            code = [f"for {it} in ({', '.join(targets)}):", *(at.unit + line for line in code)]
        lines += code
    return lines


def _kind(join: Join) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], bool, tuple[str, ...]]:
    """What is done with a meter, whatever it is called."""
    return join.sums, join.derived, join.of_arrays, join.lists


def _reduced(
    conversion: Conversion, names: list[str], accelerator: str, at: Place, *, of_arrays: bool = False
) -> list[str]:
    """Numbers, arrays or tensors of one element added up over the processes; Accelerate reduces tensors only."""
    if conversion.package == "runtime":
        return assignment(names, f"{accelerator}.reduce", names, at, as_tuple=True).splitlines()
    if of_arrays:
        return [f"{name} = sum({accelerator}.gather_for_metrics([{name}]))" for name in names]
    tensor = f"torch.tensor([{', '.join(names)}], dtype=torch.float64, device={accelerator}.device)"
    return [f"{', '.join(names)}{',' * (len(names) == 1)} = {accelerator}.reduce({tensor}).tolist()"]


def _meter_name(conversion: Conversion, after: ast.stmt) -> str:
    return unused_name(conversion.facts.tree(after), "meter", "each_meter", "fed_meter")
