"""The watch of one process: waits for its collectives, answers for it, and asks the others.

* `wait` runs a collective of the runtime in the thread of the script. If that takes more than a few seconds, it asks
  the other processes every second where they are. A process that has ended, or all waiting for each other, is an error
  here; a process that runs other code is a warning.
* A thread answers when other processes ask. Now and then it also looks whether the script hangs in a collective of
  PyTorch or in backward, where nothing can be raised: then it ends the process with the report. So it does where a
  collective of the runtime does not come back from beginning: NCCL connects to the others in the first one of its kind.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import FrameType
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore

from runtime.devices import in_host_memory
from runtime.errors import CollectiveError
from runtime.open_files import write_open_files
from runtime.watch.hook import install, uninstall
from runtime.watch.places import Doing, frame_of, place_of, place_of_error
from runtime.watch.reports import (
    SAME_CALLS,
    SAME_STEPS,
    WARN_AFTER_S,
    Answers,
    Report,
    Silence,
    failed,
    gone,
    in_vain,
    is_deadlock,
    told,
)
from runtime.watch.wire import Address, ask, listen, serve
from runtime.world import World, at_leaving, give_up

ASK_AFTER_S = 3.0  # of waiting in a collective of the runtime
ASK_EVERY_S = 1.0
LOOK_EVERY_S = 5.0  # whether the process hangs where it cannot be told
TELL_S = 2.0  # all of the others how this process ends
IDLE = 0.1  # of a core: less than this and the process only waits
SLACK_S = 0.05  # of the clock, and of this thread
_KEY = "runtime/watch"


class Watch:
    """What this process knows of itself and of the others."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._thread_id = threading.get_ident()
        self._store = PrefixStore(_KEY, dist.distributed_c10d._get_default_store())  # noqa: SLF001  no public name
        self._at_store = threading.Lock()  # a thread that Python ends inside of the store's C++ takes the process along
        self._is_closed = False
        self._server, self.address = listen(os.environ)
        self._server.settimeout(LOOK_EVERY_S)
        self._others: dict[int, Address] = {}
        self._failures: dict[int, Report] = {}
        self._call = ""
        self._call_since = 0.0
        self._is_beginning = False
        self._sample: tuple[FrameType | None, int, float] = (None, -1, 0.0)
        self._sample_at = self._still_since = time.monotonic()
        self._warn_after_s = self._say_after_s = WARN_AFTER_S
        self._store.set(str(world.rank), self.address.packed())
        self.thread = threading.Thread(target=self._serve, name="runtime watch", daemon=True)
        self.thread.start()

    # in the thread of the script

    def wait(self, start: Callable[[], Any], call: str, *, on_host: bool) -> None:
        """Run a collective; `start` begins it and gives PyTorch's handle."""
        self._call, self._call_since = call, time.monotonic()
        try:
            self._wait(start, _is_done_on_host if on_host else _is_done_on_device)
        finally:
            self._call, self._is_beginning = "", False

    def _wait(self, start: Callable[[], Any], is_done: Callable[[Any, float], bool]) -> None:
        self._warn_after_s = WARN_AFTER_S
        seconds = ASK_AFTER_S
        try:
            self._is_beginning = True
            work = start()
            self._is_beginning = False
            while not is_done(work, seconds):
                self._look()
                seconds = ASK_EVERY_S
        except CollectiveError:
            give_up(self._call)
            raise
        except RuntimeError as error:
            known = self._because(error)
            if known is None:
                raise
            raise known from None  # what gloo has to say of it is that a connection was closed

    def _look(self) -> None:
        """Ask the others. Raises where it is certain that nobody will come."""
        answers = self.answers()
        failure = failed(answers)
        if failure is not None:
            raise self._ended(failure)
        lost = gone(answers)
        if lost:
            raise self._lost(lost, answers)
        if is_deadlock(answers):
            raise CollectiveError(in_vain(answers), told_by=_first_waiting(answers))
        self._warn_after_s = _warn(answers, self.report(), self._warn_after_s)

    def _because(self, error: RuntimeError) -> CollectiveError | None:
        """Why a collective failed, where it is that another process has ended."""
        if not any(words in str(error) for words in _CUT):
            return None
        for _ in range(5):  # what the other has to say may still be on its way
            answers = self.answers()
            failure = failed(answers)
            if failure is not None:
                return self._ended(failure)
            lost = gone(answers)
            if lost:
                return self._lost(lost, answers)
            time.sleep(0.2)
        return None

    def _ended(self, failure: Report) -> CollectiveError:
        return CollectiveError(
            f"{self._waiting()} for rank {failure.rank}, which ended with {failure.failure}, at {failure.place}",
            follows=True,
        )

    def _lost(self, lost: list[int], answers: Answers) -> CollectiveError:
        text = f"{self._waiting()} for {_ranks(lost)}, which will not come:\n{told(answers)}\n{SAME_CALLS}"
        return CollectiveError(text, told_by=_first_waiting(answers))

    def _waiting(self) -> str:
        return f"rank {self._world.rank} waited in {self._call}, at {self._place().text},"

    # for the others

    def answers(self) -> Answers:
        """What every process says of itself."""
        mine = self.report()
        result: Answers = {mine.rank: mine}
        for rank in range(self._world.size):
            if rank != mine.rank:
                result[rank] = self._failures.get(rank) or self._ask(rank)
        return result

    def _ask(self, rank: int) -> Report | Silence:
        address = self._others.get(rank)
        return Silence.SILENT if address is None else ask(address)

    def tell(self, failure: Report) -> None:
        """Let all others know how this process ends; `report` says so from now on."""
        self._failures[self._world.rank] = failure
        give_up = time.monotonic() + TELL_S
        while self._world.size > 1 and not (self._others or self._is_closed) and time.monotonic() < give_up:
            time.sleep(0.01)  # an error right after the start comes before it is known where the others are
        for address in self._others.values():
            if time.monotonic() < give_up:
                ask(address, rank=failure.rank, failure=failure.failure, place=failure.place)

    def cause_of(self, error: BaseException) -> str:
        """In one line, what ended this process from outside; empty if its own error did."""
        heard = next((report for rank, report in self._failures.items() if rank != self._world.rank), None)
        if heard is not None:
            return f"rank {self._world.rank}: ended, since rank {heard.rank} ended with {heard.failure}"
        if isinstance(error, RuntimeError) and any(words in str(error) for words in _CUT):
            lost = gone(self.answers())
            if lost:
                place = place_of_error(error.__traceback__)
                cause = f"ended, since {_ranks(lost)} {Silence.GONE.value}"
                return f"rank {self._world.rank}: {cause}; it was at {place}. {SAME_STEPS}"
        return ""

    def report(self) -> Report:
        """What this process is doing, sampled now."""
        rank = self._world.rank
        if rank in self._failures:
            return self._failures[rank]
        place = self._place()
        call, now = self._call, time.monotonic()
        if call:
            return Report(rank, Doing.CALL, place.text, now - self._call_since, call)
        frame = self._frame()
        sample = (frame, -1 if frame is None else frame.f_lasti, time.process_time())
        used_s, passed_s = sample[2] - self._sample[2], now - self._sample_at
        is_other = frame is not self._sample[0] or sample[1] != self._sample[1]
        if is_other or used_s > IDLE * passed_s + SLACK_S:
            self._still_since = now
        if (is_other or passed_s > ASK_EVERY_S / 2) and not self._is_closed:  # of a shorter time nothing can be said
            self._sample, self._sample_at = sample, now
        return Report(rank, place.doing, place.text, now - self._still_since, place.call)

    def _frame(self) -> FrameType | None:
        return frame_of(self._thread_id)

    def _place(self) -> Any:
        return place_of(self._frame())

    # the thread

    def _serve(self) -> None:
        with contextlib.suppress(Exception):
            self._learn_addresses()
        while True:
            try:
                connection, _ = self._server.accept()
            except (TimeoutError, socket.timeout):  # noqa: UP041  not the same before 3.10
                connection = None
            except OSError:
                return
            if connection is not None:
                serve(connection, self.address.word, self._answer)
            elif dist.is_initialized():
                self._look_after_script()
            else:
                self._server.close()
                return

    def _answer(self, message: dict[str, Any]) -> Report:
        if "failure" in message:
            rank = int(message["rank"])
            self._failures[rank] = Report(rank, Doing.CODE, message["place"], 0.0, failure=message["failure"])
            # Before this is answered, and the other ends: then a launcher stops this process at once.
            write_open_files(TELL_S / 2, is_last=False)
        if "deadlock" in message:
            threading.Timer(0.1, _end_with, (message["deadlock"],)).start()  # once this is answered
        return self.report()

    def _learn_addresses(self) -> None:
        ranks = [rank for rank in range(self._world.size) if rank != self._world.rank]
        keys = [str(rank) for rank in ranks]
        give_up = time.monotonic() + 60.0
        while time.monotonic() < give_up:
            with self._at_store:
                if self._is_closed:
                    return
                if self._store.check(keys):
                    found = self._store.multi_get(keys)
                    self._others = {rank: Address.unpacked(text) for rank, text in zip(ranks, found, strict=True)}
                    return
            time.sleep(0.05)

    def _look_after_script(self) -> None:
        """End the process if it hangs where nobody can raise, and no other process will."""
        mine = self.report()
        if self._is_beginning and mine.still_s >= LOOK_EVERY_S:
            self._look_for_script()
        if mine.doing not in (Doing.EXCHANGE, Doing.BACKWARD):
            self._sample = (None, -1, 0.0)  # keeps no frame alive
            return
        if mine.still_s < LOOK_EVERY_S:
            self._say_after_s = WARN_AFTER_S
            return
        answers = self.answers()
        if any(isinstance(a, Report) and a.doing is Doing.CALL for a in answers.values()):
            return  # that one looks, and can raise
        if not is_deadlock(answers):
            self._say_after_s = _warn(answers, mine, self._say_after_s)
            return
        text = f"[runtime] {in_vain(answers)}\n"
        speaker = self._others.get(min(answers))  # one speaks for all
        if speaker is None or isinstance(ask(speaker, deadlock=text), Silence):
            _end_with(text)
        time.sleep(ASK_EVERY_S)
        _end_with("")

    def _look_for_script(self) -> None:
        """Ask the others in the place of `_wait`, and end the process with what that would have raised."""
        try:
            self._look()
        except CollectiveError as error:
            sys.excepthook(CollectiveError, error.with_traceback(None), None)
            _end_with("")

    def close(self) -> None:
        """Answer no more: whoever asks from now on hears that this process has ended."""
        with self._at_store:
            self._is_closed = True
        self._server.close()
        self._sample = (None, -1, 0.0)  # a frame kept here would keep the script's files from being written at the end


def _warn(answers: Answers, mine: Report, after_s: float) -> float:
    """Say where all are if this process has waited for so long, and is the first that waits; when to say it next."""
    if mine.still_s <= after_s:
        return after_s
    if _first_waiting(answers) == mine.rank:
        sys.stderr.write(f"[runtime] waiting for {mine.still_s:.0f} s:\n{told(answers)}\n")
    return 2 * after_s


def _first_waiting(answers: Answers) -> int:
    """The first process in a call of the runtime; where none is in one, the first that waits at all."""
    waiting = [a for _, a in sorted(answers.items()) if isinstance(a, Report) and a.doing is not Doing.CODE]
    return next((a.rank for a in waiting if a.doing is Doing.CALL), waiting[0].rank)


def _is_done_on_host(work: Any, seconds: float) -> bool:
    """Whether a collective is over within `seconds`; raises what PyTorch raises when it has failed."""
    try:
        work.wait(timedelta(seconds=seconds))
    except RuntimeError:
        if not work.is_completed():
            return False
        work.wait()  # over: tells how
    return True


def _is_done_on_device(work: Any, seconds: float) -> bool:
    """The same where PyTorch would not wait, or give up the group."""
    give_up = time.monotonic() + seconds
    while not work.is_completed():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.0005)
    work.wait()
    return True


def _end_with(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
    write_open_files()
    os._exit(1)


def _ranks(ranks: list[int]) -> str:
    return ", ".join(f"rank {rank}" for rank in ranks)


_CUT = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")  # gloo, of a process that has ended
_running: list[Watch] = []  # at most one, of the process group that is there


def begin(world: World, asked: bool | None = None) -> None:
    """Watch this process from now on, unless it is watched already. Not asked for: where processes meet on the CPU."""
    wanted = in_host_memory(world.device) if asked is None else asked
    if world.size > 1 and wanted and not _running:
        _running.append(Watch(world))
        install(_running[0], world.rank)
        at_leaving(end)


def end() -> None:
    """No watch any more."""
    uninstall()
    while _running:
        _running.pop().close()


def is_on() -> bool:
    """Whether this process is watched."""
    return bool(_running)


def wait(start: Callable[[], Any], call: str, *, on_host: bool) -> None:
    """Run a collective that `start` begins (`async_op=True`), under the name of what the script called."""
    if _running:
        _running[0].wait(start, call, on_host=on_host)
    else:
        start().wait()
