"""Settings that are read at a glance: hooks are told what those are told who read them properly."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from migrate.cli.conversion import convert
from migrate.cli.guard import guarded
from migrate.cli.hook import is_answered
from migrate.cli.plain import asked
from migrate.codes import NAMES, codes
from migrate.errors import UsageError
from migrate.options import Hardware, Target
from migrate.rules import REASONS, RULES
from migrate.source.glance import is_plain
from migrate.source.section import CHOICES, KEYS

CODES = ["['MIG117']", "['prepare', 'mig1']", "['MIG1,MIG9, output']", "[]", "['']"]
NO_CODES = ["['MIG5']", "['preparee']", "'MIG117'", "[117]"]
GLOBS = ["['legacy/*', '*_old.py']", "['**']", "['a.py']", "[]", "['[']"]
NO_GLOBS = ["['[z-a]']", "'legacy'", "[1]"]
FLAGS, NO_FLAGS = ["true", "false"], ["1", "'yes'"]
#: By key: values that are in order, and values that are not.
VALUES = {
    "target": (["'runtime'", "'accelerate'"], ["'acelerate'", "''", "1"]),
    "for": (["'tpu'"], ["'TPU'", "['tpu']"]),
    "select": (CODES, NO_CODES),
    "ignore": (CODES, NO_CODES),
    "review": (FLAGS, NO_FLAGS),
    "exclude": (GLOBS, NO_GLOBS),
    "force-exclude": (FLAGS, NO_FLAGS),
    "respect-gitignore": (FLAGS, NO_FLAGS),
    "per-file-ignores": (
        ["{}", "{ 'a.py' = ['MIG001'] }", "{ 'a/*' = ['prepare'], 'b' = [] }"],
        ["{ '[z-a]' = ['MIG1'] }", "{ a = ['MIG5'] }", "{ a = 'MIG1' }", "['a']"],
    ),
    "cache-dir": (["'kept'", "''"], ["1"]),
}
#: Settings that are not answered, whatever they hold.
OTHERS = {
    "baseline": ["'missing.json'", "1"],
    "known": ["{}", "{ makes = { 'a.b' = 'model' } }", "{ makes = { 'a.b' = 'modle' } }"],
    "exclud": ["['a']"],
    "force_exclude": ["true"],
}
EVERY = {**{key: [*right, *wrong] for key, (right, wrong) in VALUES.items()}, **OTHERS}
TABLES = st.dictionaries(st.sampled_from(sorted(EVERY)), st.integers(0, 99), max_size=4)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("import os\n\nprint(os.sep)\n")


def write(*lines):
    Path("pyproject.toml").write_text("".join(f"{line}\n" for line in ("[tool.migrate]", *lines)))


def both(capfd):
    """What a hook is told at a glance, None where it is not, and what it is told otherwise: status, output, errors."""
    arguments = ["--check", "a.py"]
    answered = is_answered(arguments)
    at_a_glance = (0, *capfd.readouterr()) if answered else None
    status = guarded(lambda: convert(asked(arguments)), shows_traceback=False)
    return at_a_glance, (status, *capfd.readouterr())


def test_every_key_has_its_values_here():
    assert {*VALUES, "baseline", "known"} == KEYS.keys()


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, (right, _) in VALUES.items() for value in right])
def test_settings_in_order_are_answered(key, value, capfd):
    write(f"{key} = {value}")
    at_a_glance, otherwise = both(capfd)
    assert at_a_glance == otherwise == (0, "", "No plain training loops.\n")


@pytest.mark.parametrize(
    ("key", "value"),
    [(key, value) for key, (_, wrong) in VALUES.items() for value in wrong]
    + [(key, value) for key, values in OTHERS.items() for value in values],
)
def test_mistakes_and_what_needs_more_are_left_to_others(key, value):
    write(f"{key} = {value}")
    assert not is_plain(["a.py"])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])  # no test of time
@given(TABLES)
@example({"ignore": 0, "exclude": 2, "force-exclude": 0})  # the file is excluded
@example({"target": 2, "known": 0})
def test_several_settings_are_answered_as_otherwise_or_left_to_others(capfd, table):
    chosen = {key: EVERY[key][number % len(EVERY[key])] for key, number in table.items()}
    write(*(f"{key} = {value}" for key, value in chosen.items()))
    at_a_glance, otherwise = both(capfd)
    if at_a_glance is not None:
        assert at_a_glance == otherwise
    else:
        assert otherwise[0] == 2 or not chosen.keys().isdisjoint(OTHERS)


def test_the_nearest_settings_count_as_otherwise(capfd):
    Path("sub").mkdir()
    Path("sub/pyproject.toml").write_text("[tool.migrate]\nselect = ['MIG5']\n")
    Path("sub/b.py").touch()
    write("ignore = ['MIG117']")
    assert is_plain(["a.py"])
    assert not is_plain(["sub/b.py"])
    assert is_plain(["a.py", "sub/b.py"])


@pytest.mark.parametrize(
    "text", ["[tool.migrate", "tool = 1\n'migrate'", "\xff migrate", "migrate = " + "[" * 5000], ids=ascii
)
def test_what_cannot_be_read_is_left_to_others(text):
    Path("pyproject.toml").write_bytes(text.encode("latin-1"))
    assert not is_plain(["a.py"])


def test_the_table_of_codes_is_that_of_the_rules():
    assert {each.code: each.name for each in (*RULES, *REASONS)} == NAMES
    assert list(NAMES) == sorted(NAMES)


def test_choices_are_those_of_the_options():
    assert {"target": tuple(each.value for each in Target), "for": tuple(each.value for each in Hardware)} == CHOICES


def test_codes_by_name_by_code_and_by_their_beginning():
    assert codes(["MIG1, prepare", "", "mig105"]) == ("MIG1", "MIG104", "MIG105")
    with pytest.raises(UsageError, match="Did you mean prepare"):
        codes(["preparee"])
    with pytest.raises(UsageError, match="'mig15' is not a rule"):
        codes(["mig15"])
