"""Files that the program has written itself and reads again: the main process may not be done with them."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import LOOPS, argument_at, walk
from migrate.analysis.units import Function, Module
from migrate.programs.output.caches import caches
from migrate.programs.output.filled import filling, holds, looked_into
from migrate.programs.output.handed_paths import handed_paths
from migrate.programs.output.heard import speech
from migrate.programs.output.made_before import may_be_one, read_below, tails
from migrate.programs.output.own_files import OwnFiles
from migrate.programs.output.passed_paths import passed_paths
from migrate.programs.output.voice import Voice
from migrate.programs.output.written_paths import written_path
from migrate.programs.reach.callees import uses_reached
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Container, ItemsView, Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.output.passed_paths import Passed

    Write = tuple[ast.Call, Unit]

_DEEPEST = 4
_LOADS = frozenset({"torch.load"})
#: The method that reads what `save_pretrained` has written.
_LOADED_BY = "from_pretrained"
#: What draws an image into a file, that is read under a path of its own later to make a film.
_DRAWS = frozenset({"matplotlib.pyplot.savefig", "torchvision.utils.save_image"})


def rereads(conversion: Conversion) -> list[ast.stmt]:
    """The statements before which all processes wait for what the main process writes."""
    kept = conversion.once(caches).inside  # which the main process comes to first
    written = {
        path: later
        for path, writes in written_paths(conversion)
        if (later := [(call, unit) for call, unit in writes if call not in kept])
    }
    if written:
        speech(conversion)  # which functions are handed the accelerator is settled there
    drawn = [call for writes in written.values() for call, _ in writes if conversion.facts.called(call) & _DRAWS]
    returning = (_LOADS if written else frozenset()) | (output.IMAGE_READERS if drawn else frozenset())
    voice = Voice(conversion)
    every = [write for each in written.values() for write in each]
    writing = _writing(conversion, every)
    made = [
        (_Known.of(conversion.facts, path), write)
        for write in every
        if (path := written_path(conversion.facts, write[0]))
    ]
    found: dict[ast.stmt, None] = {}
    for use in uses_reached(conversion.facts, conversion.speaking_uses):
        path = read_path(conversion, use.node) or _handed_path(conversion, use, written, made)
        if path is None or use.node in kept:
            continue
        writes = written.get(ast.unparse(path), ())
        if after := _after_calls(conversion, voice, use, {unit for _, unit in writes}):
            found[after] = None
            continue
        is_own = any(unit is not use.unit or write.lineno < use.node.lineno for write, unit in writes)
        is_load = bool(conversion.facts.called(use.node) & returning) or (bool(written) and _is_pretrained(use.node))
        places: list[ast.stmt] = []
        if is_own or is_load:
            trained = is_load or all(unit is not use.unit for _, unit in writes)
            places = [*_places(voice, use.node, use.unit, writes if trained else None, _DEEPEST)]
            found.update(dict.fromkeys(places if is_own else (_above_loops(conversion, place) for place in places)))
        if not places and (same := _may_be(made, _Known.of(conversion.facts, path))):
            below = read_below(conversion, use.node, use.unit, _writing(conversion, same))
            found.update((_outside_of_tests(conversion, place), None) for place in below if not voice.is_of_one(place))
    looking, filled = _of_folders(conversion, voice, kept)
    found.update(dict.fromkeys(looking))
    writing = _writing(conversion, [*every, *filled])
    followed = (place for place in found if _may_follow(conversion, place, writing))
    return _needed(conversion, followed, writing)


def _of_folders(conversion: Conversion, voice: Voice, kept: Container[ast.AST]) -> tuple[list[ast.stmt], list[Write]]:
    """The statements that look into folders which something above has filled, and the calls that did."""
    facts = conversion.facts
    filled = [(parts, write) for parts, write in filling(conversion) if write[0] not in kept]
    places: dict[ast.stmt, None] = {}
    writes: dict[Write, None] = {}
    for use in uses_reached(facts, conversion.speaking_uses) if filled else ():
        looked = list(looked_into(facts, use.node))
        mine = [write for parts, write in filled if any(holds(folder, parts) for folder in looked)]
        for place in read_below(conversion, use.node, use.unit, _writing(conversion, mine)) if mine else ():
            if not voice.is_of_one(place):
                places[_outside_of_tests(conversion, place)] = None
                writes.update(dict.fromkeys(mine))
    return list(places), list(writes)


def written_paths(conversion: Conversion) -> ItemsView[str, list[Write]]:
    """The files that the project writes, by the text of their paths, with the calls that do."""
    return conversion.once(_written_paths).items()


def _written_paths(conversion: Conversion) -> dict[str, list[Write]]:
    found: dict[str, list[Write]] = {}
    own = conversion.facts.once(OwnFiles)
    for use in conversion.facts.calls:
        if own.is_temporary(use.node):
            continue
        if (path := written_path(conversion.facts, use.node)) is not None:
            found.setdefault(ast.unparse(path), []).append((use.node, use.unit))
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a path that is written differently elsewhere."""

    tails: set[str]
    passed: set[Passed]

    @classmethod
    def of(cls, facts: Facts, path: ast.expr) -> _Known:
        return cls(tails(facts, path), passed_paths(facts, path))

    def may_be(self, other: _Known) -> bool:
        return may_be_one(self.tails, other.tails) or not self.passed.isdisjoint(other.passed)

    def is_named_as(self, other: _Known) -> bool:
        """Whether both have one whole name, or were handed on as one path."""
        whole = {tail for tail in self.tails & other.tails if tail.startswith("/")}
        return bool(whole) or not self.passed.isdisjoint(other.passed)


def _may_be(made: Sequence[tuple[_Known, Write]], read: _Known) -> list[Write]:
    return [write for written, write in made if written.may_be(read)]


def read_path(conversion: Conversion, call: ast.Call) -> ast.expr | None:
    """The path of a file that a call reads; None where it reads none, or from memory."""
    path, names = argument_at(call, 0, *output.PATHS), conversion.facts.called(call)
    if _is_pretrained(call):
        return path
    if not names & (output.READERS | output.IMAGE_READERS | output.OPENS | output.OPENS_ARRAYS):
        return None
    outputs = conversion.facts.once(Outputs)
    return None if outputs.opens(call) or outputs.is_in_memory(call) else path


def _handed_path(
    conversion: Conversion, use: Use, written: dict[str, list[Write]], made: Sequence[tuple[_Known, Write]]
) -> ast.expr | None:
    """A path that a library may read, below what writes there in the same function, or calls what does."""
    facts = conversion.facts
    for path in handed_paths(facts, use.node) if made else ():
        known = _Known.of(facts, path)
        alike = [write for each, write in made if each.is_named_as(known)]
        writers = {unit for write, unit in (*written.get(ast.unparse(path), ()), *alike) if write is not use.node}
        if not writers:
            continue
        calls = (node for node in facts.own(use.unit) if isinstance(node, ast.Call) and node.lineno < use.node.lineno)
        if use.unit in writers or any(writers & set(facts.targets(node)) for node in calls):
            return path
    return None


def _is_pretrained(call: ast.Call) -> bool:
    """`Model.from_pretrained(args.output_dir)`; what is written out is the name of a model that was there before."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == _LOADED_BY
    path = argument_at(call, 0, *output.PATHS)
    return is_method and path is not None and not isinstance(path, ast.Constant)


def _places(
    voice: Voice, node: ast.expr, unit: Unit, elsewhere: Sequence[Write] | None, depth: int
) -> Iterator[ast.stmt]:
    """The statements that read, where the program has written before: in the function, or up the calls.

    What is written `elsewhere` is there where something has been trained, or below what writes it. What only the main
    process reads, it has written itself.
    """
    conversion = voice.conversion
    statement = conversion.facts.tree(node).statement(node)
    if voice.is_of_one(statement) or is_entered_by_one(voice, unit):
        return
    in_line = conversion.access.has(unit) and conversion.has_accelerator_at(statement)
    if in_line and (elsewhere is None or _is_behind(conversion, unit, statement, elsewhere)):
        yield _outside_of_tests(conversion, statement)
    elif isinstance(unit, Function) and depth:
        for call in conversion.facts.callers(unit):
            yield from _places(voice, call.node, call.caller, elsewhere, depth - 1)


def is_entered_by_one(voice: Voice, unit: Unit, depth: int = _DEEPEST) -> bool:
    """Whether only the main process comes to a function: every call of it stands in a branch that is its alone."""
    calls = voice.conversion.facts.callers(unit) if isinstance(unit, Function) and depth else []
    return bool(calls) and all(
        call.handed is None and (voice.is_left_to_one(call.node) or is_entered_by_one(voice, call.caller, depth - 1))
        for call in calls
    )


def _after_calls(conversion: Conversion, voice: Voice, use: Use, writers: set[Unit]) -> ast.stmt | None:
    """The statement around a read that follows calls of what has written the file, outside of loops and tests."""
    facts, tree = conversion.facts, conversion.facts.tree(use.node)
    statement = tree.statement(use.node)
    calls = [
        node
        for node in facts.own(use.unit).of(ast.Call)
        if node.lineno < statement.lineno and writers & set(facts.targets(node))
    ]
    if not calls or voice.is_of_one(statement) or not conversion.access.has(use.unit):
        return None
    for above in tree.up(statement):
        if not isinstance(above, ast.stmt) or isinstance(above, _DEFINITIONS):
            break
        if any(inner in calls for inner in walk(above)):
            break
        statement = above
    return statement if conversion.has_accelerator_at(statement) else None


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_behind(conversion: Conversion, unit: Unit, statement: ast.stmt, writes: Sequence[Write]) -> bool:
    has_written = any(where is unit and call.lineno < statement.lineno for call, where in writes)
    if has_written or _trains_above(conversion, unit, statement):
        return True
    return _comes_again(conversion, unit, statement, writes)


def _comes_again(conversion: Conversion, unit: Unit, statement: ast.stmt, writes: Sequence[Write]) -> bool:
    """Whether a round of a loop writes what the next one reads, in functions that it calls, too."""
    around = list(conversion.facts.tree(statement).loops(statement))
    mine = _writing(conversion, list(writes)).get(unit, ()) if around else ()
    return any(call in walk(loop) for loop in around for call in mine)


def _trains_above(conversion: Conversion, unit: Unit, statement: ast.stmt) -> bool:
    return any(
        isinstance(node, (ast.For, ast.AsyncFor, ast.While, ast.Expr, ast.Assign))
        and (node.end_lineno or 0) < statement.lineno
        and conversion.loops.trains(node)
        for node in conversion.facts.own(unit)
    )


def _outside_of_tests(conversion: Conversion, statement: ast.stmt) -> ast.stmt:
    """Above `if os.path.exists(path):` and `with open(path) as f:`, which ask for the file, too.

    Not above what the file may be written in: `with open("log.txt", "w") as log:` around a training.
    """
    for above in conversion.facts.tree(statement).up(statement):
        if isinstance(above, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            break
        if isinstance(above, ast.If) and _calls(conversion, [above.test], output.EXISTS):
            statement = above
        elif isinstance(above, (ast.With, ast.AsyncWith)):
            opened = [item.context_expr for item in above.items]
            is_asked = _calls(conversion, opened, output.OPENS) and not _may_write(conversion, above.body, statement)
            statement = above if is_asked else statement
    return statement


def _may_write(conversion: Conversion, body: list[ast.stmt], before: ast.stmt) -> bool:
    """Whether something above a statement of a block writes a file, or enters code of the project."""
    calls = (node for each in body for node in walk(each) if isinstance(node, ast.Call))
    return any(
        written_path(conversion.facts, call) is not None or bool(conversion.facts.targets(call))
        for call in calls
        if call.lineno < before.lineno
    )


def _calls(conversion: Conversion, parts: Iterable[ast.expr], names: frozenset[str]) -> bool:
    """Whether expressions call one of some functions."""
    calls = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call))
    return any(conversion.facts.called(call) & names for call in calls)


def _above_loops(conversion: Conversion, statement: ast.stmt) -> ast.stmt:
    """Above `for path in paths:`, in which nothing trains: what was written before is there for all rounds."""
    for loop in conversion.facts.tree(statement).loops(statement):
        if conversion.loops.trains(loop):
            break
        statement = loop
    return statement


def _may_follow(conversion: Conversion, place: ast.stmt | ast.Call, writing: dict[Unit, list[ast.Call]]) -> bool:
    """Whether something may have been written when the program comes to a place: not in the other branch, nor below."""
    facts, unit = conversion.facts, conversion.facts.unit(place)
    tree = facts.tree(place)
    mine, is_in_loop = writing.get(unit, ()), any(True for _ in tree.loops(place))
    if any(_may_precede(tree, node, place) for node in mine if is_in_loop or node not in walk(place)):
        return True
    if isinstance(unit, Module):
        return False
    callers = facts.callers(unit) if facts.callers_known(unit) else []
    if len(callers) != 1 or any(True for _ in facts.tree(callers[0].node).loops(callers[0].node)):
        return True  # an earlier call has written
    return _may_follow(conversion, callers[0].node, writing)


def _may_precede(tree: Tree, earlier: ast.Call, later: ast.stmt | ast.Call) -> bool:
    """Whether one place of a function may be run before another one."""
    above = list(tree.up(earlier))
    for node in itertools.chain([later], tree.up(later)):
        if node in above:
            loops = isinstance(node, LOOPS) or any(True for _ in tree.loops(node))
            return loops or (earlier.lineno < later.lineno and not _parts(tree, node, earlier, later))
    return True


def _parts(tree: Tree, above: ast.AST, one: ast.AST, other: ast.AST) -> bool:
    """Whether two places stand in the two branches of an `if`."""
    if not isinstance(above, ast.If):
        return False
    blocks = (above.body, above.orelse)
    return all(tree.in_block(node, block) is not None for node, block in zip((one, other), blocks, strict=True))


def _needed(conversion: Conversion, found: Iterable[ast.stmt], writing: dict[Unit, list[ast.Call]]) -> list[ast.stmt]:
    """Of several statements in one block the first, and those before which something is written anew."""
    lines = {unit: [node.lineno for node in nodes] for unit, nodes in writing.items()}
    last: dict[int, ast.stmt] = {}
    needed = []
    for statement in sorted(found, key=lambda s: (conversion.facts.file(s).path, s.lineno)):
        block, unit = conversion.facts.tree(statement).block(statement), conversion.facts.unit(statement)
        before = last.get(id(block))
        if before is None or any(before.lineno <= line < statement.lineno for line in lines.get(unit, ())):
            needed.append(statement)
            last[id(block)] = statement
    return needed


def _writing(conversion: Conversion, writes: list[Write]) -> dict[Unit, list[ast.Call]]:
    """What writes in each unit, and what calls something that does."""
    found: dict[Unit, list[ast.Call]] = {}
    for call, unit in writes:
        found.setdefault(unit, []).append(call)
    waiting = list(found)
    seen: set[Unit] = set()
    while waiting:
        unit = waiting.pop()
        for caller in conversion.facts.callers(unit) if isinstance(unit, Function) and unit not in seen else ():
            found.setdefault(caller.caller, []).append(caller.node)
            waiting.append(caller.caller)
        seen.add(unit)
    return found
