"""libcst nodes out of templates: expressions with the parentheses they need, arguments, parameters, imported names.

Templates are filled as text, and `ast` says whether a part can stand without parentheses: the filled template must read
as it does with every part in parentheses. No table of precedences decides what is right inside a template; one decides
only whether the result needs parentheses where it goes (`seat`).
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import libcst as cst

from migrate.edits.edit import AddArgument, RemoveArgument, ReplaceArgument
from migrate.edits.join import dumped
from migrate.edits.parts import fill
from migrate.edits.tightness import ATOM, LOOSEST, tightness

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from migrate.edits.edit import AddAlias, DropAlias, Operation

    Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


@dataclass(slots=True)
class Builder:
    """Makes nodes that fit into one module."""

    module: cst.Module
    newline: str  # the one that most lines of the file end with
    is_cautious: bool = False  # put parentheses wherever a replaced expression began or ended next to a word

    # -------------------------------------------------------------- text to nodes

    def code(self, node: cst.CSTNode) -> str:
        """The source of a node."""
        return self.module.code_for_node(node)

    def statements(self, code: str) -> list[Statement]:
        """Statements out of text whose lines end with a plain newline."""
        parsed = cst.parse_module(code if code.endswith("\n") else f"{code}\n")
        body = list(parsed.body)
        body[0] = body[0].with_changes(leading_lines=(*parsed.header, *body[0].leading_lines))
        if self.newline != self.module.default_newline:
            body = [cast("Statement", stmt.visit(_Ends(self.newline))) for stmt in body]
        return body

    def deeper(self, stmt: Statement, indent: str | None) -> Statement:
        """The statement for a block inside: lines continued by a backslash move with it, as those in parentheses do."""
        if _CONTINUED.search(self.code(stmt)) is None:
            return stmt
        return cast("Statement", stmt.visit(_Continued(self.module.default_indent if indent is None else indent)))

    def expression(self, template: str, parts: Mapping[str, Piece]) -> cst.BaseExpression:
        """The template with its holes filled, with no more parentheses than it takes."""
        # not the module's own configuration: libcst does not take its indentation where that holds a form feed
        config = cst.PartialParserConfig(encoding=self.module.encoding, default_newline=self.module.default_newline)
        text = assemble(template, parts)
        made = cst.parse_expression(text, config=config)
        return cast("cst.BaseExpression", made.visit(_Blank())) if _BLANK.search(text) else made

    def piece(self, node: cst.BaseExpression) -> Piece:
        """An expression as a part of a template."""
        own = self.code(node)
        if not node.lpar:
            return Piece((own, f"({own})"))
        if isinstance(node, cst.GeneratorExp) or (isinstance(node, cst.Tuple) and not node.elements):
            return Piece((own,))  # the parentheses are its own
        bare = self.code(node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1]))
        around = self.code(node.lpar[0].whitespace_after) + self.code(node.rpar[-1].whitespace_before)
        return Piece((own,)) if around.strip(" \t") else Piece((bare, own))

    def arguments(self, call: cst.Call) -> Piece:
        """All arguments of a call, as a part of a template."""
        text = "".join(map(self.code, call.args)).rstrip()
        return Piece((text.removesuffix(",") if "\n" not in text else text,), is_list=True)

    # -------------------------------------------------------------- where it goes

    def seat(self, new: cst.BaseExpression, old: cst.BaseExpression, *, room: int | None) -> cst.BaseExpression:
        """The new expression in the place of the old one: parentheses stay, and come where they must.

        `room` is how tight an expression has to be there; None: as tight as the old one.
        """
        is_own = isinstance(old, cst.GeneratorExp) and isinstance(new, (cst.Name, cst.Attribute))  # `(x for x in y)`
        is_plain = isinstance(new, cst.Name) and new.value in ("True", "False", "None")  # `shuffle=(sampler is None)`
        is_kept = room == LOOSEST and self._holds_lines(old, new)
        is_idle = room == tightness(new) == ATOM and self._needed_them(old) and not self.is_cautious
        if old.lpar and not new.lpar and not (is_own or is_plain or is_kept or is_idle):
            return new.with_changes(lpar=old.lpar, rpar=old.rpar)
        needs = tightness(new) < (tightness(old) if room is None else min(room, tightness(old)))
        if not new.lpar and (needs or (self.is_cautious and self._touches(old)) or self._breaks(new)):
            return new.with_changes(lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))
        return new

    def _needed_them(self, old: cst.BaseExpression) -> bool:
        """Whether an expression has parentheses on one line for its own looseness: `(a if b else c).name`."""
        bare = old.with_changes(lpar=(), rpar=())
        return bool(old.lpar) and tightness(bare) < ATOM and "\n" not in self.code(old)

    def _holds_lines(self, old: cst.BaseExpression, new: cst.BaseExpression) -> bool:
        """Whether parentheses over several lines stand in the new expression as they are: `(\\n    a\\n) and b`."""
        code = self.code(old)
        return bool(old.lpar) and "\n" in code and code in self.code(new)

    def _touches(self, old: cst.BaseExpression) -> bool:
        code = self.code(old)
        return not (_is_word(code[0]) and _is_word(code[-1]))

    def _breaks(self, new: cst.BaseExpression) -> bool:
        """Whether the lines of the expression only hold together inside parentheses."""
        code = self.code(new)
        return "\n" in code and _parsed(code) is None


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class _Blank(cst.CSTTransformer):
    """Leaves empty lines between parentheses empty, which would be indented with the lines around them."""

    def leave_EmptyLine(self, original_node: cst.EmptyLine, updated_node: cst.EmptyLine) -> cst.EmptyLine:  # noqa: N802
        is_blank = updated_node.comment is None and not updated_node.whitespace.value
        return updated_node.with_changes(indent=False) if is_blank else updated_node


class _Continued(cst.CSTTransformer):
    """Moves lines in that a backslash continues."""

    def __init__(self, indent: str) -> None:
        super().__init__()
        self._indent = indent

    def leave_SimpleWhitespace(  # noqa: N802
        self, original_node: cst.SimpleWhitespace, updated_node: cst.SimpleWhitespace
    ) -> cst.SimpleWhitespace:
        return updated_node.with_changes(value=_CONTINUED.sub(rf"\g<0>{self._indent}", updated_node.value))


_CONTINUED = re.compile(r"\\\r?\n")
_BLANK = re.compile(r"\n\r?\n")


class _Ends(cst.CSTTransformer):
    """Gives line ends their own newline, where the file's first one is not the usual one."""

    def __init__(self, newline: str) -> None:
        super().__init__()
        self._newline = newline

    def leave_Newline(self, original_node: cst.Newline, updated_node: cst.Newline) -> cst.Newline:  # noqa: N802
        return updated_node.with_changes(value=self._newline)


# ------------------------------------------------------------------ filling a template


@dataclass(frozen=True, slots=True)
class Piece:
    """What a hole may be filled with, the barest first; the last always fits."""

    texts: tuple[str, ...]
    is_list: bool = False  # arguments, which parentheses would make a tuple


def text_piece(code: str) -> Piece:
    """Source text as a part of a template."""
    return Piece((code, f"({code})"))


def assemble(template: str, parts: Mapping[str, Piece], *, mode: str = "eval") -> str:
    """The filled template, as text. `mode` is that of `ast.parse`."""
    empty = [name for name, piece in parts.items() if piece.is_list and not piece.texts[0].strip()]
    for name in empty:  # `f({loss}, {arguments})` without arguments
        template = re.sub(rf",?\s*\{{{name}\}}", "", template)
    texts = {name: piece.texts[-1] for name, piece in parts.items() if name not in empty}
    wanted = _parsed(fill(template, texts), mode)
    if wanted is None:
        raise ValueError(f"{fill(template, texts)!r} is not Python.")
    for name, piece in parts.items():
        for text in piece.texts[:-1] if name in texts else ():
            if _parsed(fill(template, {**texts, name: text}), mode) == wanted:
                texts[name] = text
                break
    return fill(template, texts)


def _parsed(code: str, mode: str = "eval") -> str | None:
    try:
        return dumped(_Flat().visit(ast.parse(code.replace("\r\n", "\n"), mode=mode)))
    except SyntaxError:
        return None


class _Flat(ast.NodeTransformer):
    """Takes `(a and b) and c` for `a and b and c`, which is asked in the same order and gives the same."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        self.generic_visit(node)
        nested = [(v.values if isinstance(v, ast.BoolOp) and type(v.op) is type(node.op) else [v]) for v in node.values]
        node.values = [value for values in nested for value in values]
        return node


# ------------------------------------------------------------------ what stands between commas

Item = TypeVar("Item", cst.Arg, cst.Param, cst.ImportAlias)
BEHIND = {cst.Arg: "whitespace_after_arg", cst.Param: "whitespace_after_param"}
Space = cst.BaseParenthesizableWhitespace


def inserted(items: Sequence[Item], place: int, new: Item, opening: Space | None = None) -> list[Item]:
    """The list with one more item, laid out like its neighbours. `opening` is the space after the bracket."""
    found: list[Item] = list(items)
    if not found:
        return [new]
    separator = _separator(items, opening)
    if place == 0:
        found.insert(0, new.with_changes(comma=separator))
        return found
    before = found[place - 1]
    behind = BEHIND.get(type(new))
    if place < len(found):
        found[place - 1 : place] = [before, new.with_changes(comma=_uncommented(separator))]
        return found
    moved: dict[str, Any] = {"comma": _ending(before.comma)}
    kept: dict[str, Any] = {"comma": _describing(separator, before.comma)}
    if behind:
        moved[behind], kept[behind] = getattr(before, behind), cst.SimpleWhitespace("")
    found[place - 1 :] = [before.with_changes(**kept), new.with_changes(**moved)]
    return found


def _separator(items: Sequence[Item], opening: Space | None) -> cst.Comma:
    """A comma with the space that follows commas in this list."""
    if len(items) > 1 and isinstance(items[0].comma, cst.Comma):
        return _uncommented(items[0].comma)
    if isinstance(opening, cst.ParenthesizedWhitespace) and isinstance(items[0].comma, cst.Comma):
        return _uncommented(cst.Comma(whitespace_after=opening))
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _uncommented(comma: cst.Comma) -> cst.Comma:
    space = comma.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return comma.with_changes(whitespace_before=cst.SimpleWhitespace(""))
    line = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    return cst.Comma(whitespace_after=space.with_changes(first_line=line, empty_lines=()))


def _ending(comma: cst.Comma | cst.MaybeSentinel) -> cst.Comma | cst.MaybeSentinel:
    return _uncommented(comma) if isinstance(comma, cst.Comma) else comma


def _describing(separator: cst.Comma, old: cst.Comma | cst.MaybeSentinel) -> cst.Comma:
    """The separator, with the comment that stood behind the last item."""
    if not isinstance(old, cst.Comma):
        return separator
    there, here = old.whitespace_after, separator.whitespace_after
    if not isinstance(there, cst.ParenthesizedWhitespace):
        return separator
    if not isinstance(here, cst.ParenthesizedWhitespace):
        return old if there.first_line.comment else separator
    described = here.with_changes(first_line=there.first_line, empty_lines=there.empty_lines)
    return separator.with_changes(whitespace_after=described)


def without(items: Sequence[Item], gone: set[int]) -> list[Item]:
    """The list without some items; what ends the list stays as it was."""
    found = [item for number, item in enumerate(items) if number not in gone]
    if found and len(items) - 1 in gone:
        behind = BEHIND.get(type(found[-1]))
        changes: dict[str, Any] = {"comma": items[-1].comma}
        if behind:
            changes[behind] = getattr(items[-1], behind)
        found[-1] = found[-1].with_changes(**changes)
    return found


# ------------------------------------------------------------------ calls


def edit_call(call: cst.Call, operations: Iterable[Operation]) -> cst.Call:
    """The call with its arguments replaced, removed and added."""
    operations = list(operations)
    args: list[cst.Arg] = list(call.args)
    for operation in operations:
        if isinstance(operation, ReplaceArgument):
            args[operation.index] = _replaced(args[operation.index], operation)
    gone = {operation.index for operation in operations if isinstance(operation, RemoveArgument)}
    positional = [n for n, arg in enumerate(args) if arg.keyword is None and arg.star != "**" and n not in gone]
    args = without(args, gone)
    added = [operation for operation in operations if isinstance(operation, AddArgument)]
    if added and len(args) == 1 and isinstance(args[0].value, cst.GeneratorExp) and not args[0].value.lpar:
        value = args[0].value.with_changes(lpar=(cst.LeftParen(),), rpar=(cst.RightParen(),))
        args[0] = args[0].with_changes(value=value)
    count = len(positional)
    for operation in added:
        place = _place(args, operation, count, gone)
        count += operation.keyword is None
        args = inserted(args, place, _argument(operation.code, operation.keyword), call.whitespace_before_args)
    return call.with_changes(args=args)


def _replaced(arg: cst.Arg, operation: ReplaceArgument) -> cst.Arg:
    changes: dict[str, Any] = {}
    if operation.code is not None:  # it was starred
        changes = {"star": "", "value": cst.parse_expression(operation.code)}
    if operation.keyword is not None:
        changes["keyword"] = cst.Name(operation.keyword)
    if operation.keyword is not None and arg.keyword is None:
        changes["equal"] = tight()
    return arg.with_changes(**changes)


def _argument(code: str, keyword: str | None) -> cst.Arg:
    value = cst.parse_expression(assemble("f({x})" if keyword is None else "f(a={x})", {"x": text_piece(code)}))
    found = cast("cst.Call", value).args[0].value
    return cst.Arg(found, keyword=cst.Name(keyword), equal=tight()) if keyword else cst.Arg(found)


def tight() -> cst.AssignEqual:
    """`=` without spaces."""
    empty = cst.SimpleWhitespace("")
    return cst.AssignEqual(whitespace_before=empty, whitespace_after=empty)


def _place(args: Sequence[cst.Arg], operation: AddArgument, positional: int, gone: Collection[int]) -> int:
    """A keyword goes before a trailing `**mapping`, a positional argument behind the others of its kind.

    Its position counts those that are `gone`.
    """
    if operation.keyword is not None:
        return len(args) - 1 if args and args[-1].star == "**" else len(args)
    left_out = sum(index < (operation.position or 0) for index in gone)
    wanted = positional if operation.position is None else min(operation.position - left_out, positional)
    places = [n for n, arg in enumerate(args) if arg.keyword is None and arg.star != "**"]
    if wanted < len(places):
        return places[wanted]
    return places[-1] + 1 if places else 0


# ------------------------------------------------------------------ imported names


def drop_aliases(stmt: cst.Import | cst.ImportFrom, operations: Iterable[DropAlias]) -> cst.Import | cst.ImportFrom:
    """The import without some of its names."""
    names = cast("Sequence[cst.ImportAlias]", stmt.names)
    return stmt.with_changes(names=without(names, {operation.index for operation in operations}))


def add_alias(stmt: cst.ImportFrom, operation: AddAlias) -> cst.ImportFrom:
    """The import with one more name, in alphabetical order."""
    names = list(cast("Sequence[cst.ImportAlias]", stmt.names))
    key: Callable[[cst.ImportAlias], str] = lambda alias: str(alias.evaluated_name)  # noqa: E731
    place = next((n for n, alias in enumerate(names) if key(alias) > operation.name), len(names))
    opening = stmt.lpar.whitespace_after if stmt.lpar else None
    return stmt.with_changes(names=inserted(names, place, cst.ImportAlias(cst.Name(operation.name)), opening))
