"""Variables of this process that a script asks to have for a while."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def patch_environment(**variables: Any) -> Iterator[None]:
    """A context with these variables (names in capitals, values as text); then they are what they were."""
    new = {name.upper(): str(value) for name, value in variables.items()}
    old = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        yield
    finally:
        for name, value in old.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
