"""The plan: every change to a project's files, decided before any is made.

A rule looks at facts and says what is to become of the nodes it knows, as `ast` nodes of the files the plan was made
for. It never sees another rule's output, and nothing is edited until `migrate.edits.apply` carries the plan out:

    plan.rewrite(call, "accelerator.backward({loss})", rule="MIG105", loss=RECEIVER)     # an expression
    plan.remove(stmt, rule="MIG102")                                                     # a statement
    plan.insert_after(stmt, "model = accelerator.prepare(model)", rule="MIG104", spaced=True)
    plan.guard(first, last, "accelerator.is_main_process", rule="MIG113")                # siblings, under an `if`
    plan.fold(branch, keep="orelse", rule="MIG111")                                      # `if` -> its else part
    plan.add_import(path, "runtime", "Accelerator", rule="MIG100")

* Templates are Python source; `{name}` is filled by the part of that name: text, a node inside the rewritten one, or a
  selector (`migrate.edits.parts`). What comes from the source comes with its own edits made. Parentheses are added
  where precedence asks for them, and an original's own are kept where it stood.
* `group` ties edits that only make sense together: `drop_group` takes all of them.
* Two edits that want one place: the first planned is made, the other is in `conflicts`. Edits inside a removed
  statement are swallowed. What cannot be done for sure is not planned but `refused`, with the reason. Neither raises:
  look at both when the rules have run, and drop the groups they belong to. A mistake of the rule (a node of another
  file, a template that does not parse) is a ValueError.
* What is emptied is cleaned up: an `if` with nothing left in it goes if its test has no effect (`pure_calls` says which
  calls have none), a `with` if it is of such calls, and an empty `else`; any other emptied block gets `pass`.
* Comments stay: those above a removed statement move to the next one; one behind it goes with it and is reported. Blank
  lines: what remains of the gap around removed statements is the larger side; an insertion with `spaced` stands between
  blank lines, one without stands tight.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from textwrap import dedent
from typing import TYPE_CHECKING, Literal

from migrate.edits import edit as do
from migrate.edits.editable import EditableFile
from migrate.edits.parts import check_expression, check_statements, fill, resolve
from migrate.edits.quotes import as_written
from migrate.edits.settle import Settled, settle
from migrate.edits.signature import check_parameter
from migrate.source.address import Address, arguments_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from migrate.edits.edit import Conflict, Edit, Operation, Refusal
    from migrate.edits.parts import Part

# Inside an f-string these end the string, or begin something else, in some Python that reads the file.
NOT_IN_STRINGS = re.compile(r"""['"\\\n#{}]""")
_NOTHING = Settled()


class Plan:
    """What is to be done to a set of files. See the top of this module."""

    def __init__(self, files: Sequence[EditableFile]) -> None:
        self.files = tuple(files)
        self.refused: list[Refusal] = []  # edits that were asked for and cannot be made
        self.pure_calls: set[str | ast.Call] = set()  # without effects: "torch.cuda.is_available", or the call itself
        self.lost_comments: dict[str, tuple[str, ...]] = {}  # by path, filled by `apply`: "12: # text"
        self.applied: dict[str, tuple[EditableFile, Settled, object]] = {}  # by path, filled by `apply`: what it gave
        self._edits: dict[str, list[Edit]] = {file.path: [] for file in files}
        self._settled: dict[str, Settled] = {}
        self._nearest: EditableFile | None = None

    # -------------------------------------------------------------- expressions

    def rewrite(self, expr: ast.expr, template: str, *, rule: str, group: str = "", **parts: Part) -> None:
        """Replace an expression by the template."""
        check_expression(template, parts)
        file = self._file_of(expr)
        resolved = resolve(template, parts, expr, file.index)
        written = [fill(template, dict.fromkeys(parts, "x")), *(part for _, part in resolved if isinstance(part, str))]
        self._add(expr, do.Rewrite(template, resolved), rule, group, written)

    def add_argument(
        self,
        call: ast.Call,
        code: str,
        *,
        rule: str,
        position: int | None = None,
        keyword: str | None = None,
        group: str = "",
    ) -> None:
        """Give a call one more argument: by keyword, before the `position`-th, or after the last positional one."""
        check_expression(code)
        if keyword is not None and position is not None:
            raise ValueError(f"the argument {code} is given by keyword or by position, not both.")
        if keyword is not None and any(argument.arg == keyword for argument in call.keywords):
            raise ValueError(f"`{ast.unparse(call)}` already has {keyword}=. Use replace_argument.")
        self._add(call, do.AddArgument(code, position, keyword), rule, group, [code])

    def replace_argument(
        self,
        call: ast.Call,
        argument: ast.expr | ast.keyword,
        code: str,
        *,
        rule: str,
        keyword: str | None = None,
        group: str = "",
    ) -> None:
        """Give an argument another value and, where `keyword` is given, another keyword."""
        check_expression(code)
        index = _position(call, argument)
        starred = isinstance(argument, ast.Starred) or (isinstance(argument, ast.keyword) and argument.arg is None)
        if not starred:
            value = argument.value if isinstance(argument, ast.keyword) else argument
            self.rewrite(value, code, rule=rule, group=group)
        if starred or keyword is not None:
            new = do.ReplaceArgument(index, code if starred else None, keyword)
            self._add(call, new, rule, group, [code])

    def remove_argument(self, call: ast.Call, argument: ast.expr | ast.keyword, *, rule: str, group: str = "") -> None:
        """Take an argument from a call; its other arguments keep their layout."""
        self._add(call, do.RemoveArgument(_position(call, argument)), rule, group)

    # -------------------------------------------------------------- statements

    def replace(self, stmt: ast.stmt, code: str, *, rule: str, group: str = "", **parts: Part) -> None:
        """Replace a statement by one or more. `ITSELF`, `BODY` and `ORELSE` may fill a line of their own."""
        check_statements(code, parts)
        resolved = resolve(code, parts, stmt, self._file_of(stmt).index)
        self._add(stmt, do.Replace(_bare(code), resolved), rule, group)

    def remove(self, stmt: ast.stmt, *, rule: str, group: str = "") -> None:
        """Take a statement away, with everything in it."""
        self._add(stmt, do.Remove(), rule, group)

    def insert_before(
        self,
        stmt: ast.stmt,
        code: str,
        *,
        rule: str,
        spaced: bool = False,
        late: bool = False,
        group: str = "",
    ) -> None:
        """Put statements before one, above its comments; `late`: below what else is put there, whoever plans first."""
        check_statements(code)
        self._add(stmt, do.Insert(_bare(code), before=True, spaced=spaced, late=late), rule, group)

    def lift(self, expr: ast.expr, name: str, *, above: ast.stmt, rule: str, group: str = "") -> None:
        """Compute an expression `above` a statement that holds it, which reads it under a name from there on."""
        if (address := self._file_of(expr).index.find(expr)) is not None:
            insert = do.Insert(f"{name} = {{value}}", before=True, spaced=False, parts=(("value", address),))
            self._add(above, insert, rule, group)
        self._add(expr, do.Lift(name, ()), rule, group, [name])

    def insert_after(
        self,
        stmt: ast.stmt,
        code: str,
        *,
        rule: str,
        spaced: bool = False,
        late: bool = False,
        group: str = "",
    ) -> None:
        """Put statements after one; `late`: below what else is put there, whoever plans first."""
        check_statements(code)
        self._add(stmt, do.Insert(_bare(code), before=False, spaced=spaced, late=late), rule, group)

    def guard(self, first: ast.stmt, last: ast.stmt, test: str, *, rule: str, group: str = "") -> None:
        """Put siblings, `first` to `last`, under `if test:`. Neighbours with the same test share one `if`."""
        check_expression(test)
        operation = do.Wrap(self._number_of_last(first, last), f"if {test}", merges=True)
        self._add(first, operation, rule, group, end_line=last.end_lineno)

    def wrap(self, first: ast.stmt, last: ast.stmt, header: str, *, rule: str, group: str = "") -> None:
        """Put siblings, `first` to `last`, into a block: `header` is "with accelerator.accumulate(model)".

        What is inserted before `first` or after `last` stays outside. Of two blocks around the same statements the one
        planned first is the outer one.
        """
        header = header.strip().removesuffix(":")
        check_statements(f"{header}:\n    pass")
        operation = do.Wrap(self._number_of_last(first, last), header, merges=False)
        self._add(first, operation, rule, group, end_line=last.end_lineno)

    def _number_of_last(self, first: ast.stmt, last: ast.stmt) -> int:
        """The number of the last of several siblings."""
        index = self._file_of(first).index
        if last not in index.block(first) or index.number(last) < index.number(first):
            what = f"what begins in line {first.lineno} cannot end with line {last.lineno}"
            raise ValueError(f"{what}: the last statement must be a later sibling of the first, or the first itself.")
        return index.number(last)

    def fold(self, stmt: ast.If, *, keep: Literal["body", "orelse"], rule: str, group: str = "") -> None:
        """Replace an `if` statement by the statements of its body, or of its else part (by nothing if it has none)."""
        self._add(stmt, do.Fold(do.Branch(keep)), rule, group)

    def unwrap(self, stmt: ast.With | ast.AsyncWith | ast.If, *, rule: str, group: str = "") -> None:
        """Replace a `with` statement, or an `if` without else, by its body."""
        if isinstance(stmt, ast.If) and stmt.orelse:
            raise ValueError("an if statement with an else part cannot be unwrapped. Say which branch: fold().")
        self._add(stmt, do.Unwrap(), rule, group)

    # -------------------------------------------------------------- parameters

    def add_parameter(
        self,
        function: ast.FunctionDef | ast.AsyncFunctionDef,
        name: str,
        *,
        rule: str,
        after: str | None = None,
        group: str = "",
    ) -> None:
        """Give a function one more parameter: after the one called `after`, or after the last positional one.

        Where `after` is the empty string it is the first.
        """
        check_parameter(function, name, after)
        self._add(function, do.AddParameter(name, after), rule, group)

    def remove_parameter(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: ast.arg, *, rule: str, group: str = ""
    ) -> None:
        """Take a parameter from a function; its uses and the calls are not touched."""
        self._add(function, do.RemoveParameter(parameter.arg), rule, group)

    def rename_parameter(self, parameter: ast.arg, name: str, *, rule: str, group: str = "") -> None:
        """Give a parameter another name, without its annotation; its uses are not touched."""
        if not name.isidentifier():
            raise ValueError(f"{name!r} is not a name.")
        self._add(parameter, do.RenameParameter(name), rule, group)

    # -------------------------------------------------------------- imports

    def add_import(
        self,
        path: str,
        module: str,
        name: str | None = None,
        *,
        used: int | None = None,
        rule: str,
        group: str = "",
    ) -> None:
        """Import `name` from `module`, or `module` itself, in a file: sorted into place, nothing if it is there.

        `used` is the line of a statement at module level that needs it: the import stands above that line.
        """
        if path not in self._edits:
            raise ValueError(f"{path} is not one of the plan's files.")
        new = do.Edit(rule, path, Address(-1), do.AddImport(module, name, used), 1, 1, group)
        self._append(new)

    def drop_import(self, stmt: ast.Import | ast.ImportFrom, name: str, *, rule: str, group: str = "") -> None:
        """Drop one name, as it is bound or as it is imported, from an import; the statement with its last name."""
        names = [number for number, alias in enumerate(stmt.names) if name in (alias.asname, alias.name)]
        if not names:
            raise ValueError(f"`{ast.unparse(stmt)}` does not import {name}.")
        self._add(stmt, do.DropAlias(names[0]), rule, group)

    # -------------------------------------------------------------- questions

    @property
    def touched(self) -> tuple[str, ...]:
        """Paths of the files that have edits."""
        return tuple(file.path for file in self.files if self.touches(file))

    def touches(self, file: EditableFile) -> bool:
        """Whether a file has edits."""
        return bool(self._edits[file.path]) and bool(self.settled(file).made)

    def edits(self, path: str | None = None) -> tuple[Edit, ...]:
        """The edits that will be made, of one file or of all, in the order of planning."""
        if path is None:
            return tuple(edit for file in self.files for edit in self.settled(file).made)
        file = self._by_path.get(path)
        return self.settled(file).made if file is not None else ()

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Edits that lose a place to another one that was planned before."""
        return tuple(conflict for file in self.files for conflict in self.settled(file).conflicts)

    def absorb(self, other: Plan) -> None:
        """Take over the edits of a plan for the same files; what both say is said once."""
        for path, edits in other._edits.items():
            mine = {(edit.address, edit.operation) for edit in self._edits[path]}
            self._edits[path] += [edit for edit in edits if (edit.address, edit.operation) not in mine]
        self.pure_calls |= other.pure_calls
        self.refused += other.refused
        self._settled.clear()

    def drop_group(self, group: str) -> None:
        """Take every edit of the group back. What had lost a place to one of them gets it."""
        for path, edits in self._edits.items():
            self._edits[path] = [edit for edit in edits if edit.group != group]
        self._settled.clear()

    def settled(self, file: EditableFile) -> Settled:
        """What is to be done to a file, without conflicts: what `apply` carries out."""
        if not (edits := self._edits.get(file.path)):
            return _NOTHING
        if file.path not in self._settled:
            self._settled[file.path] = settle(file.index, edits, self.pure_calls, self._local)
        return self._settled[file.path]

    @cached_property
    def _by_path(self) -> dict[str, EditableFile]:
        return {file.path: file for file in self.files}

    @cached_property
    def _local(self) -> frozenset[str]:
        return frozenset(_modules(self.files))

    # -------------------------------------------------------------- inside

    def _add(
        self,
        node: ast.AST,
        operation: Operation,
        rule: str,
        group: str,
        written: Iterable[str] = (),
        *,
        end_line: int | None = None,
    ) -> None:
        file = self._file_of(node)
        line = getattr(node, "lineno", 1)
        address = file.index.find(node)
        if address is None:
            self._refuse(rule, file.path, line, f"this {type(node).__name__} cannot be edited by itself", group)
        elif file.index.is_inside_string(node) and any(map(NOT_IN_STRINGS.search, written)):
            self._refuse(rule, file.path, line, "quotes and backslashes cannot be put into an f-string", group)
        else:
            end = end_line or getattr(node, "end_lineno", None) or line
            self._append(do.Edit(rule, file.path, address, as_written(operation, file.content), line, end, group))

    def _append(self, edit: Edit) -> None:
        self._edits[edit.path].append(edit)
        self._settled.pop(edit.path, None)

    def _refuse(self, rule: str, path: str, line: int, why: str, group: str) -> None:
        self.refused.append(do.Refusal(rule, path, line, why, group))

    def _file_of(self, node: ast.AST) -> EditableFile:
        files = [*([self._nearest] if self._nearest else ()), *self.files]
        found: EditableFile | None = next((file for file in files if node in file.index), None)
        if found is None and not isinstance(node, ast.stmt):
            # What has no address: a starred expression, a slice, the tuple of a[1, 2].
            found = next((file for file in files if any(node is inner for inner in ast.walk(file.tree))), None)
        if found is None:
            raise ValueError(f"this {type(node).__name__} is in none of the plan's files.")
        self._nearest = found
        return found


def _bare(code: str) -> str:
    """Statements as they stand at the left margin, without blank lines around them."""
    return dedent(code).strip("\n")


def _position(call: ast.Call, argument: ast.expr | ast.keyword) -> int:
    for number, written in enumerate(arguments_of(call)):
        if written is argument:
            return number
    raise ValueError(f"`{ast.unparse(argument)}` is not an argument of `{ast.unparse(call)}`. Pass one of its nodes.")


def _modules(files: Iterable[EditableFile]) -> Iterable[str]:
    """Names of modules that are the project's own, going by the paths of its files."""
    for file in files:
        for part in file.path.replace("\\", "/").removesuffix(".py").split("/"):
            if part.isidentifier():
                yield part
