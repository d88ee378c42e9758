"""From cells that run on one process to functions that `notebook_launcher` starts.

    for x, y in loader:          ->   def training():
        ...                               global accelerator, loader, model, optimizer
                                          accelerator = Accelerator()
                                          loader, model, optimizer = accelerator.prepare(...)
                                          for x, y in loader:
                                              ...
                                          return accelerator.unwrap_model(model).state_dict(), model.training

                                      model_state, model_training = notebook_launcher(training)
                                      model.load_state_dict(model_state)
                                      model.train(model_training)

Each cell that needs several processes is started for itself, so cells stay what they are, and between them the notebook
holds plain objects. Names stay global where functions read them, or where they have a value before; all else is the
function's own. What the function changes, and later cells read, is what it returns; of models and optimizers that is
their state, because the notebook's own objects refer to each other.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import first_line, last_line
from migrate.launching import attributes
from migrate.launching.aliases import changed_by_part
from migrate.launching.captured import Prepared, captured, held
from migrate.launching.imported import LAUNCHER, imported
from migrate.launching.names import bound, constants, given, mentioned, needed, reached, touched
from migrate.launching.opened import begun, opened
from migrate.launching.own_device import brought
from migrate.launching.prepared import Part, containers, is_changed, parts
from migrate.launching.quiet import lines_of_quiet, without_voices
from migrate.launching.refusal import NotStarted
from migrate.launching.removed import removed
from migrate.launching.same import stays
from migrate.launching.shown import shown
from migrate.launching.text import INDENT, replaced
from migrate.launching.view import Region, View

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

#: What only the kernel has.
_OF_THE_KERNEL = frozenset({"display", "get_ipython", "In", "Out"})
#: What sees names as they are in the module, and would see those of a function.
_SEES_NAMES = frozenset({"exec", "eval", "globals", "locals", "vars"})
_WITH_STATE = frozenset({Role.MODEL, Role.OPTIMIZER, Role.SCHEDULER})  # what comes back by its state dict
_BESIDE = frozenset({Role.SCHEDULER})  # what goes on with the objects that are prepared, as with the prepared ones
_NOT_WANTED = frozenset({Role.LOADER, Role.DATASET, Role.SAMPLER})
_APART = "Move it into a cell of its own, or convert without --notebook-launcher."
_INSIDE = "Do it in the cell that trains, or convert without --notebook-launcher."
_OPENED = "Open and close it in the cell that trains, or convert without --notebook-launcher."


def started(content: str, original: str, mark: str, package: str, roles: Callable[[str], frozenset[Role]]) -> str:
    """The module of a converted notebook, with functions that are started on several processes.

    `original` is the module before the conversion; `roles` says what a name of the module is found to be.

    Raises:
        NotStarted: what a cell does cannot be done so.
    """
    view = View(content, mark, package, original)
    if not view.regions:
        return content
    view = without_voices(view)
    work = [_Start(view, region, roles) for region in view.regions]
    inside = {node for region in view.regions for node in region.statements}
    changes = [one.change() for one in work]
    changes += removed(view, [node for node in view.setup if node not in inside], _APART)
    changes += [(first_line(node), last_line(node), lines) for node, lines in view.spoken.items() if node not in inside]
    changes += [(first_line(node), last_line(node), lines) for node, lines in lines_of_quiet(view).items()]
    changes.append(imported(view))
    return "\n".join(replaced(view.text.lines, changes))


class _Start:
    """One cell's function and its start."""

    def __init__(self, view: View, region: Region, roles: Callable[[str], frozenset[Role]]) -> None:
        self._view = view
        self._region = region
        self._roles = roles
        self._statements = region.statements
        self._reach = reached(
            mentioned(self._statements) | self._view.classes({view.accelerator, *view.devices}), view.uses
        )
        self._check()
        self._check_sent(opened(self._above(), self._read(), roles) or begun(self._above(), self._reach, view.modules))
        moved, counted = self._brought(), self._counted_again()
        self._setup = [*self._needed_setup(), *moved, *counted]
        self._body = [*ast.parse("\n".join(self._setup)).body, *self._statements]

    def change(self) -> tuple[int, int, list[str]]:
        """The lines of the cell that give way, and what comes in their place."""
        first, last = first_line(self._statements[0]), last_line(self._statements[-1])
        results = self._results()
        name = self._name()
        names = ", ".join(part for one in results for part in self._received(one))
        given = ", ".join(part for one in results for part in self._returned(one))
        shared = ", ".join(sorted(self._shared()))
        body, given, names, ending = self._showing(self._view.text.indented(first, last), given, names)
        lines = [
            f"def {name}():",
            *([f"{INDENT}global {shared}", ""] if shared else []),
            *(INDENT + line for code in self._setup for line in code.split("\n")),
            *([""] if self._setup else []),
            *body,
            *(["", f"{INDENT}return {given}"] if given else []),
            "",
            f"{f'{names} = ' if names else ''}{LAUNCHER}({name}{self._processes()})",
            *(line for one in results for line in self._loaded(one)),
            *ending,
        ]
        if lines[-1] in {self._trains_on(one) for one in results} and self._view.ends_cell(self._region):
            lines[-1] += ";"  # else the notebook shows the model, which train() gives
        return first, last, lines

    def _showing(self, body: list[str], given: str, names: str) -> tuple[list[str], str, str, list[str]]:
        """The lines of the cell, what they give and what takes it, and the line that shows what the cell showed."""
        prepared = {name for node in self._view.setup if self._view.is_prepare(node) for name in bound([node])}
        if self._view.package == "accelerate" or (value := shown(self._view, self._region, prepared)) is None:
            return body, given, names, []
        word = "return" if not given else f"{self._free('shown')} ="
        at = value.lineno - first_line(self._statements[0])
        body[at] = f"{INDENT}{word} {body[at].removeprefix(INDENT)}"
        if not given:
            return body, given, names, []
        name = word.removesuffix(" =")
        return body, f"{given}, {name}", f"{names}, {name}", [name]

    def _processes(self) -> str:
        """Accelerate wants to be told how many; the runtime takes one for each GPU."""
        return ", num_processes=torch.cuda.device_count() or 1" if self._view.package == "accelerate" else ""

    def _name(self) -> str:
        name = "training" if self._trains() else "evaluation"
        taken = bound(self._view.cells) | self._reach
        several = [one for one in self._view.regions if one.cell != self._region.cell]
        return f"{name}_{self._region.cell}" if name in taken or several else name

    def _trains(self) -> bool:
        return any(isinstance(n, ast.Attribute) and n.attr in ("backward", "step") for n in self._nodes())

    def _code(self) -> list[ast.stmt]:
        """What the region runs, as far as it is in the notebook."""
        return [*self._statements, *(n for name, n in self._view.definitions.items() if name in self._reach)]

    def _nodes(self) -> Iterable[ast.AST]:
        return [inner for node in self._code() for inner in ast.walk(node)]

    # --- what each process needs ------------------------------------------------------------------------------------

    def _needed_setup(self) -> list[str]:
        above = [node for node in self._view.setup if first_line(node) < first_line(self._statements[0])]
        found = []
        for number, node in enumerate(above):
            later = (other for other in above[number + 1 :] if self._view.is_prepare(other))
            again = {part.text for other in later for part in parts(other) or ()}
            if node in self._view.seeds:
                continue
            if node is self._view.maker or (isinstance(node, ast.If) and self._is_wanted(node)):
                found.append(self._view.text.source(node))
            elif self._view.is_prepare(node):
                if code := self._prepare(node, again):
                    found.append(code)
            elif not isinstance(node, ast.If) and bound([node]) & self._reach:
                found.append(self._view.text.source(node))
        return found

    def _is_wanted(self, node: ast.If) -> bool:
        """Whether what is done for several processes is about something that the region uses."""
        return mentioned([node]) - self._view.modules.keys() <= {self._view.accelerator, *self._reach}

    def _prepare(self, node: ast.stmt, again: set[str]) -> str:
        """The call for what the region uses, and what no later call prepares; empty where that is nothing."""
        assert isinstance(node, ast.Assign)
        assert isinstance(node.value, ast.Call)
        call, listed = node.value, parts(node)
        placements = [keyword.value.elts for keyword in call.keywords if isinstance(keyword.value, ast.List)]
        if listed is None:
            what = f"`{ast.unparse(node.targets[0])}` is prepared, and is no plain name"
            raise self._refused(what, _INSIDE, node)
        if len(placements) < len(call.keywords) or [part.text for part in listed] != list(map(ast.unparse, call.args)):
            raise self._refused("what is prepared has no name of its own", _INSIDE, node)
        wanted = [part for part in listed if part.name in self._reach and part.text not in again]
        self._check_rebound(node, wanted)
        if len(wanted) == len(listed):
            return self._view.text.source(node)
        texts = [part.text for part in wanted]
        passed = [*texts]
        for keyword, placed in zip(call.keywords, placements, strict=True):  # one place for each that is prepared
            own = (each for part, each in zip(listed, placed, strict=True) if part in wanted)
            passed.append(f"{keyword.arg}=[{', '.join(map(ast.unparse, own))}]")
        return f"{', '.join(texts)} = {ast.unparse(call.func)}({', '.join(passed)})" if wanted else ""

    def _check_rebound(self, node: ast.Assign, wanted: Sequence[Part]) -> None:
        """A name that is another object by now would be prepared in the place of the first."""
        inside = {other for region in self._view.regions for other in region.statements}
        for other in self._view.cells:
            if first_line(node) < first_line(other) < first_line(self._statements[0]) and other not in inside:
                if other in self._view.setup:
                    continue
                if again := {part.name for part in wanted} & (bound([other]) | (given([other]) & containers([node]))):
                    raise self._refused(f"`{min(again)}` is given another value after it is prepared", _INSIDE, other)

    def _above(self, below: ast.stmt | None = None) -> list[ast.stmt]:
        """What the notebook's own process runs above the cell, below a statement."""
        first = first_line(below) if below is not None else 0
        return [node for node in self._view.own if first < first_line(node) < first_line(self._statements[0])]

    def _prepared(self) -> dict[str, ast.stmt]:
        """The names that are prepared above, each with the first statement that does."""
        above = [node for node in self._view.setup if self._view.is_prepare(node)]
        above = [node for node in above if first_line(node) < first_line(self._statements[-1])]
        return {part.name: node for node in reversed(above) for part in parts(node) or ()}

    def _read(self) -> set[str]:
        """The names of which the cell reads the value from before, but for what is prepared."""
        others = {self._view.accelerator, *self._prepared(), *self._view.devices, *self._view.modules}
        return needed(self._statements, self._view.uses) - others

    def _brought(self) -> list[str]:
        """What cells above have moved to the device of the notebook's own process, on that of each."""
        found = brought(self._above(), self._view.devices, self._read(), self._view.device_needed)
        if (other := found.other) is not None:
            device = min(self._view.devices)
            raise self._refused(f"`{device}` is used in the notebook's own process, which has none", _INSIDE, other)
        self._reach |= mentioned(found.again)
        again = [self._view.text.source(node) for node in found.again]
        return [*again, *(f"{name} = {name}.to({self._view.accelerator}.device)" for name in found.names)]

    def _counted_again(self) -> list[str]:
        """What cells above have counted of a loader that each process has its share of."""
        prepared = self._prepared()
        if not prepared:
            return []
        for name in sorted(self._reach & self._view.definitions.keys()):
            node = self._view.definitions[name]
            if node not in self._statements and (taken := held(node, prepared.keys())) is not None:
                what = f"`{name}` holds `{taken}` from where it is defined, which is not what each process prepares"
                raise self._refused(
                    what, "Hand it over where it is called, or convert without --notebook-launcher.", node
                )
        loaders = {name for name in prepared if Role.LOADER in self._roles(name)} | containers(prepared.values())
        first = min(prepared.values(), key=first_line)
        read = {name for name in self._read() if not self._roles(name) or not self._roles(name) <= _BESIDE}
        found = captured(self._view, self._above(first), Prepared(frozenset(prepared), frozenset(loaders)), read)
        if found.raw is not None:
            node, name = found.raw
            raise self._refused(f"`{name}` is made of what each process has prepared for itself", _INSIDE, node)
        return [self._view.text.source(node) for node in found.again]

    # --- names ------------------------------------------------------------------------------------------------------

    def _shared(self) -> set[str]:
        """The names that stay those of the module."""
        of_functions = {name for names in self._view.uses.values() for name in names}
        return bound(self._body) & (needed(self._body, {}) | of_functions)

    def _results(self) -> list[str]:
        """What the region may change, and what is read below it."""
        later = [node for node in self._view.after(self._region) if node not in self._view.setup]
        definitions = {name: node for name, node in self._view.definitions.items() if name in self._reach}
        own = self._body if self._trains() else self._statements
        changed = touched(own) | changed_by_part(own)
        for name, node in definitions.items():
            changed |= (touched([node]) | changed_by_part([node])) & self._view.uses[name]
        read = (needed(later, self._view.uses) & changed) | self._trained()
        apart = {
            *self._view.definitions,
            *self._view.bound_to_processes.names,
            *self._view.devices,
            *constants(self._view.cells, self._body),
        }
        apart |= self._view.modules.keys() | self._unchanged(needed(later, self._view.uses))
        found = sorted(name for name in read - apart if not self._roles(name) or not self._roles(name) <= _NOT_WANTED)
        made, had = bound(self._statements), bound(self._above())
        for name in sorted(read - apart & made):
            if self._roles(name) & {Role.OPTIMIZER, Role.SCHEDULER} or name not in {*found, *had}:
                what = f"`{name}` is made here, and later cells go on with it"
                raise self._refused(what, "Make it in a cell above, or convert without --notebook-launcher.")
            is_model = (
                Role.MODEL in self._roles(name) and name in {*had, *self._prepared()} and not self._has_state(name)
            )
            if others := [each for each in read if is_model and self._roles(each) & {Role.OPTIMIZER, Role.SCHEDULER}]:
                what = f"`{name}` is another object below, and `{min(others)}` goes on with the one from before"
                raise self._refused(what, "Give it another name here, or convert without --notebook-launcher.")
        self._check_sent(opened(self._statements, found, self._roles))
        if found and self._view.package == "accelerate":
            listed = ", ".join(f"`{name}`" for name in found)
            what = f"later cells read {listed}, and Accelerate's {LAUNCHER} gives nothing back"
            raise self._refused(what, "Use --target runtime, or save it in this cell and load it in the later ones.")
        return found

    def _trained(self) -> set[str]:
        """The models that it trains: a cell that is not written yet may read them. Accelerate gives nothing back."""
        used = self._prepared().keys() & self._reach if self._trains() and self._view.package == "runtime" else set()
        return {name for name in used if Role.MODEL in self._roles(name) and self._has_state(name)}

    def _unchanged(self, read: Collection[str]) -> set[str]:
        """The containers of what is prepared: the notebook's own hold what they did, and nothing more, below."""
        found = containers(self._prepared().values())
        for name in sorted(found.intersection(read)):
            if is_changed(name, self._code(), self._view.definitions):
                raise self._refused(f"`{name}` holds what is prepared, and may be given something else", _INSIDE)
        return found

    def _has_state(self, name: str) -> bool:
        """Whether an object of the notebook stays what it is, and gets the state of the one that was trained."""
        is_same = stays(name, self._statements, self._view.definitions)
        return bool(self._roles(name)) and self._roles(name) <= _WITH_STATE and is_same

    def _returned(self, name: str) -> list[str]:
        """What the function gives for a name."""
        prepared = {n for node in self._view.setup if self._view.is_prepare(node) for n in bound([node])}
        is_model = Role.MODEL in self._roles(name)
        is_wrapped = name in prepared and is_model
        whole = f"{self._view.accelerator}.unwrap_model({name})" if is_wrapped else name
        if not self._has_state(name):
            return [whole]
        looked_at = (f'getattr({whole}, "{attribute}", None)' for attribute in self._attributes(name))
        return [f"{whole}.state_dict()", *([f"{name}.training"] if is_model else []), *looked_at]

    def _attributes(self, name: str) -> list[str]:
        """What else of a model is looked at later."""
        if Role.MODEL not in self._roles(name):
            return []
        return attributes.kept(self._view.definitions, self._view.after(self._region), name)

    def _received(self, name: str) -> list[str]:
        """What takes it in the notebook."""
        if not self._has_state(name):
            return [name]
        words = ("state", *(["training"] if Role.MODEL in self._roles(name) else []), *self._attributes(name))
        return [self._free(f"{name}_{word}") for word in words]

    def _free(self, name: str) -> str:
        """A name that the notebook does not bind."""
        taken = bound(self._view.cells)
        return next(each for each in (name, f"{name}_{self._region.cell}", f"_{name}") if each not in taken)

    def _loaded(self, name: str) -> list[str]:
        """How the notebook's own object becomes what it is."""
        if not self._has_state(name):
            return []
        state, *others = self._received(name)
        lines = [f"{name}.load_state_dict({state})", *([self._trains_on(name)] if others else [])]
        given = zip(self._attributes(name), others[1:], strict=True)
        return [*lines, *(f"{name}.{attribute} = {one}" for attribute, one in given)]

    def _trains_on(self, name: str) -> str:
        """The line by which a model gets its mode."""
        return f"{name}.train({self._free(f'{name}_training')})"

    # --- what stands in the way -------------------------------------------------------------------------------------

    def _check(self) -> None:
        text = self._view.text
        first, last = self._statements[0], self._statements[-1]
        if self._view.shares_a_line(first) or self._view.shares_a_line(last):
            raise self._refused("two statements share a line", _APART)
        if any(self._view.mark in line for line in text.of(first_line(first), last_line(last))):
            raise self._refused("a line of IPython stands among what several processes run", _APART)
        needing = self._view.bound_to_processes
        if found := {name for name in needing.names | needing.models if self._view.is_class(name)}:
            what = f"methods of {min(found)} use the accelerator, which is there in the function only"
            raise self._refused(what, "Hand the accelerator to them, or convert without --notebook-launcher.")
        if found := self._reach & _OF_THE_KERNEL:
            raise self._refused(f"`{min(found)}` is there in the notebook's own process only", _APART)
        if found := self._reach & _SEES_NAMES:
            raise self._refused(f"{min(found)}() would see other names in a function", _APART)
        if any(isinstance(n, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for s in self._statements for n in ast.walk(s)):
            raise self._refused("something is awaited among what several processes run", _APART)
        if any(isinstance(s, ast.ImportFrom) and s.names[0].name == "*" for s in self._statements):
            raise self._refused("a function cannot import *", "Import it in a cell above.")
        if not any(isinstance(n, (ast.For, ast.While, ast.Call)) and self._enters(n) for n in self._nodes()):
            names = [*sorted(self._reach & needing.names), self._view.accelerator]
            raise self._refused(f"`{names[0]}` is used in the notebook's own process, which has none", _INSIDE)
        for name, node in self._view.devices.items():
            if node in self._statements and any(map(self._view.device_needed.is_asked, self._view.own)):
                raise self._refused(f"`{name}` is chosen among what several processes run", _APART)

    def _check_sent(self, found: tuple[ast.stmt, str] | None) -> None:
        if found is not None:
            node, name = found
            raise self._refused(f"`{name}` writes with what one process has opened", _OPENED, node)

    def _enters(self, node: ast.AST) -> bool:
        """Whether some code is a loop, or a call of a function that needs the accelerator."""
        if not isinstance(node, ast.Call):
            return True
        return isinstance(node.func, ast.Name) and node.func.id in self._view.definitions

    def _refused(self, what: str, way_out: str, node: ast.stmt | None = None) -> NotStarted:
        return NotStarted(what, way_out, cell=self._region.cell if node is None else self._view.cells[node])
