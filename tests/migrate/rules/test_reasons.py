"""The codes that are only ever reasons, and that all codes together are complete, documented and tested."""

import ast
import re
from pathlib import Path

import pytest

import migrate
from migrate.report.model import NOT_EDITABLE, OUR_BUG
from migrate.rules import REASONS, RULES

PACKAGE = Path(migrate.__file__).resolve().parent
HERE = Path(__file__).resolve().parent
ALL = (*RULES, *REASONS)


def test_codes_and_names_are_unique():
    assert len({each.code for each in ALL}) == len(ALL)
    assert len({each.name for each in ALL}) == len(ALL)


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.code)
def test_documented(each):
    first, _, rest = each.documentation.partition("\n")
    assert first.startswith(f"{each.name}: "), "the first line is the name and one sentence"
    assert each.summary == first.removeprefix(f"{each.name}: ")
    assert each.summary.endswith(".")
    assert rest.strip()


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.code)
def test_a_reason_says_what_to_do(reason):
    _, _, way_out = reason.documentation.partition("What to do: ")
    assert way_out


def test_every_code_in_the_sources_is_known():
    known = {each.code for each in ALL}
    found = {
        node.value
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and re.fullmatch(r"MIG\d{3}", str(node.value))
    }
    assert found
    assert found <= known, "a finding with this code could not be explained with --explain"


def test_every_reason_is_given_somewhere():
    sources = [path for path in PACKAGE.rglob("*.py") if path.name not in ("reasons.py", "codes.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert [reason.code for reason in REASONS if f'"{reason.code}"' not in text] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_has_its_tests(rule):
    module = rule.module.rpartition(".")[2]
    names = re.findall(r"^def (test_\w+)", (HERE / f"test_{module}.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert any("unchanged" in name or "refused" in name or "not_" in name for name in names)
    assert len(names) > 1


def test_codes_of_the_pipeline_are_reasons():
    assert {NOT_EDITABLE, OUR_BUG} <= {reason.code for reason in REASONS}
