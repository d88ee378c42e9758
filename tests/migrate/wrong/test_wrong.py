"""Every mistake of the tables is told: by the verdict of `--verify` that the table names, or by a test of the suite."""

import pytest
from copies import ROOT, Copy
from runs import case_named, is_broken, results
from table import conversions, rules

from migrate.verify.model import Contract

CONVERSIONS, RULES = conversions(), rules()
CODES = {contract.code for contract in Contract}
LEAST = 40  # mistakes


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("copy"))


def each(entries):
    return [pytest.param(entry, id=entry.name, marks=() if entry.quick else pytest.mark.long) for entry in entries]


@pytest.mark.parametrize("entry", each(CONVERSIONS))
def test_a_wrong_conversion_is_told(runs, entry):
    kept = runs.right(entry.setting)
    told = runs.wrong(entry)

    for verdict in entry.fails:
        assert not is_broken(kept, verdict), f"without the mistake: {kept[verdict].message}"
        assert is_broken(told, verdict), [f"{c}/{n} {v.outcome.value}: {v.message}" for (c, n), v in told.items()]


@pytest.mark.long
@pytest.mark.parametrize("entry", RULES, ids=lambda entry: entry.name)
def test_a_broken_rule_is_told(copy, entry):
    answer = copy.broken(entry)

    assert answer.status == 1, answer.output
    assert f"FAILED {entry.test}" in answer.output


def test_the_tables_say_what_can_be_checked():
    every = (*CONVERSIONS, *RULES)
    assert len(CONVERSIONS) >= LEAST
    assert len({entry.name for entry in every}) == len(every)
    assert {code for entry in CONVERSIONS for code, _ in entry.fails} == CODES
    assert {entry.fails for entry in RULES} >= {"E7", "E8"}
    for entry in every:
        assert entry.does.endswith(".")
        text = files_of(entry)[entry.file]
        assert entry.in_place_of(text) != text


def files_of(entry):
    if entry in RULES:
        return {entry.file: (ROOT / entry.file).read_text(encoding="utf-8")}
    return results(case_named(entry.setting.fixture))
