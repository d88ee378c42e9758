"""Parentheses that libcst (1.9) forgets: of `return(a if b else c)` and `if(lambda: 0):` it says that words touch."""

from __future__ import annotations

from functools import cache
from typing import Any

import libcst as cst


@cache
def see_parentheses() -> None:
    """Let libcst take conditional expressions and lambdas in parentheses for what they are; done once."""
    for kind in (cst.IfExp, cst.Lambda):
        _mend(kind)


def _mend(kind: Any) -> None:
    asked = kind._safe_to_use_with_word_operator  # noqa: SLF001  there is no public name

    def is_safe(self: Any, position: Any) -> bool:
        if self.lpar and self.rpar:
            return True
        try:
            return bool(asked(self, position))
        except TypeError:  # a lambda without them asks its own class for its base's answer, which is no
            return False

    kind._safe_to_use_with_word_operator = is_safe  # noqa: SLF001
