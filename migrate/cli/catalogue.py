"""The rules for people: `--rules` and `--explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.codes import codes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.report.formats import Documented


def every() -> Sequence[Documented]:
    """Every rule, in order, and every reason for which something is left."""
    from migrate.rules import REASONS, RULES  # not needed for --help and --version

    return sorted((*RULES, *REASONS), key=lambda each: each.code)


def table(rules: Sequence[Documented]) -> str:
    """One line for each rule."""
    width = max((len(rule.name) for rule in rules), default=0)
    return "".join(
        f"{rule.code}  {rule.name:{width}}  {rule.summary}\n" for rule in sorted(rules, key=lambda rule: rule.code)
    )


def explained(word: str, rules: Sequence[Documented]) -> str:
    """The documentation of the rules that a code, the beginning of one, or a name means.

    Raises:
        UsageError: no rule is called so.
    """
    wanted = codes([word])
    matching = [rule for rule in rules if rule.code.startswith(wanted)]
    return "\n".join(f"{rule.code} {rule.documentation}\n" for rule in matching)
