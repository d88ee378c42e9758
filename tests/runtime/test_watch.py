"""Processes that do not come to the same calls: found, and named with the line of each."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from ranks import run_ranks
from torch import nn
from torch.utils.data import DataLoader

from runtime import Accelerator, broadcast_object_list
from runtime.errors import CollectiveError
from runtime.watch import reports
from runtime.watch import watch as watching
from runtime.watch.places import Doing, place_of
from runtime.watch.reports import Report, Silence, in_vain, is_deadlock, told
from runtime.watch.wire import ask, listen, serve
from runtime.world import World


def hurry():
    """Seconds become tenths."""
    watching.ASK_AFTER_S = watching.ASK_EVERY_S = 0.2
    watching.LOOK_EVERY_S = 0.3
    reports.PATIENCE_S = 1.0
    watching.WARN_AFTER_S = 0.5


def message(call):
    try:
        call()
    except CollectiveError as error:
        return str(error)
    return "no error"


def same_call_differently():
    a = Accelerator(cpu=True)
    r = a.process_index
    told = [
        message(lambda: a.gather(torch.ones(2)) if r else a.wait_for_everyone()),
        message(lambda: a.reduce(torch.ones(2 + r))),
        message(lambda: a.reduce(torch.ones(2000 + r))),
        message(lambda: a.reduce(torch.ones(2), "mean" if r else "sum")),
        message(lambda: a.pad_across_processes(torch.ones((1,) * (r + 1)))),
        message(lambda: broadcast_object_list([1], from_process=r)),
        message(lambda: a.check_trigger() if r else a.gather_for_metrics(["text"])),
    ]
    assert a.gather(torch.tensor(r)).tolist() == [0, 1]  # all have heard of it: they can go on
    return told


def test_calls_that_differ_are_named_on_all():
    first, second = run_ranks(same_call_differently, 2)
    assert first == second
    calls, shapes, large, sums, padded, sources, kinds = first
    assert "are in different calls:\n  rank 0: wait_for_everyone    at " in calls
    assert "\n  rank 1: gather    at " in calls
    assert calls.count("test_watch.py:") == 2
    assert "`if is_main_process`" in calls
    assert "different shapes to reduce:\n  rank 0: (2,)    at " in shapes
    assert "\n  rank 1: (2001,)    at " in large
    assert "call reduce with different arguments" in sums
    assert "different numbers of dimensions: rank 0: (1,), rank 1: (1, 1)" in padded
    assert "call broadcast_object_list with different arguments:\n  rank 0: 0" in sources
    assert "rank 0: gather_for_metrics" in kinds
    assert "rank 1: check_trigger" in kinds


def guarded():
    """A collective of one process only, while the other goes on to its next step."""
    hurry()
    a = Accelerator(cpu=True)
    model = a.prepare(nn.Linear(2, 2))
    a.backward(model(torch.ones(1, 2)).sum())
    if a.is_main_process:
        return message(lambda: a.gather(torch.ones(1)))
    try:
        a.backward(model(torch.ones(1, 2)).sum())
    except RuntimeError:
        return "cut"
    return "no error"


def test_a_collective_of_the_main_process_only_is_named():
    started = time.monotonic()
    first, second = run_ranks(guarded, 2, is_fresh=True)  # with torch._dynamo the other waits in another place
    assert time.monotonic() - started < 60  # not the half an hour that gloo waits
    assert first.startswith("the processes wait for each other in different places:\n  rank 0: waits in gather for ")
    assert "rank 1: in " in first
    assert first.count("test_watch.py:") == 2
    assert second == "cut"


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x, both):
        return self.a(x) + self.b(x) if both else self.a(x)


def branching(steps_alike):
    """One process runs a layer that the other one does not: in the first step, or after some that were alike."""
    hurry()
    a = Accelerator(cpu=True)
    model = a.prepare(Branching())
    x = torch.ones(1, 2)
    for _ in range(steps_alike):
        a.backward(model(x, both=True).sum())
    try:
        for _ in range(2):
            a.backward(model(x, both=a.is_main_process).sum())
    except CollectiveError as error:
        return str(error)
    except RuntimeError:
        return "cut"
    return "no error"


@pytest.mark.parametrize("steps_alike", [0, 2])
def test_a_backward_through_layers_that_only_one_process_runs_is_named(steps_alike):
    """A message of the one was taken for gradients of the other: a crash in gloo, or an endless wait."""
    first, second = run_ranks(branching, 2, steps_alike, is_fresh=True, timeout_s=60)
    assert first == "cut"
    assert "rank 0: in backward for " in second
    assert "rank 1: waits in the averaging of gradients for " in second
    assert second.count(", in branching") == 2
    assert "DistributedDataParallelKwargs(find_unused_parameters=True)" in second


def skipping(left_out):
    """One process leaves a backward out, and comes to the next pass over the data first."""
    hurry()
    a = Accelerator(cpu=True)
    model = a.prepare(nn.Linear(2, 2))
    loader = a.prepare(DataLoader(torch.ones(24, 2), batch_size=2, shuffle=True))
    try:
        for _ in range(2):
            for step, x in enumerate(loader):
                if a.is_main_process or step != left_out:
                    a.backward(model(x).sum())
    except CollectiveError as error:
        return str(error)
    except RuntimeError:
        return "cut"
    return "no error"


def test_a_backward_that_only_one_process_runs_is_named():
    first, second = run_ranks(skipping, 2, 3, is_fresh=True, timeout_s=60)
    assert first == "cut"
    assert "rank 0: in backward for " in second
    assert "rank 1: waits in the start of a pass over a loader for " in second
    assert "in the same steps and through the same layers" in second


def slow_beside_a_backward():
    hurry()
    a = Accelerator(cpu=True)
    model = a.prepare(Branching())
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        for step in range(3):
            if a.process_index and step == 2:
                time.sleep(4.0)  # reads data, say
            a.backward(model(torch.ones(1, 2), both=True).sum())
    return model.module.a.weight.grad.sum().item(), said.getvalue()


def test_a_process_that_is_slow_is_not_accused_by_one_in_backward():
    (first, said), (second, nothing) = run_ranks(slow_beside_a_backward, 2, is_fresh=True)
    assert first == second
    assert "[runtime] waiting for " in said
    assert "rank 0: in backward for " in said
    assert "rank 1: runs other code    at " in said
    assert "in vain" not in said
    assert "different places" not in said
    assert nothing == ""


def slow(folder):
    hurry()
    a = Accelerator(cpu=True)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        if a.process_index:
            time.sleep(2.0)
        got = a.gather(torch.tensor(a.process_index)).tolist()
    return got, said.getvalue()


def test_a_process_that_does_something_else_is_waited_for(tmp_path):
    (first, said), (second, nothing) = run_ranks(slow, 2, str(tmp_path))
    assert first == second == [0, 1]
    assert "[runtime] waiting for " in said
    assert "rank 1: runs other code    at " in said
    assert "in slow" in said
    assert nothing == ""


def broken():
    raise ValueError("the third batch is empty")


def interrupted():
    raise KeyboardInterrupt


def end_with_error(body):
    """What a script that runs `body` writes to stderr, and whether it raised."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        try:
            body()
        except BaseException:  # noqa: BLE001
            sys.excepthook(*sys.exc_info())
    return said.getvalue()


def one_raises(in_backward, stays, ends=broken):
    hurry()
    a = Accelerator(cpu=True)
    model = a.prepare(nn.Linear(2, 2))
    if a.process_index == 1:
        said = end_with_error(ends)
        time.sleep(3.0 if stays else 0.0)  # threads of its own keep it alive
        return said
    from runtime import world

    world.end_at_once = lambda: None  # this process goes on to tell
    from runtime.watch import hook

    hook.end_at_once = lambda: None
    started = time.monotonic()
    said = end_with_error(
        (lambda: a.backward(model(torch.ones(1, 2)).sum())) if in_backward else lambda: a.gather(torch.ones(1))
    )
    assert not stays or time.monotonic() - started < 2.5
    return said


@pytest.mark.parametrize(("in_backward", "stays"), [(False, False), (False, True), (True, False)])
def test_one_traceback_when_one_process_fails(in_backward, stays):
    follower, failing = run_ranks(one_raises, 2, in_backward, stays)
    assert failing.count("Traceback") == 1
    assert "ValueError: the third batch is empty" in failing
    assert "Traceback" not in follower
    assert "rank 1" in follower
    assert "ended with ValueError: the third batch is empty" in follower
    assert in_backward or ("waited in gather, at " in follower and "in broken" in follower)


def test_who_waits_for_a_process_that_was_interrupted_alone_hears_of_it():
    follower, _ = run_ranks(one_raises, 2, False, False, interrupted)
    assert "for rank 1, which ended with KeyboardInterrupt, at " in follower
    assert "in interrupted" in follower


def test_hooks_that_show_what_python_does_give_way(monkeypatch, capsys):
    from runtime.watch import hook

    def of_the_backport(*_):
        raise AssertionError("the follower shows a traceback")

    of_the_backport.__module__ = "exceptiongroup._formatting"
    monkeypatch.setattr(sys, "excepthook", of_the_backport)
    monkeypatch.setattr(hook, "end_at_once", lambda: None)
    monkeypatch.setattr(hook, "LET_SPEAK_S", 0.0)
    follower = hook.Hook(SimpleNamespace(cause_of=lambda _: "rank 1 has ended"), rank=0)
    follower(RuntimeError, RuntimeError("connection closed"), None)
    assert capsys.readouterr().err == "[runtime] rank 1 has ended\n"


def one_leaves():
    hurry()
    a = Accelerator(cpu=True)
    if a.process_index == 1:
        return "gone"
    return message(lambda: a.gather(torch.ones(1)))


def test_a_process_that_has_ended_is_named():
    first, _ = run_ranks(one_leaves, 2)
    assert "rank 0 waited in gather, at " in first
    assert "for rank 1, which will not come" in first
    assert "rank 1: is no longer there: its script has ended, or it was killed" in first


LEAVES = """
import os, sys
import torch
from runtime import Accelerator

accelerator = Accelerator(cpu=True)
model = accelerator.prepare(torch.nn.Linear(2, 2))
for step in range(9):
    if step == 3 and not accelerator.is_main_process:
        {end}
    accelerator.backward(model(torch.ones(1, 2)).sum())
"""


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("sys.exit(0)", "rank 0: ended, since rank 1 is no longer there"),
        ("os._exit(0)", "rank 0: ended, since rank 1 is no longer there"),
        ("os.abort()", "process 1 of 2 was killed by SIGABRT"),
        ("raise ValueError('empty batch')", "ValueError: empty batch"),
        ("raise KeyboardInterrupt", "process 1 of 2 was killed by SIGINT: it was interrupted alone"),
    ],
)
def test_the_launcher_shows_why_one_that_waits_in_backward_has_ended(tmp_path, end, said):
    (tmp_path / "script.py").write_text(LEAVES.format(end=end))
    command = [sys.executable, "-m", "runtime", "launch", "--cpu", "-n", "2", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0, done.stderr
    assert said in done.stderr
    if end.endswith("exit(0)"):
        assert "it was at " in done.stderr
        assert "script.py:11, in <module>" in done.stderr
    else:
        assert "gloo" not in done.stderr.partition("runtime launch:")[0]


NEVER_BEGINS = """
import sys, time
import torch
from runtime import Accelerator, messages
from runtime.watch import watch

watch.LOOK_EVERY_S = 0.5
messages._GATHER = lambda *arguments, **options: time.sleep(150)  # as NCCL does, which connects to the others there
accelerator = Accelerator(cpu=True)
if accelerator.is_main_process or sys.argv[1] == "all":
    {call}
"""


@pytest.mark.parametrize(
    ("who", "call", "said"),
    [
        ("main", "accelerator.gather(torch.ones(1))", "rank 1, which will not come"),
        (
            "all",
            "(accelerator.gather if accelerator.is_main_process else accelerator.reduce)(torch.ones(1))",
            "different places",
        ),
    ],
)
def test_a_collective_that_does_not_come_back_from_beginning_is_named(tmp_path, who, call, said):
    (tmp_path / "script.py").write_text(NEVER_BEGINS.format(call=call))
    command = [sys.executable, "-m", "runtime", "launch", "--cpu", "-n", "2", "script.py", who]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0, done.stderr
    assert said in done.stderr
    assert done.stderr.count("CollectiveError: ") == 1
    assert "script.py:" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_process_is_not_watched():
    threads = threading.active_count()
    Accelerator(cpu=True, debug=True)
    assert threading.active_count() == threads


def unwatched():
    a = Accelerator(cpu=True, debug=False)
    names = [thread.name for thread in threading.enumerate()]
    hook = sys.excepthook.__module__
    return names, hook, a.gather(torch.tensor(a.process_index)).tolist()


def test_debug_mode_can_be_switched_off():
    for names, hook, got in run_ranks(unwatched, 2):
        assert "runtime watch" not in names
        assert hook != "runtime.watch.hook"
        assert got == [0, 1]


def test_a_report_tells_idle_from_busy(monkeypatch):
    clock = {"now": 100.0, "used": 5.0}
    fake = SimpleNamespace(monotonic=lambda: clock["now"], process_time=lambda: clock["used"])
    monkeypatch.setattr(watching, "time", fake)
    stop = threading.Event()
    blocked = threading.Thread(target=stop.wait)
    blocked.start()
    alone = object.__new__(watching.Watch)
    alone.__dict__.update(
        _world=World(rank=0, size=2),
        _thread_id=blocked.ident,
        _failures={},
        _is_closed=False,
        _call="",
        _sample=(None, -1, 0.0),
        _sample_at=100.0,
        _still_since=100.0,
    )
    still = []
    for passed, used in ((0.0, 0.0), (1.0, 0.0), (0.001, 0.001), (2.0, 0.01), (1.0, 0.9), (1.0, 0.0)):
        clock["now"] += passed
        clock["used"] += used
        still.append(round(alone.report().still_s, 1))
    stop.set()
    blocked.join()
    assert still == [0.0, 1.0, 1.0, 3.0, 0.0, 1.0]


CALL = Report(0, Doing.CALL, "a.py:1, in main", 20.0, "gather")


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (Report(1, Doing.BACKWARD, "a.py:2, in main", 20.0), True),
        (Report(1, Doing.EXCHANGE, "a.py:2, in main", 20.0, "barrier"), True),
        (Report(1, Doing.CALL, "a.py:2, in main", 20.0, "reduce"), True),
        (Report(1, Doing.CALL, "a.py:1, in main", 20.0, "gather"), False),  # a slow network
        (Report(1, Doing.BACKWARD, "a.py:2, in main", 2.0), False),  # it moves
        (Report(1, Doing.CODE, "a.py:2, in main", 20.0), False),  # it may come
        (Silence.SILENT, False),  # it may be stopped
    ],
)
def test_only_what_is_certain_is_a_deadlock(other, expected):
    assert is_deadlock({0: CALL, 1: other}) is expected
    assert len(told({0: CALL, 1: other}).splitlines()) == 2


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (Report(1, Doing.BACKWARD, "a.py:2, in main", 20.0), True),
        (
            Report(1, Doing.EXCHANGE, "a.py:2, in main", 20.0, "forward"),
            True,
        ),  # tells what a backward has shown
        (Report(1, Doing.EXCHANGE, "a.py:2, in main", 20.0, "barrier"), False),
        (Report(1, Doing.CALL, "a.py:2, in main", 20.0, "reduce"), False),
    ],
)
def test_what_to_do_about_a_backward_is_said_where_there_is_one(other, expected):
    assert ("find_unused_parameters=True" in in_vain({0: CALL, 1: other})) is expected


def test_a_report_survives_its_way():
    assert Report.unpacked(CALL.packed()) == CALL


@pytest.mark.parametrize("line", [b"[]\n", b"1\n", b'"word"\n', b'{"word": "another"}\n', b"GET / HTTP/1.1\r\n"])
def test_a_stranger_gets_no_answer_and_does_no_harm(line):
    here, there = socket.socketpair()
    with there:
        there.sendall(line)
        serve(here, "word", lambda message: CALL)
        assert there.recv(1) == b""


def test_a_loopback_address_of_another_machine_says_nothing_of_its_process():
    """Where MASTER_ADDR does not tell the way to the other machines, each process listens on its own loopback."""
    server, own = listen({})
    server.close()
    assert own.host == "127.0.0.1"
    assert ask(own) is Silence.GONE
    assert ask(replace(own, machine="elsewhere")) is Silence.SILENT


COLLECTED_WHILE_ONE_LOOKS = """
import gc, threading, time
from runtime.watch.places import frame_of

class Waiting:
    def __del__(self):
        time.sleep(1)

def leave_behind():
    waiting = Waiting()
    waiting.itself = waiting

gc.collect()
gc.disable()
for number in range(5):
    threading.Thread(target=time.sleep, args=(0.3 + number / 20,)).start()
leave_behind()
gc.set_threshold(1)
spare = [{} for _ in range(60)]  # dictionaries that are kept for new ones, so that frames are made first
del spare
gc.enable()
assert frame_of(threading.main_thread().ident) is not None
assert gc.isenabled()
"""


def test_looking_where_a_thread_is_never_waits_for_one_that_ends():
    """In Python 3.11 it did, for ever, where garbage was collected meanwhile that lets other threads run."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, "-c", COLLECTED_WHILE_ONE_LOOKS], env=environ, check=True, timeout=60)


def test_the_place_is_the_script_and_not_the_library():
    places = []
    value = torch.ones(1, requires_grad=True)
    value.register_hook(lambda gradient: places.append(place_of(sys._getframe())))
    value.sum().backward()
    assert os.path.basename(__file__) in places[0].text
    assert places[0].doing is Doing.CODE
