"""Answers to yes-or-no questions that lead back to themselves: `i += 1` is the same if all the rest is.

While a question is being asked it is taken for yes. What rested on that is forgotten if it turns out to be no; a no is
certain at once, since it was found with more taken for yes than is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Question = TypeVar("Question")


class Answers(Generic[Question]):
    """What has been found, each question being answered once, or again where its answer had to be forgotten."""

    def __init__(self) -> None:
        self._known: dict[Question, bool] = {}
        self._open: dict[Question, int] = {}  # those being asked, with how many were asked before
        self._rests: dict[Question, int] = {}  # a yes that holds only if an open question becomes one: the first such
        self._first = 0  # the first open question that was taken for yes since the innermost began

    def to(self, question: Question, find: Callable[[], bool]) -> bool:
        """The answer to a question, which `find` finds."""
        if question in self._open:
            self._first = min(self._first, self._open[question])
            return True
        if question in self._known:
            self._first = min(self._first, self._rests.get(question, self._first))
            return self._known[question]
        depth, outer, resting = len(self._open), self._first, len(self._rests)
        self._open[question] = self._first = depth
        try:
            found = find()
        finally:
            first, self._first = self._first, outer
            del self._open[question]
        self._keep(question, resting, found=found, rests_on=first if first < depth else None)
        return found

    def _keep(self, question: Question, resting: int, *, found: bool, rests_on: int | None) -> None:
        self._known[question] = found
        if found and rests_on is not None:
            self._rests[question] = rests_on
            self._first = min(self._first, rests_on)
            return
        while len(self._rests) > resting:  # certain now, or resting on what is none
            each, _ = self._rests.popitem()
            if not found:
                del self._known[each]
