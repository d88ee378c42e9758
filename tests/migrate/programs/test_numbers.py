"""Which expressions are numbers: `migrate/programs/values/numbers.py`."""

import ast

from migrate.analysis import analyse
from migrate.programs.values import numbers
from migrate.source.project import Project, SourceFile


def test_names_that_get_their_values_from_each_other_are_looked_up_once(tmp_path, monkeypatch):
    """Each was followed along every way to it: a point network of some dozen such lines took hours."""
    step = "    a = max(a + 1, b, c)\n    b = min(b + 1, a, c)\n    c = max(c + 1, a, b)\n"
    (tmp_path / "mix.py").write_text(f"def mix(a, b, c):\n{step * 2}    return a\n\nmix(1, 2, 3)\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    facts = analyse(Project([SourceFile("mix.py", (tmp_path / "mix.py").read_bytes(), real=tmp_path / "mix.py")]))
    asked = []
    known = numbers.parted
    monkeypatch.setattr(numbers, "parted", lambda *given: asked.append(given) or known(*given))
    (unit,) = facts.functions
    (value,) = [node.value for node in ast.walk(unit.node) if isinstance(node, ast.Return)]

    numbers.is_number(facts, value)
    assert 0 < len(asked) < 500
