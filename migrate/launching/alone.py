"""Statements of the notebook's own process: written as they were before there was an accelerator.

    accelerator.print(x)                           ->   print(x)
    with accelerator.main_process_first(): ...     ->   ...
    if accelerator.is_main_process: ...            ->   ...
    tqdm(loader, disable=not accelerator....)      ->   tqdm(loader)
    accelerator.unwrap_model(model)                ->   model
    accelerator.save(weights, path)                ->   torch.save(weights, path)
    open(path if accelerator.is_main_process else os.devnull, "w")   ->   open(path, "w")
    model = accelerator.unwrap_model(model)        ->   (nothing)

One process says and makes everything, and has no accelerator.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.syntax import first_line, last_line
from migrate.launching.text import Text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


#: What stands for what, where there is one process; {0} is the accelerator.
_PLAIN = (
    (r",\s*mode=None if {0}\.is_main_process else ['\"]disabled['\"]", ""),
    (r",\s*(disable=not|display=) ?{0}\.is_local_main_process\b", ""),
    (r"\b{0}\.unwrap_model\(([\w.\[\]'\"]+)\)", r"\1"),
    (r"\b{0}\.print\b", "print"),
)
_SAVE = ((r"\b{0}\.save\b", "torch.save"),)  # of a notebook that has torch by this name


def on_one_process(text: Text, statement: ast.stmt, accelerator: str, imported: Collection[str]) -> list[str] | None:
    """The lines of a statement without the accelerator; None where it asks it for more.

    `imported`: the names that the notebook imports.
    """
    if ast.unparse(statement) == f"{accelerator}.wait_for_everyone()":
        return []
    source = text.source(statement)
    for pattern, plain in (*_PLAIN, *_SAVE) if "torch" in imported else _PLAIN:
        source = re.sub(pattern.format(accelerator), plain, source)
    if re.fullmatch(r"(\w+) = \1", source) and not re.fullmatch(r"(\w+) = \1", text.source(statement)):
        return []
    source = _first_choices(source, accelerator)
    while True:
        local = Text(source)
        found = next(_blocks(local, accelerator), None)
        if found is None:
            break
        source = _opened(local, found)
    return None if _asks(local.tree, accelerator) else source.split("\n")


def _first_choices(source: str, accelerator: str) -> str:
    """The text with what the main process takes, where it is asked inside of a line."""
    test = f"{accelerator}.is_main_process"
    while True:
        tree = ast.parse(source)
        found = (node for node in ast.walk(tree) if isinstance(node, ast.IfExp) and ast.unparse(node.test) == test)
        if (node := next(found, None)) is None or (taken := ast.get_source_segment(source, node.body)) is None:
            return source
        whole = ast.get_source_segment(source, node) or ""
        grouped = rf"(?<![\w)\]])\({re.escape(whole)}\)"  # in parentheses that call nothing
        pattern = grouped if re.search(grouped, source) else re.escape(whole)
        source = re.sub(pattern, lambda _: taken, source, count=1)


def _blocks(text: Text, accelerator: str) -> Iterator[ast.With | ast.If]:
    """Blocks that are there for several processes, and whose body stands on lines of its own."""
    for node in ast.walk(text.tree):
        if isinstance(node, ast.With) and len(node.items) == 1:
            test = node.items[0].context_expr
            is_ours = ast.unparse(test) == f"{accelerator}.main_process_first()"
        elif isinstance(node, ast.If) and not node.orelse:
            is_ours = ast.unparse(node.test) == f"{accelerator}.is_main_process"
        else:
            continue
        if is_ours and first_line(node.body[0]) > node.lineno:
            yield node


def _opened(text: Text, block: ast.With | ast.If) -> str:
    """The text with the body of a block in its place."""
    by = block.body[0].col_offset - block.col_offset
    body = text.dedented(block.lineno + 1, last_line(block), by)
    return "\n".join([*text.of(1, block.lineno - 1), *body, *text.of(last_line(block) + 1, len(text.lines))])


def _asks(tree: ast.Module, accelerator: str) -> bool:
    """Whether something still asks the accelerator."""
    return any(isinstance(node, ast.Name) and node.id == accelerator for node in ast.walk(tree))
