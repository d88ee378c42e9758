"""What CI installs is pinned, and checked by its hash."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[\w,-]+\])?==([^\s;\\]+)")
NOT_HERE = {"torch"}  # machines bring builds of their own; .ci/lock says more


def pins(name):
    """Package and version of every pin in a file."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    found = (PIN.match(line) for line in lines)
    return {(re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]) for match in found if match}


def test_what_is_pinned_has_a_hash():
    """After a change of constraints.txt: .ci/lock."""
    wanted = {pin for pin in pins("constraints.txt") if pin[0] not in NOT_HERE}
    assert wanted
    assert wanted <= pins(".ci/requirements.txt")


def test_every_package_of_ci_has_hashes():
    text = (ROOT / ".ci/requirements.txt").read_text(encoding="utf-8")
    entries = re.split(r"(?m)^(?=[a-z])", text)[1:]
    assert len(entries) > 50
    for entry in entries:
        assert PIN.match(entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry
    assert not re.search(r"https?://", text)


def test_extras_that_others_ask_for_are_pinned():
    """Without the extra in the pin, pip takes the newest version for it, which has no hash here."""
    text = (ROOT / ".ci/requirements.txt").read_text(encoding="utf-8")
    assert re.search(r"(?m)^hypothesis\[lark\]==", text)  # of hypothesmith
    assert "--no-strip-extras" in (ROOT / ".ci/lock").read_text(encoding="utf-8")


def test_ci_checks_the_hashes():
    assert "LOCKED=1" in (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "--require-hashes -r .ci/requirements.txt" in (ROOT / "Makefile").read_text(encoding="utf-8")
