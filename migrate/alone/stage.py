"""The files of a project with their programs made ready: pass by pass, in memory, each result checked."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from migrate.alone import apex, losses
from migrate.alone.bystanders import Bystanders, bystanders, training_with
from migrate.alone.clearing import Clearing
from migrate.alone.constructors import CONSTRUCTOR, wanting
from migrate.alone.dealing import Dealing
from migrate.alone.divisors import unknown_divisors
from migrate.alone.foreign import foreign
from migrate.alone.gatherings import Gatherings
from migrate.alone.groups import near_to
from migrate.alone.half import Half
from migrate.alone.handed import Said, entrances, handed, merged, read_by
from migrate.alone.lost import lost_sums
from migrate.alone.lost_attributes import lost_attributes
from migrate.alone.lost_options import lost_options
from migrate.alone.lost_orders import lost_orders
from migrate.alone.making import Making
from migrate.alone.obstacles import obstacles
from migrate.alone.pen import Pen
from migrate.alone.presence import Presence
from migrate.alone.rewriting import Rewriting, starts
from migrate.alone.samplers import Samplers
from migrate.alone.scalers import Scalers
from migrate.alone.scales import Scales
from migrate.alone.setup import Setups
from migrate.alone.sums import Sums
from migrate.alone.uses import Uses
from migrate.alone.world import World
from migrate.edits.plan import Plan
from migrate.programs.program import Refusal
from migrate.programs.training.handed import Handed
from migrate.selfcheck import check
from migrate.source.importers import importers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from migrate.alone.foreign import Written
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.report.model import Finding
    from migrate.source.project import SourceFile

MOST_ROUNDS = 40
#: Calls without an effect: a branch that is emptied may go with a test of these.
PURE = frozenset(
    """len isinstance hasattr getattr bool int str torch.cuda.is_available torch.cuda.device_count os.environ.get
    os.path.exists""".split()
)


@dataclass(frozen=True, slots=True)
class Stage:
    """What became of a group of files that stand or fall together."""

    paths: frozenset[str]
    contents: dict[str, bytes] = field(default_factory=dict)  # by path
    comments: dict[str, tuple[str, ...]] = field(default_factory=dict)  # that went away with their statements
    processes: tuple[Said, ...] = ()  # what is said of several processes
    said: tuple[str, ...] = ()  # of what becomes of apex
    notes: tuple[Finding, ...] = ()  # in the lines of the original
    refusals: tuple[Refusal, ...] = ()  # why nothing became of it
    is_apart: bool = False  # scripts that share what asks the accelerator are converted one by one
    otherwise: Callable[[], Stage | None] | None = None  # the same without what may keep its programs from converting

    def handed_to(self, entrances: frozenset[str]) -> Handed | None:
        """What is handed on to programs that are entered from some files; None: these have one process."""
        return merged(self.processes, entrances)


def stage(
    facts: Facts,
    modules: tuple[Module, ...],
    beside: Bystanders | None = None,
    *,
    joining: bool = True,
    making: bool = False,
) -> Stage | None:
    """What becomes of some modules; None if nothing has to: no processes, no apex, no backward of another kind.

    `joining`: objects go on joining what they hold, for which they need the accelerator. `making`: classes get an
    `__init__` that can keep it.
    """
    starting, plain, scalers = starts(facts, modules), losses.Losses(facts, modules), Scalers(facts, modules)
    has_processes = bool(starting)
    if not has_processes and not apex.is_used(facts, modules) and not plain.forms and not scalers.made:
        return None
    world = World(facts, modules, beside)
    dealing = Dealing(world)
    sums, setups, gatherings = Sums(world, joining=joining), Setups(world), Gatherings(world)
    paths = frozenset(module.file.path for module in modules)
    told = tuple(dict.fromkeys(Said(Handed(), entrances(facts, use.unit)) for use in starting))
    halved = training_with(facts, modules) if apex.is_used(facts, modules) else modules
    half = Half(apex.Apex(world, halved, world.dead if has_processes else (), Presence(facts, modules)))
    if found := (*(_in_the_way(world, sums, setups, dealing, gatherings) if has_processes else ()), *half.obstacles()):
        if beside is None and (left := bystanders(facts, modules, found)) is not None:
            rest = tuple(module for module in modules if module not in left.modules)
            return stage(facts, rest, left, joining=joining)
        if sums.joined:
            return stage(facts, modules, beside, joining=False)
        return Stage(paths, processes=told, refusals=found)
    files = [module.file for module in modules]
    plan = _plan(files)
    half.run(Pen(plan))
    plain.run(Pen(plan))
    scalers.run(Pen(plan))
    if has_processes:
        rewriting = Rewriting(world, Pen(plan), setups, sums, dealing, gatherings, half.gone)
        rewriting.run()
        for first in wanting(world, sums) if making else ():
            Pen(plan).before(first, CONSTRUCTOR, spaced=True)
        told += tuple(handed(world, rewriting.samplers, rewriting.scales))
    if plan.refused or plan.conflicts:
        return Stage(paths, processes=told)
    others = {m.file.path: m.tree for m in _around(facts, set(modules))} | read_by(told)
    made = _Passes(files, others, frozenset(foreign(facts)))
    made.apply(plan)
    for _ in range(MOST_ROUNDS):
        plan = made.next_plan()
        if not plan.touched:
            break
        made.apply(plan)
    if taken := (*_taken(facts, modules, made.contents), *made.orphans()):
        return Stage(paths, processes=told, refusals=taken)
    notes = _lost(world, sums, made.contents) if has_processes else ()
    otherwise = partial(stage, facts, modules, beside, joining=False) if sums.joined else None
    if has_processes and not making and next(wanting(world, sums), None) is not None:
        otherwise = partial(stage, facts, modules, beside, joining=joining, making=True)
    return Stage(paths, made.contents, made.comments, told, half.said, notes, otherwise=otherwise)


def _lost(world: World, sums: Sums, contents: Mapping[str, bytes]) -> tuple[Finding, ...]:
    """Notes about what one process does without."""
    return (*lost_sums(world, sums), *lost_orders(world, Making(world)), *lost_options(world, contents))


def _in_the_way(
    world: World, sums: Sums, setups: Setups, dealing: Dealing, gatherings: Gatherings
) -> tuple[Refusal, ...]:
    found = tuple(obstacles(world, sums, dealing, gatherings))
    if world.beside is not None:
        found += tuple(world.beside.obstacles(world.facts, setups.idle))
    if found:
        return found
    scales = Scales(world, sums)
    return (
        *Samplers(world, dealing).obstacles(),
        *scales.obstacles(),
        *unknown_divisors(world, scales),
        *sums.obstacles(),
    )


def _around(facts: Facts, group: set[Module]) -> Iterator[Module]:
    """The files that were read and have to do with a group, and are not of it."""
    near = near_to(facts, group)
    yield from (module for module in facts.modules if module in near and module not in group)


def _taken(facts: Facts, modules: Sequence[Module], contents: Mapping[str, bytes]) -> Iterator[Refusal]:
    """What files that are not read import, and what would be another thing."""
    files = {module.file: module for module in modules if module.file.path in contents}
    for file, names in importers(facts.project, files, (module.file for module in facts.modules)).items():
        after = ast.parse(contents[file.path])
        for name, place in names.items():
            before = _defined(file.tree, name)
            if before is not None and ast.dump(before) != ast.dump(_defined(after, name) or ast.Pass()):
                path = place.rpartition(":")[0].partition(":cell ")[0]
                why = f"{name} would change, and {place}, which is not named, uses it, too"
                yield Refusal(before, "MIG904", why, f"name {path} as well", (path,))


def _defined(tree: ast.Module, name: str) -> ast.AST | None:
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return next((s for s in tree.body if isinstance(s, definitions) and s.name == name), None)


def _plan(files: Sequence[SourceFile]) -> Plan:
    plan = Plan(files)
    plan.pure_calls |= PURE
    return plan


class _Passes:
    """The files as the passes so far have left them."""

    def __init__(
        self, files: Sequence[SourceFile], others: Mapping[str, ast.Module], foreign: frozenset[Written]
    ) -> None:
        self._first = {file.path: file for file in files}
        self._files = {file.path: file for file in files}
        self._others = others
        self._foreign = foreign
        self._before = self._uses(None)
        self.comments: dict[str, tuple[str, ...]] = {}

    @property
    def contents(self) -> dict[str, bytes]:
        """What is new, by path."""
        return {p: f.content for p, f in self._files.items() if f.content != self._first[p].content}

    def next_plan(self) -> Plan:
        """What the next round takes away."""
        plan = _plan(list(self._files.values()))
        Clearing(self._before, self._uses(self._before), Pen(plan)).run()
        return plan

    def orphans(self) -> Iterator[Refusal]:
        """What is still read, of what went away."""
        now = self._uses(self._before)
        for path, _, scope, read in now.orphans(self._before):
            node = self._before.read_of(path, scope, read.id, now.around(path, read))
            if node is not None:
                yield _read_in_vain(node, read.id)
                return
        before, after = ({path: file.tree for path, file in files.items()} for files in (self._first, self._files))
        for lost in islice(lost_attributes(before, after), 1):
            yield _read_in_vain(lost, ast.unparse(lost))

    def _uses(self, known: Uses | None) -> Uses:
        return Uses({file.path: file.tree for file in self._files.values()}, self._others, self._foreign, known)

    def apply(self, plan: Plan) -> None:
        """Carry a plan out.

        Raises:
            ValueError: the result is not what was promised.
        """
        from migrate.edits.apply import apply  # imports libcst

        for path in plan.touched:
            file = self._files[path]
            applied = apply(file, plan)
            if failures := check(file.content, applied.content, file, plan):
                raise ValueError("; ".join(failures))
            self._files[path] = replace(file, content=applied.content)
            self._note(path, applied.lost_comments)

    def _note(self, path: str, lost: Iterable[str]) -> None:
        self.comments[path] = (*self.comments.get(path, ()), *lost)


def _read_in_vain(node: ast.AST, name: str) -> Refusal:
    """What goes away with the processes, and is still read."""
    why = f"{name} is for several processes, and is read here for something else"
    return Refusal(node, "MIG113", why, "take this out, then run migrate again")
