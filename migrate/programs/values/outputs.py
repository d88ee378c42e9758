"""Which calls write something outside of the process: by what is called, and on what; open files, figures."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.known.progress import BARS, RANGE_BARS, SHOWN_BY
from migrate.analysis.roles import FROM_LOADER, Role, origins, roles
from migrate.analysis.syntax import TRIES, argument_at, arguments, walk
from migrate.analysis.units import Function
from migrate.programs.marker import is_marked
from migrate.programs.values.bringing import brings
from migrate.programs.values.fronts import Fronts
from migrate.programs.values.services import Services
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value, Values
    from migrate.analysis.units import Unit

#: The attribute of a figure that has its pixels.
_CANVAS = "canvas"
_ON_BARS = frozenset({Role.BAR, Role.ITERATOR})
#: What is raised where a folder is there already.
_RAISED = frozenset({"OSError", "FileExistsError", "Exception", "IOError", "EnvironmentError"})
#: What is handed a function, and does not call it.
_ONLY_KEEPING = frozenset({"functools.partial", "builtins.getattr", "builtins.isinstance", "builtins.callable"})
#: What calls it when it is started.
_STARTED_LATER = frozenset(
    """threading.Thread threading.Timer multiprocessing.Process torch.multiprocessing.Process
    multiprocessing.context.Process""".split()
)
#: What is done with a file that nobody reads.
_WRITING = frozenset({"write", "writelines", "flush", "close", "truncate"})


class Outputs:
    """Questions about single calls."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._figures: dict[Unit, frozenset[str]] = {}
        self._pixels: dict[Unit, bool] = {}
        self._writing: dict[ast.Call, bool] = {}
        self._modes: dict[ast.Call, str | None] = {}
        self.services = Services(facts)
        self.fronts = Fronts(facts)

    def writes(self, call: ast.Call) -> bool:
        """Whether a call writes, by itself: not by what a function of the project does."""
        if call not in self._writing:
            self._writing[call] = self._writes(call)
        return self._writing[call]

    def _writes(self, call: ast.Call) -> bool:
        if self.is_in_memory(call):
            return False
        names = self._facts.called(call)
        if names & output.WRITES or self._plots(call):
            if self._is_drawn_for_all(call) and not names & (output.WRITES | output.SHOWS):
                return False
            return not self._may_be_there(call) and not self.services.starts(call)
        if self.hands_on(call):
            return True
        receiver = self._facts.receiver(call)
        if self.is_to_file(call) or self._is_on_writer(call.func) or brings(self._facts, call):
            return True
        if not isinstance(call.func, ast.Attribute) or names:
            return any(self.opens(argument) for argument in arguments(call))
        return self._writes_by_method(call, call.func, receiver)

    def hands_on(self, call: ast.Call) -> bool:
        """`pool.submit(torch.save, state, path)`, and what a thread is asked that is made with it: to start, to end."""
        if self._is_handed(call):
            return not self._facts.targets(call) and not self._facts.called(call) & (_ONLY_KEEPING | _STARTED_LATER)
        if any(each.role is Role.PARTIAL and each.name in output.WRITES for each in self._facts.values(call.func)):
            return True
        made = (value.origin for value in self._facts.receiver(call) if isinstance(value.origin, ast.Call))
        return any(self._facts.called(each) & _STARTED_LATER and self._is_handed(each) for each in made)

    def _is_handed(self, call: ast.Call) -> bool:
        """Whether a call is given a function of a library that writes."""
        functions = (each for each in arguments(call) if isinstance(each, (ast.Name, ast.Attribute)))
        return any(self._facts.names(each) & output.WRITES for each in functions)

    def flushes(self, statement: ast.stmt) -> bool:
        """`sys.stdout.flush()`, which says nothing where nothing was said."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        return isinstance(call, ast.Call) and bool(self._facts.called(call) & output.FLUSHES)

    def is_in_memory(self, call: ast.Call) -> bool:
        """`torch.save(state, buffer)` with `buffer = io.BytesIO()`: nothing leaves the process."""
        for argument in arguments(call):
            values = self._facts.values(argument)
            if values and all(value.role is Role.UNKNOWN and value.name in output.BUFFERS for value in values):
                return True
        return False

    def _writes_by_method(self, call: ast.Call, func: ast.Attribute, receiver: Values) -> bool:
        if self._facts.targets(call) or roles(receiver) & {Role.INSTANCE, Role.CLASS, Role.ACCELERATOR}:
            return False
        if func.attr in output.FILE_METHODS and self.opens(func.value):
            return True
        if func.attr == "write" and self._bars(receiver):
            return True
        if any(func.attr in output.PRINTERS.get(each.name, ()) for each in receiver if each.role is Role.UNKNOWN):
            return True
        if func.attr in output.WRITING_METHODS:
            return not self._may_be_there(call)
        if self.moves(call):
            return True
        if func.attr == "save" and any(self._is_saved(value) for value in receiver):
            return True
        return self.is_figure(func.value) and not self._is_drawn_for_all(call)

    def moves(self, call: ast.Call) -> bool:
        """`path.replace(target)` as a statement: texts and tables have such methods, too, and give what comes of it."""
        is_statement = isinstance(self._facts.tree(call).parents[call], ast.Expr)
        return is_statement and not self._facts.called(call) and self.may_move(call)

    def may_move(self, call: ast.Call) -> bool:
        """`path.replace(target)`, if that is a path."""
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in output.MOVES_ITSELF
        return is_method and len(call.args) == 1 and not call.keywords and not self._facts.targets(call)

    def _is_saved(self, value: Value, depth: int = 4) -> bool:
        """Whether an object has a `save` that writes a file; arrays and tensors have none, pictures made of them do.

        A model's own is a method of the project, which was asked before: another one is TorchScript's, or a library's.
        What methods of a picture give are pictures, and what a transform gives: `ToPILImage()(rows).convert("P")`.
        """
        if value.name.startswith(output.SAVED_BY_METHOD) or value.role in FROM_LOADER | {Role.MODEL}:
            return True
        made = value.origin
        if value.role is not Role.UNKNOWN or depth == 0 or not isinstance(made, ast.Call) or self._facts.called(made):
            return False
        of = self._facts.receiver(made) | self._facts.values(made.func)
        return any(self._is_saved(each, depth - 1) for each in of if each.role is Role.UNKNOWN)

    def _is_on_writer(self, func: ast.expr) -> bool:
        """`run.log(...)`, `run.config.update(...)`, `board.text(...)` of a class that hands it on to a writer."""
        while isinstance(func, (ast.Attribute, ast.Call)):
            name = func.attr if isinstance(func, ast.Attribute) else None
            func = func.value if isinstance(func, ast.Attribute) else func.func
            values = self._facts.values(func)
            if Role.WRITER in roles(values) or (name is not None and self.fronts.hand_on(values, name)):
                return True
        return False

    def _may_be_there(self, call: ast.Call) -> bool:
        """Whether a call makes a folder that may be there: any number of processes may, and all may need it."""
        return _is_tried(self._facts, call) or is_repeatable(call)

    # --- files ------------------------------------------------------------------------------------------------------

    def opens(self, node: ast.AST) -> bool:
        """`open(path, "w")`."""
        return isinstance(node, ast.Call) and self._mode(node) is not None

    def can_write_nowhere(self, call: ast.Call) -> bool:
        """Whether a file may be the null device as well: it is only written to, and may be there."""
        mode = self._mode(call)
        if mode is None or "x" in mode or not call.args or not self._is_plain_open(call):
            return False
        return "+" not in mode or self._is_only_written_to(call)

    def diverted(self, call: ast.Call) -> ast.expr | None:
        """What says which file a call opens, where the null device may take its place; None: it may not, or that is no
        file which is written: `open(path, "w")`, `path.open("w")`.
        """
        if self.can_write_nowhere(call):
            return call.args[0]
        mode = self._mode(call)
        is_of_path = isinstance(call.func, ast.Attribute) and not self._facts.called(call) and mode is not None
        return call.func.value if is_of_path and not set(mode or "") & {"x", "+"} else None  # type: ignore[attr-defined]

    def _is_only_written_to(self, call: ast.Call) -> bool:
        """Whether nothing but what writes is done with a file that has a name, though it may be read as well."""
        tree = self._facts.tree(call)
        above, unit = tree.parents[call], self._facts.unit(call)
        targets = above.targets if isinstance(above, ast.Assign) else []
        names = {target.id for target in targets if isinstance(target, ast.Name)}
        seen = ast.walk(unit.node) if isinstance(unit, Function) else tree.nodes
        reads = (n for n in seen if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load))
        return bool(names) and all(getattr(tree.parents[node], "attr", "") in _WRITING for node in reads)

    def _is_plain_open(self, call: ast.Call) -> bool:
        return not isinstance(call.args[0], ast.Starred) and bool(self._facts.called(call) & output.OPENS)

    def _mode(self, call: ast.Call) -> str | None:
        """The mode with which a call opens a file for writing; what goes into the null device is written nowhere."""
        if call not in self._modes:
            self._modes[call] = self._mode_given(call)
        return self._modes[call]

    def _mode_given(self, call: ast.Call) -> str | None:
        names = self._facts.called(call)
        if call.args and "os.devnull" in self._facts.names(call.args[0]):
            return None
        if names & (output.OPENS | output.OPENS_PACKED | output.OPENS_ARRAYS):
            given = argument_at(call, 1, "mode")
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "open" and not names:
            given = argument_at(call, 0, "mode")
        else:
            return None
        text = str(given.value) if isinstance(given, ast.Constant) else "r"
        text = text[:1] if names & output.OPENS_PACKED else text  # "r:xz"
        is_mode = set(text) <= output.MODES  # not a name, as in `archive.open("labels.txt")`
        return text if is_mode and set(text) & output.WRITE_MODES else None

    def fills(self, statement: ast.stmt) -> bool:
        """`file["loss"] = losses`, `file.attrs["steps"] = 3`: whether a statement sets items of an open file."""
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        wholes = [to.value for to in targets if isinstance(to, ast.Subscript)]
        files = [whole.value if isinstance(whole, ast.Attribute) else whole for whole in wholes]
        return 0 < len(files) == len(targets) and all(self.is_file(self._facts.values(each)) for each in files)

    def is_to_file(self, call: ast.Call) -> bool:
        """`log.write(text)`, `rows.writerow(row)`: into a file that stays open."""
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in output.FILE_METHODS
        return is_method and self.is_file(self._facts.receiver(call))

    def is_file(self, values: Values) -> bool:
        """Whether an object is a file that was opened for writing, or writes rows into one."""
        return any(
            (value.role is Role.UNKNOWN and value.origin in self._opened)
            or (value.role is Role.WRITER and self.is_row_writer(value.origin))
            for value in values
        )

    def is_row_writer(self, node: ast.AST | None) -> bool:
        """`csv.writer(file)`."""
        if not isinstance(node, ast.Call) or not node.args or not self._facts.called(node) & output.ROW_WRITERS:
            return False
        return self.is_file(self._facts.values(node.args[0]))

    @cached_property
    def _opened(self) -> set[ast.AST]:
        return {use.node for use in self._facts.calls_anywhere if self.opens(use.node)}

    def log_file(self, call: ast.Call) -> ast.expr | None:
        """The path of the log file that a call opens: `logging.basicConfig(filename=path)`."""
        return self._log(call).get("filename")

    def empties_log(self, call: ast.Call) -> bool:
        """Whether a call empties the log file that it opens: `logging.FileHandler(path, mode="w")`."""
        given = self._log(call)
        modes = [given.get(name) for name in output.LOG_FILES.values()]
        return "filename" in given and any(isinstance(mode, ast.Constant) and mode.value == "w" for mode in modes)

    def _log(self, call: ast.Call) -> dict[str, ast.expr]:
        """What a call is given that opens a log file, by name."""
        names = self._facts.called(call) & output.LOG_FILES.keys()
        if not names or any(isinstance(argument, ast.Starred) for argument in call.args):
            return {}
        given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        return given | (
            dict(zip(("filename", "mode"), call.args, strict=False)) if "logging.FileHandler" in names else {}
        )

    # --- figures ----------------------------------------------------------------------------------------------------

    def is_figure(self, node: ast.expr) -> bool:
        """`ax` of `fig, ax = plt.subplots()`, `ax[0]`, `plt.gca()`: what is drawn on is drawn to be shown or saved."""
        while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
            if isinstance(node, ast.Call) and self._facts.called(node) & output.FIGURES:
                return True
            node = node.func if isinstance(node, ast.Call) else node.value
        return isinstance(node, ast.Name) and node.id in self._figures_of(self._facts.unit(node))

    def _is_drawn_for_all(self, call: ast.Call) -> bool:
        """Whether the function of a call takes the pixels of what it draws: then each process needs the picture."""
        unit = self._facts.unit(call)
        if unit not in self._pixels:
            self._pixels[unit] = any(self._takes_pixels(node) for node in self._facts.own(unit))
        return self._pixels[unit]

    def _takes_pixels(self, node: ast.AST) -> bool:
        """`np.array(figure.canvas.renderer)`, or a call of a function of the project that does so with a figure."""
        if isinstance(node, ast.Attribute) and node.attr == _CANVAS and self.is_figure(node.value):
            statement = self._facts.tree(node).statement(node)
            drawn = statement.value if isinstance(statement, ast.Expr) else None
            return not (isinstance(drawn, ast.Call) and any(inner is node for inner in walk(drawn.func)))
        if not isinstance(node, ast.Call) or not any(self.is_figure(argument) for argument in node.args):
            return False
        inside = (inner for target in self._facts.targets(node) for inner in self._facts.own(target))
        return any(isinstance(inner, ast.Attribute) and inner.attr == _CANVAS for inner in inside)

    def makes_figure(self, statement: ast.stmt) -> bool:
        """`fig, ax = plt.subplots()`, `im = ax.imshow(x)`."""
        return isinstance(statement, ast.Assign) and bool(
            names_in_targets(statement) & self._figures_of(self._facts.unit(statement))
        )

    def _figures_of(self, unit: Unit) -> frozenset[str]:
        if unit not in self._figures:
            self._figures[unit] = frozenset()
            assigned = [n for n in self._facts.own(unit).of(ast.Assign) if isinstance(n.value, ast.Call)]
            for _ in range(3):  # a figure, its axes, what is drawn on them
                drawn = (a for a in assigned if isinstance(a.value, ast.Call) and self._draws(a.value))
                self._figures[unit] = frozenset().union(*map(names_in_targets, drawn))
        return self._figures[unit]

    def _plots(self, call: ast.Call) -> bool:
        """`plt.plot(losses)`, and not `sns.set()`, which only says how it will look."""
        return any(name.startswith(output.WRITING_PREFIXES) for name in self._facts.called(call) - output.STYLES)

    def _draws(self, call: ast.Call) -> bool:
        if self._plots(call):
            return True
        return isinstance(call.func, ast.Attribute) and self.is_figure(call.func.value)

    # --- bars -------------------------------------------------------------------------------------------------------

    def is_bar(self, call: ast.Call) -> bool:
        """`tqdm(...)`, that nobody has switched off, but a flag of the user."""
        names = self._facts.called(call)
        if not names & (BARS | RANGE_BARS | output.MORE_BARS | SHOWN_BY.keys()):
            return False
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        switch = next((SHOWN_BY[name] for name in names if name in SHOWN_BY), "disable")
        if None in given or switch not in given:
            return None not in given
        is_on = isinstance(given[switch], ast.Constant) and given[switch].value is (switch != "disable")  # type: ignore[attr-defined]
        return is_on or self._is_flag(given[switch])

    def _is_flag(self, test: ast.expr) -> bool:
        """`args.quiet`, `not verbose`, `args.rank not in (-1, 0)`: alike on all processes, since nothing is called."""
        parts = list(ast.walk(test))
        if is_marked(test) or any(isinstance(part, ast.Call) for part in parts):
            return False
        inner = {part.value for part in parts if isinstance(part, ast.Attribute)}
        asked = [p for p in parts if isinstance(p, (ast.Name, ast.Attribute)) and p not in inner]
        given = [each for part in asked for each in self._facts.once(Sources).given(part).expressions]
        is_called = any(is_marked(each) or any(isinstance(n, ast.Call) for n in ast.walk(each)) for each in given)
        return bool(asked) and not is_called

    def is_counter(self, call: ast.Call) -> bool:
        """`tqdm(range(steps))` under no loop."""
        over = call.args[0] if call.args else None
        is_range = isinstance(over, ast.Call) and "builtins.range" in self._facts.called(over)
        return is_range and not isinstance(self._facts.tree(call).parents[call], (ast.For, ast.AsyncFor))

    @cached_property
    def counted(self) -> set[ast.AST]:
        """The bars that are asked how far they are: one that is switched off does not count."""
        return {
            origin
            for module in self._facts.modules
            for node in self._facts.tree_of(module).nodes
            if isinstance(node, ast.Attribute) and node.attr in output.COUNTS and isinstance(node.ctx, ast.Load)
            for origin in self._bars(self._facts.values(node.value))
        }

    def _bars(self, values: Values) -> set[ast.AST]:
        """Where bars were made: those over something, and those that only count."""
        counting = {v.origin for v in values if v.role is Role.UNKNOWN and v.name in BARS and v.origin is not None}
        return counting | origins(values, *_ON_BARS)


def is_repeatable(call: ast.Call) -> bool:
    """`os.makedirs(path, exist_ok=True)`."""
    return any(k.arg == "exist_ok" and isinstance(k.value, ast.Constant) and bool(k.value.value) for k in call.keywords)


def names_in_targets(statement: ast.Assign) -> set[str]:
    """The names that stand in what an assignment sets: `figure`, also of `figure.title = x`."""
    return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _is_tried(facts: Facts, node: ast.Call) -> bool:
    """`try: os.makedirs(path)` with an `except` for a folder that is there: any number of processes may."""
    tree = facts.tree(node)
    statement = tree.parents[node]
    above = tree.parents.get(statement)
    return (
        bool(facts.called(node) & output.FOLDERS)
        and isinstance(above, TRIES)
        and above.body == [statement]
        and any(_catches(handler) for handler in above.handlers)
    )


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    goes_on = not any(isinstance(statement, ast.Raise) for statement in handler.body)
    return goes_on and any(kind is None or ast.unparse(kind) in _RAISED for kind in kinds)
