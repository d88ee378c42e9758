"""A verification for programs: JSON whose keys are the fields of `model.py`."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict
from typing import Any

from migrate.verify.model import Contract, Verification

SCHEMA = 1  # grows when a key changes its meaning or goes away


_START = re.compile(rb'\{\s*"schema":\s*\d+,\s*"exit_status":')


def document(verification: Verification) -> dict[str, Any]:
    """What is written, as dictionaries and lists."""
    verdicts = [
        {**asdict(each), "contract": each.contract.code, "title": each.contract.title, "outcome": each.outcome.value}
        for each in verification.verdicts
    ]
    plain = _plain({**asdict(verification), "verdicts": verdicts})
    return {"schema": SCHEMA, "exit_status": verification.exit_status, **plain}


def text(verification: Verification) -> str:
    """The document as JSON: numbers that are none there (nan, inf) are texts."""
    return json.dumps(document(verification), indent=2, allow_nan=False) + "\n"


def is_ours(content: bytes) -> bool:
    """Whether a file that begins with these bytes was written here."""
    return _START.match(content) is not None


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.code if isinstance(value, Contract) else value
