"""Answers to yes-or-no questions that lead back to themselves: `i += 1` is the same if all the rest is.

While a question is being asked it is taken for yes. What rested on that is forgotten if it turns out to be no; a no is
certain at once, since it was found with more taken for yes than is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

Question = TypeVar("Question")
Reason = TypeVar("Reason")


class Answers(Generic[Question, Reason]):
    """What has been found, each question being answered once, or again where its answer had to be forgotten.

    Who is asked may meet a reason; it is met again where the answer is known, and the last one can be taken.
    """

    def __init__(self) -> None:
        self._known: dict[Question, bool] = {}
        self._open: dict[Question, int] = {}  # those being asked, with how many were asked before
        self._rests: dict[Question, int] = {}  # a yes that holds only if an open question becomes one: the first such
        self._met: dict[Question, Reason] = {}
        self._last: Reason | None = None
        self._first = 0  # the first open question that was taken for yes since the innermost began

    def to(self, question: Question, find: Callable[[], bool]) -> bool:
        """The answer to a question, which `find` finds."""
        if question in self._open:
            self._first = min(self._first, self._open[question])
            return True
        if question in self._known:
            self._first = min(self._first, self._rests.get(question, self._first))
            self._last = self._met.get(question, self._last)
            return self._known[question]
        depth, outer, resting = len(self._open), self._first, len(self._rests)
        before = self.take()
        self._open[question] = self._first = depth
        try:
            found = find()
        finally:
            first, self._first = self._first, outer
            del self._open[question]
        if (met := self.take()) is not None:
            self._met[question] = met
        self._last = before if met is None else met
        self._keep(question, resting, found=found, rests_on=first if first < depth else None)
        return found

    def meet(self, reason: Reason) -> None:
        """Note a reason that the question being asked goes back to."""
        self._last = reason

    def take(self) -> Reason | None:
        """The last reason that was met since the last was taken."""
        last, self._last = self._last, None
        return last

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
                self._met.pop(each, None)
