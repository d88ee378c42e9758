"""Whether a script sets variables that torch and its libraries read when they are loaded.

`os.environ["OMP_NUM_THREADS"] = "4"` above `import torch` has no effect where torch is there already. Looked at are the
script and the files beside it that it imports, by their text; nothing is run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_READ_AT_LOADING = re.compile(
    r"(OMP|GOMP|KMP|LIBOMP|MKL|OPENBLAS|GOTO|BLIS|VECLIB|DNNL|ONEDNN|NPY|NUMPY|ATEN|LD|MALLOC|GLIBC|PYTHON)_?\w*"
    r"|(TORCH|PYTORCH|TORCHDYNAMO|TORCHINDUCTOR|C10)_\w*"
)
_SETTERS = {"putenv", "unsetenv", "setdefault", "update", "pop", "clear", "__setitem__"}
_LOADERS = {"load_dotenv"}
_MOST_FILES = 300  # a project with more beside the script is not looked through


def set_before_torch(script: Path | None, folder: str) -> str:
    """The first place that sets such a variable, or one whose name is not known, in words; nothing if none does."""
    todo, seen = [script] if script else [], {script}
    while todo:
        path = todo.pop()
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue  # whoever runs it will say so
        for node in ast.walk(tree):
            name = _set_by(node)
            if name is not None:
                line = getattr(node, "lineno", 0)
                return f"{path.name}:{line} sets {name or 'variables'}, which may be read when torch is loaded"
        new = [found for found in _imported(tree, path, Path(folder)) if found not in seen]
        seen.update(new)
        todo += new
        if len(seen) > _MOST_FILES:
            return f"the script imports more than {_MOST_FILES} files beside it"
    return ""


def _set_by(node: ast.AST) -> str | None:
    """The variable that a statement or call sets: its name if it matters, "" if it is not known; None for nothing."""
    names = [name for name in _written(node) if name is None or _READ_AT_LOADING.fullmatch(name)]
    return (names[0] or "") if names else None


def _written(node: ast.AST) -> Iterator[str | None]:
    """The names of variables that a node sets; None for one that is not written out."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            yield from (_text(t.slice) for t in targets if isinstance(t, ast.Subscript) and _is_environ(t.value))
        case ast.AugAssign(target=target, value=value) if _is_environ(target):
            yield from _keys(value)
        case ast.Call(func=ast.Attribute(value=owner, attr=attribute)) if attribute in _SETTERS:
            if _is_environ(owner) or (isinstance(owner, ast.Name) and owner.id == "os" and attribute.endswith("env")):
                yield from _arguments(node, attribute)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _LOADERS:
            yield None


def _arguments(call: ast.Call, attribute: str) -> Iterator[str | None]:
    if attribute == "update":
        for argument in call.args:
            yield from _keys(argument)
        yield from (keyword.arg for keyword in call.keywords)
    else:
        yield _text(call.args[0]) if call.args else None


def _keys(value: ast.expr) -> Iterator[str | None]:
    if not isinstance(value, ast.Dict):
        yield None
        return
    yield from (None if key is None else _text(key) for key in value.keys)


def _is_environ(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "environ") or (
        isinstance(node, ast.Name) and node.id == "environ"
    )


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _imported(tree: ast.AST, path: Path, folder: Path) -> Iterator[Path]:
    """The files below `folder` that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files(folder, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = path.parents[node.level - 1] if 0 < node.level <= len(path.parents) else folder
            for alias in node.names:
                yield from _files(base, f"{node.module}.{alias.name}" if node.module else alias.name)


def _files(base: Path, dotted: str) -> Iterator[Path]:
    place = base
    for part in dotted.split("."):
        place /= part
        for candidate in (place.with_suffix(".py"), place / "__init__.py"):
            if candidate.is_file():
                yield candidate
