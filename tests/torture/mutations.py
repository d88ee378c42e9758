"""What may happen to a program while somebody works on it: one function a mutation, in tables.

A mutation takes a text and a source of chance, and gives another text, or None where the text offers no place for it.
Whether the result still parses is not its business.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

LINES = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Text:
    """A program that parses, its lines, and its statements that share no line with others."""

    content: bytes

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.content)

    @cached_property
    def lines(self) -> list[bytes]:
        return LINES.findall(self.content)

    @cached_property
    def newline(self) -> bytes:
        return b"\r\n" if b"\r\n" in self.content else b"\n"

    @cached_property
    def statements(self) -> list[ast.stmt]:
        """Those that begin a line and end one."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]
        return [node for node in found if self._is_alone(node)]

    @cached_property
    def simple(self) -> list[ast.stmt]:
        return [node for node in self.statements if not hasattr(node, "body") and not hasattr(node, "cases")]

    @cached_property
    def names(self) -> list[str]:
        """Names that the program gives to something."""
        found = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and _is_store(node)}
        return sorted(found | {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)})

    @cached_property
    def expressions(self) -> list[ast.expr]:
        """Expressions that are read, and lie on one line outside of f-strings."""
        hidden = {
            id(inner) for node in ast.walk(self.tree) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)
        }
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.expr)
            and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            and not isinstance(node, (ast.Starred, ast.Slice))
            and node.lineno == node.end_lineno
            and id(node) not in hidden
        ]

    def _is_alone(self, node: ast.stmt) -> bool:
        first, last = self.lines[start(node) - 1], self.lines[end(node) - 1]
        before, after = first[: node.col_offset], last[node.end_col_offset or 0 :].strip()
        return not before.strip() and (not after or after.startswith(b"#"))

    def of(self, node: ast.stmt) -> list[bytes]:
        """The lines of a statement."""
        return self.lines[start(node) - 1 : end(node)]

    def indent(self, node: ast.stmt) -> bytes:
        line = self.lines[node.lineno - 1]
        return line[: len(line) - len(line.lstrip(b" \t\x0c"))]

    def with_lines(self, first: int, last: int, lines: Iterable[bytes]) -> bytes:
        """The text with other lines in the place of those from `first` to `last` (1-based; none if `last < first`)."""
        return b"".join([*self.lines[: first - 1], *lines, *self.lines[max(last, first - 1) :]])


def start(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _deeper(lines: Iterable[bytes], old: bytes, new: bytes) -> list[bytes]:
    return [new + line[len(old) :] if line.startswith(old) else line for line in lines]


# --------------------------------------------------------------------------------------------- statements


def deleted(text: Text, chance: random.Random) -> bytes | None:
    if not text.statements:
        return None
    node = chance.choice(text.statements)
    return text.with_lines(start(node), end(node), [])


def emptied(text: Text, chance: random.Random) -> bytes | None:
    if not text.simple:
        return None
    node = chance.choice(text.simple)
    return text.with_lines(start(node), end(node), [text.indent(node) + b"pass" + text.newline])


def duplicated(text: Text, chance: random.Random) -> bytes | None:
    if not text.statements:
        return None
    node = chance.choice(text.statements)
    return text.with_lines(end(node) + 1, end(node), text.of(node))


def moved(text: Text, chance: random.Random) -> bytes | None:
    """A statement goes before another one, at its depth."""
    if len(text.simple) < 2:
        return None
    node, place = chance.sample(text.simple, 2)
    taken = _deeper(text.of(node), text.indent(node), text.indent(place))
    lines = [*text.lines]
    for first, last, new in sorted(
        [(start(node), end(node), []), (start(place), start(place) - 1, taken)], reverse=True
    ):
        lines[first - 1 : last] = new
    return b"".join(lines)


def exchanged(text: Text, chance: random.Random) -> bytes | None:
    """Two neighbours change places."""
    pairs = [(a, b) for a, b in zip(text.statements, text.statements[1:], strict=False) if end(a) + 1 == start(b)]
    pairs = [(a, b) for a, b in pairs if text.indent(a) == text.indent(b)]
    if not pairs:
        return None
    a, b = chance.choice(pairs)
    return text.with_lines(start(a), end(b), [*text.of(b), *text.of(a)])


WRAPS = (
    b"if True:", b"for _ in range(1):", b"with torch.no_grad():", b"with open('log') as log:", b"while training:",
    b"try:", b"def inner():", b"class Inner:", b"async def inner():", b"if rank == 0:",
    b"for i, batch in enumerate(loader):", b"if i % 2 == 0:", b"match epoch:", b"if __name__ == '__main__':",
    b"else:", b"with torch.autocast('cuda'):",
)  # fmt: skip
HARMLESS = (b"if True:", b"for _ in range(1):", b"try:", b"if __name__ == '__main__':", b"with torch.enable_grad():")


def _under(text: Text, chance: random.Random, headers: Iterable[bytes], step: bytes) -> bytes | None:
    if not text.statements:
        return None
    node = chance.choice(text.statements)
    depth, header = text.indent(node), chance.choice(list(headers))
    middle = [depth + step + b"case 1:" + text.newline] if header.startswith(b"match") else []
    deep = depth + step * (1 + len(middle))
    tail = [depth + b"finally:" + text.newline, depth + step + b"pass" + text.newline] if header == b"try:" else []
    inside = [line if not line.strip() else deep + line[len(depth) :] for line in text.of(node)]
    return text.with_lines(start(node), end(node), [depth + header + text.newline, *middle, *inside, *tail])


def indented(text: Text, chance: random.Random) -> bytes | None:
    return _under(text, chance, WRAPS, chance.choice((b"    ", b"  ", b"\t", b" ")))


def indented_in_vain(text: Text, chance: random.Random) -> bytes | None:
    return _under(text, chance, HARMLESS, b"    ")


def dedented(text: Text, chance: random.Random) -> bytes | None:
    deep = [node for node in text.statements if text.indent(node)]
    if not deep:
        return None
    node = chance.choice(deep)
    less = text.indent(node)[: -len(text.indent(node)) // 2 or None]
    return text.with_lines(start(node), end(node), _deeper(text.of(node), text.indent(node), less))


def joined(text: Text, chance: random.Random) -> bytes | None:
    """Two simple statements on one line."""
    pairs = [(a, b) for a, b in zip(text.simple, text.simple[1:], strict=False) if end(a) + 1 == start(b)]
    pairs = [(a, b) for a, b in pairs if text.indent(a) == text.indent(b) and b"#" not in text.lines[end(a) - 1]]
    if not pairs:
        return None
    a, b = chance.choice(pairs)
    second = text.of(b)
    first = [*text.of(a)[:-1], text.of(a)[-1].rstrip() + b"; " + second[0].lstrip()]
    return text.with_lines(start(a), end(b), [*first, *second[1:]])


def on_one_line(text: Text, chance: random.Random) -> bytes | None:
    """`if x:` with its only statement behind the colon."""
    found = [node for node in text.statements if isinstance(node, (ast.If, ast.For, ast.While, ast.With))]
    found = [n for n in found if len(n.body) == 1 and n.body[0] in text.simple and n.body[0].lineno == n.lineno + 1]
    found = [n for n in found if b"#" not in text.lines[n.lineno - 1]]
    if not found:
        return None
    node = chance.choice(found)
    header = text.lines[node.lineno - 1].rstrip() + b" "
    return text.with_lines(node.lineno, node.lineno + 1, [header + text.lines[node.lineno].lstrip()])


ODD = (
    b"return", b"break", b"continue", b"yield", b"raise", b"global model", b"nonlocal loss", b"del loss",
    b"del model", b"import torch as t", b"from torch import *", b"from __future__ import annotations", b"'a string'",
    b"...", b"await x", b"assert loss == loss, 'NaN'", b"model = None", b"model.train()", b"model.eval()",
    b"accelerator = 3", b"import torch", b"loss = loss.item()", b"optimizer = optimizer", b"loader = list(loader)",
    b"model = torch.compile(model)", b"torch.manual_seed(0)", b"print(loss)", b"x: int", b"x: int = 3", b"(yield)",
    b"lambda: (yield)", b"_ = 1;", b"exec('model = 1')", b"globals()['model'] = 2", b"if model: pass",
    b"with model: pass", b"@property\ndef model(self): ...", b"type X = int", b"async with a: pass",
    b"print(*[1], **{})", b"a = b = c = model", b"a, *b = model, loss, 3", b"model[0], model.x = 1, 2",
    b"for model in model: pass", b"try: pass\nexcept* E: pass", b"if (model := model): pass",
    b"def model(model=model): return model", b"class model(model): pass", b"# migrate: ignore",
    b"# migrate: ignore[MIG105]",
)  # fmt: skip


def inserted(text: Text, chance: random.Random) -> bytes | None:
    return put(text, chance, chance.choice(ODD))


def put(text: Text, chance: random.Random, code: bytes) -> bytes | None:
    """Statements before or behind another one, at its depth."""
    if not text.statements:
        return None
    node = chance.choice(text.statements)
    lines = [text.indent(node) + line + text.newline for line in code.split(b"\n")]
    place = start(node) if chance.random() < 0.5 else end(node) + 1
    return text.with_lines(place, place - 1, lines)


# --------------------------------------------------------------------------------------------- names and expressions

NAMES = (
    "accelerator",
    "device",
    "model",
    "loss",
    "_",
    "l",
    "möd",
    "self",
    "runtime",
    "torch",
    "print",
    "rank",
    "Accelerator",
)


def _called(name: str, new: str, content: bytes) -> bytes:
    return re.sub(rb"(?<![\w.])%b(?!\w)" % re.escape(name.encode()), new.encode(), content)


def renamed(text: Text, chance: random.Random) -> bytes | None:
    """A name of the program is another everywhere."""
    if not text.names:
        return None
    return _called(chance.choice(text.names), chance.choice(NAMES), text.content)


def renamed_apart(text: Text, chance: random.Random) -> bytes | None:
    """A name of the program is one that nothing has, everywhere but as a keyword or an option."""
    names = [
        name
        for name in text.names
        if name != "self" and re.search(rb"[\"']-*%b|%b=" % ((name.encode(),) * 2), text.content) is None
    ]
    return _called(chance.choice(names), "another_one", text.content) if names else None


def renamed_here(text: Text, chance: random.Random) -> bytes | None:
    """One place reads another name of the program."""
    places = [node for node in text.expressions if isinstance(node, ast.Name)]
    if not places or not text.names:
        return None
    return _replaced(text, chance.choice(places), chance.choice(text.names).encode())


AROUND = (
    b"(%b)", b"((%b))", b"[%b][0]", b"(lambda: %b)()", b"(%b if True else None)", b"(seen := %b)", b"(%b or None)",
    b"[*[%b]][0]", b"{'a': %b}['a']", b"(%b,)[0]", b"not not %b", b"str(%b)", b"next(iter([%b]))", b"(%b).x",
    b"(await %b)", b"[x for x in [%b]][0]", b"f'{%b}'", b"(yield %b)", b"(%b)()", b"-%b", b"(%b)[0:1]",
)  # fmt: skip
SAME = (b"(%b)", b"((%b))", b"(%b if True else None)", b"(%b,)[0]")


def wrapped(text: Text, chance: random.Random) -> bytes | None:
    return _around(text, chance, AROUND)


def parenthesised(text: Text, chance: random.Random) -> bytes | None:
    return _around(text, chance, SAME)


def _around(text: Text, chance: random.Random, templates: Iterable[bytes]) -> bytes | None:
    if not text.expressions:
        return None
    node = chance.choice(text.expressions)
    return _replaced(text, node, chance.choice(list(templates)).replace(b"%b", _segment(text, node)))


def _segment(text: Text, node: ast.expr) -> bytes:
    return text.lines[node.lineno - 1][node.col_offset : node.end_col_offset]


def _replaced(text: Text, node: ast.expr, new: bytes) -> bytes:
    line = text.lines[node.lineno - 1]
    return text.with_lines(node.lineno, node.lineno, [line[: node.col_offset] + new + line[node.end_col_offset or 0 :]])


VALUES = (
    b"0",
    b"1",
    b"-1",
    b"2",
    b"None",
    b"''",
    b"1e400",
    b"10 ** 9",
    b"0x7f",
    b"1_0",
    b"b''",
    b"...",
    b"True",
    b"1j",
    b"'cuda'",
)


def revalued(text: Text, chance: random.Random) -> bytes | None:
    constants = [node for node in text.expressions if isinstance(node, ast.Constant)]
    return _replaced(text, chance.choice(constants), chance.choice(VALUES)) if constants else None


def recounted(text: Text, chance: random.Random) -> bytes | None:
    """A small whole number is another one."""
    numbers = [n for n in text.expressions if isinstance(n, ast.Constant) and type(n.value) is int and 0 < n.value < 20]
    return _replaced(text, chance.choice(numbers), chance.choice((b"1", b"2", b"3"))) if numbers else None


TARGETS = (
    b"%b: object = ",
    b"(%b) = ",
    b"[%b] = [",
    b"%b = other = ",
    b"%b, *rest = ",
    b"%b += ",
    b"self.%b = ",
    b"%b['x'] = ",
)


def assigned_otherwise(text: Text, chance: random.Random) -> bytes | None:
    found = [
        n
        for n in text.simple
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name) and len(n.targets) == 1
    ]
    found = [n for n in found if n.lineno == n.value.lineno == n.value.end_lineno]
    if not found:
        return None
    node = chance.choice(found)
    target, line = chance.choice(TARGETS), text.lines[node.lineno - 1]
    name = _segment(text, node.targets[0])
    close = b"]" if target.startswith(b"[") else b""
    new = line[: node.col_offset] + target.replace(b"%b", name) + _segment(text, node.value) + close
    return text.with_lines(node.lineno, node.lineno, [new + line[node.end_col_offset or 0 :]])


# --------------------------------------------------------------------------------------------- layout


def split_over_lines(text: Text, chance: random.Random) -> bytes | None:
    """New lines, some with a comment, behind brackets and commas inside of brackets."""
    places = _inside_brackets(text)
    if not places:
        return None
    lines = [*text.lines]
    chosen = chance.sample(places, min(len(places), chance.randint(1, 6)))
    for row, column in sorted(chosen, reverse=True):
        line = lines[row - 1]
        comment = chance.choice((b"", b"", b"  # why", b"  # %d" % row, b"\\"[:0]))
        lines[row - 1] = (
            line[:column] + comment + text.newline + b" " * chance.randint(0, 9) + line[column:].lstrip(b" ")
        )
    return b"".join(lines)


def _inside_brackets(text: Text) -> list[tuple[int, int]]:
    """(line, column in bytes) behind each bracket that opens and each comma in brackets."""
    if (
        text.content.startswith(b"\xef\xbb\xbf")
        or b"coding" in text.content[:200]
        or b"\r" in text.content.replace(b"\r\n", b"")
    ):
        return []
    depth, found, inside_string = 0, [], 0
    for token in tokenize.tokenize(io.BytesIO(text.content).readline):
        kind = tokenize.tok_name[token.type]
        inside_string += {"FSTRING_START": 1, "FSTRING_END": -1}.get(kind, 0)
        if token.type != tokenize.OP or inside_string:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if depth and token.string in "([{,":
            before = token.line[: token.end[1]]
            found.append((token.end[0], len(before.encode())))
    rows = {
        row for node in ast.walk(text.tree) if isinstance(node, ast.JoinedStr) for row in (node.lineno, node.end_lineno)
    }
    return [(row, column) for row, column in found if row not in rows]


def continued(text: Text, chance: random.Random) -> bytes | None:
    """A backslash and a new line before what is assigned."""
    found = [n for n in text.simple if isinstance(n, ast.Assign) and n.lineno == n.value.lineno == n.end_lineno]
    if not found:
        return None
    node = chance.choice(found)
    line, column = text.lines[node.lineno - 1], node.value.col_offset
    while column and line[column - 1 : column] in b" (":
        column -= 1
    return text.with_lines(
        node.lineno, node.lineno, [line[:column] + b" \\" + text.newline + b"      " + line[column:]]
    )


COMMENTS = (
    b"# note",
    b"#",
    b"# \xc3\xa9",
    b"#!",
    b"# type: ignore",
    b"# noqa",
    b"# pragma: no cover",
    b"# TODO: x = (1",
    b"# fmt: off",
)


def commented(text: Text, chance: random.Random) -> bytes | None:
    """Comments behind statements and on lines of their own, at any depth."""
    if not text.simple or b"coding" in text.content[:200]:
        return None
    lines = [*text.lines]
    for node in sorted(chance.sample(text.simple, min(3, len(text.simple))), key=end, reverse=True):
        last, comment = end(node) - 1, chance.choice(COMMENTS) + b" %d" % end(node)
        if chance.random() < 0.5 and b"#" not in lines[last]:
            lines[last] = lines[last].rstrip() + b"  " + comment + text.newline
        else:
            depth = chance.choice((b"", text.indent(node), text.indent(node) + b"   "))
            lines.insert(
                last + chance.randint(0, 1) if start(node) == end(node) else last + 1, depth + comment + text.newline
            )
    return b"".join(lines)


def spaced(text: Text, chance: random.Random) -> bytes | None:
    """Blank lines, blanks at the end of lines, form feeds."""
    lines = [*text.lines]
    if not text.statements:
        return None
    for node in sorted(chance.sample(text.statements, min(3, len(text.statements))), key=start, reverse=True):
        lines.insert(
            start(node) - 1,
            chance.choice((b"\n", b"\n\n\n", b"   \n", b"\t\n", b"\x0c\n")).replace(b"\n", text.newline),
        )
    return b"".join(lines)


def tabbed(text: Text, chance: random.Random) -> bytes | None:
    return re.sub(rb"(?m)^(?: {4})+", lambda found: b"\t" * (len(found[0]) // 4), text.content)


LAYOUTS: tuple[Callable[[bytes], bytes], ...] = (
    lambda content: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    lambda content: content.replace(b"\r\n", b"\n").replace(b"\n", b"\r"),
    lambda content: content.replace(b"\n", b"\r\n", 3),
    lambda content: content.rstrip(),
    lambda content: b"\xef\xbb\xbf" + content,
    lambda content: b"# -*- coding: utf-8 -*-\n" + content,
    lambda content: b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + content,
    lambda content: content + b"\n\n    \n\t\n",
    lambda content: content + b"    # the end",
    lambda content: content.rstrip() + b" \\\n",
    lambda content: b"#!/usr/bin/env python\n\n\n" + content,
    lambda content: b'"""About it."""\n' + content,
    lambda content: b"from __future__ import annotations\n" + content,
)


def laid_out(text: Text, chance: random.Random) -> bytes | None:
    return chance.choice(LAYOUTS)(text.content)


Mutation = "Callable[[Text, random.Random], bytes | None]"
EVERY = (
    deleted, emptied, duplicated, moved, exchanged, indented, indented_in_vain, dedented, joined, on_one_line, inserted,
    renamed, renamed_apart, renamed_here, wrapped, parenthesised, revalued, recounted, assigned_otherwise,
    split_over_lines, continued, commented, spaced, tabbed, laid_out,
)  # fmt: skip
#: Most programs still run after one of these.
GENTLE = (
    deleted, duplicated, moved, exchanged, indented_in_vain, joined, on_one_line, renamed_apart, parenthesised,
    recounted, split_over_lines, continued, commented, emptied,
)  # fmt: skip


def mutated(content: bytes, chance: random.Random, table=EVERY, most: int = 3) -> tuple[bytes, list[str]]:
    """A program after one to `most` mutations, and their names; what no longer parses is not mutated further."""
    names: list[str] = []
    for _ in range(chance.randint(1, most)):
        text = Text(content)
        try:
            text.tree  # noqa: B018 (does it parse?)
        except (SyntaxError, ValueError):
            break
        mutation = chance.choice(table)
        new = mutation(text, chance)
        if new is not None:
            content = new
            names.append(mutation.__name__)
    return content, names
