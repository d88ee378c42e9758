"""The table of what is not here says what is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import runtime
from runtime import Accelerator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "runtime" / "compatibility.md"
NAME = re.compile(r"`(?:(accelerator|gradient_state)\.)?(\w+)`")


def missing():
    """The names of the table's first column, with the object that a script would ask."""
    table = PAGE.read_text(encoding="utf-8").partition("## Names that are not here")[2]
    for row in table.splitlines():
        owner = ""
        for of, name in NAME.findall(row.split("|")[1]) if row.startswith("| `") else []:
            owner = of or owner
            yield owner, name


@pytest.mark.parametrize(("owner", "name"), list(missing()))
def test_names_that_are_told_to_be_missing_are(owner, name):
    accelerator = Accelerator(cpu=True)
    asked = {"": [runtime], "accelerator": [accelerator, runtime], "gradient_state": [accelerator.gradient_state]}
    assert not any(hasattr(one, name) for one in asked[owner])


def test_the_table_is_read():
    assert ("accelerator", "step") in set(missing())
    assert ("gradient_state", "dataloader_references") in set(missing())
    assert ("", "DataLoaderShard") in set(missing())
