"""The children of a run: several processes through the launcher, and none of them when it is over."""

import os
import signal
import sys
import threading
import time

import pytest

from migrate.verify.launching import Start, environment, run
from migrate.verify.order import Order
from migrate.verify.records import read

SCRIPT = """\
import os, time
print("here", flush=True)
open(f"pid{os.environ['RANK']}", "w").write(str(os.getpid()))
while True: time.sleep(0.05)
"""


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_interruption_leaves_no_child(tmp_path):
    copy, records = tmp_path / "copy", tmp_path / "records"
    copy.mkdir()
    records.mkdir()
    (copy / "train.py").write_text(SCRIPT)
    order = Order(
        script=str(copy / "train.py"), arguments=(), folder=str(copy), root=str(copy), records=str(records),
        writable=(str(records), str(tmp_path / "tmp")), seed=1, steps=1, per_pass=0, limit_s=100.0, package="runtime",
    )  # fmt: skip
    order.write(records / "order.json")
    assert Order.read(str(records / "order.json")) == order
    main = threading.main_thread().ident

    def interrupt():
        end = time.monotonic() + 90
        while time.monotonic() < end and not all((copy / f"pid{rank}").exists() for rank in (0, 1)):
            time.sleep(0.05)
        time.sleep(0.2)
        import _thread

        _thread.interrupt_main()

    assert main is not None
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in a shell's background ignore it
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            run(Start(processes=2, cpu=True), records / "order.json", tmp_path, 100.0)
    finally:
        signal.signal(signal.SIGINT, before)

    pids = [int((copy / f"pid{rank}").read_text()) for rank in (0, 1)]
    end = time.monotonic() + 10
    while any(map(alive, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(alive, pids))
    record = read(records / "rank1.jsonl", str(copy))
    assert [line.text for line in record.lines] == ["here"]
    assert record.end.how == "killed"


def test_the_environment_is_of_no_other_launch(monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setenv("PYTHONPATH", "here")
    monkeypatch.setenv("KEPT", "yes")
    found = environment(Start(cpu=True), tmp_path)

    assert "RANK" not in found
    assert "TORCHELASTIC_RUN_ID" not in found
    assert found["KEPT"] == "yes"
    assert found["PYTHONPATH"].split(os.pathsep)[0] == os.path.abspath("here")
    assert found["CUDA_VISIBLE_DEVICES"] == ""
    assert environment(Start(launched=True), tmp_path)["WORLD_SIZE"] == "1"


def test_what_the_path_names_in_the_users_folder_is_looked_for_in_the_copy(monkeypatch, tmp_path):
    folder, copy = tmp_path / "project", tmp_path / "copy"
    (folder / "src").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", ".", str(tmp_path / "elsewhere")]))
    found = environment(Start(folder=str(folder.resolve()), copy=str(copy)), tmp_path)["PYTHONPATH"].split(os.pathsep)

    assert found[:3] == [str(copy / "src"), str(copy), str(tmp_path / "elsewhere")]
