"""How a worker process ends: what its interpreter would write at its end is written."""

import gzip
import os
import subprocess
import sys
import textwrap

import pytest

from runtime.launch import child

LEFT_OPEN = """
    import csv, gzip, io, sys

    log = csv.writer(open("log.csv", "w", newline=""))
    log.writerow([1, 2])
    packed = gzip.open("packed.gz", "wt")
    packed.write("packed")
    text = io.TextIOWrapper(open("text.txt", "wb"))
    text.write("text")
    plain = open("plain.bin", "wb")
    plain.write(b"plain")
    closed = open("closed.txt", "w")
    closed.write("closed")
    closed.close()

    class Proxy:
        @property
        def __class__(self):
            raise RuntimeError("nobody asks for this")

    proxy = Proxy()
    held = [log, packed, text, plain]
    print("said")
    {end}
"""


@pytest.mark.parametrize("end", ["pass", "sys.exit(3)"])
def test_files_that_a_script_leaves_open_are_written(tmp_path, end):
    (tmp_path / "train.py").write_text(textwrap.dedent(LEFT_OPEN).replace("{end}", end))
    command = [sys.executable, child.__file__, str(os.getpid()), "", "script", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3 if "exit" in end else 0, "said\n", "")
    assert (tmp_path / "log.csv").read_text().split() == ["1,2"]
    assert gzip.decompress((tmp_path / "packed.gz").read_bytes()) == b"packed"
    assert (tmp_path / "text.txt").read_text() == "text"
    assert (tmp_path / "plain.bin").read_bytes() == b"plain"
    assert (tmp_path / "closed.txt").read_text() == "closed"
