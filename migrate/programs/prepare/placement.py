"""Where the accelerator is created and where `prepare` is called."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, Tree, is_docstring, is_main_guard, line_of, walk
from migrate.analysis.units import Function, Module, Unit, module_of
from migrate.programs.argument import CPU, Argument, names_needed
from migrate.programs.chance.draws import Draws
from migrate.programs.device.behind import behind
from migrate.programs.device.choices import Choice, choices
from migrate.programs.device.moved_early import moves_below
from migrate.programs.device.numbered import VISIBLE, below_visible, makes_visible
from migrate.programs.home.asking import makers
from migrate.programs.marker import is_marked
from migrate.programs.prepare.on_cpu import cpu_of
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import entered, reached
from migrate.programs.stages import NoPlace, Spot, Stages, staged, tree_of
from migrate.programs.values.conditions import same_name
from migrate.programs.values.fetches import is_download
from migrate.programs.values.logs import logs
from migrate.programs.values.outputs import Outputs
from migrate.programs.values.services import begun_for

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops

_IMPORTS = (ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class Placement:
    """The decisions about one program."""

    accelerator: Spot
    arguments: tuple[Argument, ...]  # of the constructor
    choice: Choice | None  # the device choice that the accelerator replaces
    stages: Stages  # the calls of prepare
    takes_choice: bool  # whether the device choice goes to where the accelerator is

    @property
    def cpu(self) -> str | None:
        """The condition under which the accelerator stays on the CPU; None: it takes the best device there is."""
        return next((argument.expression for argument in self.arguments if argument.name == "cpu"), None)


def place(
    facts: Facts,
    loops: Loops,
    program: Program,
    prepared: Iterable[Named],
    units: Container[Unit],
    asked: tuple[Argument, ...],
    above: Mapping[ast.AST, frozenset[Role]],
) -> Placement:
    """The places for the accelerator, which is made with what is `asked` for, and for prepare, `above` what needs it.

    Raises:
        NoPlace: something is used before everything that prepare needs is there.
    """
    assert program.home is not None
    assert program.start is not None
    stages = staged(facts, loops, program, prepared, above)
    tree = tree_of(facts, program.start)
    prepare = stages.first.spot.statement
    entry = program.entry or prepare
    top = _top_block(program.start, tree, entry)
    if isinstance(program.home, Module) and any(tree.in_block(s.spot.statement, top) is None for s in stages.each):
        top = tree.root.body  # one stage stands under the main guard, and another one below it
    if isinstance(program.start, Module) and _chosen_above(facts, program.start, tree, top, asked):
        top = tree.root.body  # functions read the device that the module chooses
    choice = next((c for c in choices(facts, program.start) if tree.in_block(c.statement, top) is not None), None)
    cpu = cpu_of(facts, program, units, choice)
    if cpu is not None and program.one_seed is not None:  # all that is drawn is drawn below the accelerator
        cpu = _earlier(facts, program.start, cpu)
    if choice is not None and cpu is not None and not cpu.below.isdisjoint(choice.nodes()):
        choice = None  # it stays, and is asked
    needing = prepare if program.start is program.home else program.entry
    arguments = _told(asked, cpu)
    accelerator, takes_choice = _accelerator_spot(facts, program, tree, top, choice, arguments, entry)
    if cpu is not None and _is_late(accelerator, needing):  # `self.cuda = args.cuda` below: the other one is there
        arguments = _told(asked, _earlier(facts, program.start, cpu))
        accelerator, takes_choice = _accelerator_spot(facts, program, tree, top, choice, arguments, entry)
    # with one seed, what is drawn too early is told
    _check_before(accelerator, needing, arguments if program.one_seed is None else asked)
    return Placement(accelerator, arguments, choice, stages, takes_choice)


def _told(asked: tuple[Argument, ...], cpu: Argument | None) -> tuple[Argument, ...]:
    """The arguments of the accelerator, with the one for the CPU first."""
    on_cpu = [argument for argument in asked if argument.name == CPU][:1]  # whatever a flag says
    chosen = on_cpu or ([cpu] if cpu is not None else [])
    return (*chosen, *(argument for argument in asked if argument.name != CPU))


def _earlier(facts: Facts, start: Unit, cpu: Argument) -> Argument:
    """The condition for the CPU in flags that are there before the unit sets its own."""
    expression, required = behind(facts, start, cpu.expression, cpu.needs)
    return replace(cpu, expression=expression, needs=required)


# --- accelerator ----------------------------------------------------------------------------------------------------


def _top_block(start: Unit, tree: Tree, inside: ast.AST) -> list[ast.stmt]:
    """The body of a function; of a module whose program stands under the main guard, the guard's body."""
    if isinstance(start, Function):
        assert not isinstance(start.node, ast.Lambda)
        return start.node.body
    for above in tree.up(inside):
        if is_main_guard(above):
            assert isinstance(above, ast.If)
            return above.body
    return tree.root.body


def _chosen_above(facts: Facts, module: Module, tree: Tree, top: list[ast.stmt], asked: tuple[Argument, ...]) -> bool:
    """Whether functions read a device that is chosen above the main guard, and the accelerator needs nothing below."""
    first = next(iter(choices(facts, module)), None)
    if first is None or tree.in_block(first.statement, top) is not None:
        return False
    functions = (unit for unit in facts.functions if unit.module is module)
    nodes = (node for unit in functions for node in facts.own(unit))
    if not any(isinstance(node, ast.Name) and node.id == first.target for node in nodes):
        return False
    needed = {name for argument in asked for name in argument.needs}
    return not any(
        binding.target in needed and tree.in_block(binding.statement, top) is not None
        for binding in facts.bindings_in(module)
    )


def _accelerator_spot(
    facts: Facts,
    program: Program,
    tree: Tree,
    top: list[ast.stmt],
    choice: Choice | None,
    arguments: tuple[Argument, ...],
    needed: ast.AST,
) -> tuple[Spot, bool]:
    """Where the accelerator is made, and whether the device choice goes there."""
    told = 0  # from here on the accelerator can be told what it is to be told
    needing = tree.in_block(needed, top)
    last = len(top) if needing is None else _index(top, needing)
    for argument in arguments:
        is_its_own = choice is not None and choice.cpu is not None and argument.name == CPU
        limit = choice.outermost.lineno if choice is not None and is_its_own else None
        names = _Names(facts, program, tree, top, limit)
        made = names.below(argument.below | begun_for(facts, argument.needs), last)
        told = max(told, made, *(names.after(name, last) for name in argument.needs))
    in_module = isinstance(program.start, Module) and top is tree.root.body
    earliest = max(told, _start(facts, tree, top))
    earliest = below_visible(
        facts, top[:last], earliest, lambda each: not _only_prints(facts, each) and _comes_first(facts, program, each)
    )
    if choice is not None and (arguments or not in_module or _is_first(facts, program, choice)):
        at = next(index for index, each in enumerate(top) if tree.in_block(choice.statement, [each]) is not None)
        above = top[earliest:at]
        is_free = not any(_comes_first(facts, program, s) or moves_below(facts, program, s) for s in above)
        if at <= last and choice.outermost is top[at] and is_free:
            if earliest <= at:
                return Spot(top[at], "instead" if choice.above is None else "before", spaced=False), True
            between = top[at + 1 : earliest]
            is_blind = any(makes_visible(facts, each) for each in between) and not _is_used(choice, between)
            if told <= at and at and not is_blind and _is_read(choice, between):
                return Spot(top[at], "instead" if choice.above is None else "before", spaced=False), True
            _check_later(choice, names_needed(arguments) if told > at else VISIBLE, between)
            last_above = top[earliest - 1]
            return Spot(last_above, "after", spaced=isinstance(last_above, (ast.Import, ast.ImportFrom))), True
    if earliest == len(top):
        return Spot(top[-1], "after", spaced=True), False
    is_apart = in_module or bool(arguments) or isinstance(top[earliest], (*FUNCTIONS, ast.ClassDef))
    return Spot(top[earliest], "before", spaced=is_apart), False


def _is_late(accelerator: Spot, needing: ast.AST | None) -> bool:
    return needing is not None and accelerator.statement.lineno > line_of(needing)


def _check_before(accelerator: Spot, needing: ast.AST | None, arguments: tuple[Argument, ...]) -> None:
    """The accelerator is made before prepare is called."""
    if arguments and _is_late(accelerator, needing):
        names = names_needed(arguments)
        raise NoPlace(
            Refusal(
                accelerator.statement,
                "MIG100",
                f"the accelerator needs {names}, which gets its value after the models are made",
                f"set {names} before",
            )
        )


def _check_later(choice: Choice, needed: str, between: list[ast.stmt]) -> None:
    """The device can be chosen later, where what the accelerator needs is there, if nothing asks for it before."""
    for statement in between:
        if _is_read(choice, [statement]):
            raise NoPlace(
                Refusal(
                    statement,
                    "MIG100",
                    f"{choice.target} is read here, before {needed}, which the accelerator needs, has its value",
                    f"set {needed} above the device",
                )
            )


def _is_read(choice: Choice, block: list[ast.stmt]) -> bool:
    """Whether statements ask for the device."""
    nodes = (node for statement in block for node in ast.walk(statement) if isinstance(node, ast.expr))
    return any(same_name(node, choice.target) for node in nodes)


def _is_used(choice: Choice, block: list[ast.stmt]) -> bool:
    """Whether statements do something with the device, and not only look at it."""
    return any(_is_read(choice, [each]) and any(isinstance(n, ast.Call) for n in ast.walk(each)) for each in block)


def _is_first(facts: Facts, program: Program, choice: Choice) -> bool:
    """Whether the device is chosen before anything of the program is made."""
    assert program.start is not None
    named = (*program.models, *program.optimizers, *program.loaders)
    mine = {origin for each in named for origin in each.origins}
    return all(
        choice.statement.lineno < binding.statement.lineno
        for binding in facts.bindings_in(program.start)
        if origins(binding.values, Role.MODEL, Role.OPTIMIZER, Role.LOADER) & mine
    )


def _index(block: list[ast.stmt], statement: ast.stmt) -> int:
    return next(index for index, other in enumerate(block) if other is statement)


def _start(facts: Facts, tree: Tree, top: list[ast.stmt]) -> int:
    """The first position where the accelerator could stand: after the docstring, the imports, super().__init__()."""
    position = 0
    in_module = top is tree.root.body
    for index, statement in enumerate(top):
        if is_docstring(statement) and index == 0:
            position = 1
        elif _imports(statement) if in_module else _opens_function(statement):
            position = index + 1
        elif not in_module or (_has_imported(top[:index]) and not _may_stand_among_imports(facts, statement)):
            break
    return position


def _opens_function(statement: ast.stmt) -> bool:
    return isinstance(statement, (*_IMPORTS, ast.Global, ast.Nonlocal)) or _is_super_init(statement)


def _imports(statement: ast.stmt) -> bool:
    """An import, also one that may fail."""
    if isinstance(statement, ast.Try):
        return any(isinstance(inner, _IMPORTS) for inner in statement.body)
    return isinstance(statement, _IMPORTS)


def _has_imported(statements: list[ast.stmt]) -> bool:
    """Whether the imports have begun: what stands above all of them runs before there can be an accelerator."""
    return any(map(_imports, statements))


def _may_stand_among_imports(facts: Facts, statement: ast.stmt) -> bool:
    """`__author__ = ...`, `sys.path.append(...)`, `os.environ[...] = ...`: more imports may follow."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr)) or _speaks(facts, statement):
        return False
    return not any(
        value.role in (Role.MODEL, Role.LOADER, Role.OPTIMIZER, Role.DEVICE)
        for node in walk(statement).of(ast.Call)
        for value in facts.values(node)
    )


def _is_super_init(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and ast.unparse(statement).startswith("super(")
        and "__init__" in ast.unparse(statement)
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """Where the names that an argument of the accelerator is made of get their values, above a line."""

    facts: Facts
    program: Program
    tree: Tree
    top: list[ast.stmt]
    limit: int | None

    def after(self, name: str, last: int) -> int:
        """The position after the last statement that gives a name its value.

        What it becomes below the place that needs the accelerator is left out where it has a value by then: `args =
        checkpoint["args"]` of a run that goes on moves nothing that was put on the device before.
        """
        found = list(self._bindings(name))
        settled = [index for index, is_always in found if is_always and index < last]
        positions = (index + 1 for index, _ in found if not settled or index <= last)
        return max(positions, default=0)

    def _bindings(self, name: str) -> Iterator[tuple[int, bool]]:
        """The positions of what binds a name, and whether that does so whenever the code runs."""
        assert self.program.start is not None
        for binding in self.facts.bindings_in(self.program.start):
            if binding.target == name and (self.limit is None or binding.statement.lineno < self.limit):
                held = self.tree.in_block(binding.statement, self.top)
                if held is not None:
                    yield _index(self.top, held), held is binding.statement

    def below(self, made: frozenset[ast.AST], last: int) -> int:
        """The position after the last statement above in which one of these is made, also by what it calls."""
        assert self.program.start is not None
        units: set[Unit | None] = {self.facts.unit(node) for node in made}
        units -= {self.program.start, module_of(self.program.start)}
        positions = (
            index + 1
            for index, statement in enumerate(self.top[:last] if made else ())
            if _leads_to(self.facts, statement, units) or not made.isdisjoint(walk(statement))
        )
        return max(positions, default=0)


def _comes_first(facts: Facts, program: Program, statement: ast.stmt) -> bool:
    """Whether the accelerator must be there first: for what speaks, draws for all, or makes what is prepared there."""
    if _speaks(facts, statement) or _lets_write(facts, statement) or _makes_nameless(program, statement):
        return True
    if any(_leads_to(facts, statement, to) for to in ({each.unit for each in program.loaders}, makers(facts))):
        return True
    return program.one_seed is not None and Draws(facts, program).inside(statement)


def _makes_nameless(program: Program, statement: ast.stmt) -> bool:
    """Whether it makes a loader without a name, `loaders[i] = DataLoader(...)`: prepare stands around that call."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    calls = {id(each.call) for each in program.loaders if each.call is not None}
    return bool(calls) and any(id(node) in calls for node in walk(statement))


def _only_prints(facts: Facts, statement: ast.stmt) -> bool:
    """`print(args)`, which above an accelerator goes by the launcher's RANK."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or facts.called(call) != {output.PRINT}:
        return False
    return not any(isinstance(node, ast.Call) and facts.targets(node) for node in walk(call))


def _lets_write(facts: Facts, statement: ast.stmt) -> bool:
    """`clean(folder)`: whether a statement only calls a function of the project that writes files itself."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    targets = facts.targets(call) if isinstance(call, ast.Call) else ()
    calls = (node for target in targets for node in facts.own(target) if isinstance(node, ast.Call))
    may_be_there, opens = output.FOLDERS, facts.once(Outputs).opens
    return any(facts.called(node) & (output.WRITES - may_be_there) or opens(node) for node in calls)


def _leads_to(facts: Facts, statement: ast.stmt, units: AbstractSet[Unit | None]) -> bool:
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)) or units <= {None}:
        return False
    return not units.isdisjoint(reached(facts, entered(facts, statement)))


def _speaks(facts: Facts, statement: ast.stmt) -> bool:
    """Whether a statement writes something that one process alone should write."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    return is_marked(statement) or any(
        isinstance(node, ast.Call)
        and (
            facts.called(node) & (output.WRITES | {output.PRINT})
            or node in origins(facts.values(node), Role.WRITER)
            or is_download(facts, node)
            or logs(facts, node)
        )
        for node in walk(statement)
    )
