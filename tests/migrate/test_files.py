"""Which files are found, how they are read, which modules an import means, and how results are saved."""

import ast
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import pytest

from migrate.errors import WriteError
from migrate.source import files, git, reading
from migrate.source import save as module
from migrate.source.disk import Disk
from migrate.source.files import load
from migrate.source.importers import importers
from migrate.source.project import Project, SourceFile
from migrate.source.save import STALE_S, Rewrite, clean, save

TORCH = b"import torch\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(*names, content=TORCH):
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)


def names(found):
    return [file.path for file in found.files]


# ---------------------------------------------------------------------------------------------------- which files


def test_folders_are_walked_in_order_without_what_is_not_the_users():
    write("b.py", "a.py", "pkg/z.py", "pkg/a.py", "notes.txt", "stub.pyi")
    for folder in (
        ".git",
        ".hg",
        ".venv",
        "venv",
        "node_modules",
        "site-packages",
        "__pycache__",
        "build",
        "dist",
        ".x",
    ):
        write(f"{folder}/no.py", f"pkg/{folder}/no.py")
    assert names(load(["."])) == ["a.py", "b.py", "pkg/a.py", "pkg/z.py"]
    assert load(["."]).errors == []


def test_named_files_are_taken_at_their_word():
    write("build/train", ".hidden/x.py", "train.txt")
    paths = ["build/train", ".hidden/x.py", "train.txt"]
    assert names(load(paths)) == paths
    assert names(load(["build"])) == []  # without a suffix it is found by name only


def test_each_file_once():
    write("a.py")
    Path("link.py").symlink_to("a.py")
    assert names(load(["a.py", "./a.py", ".", str(Path("a.py").resolve()), "link.py"])) == ["a.py"]


def test_links_in_a_folder():
    write("in/a.py", "out/b.py", "out/c.py")
    Path("in/inside.py").symlink_to("a.py")
    Path("in/outside.py").symlink_to("../out/b.py")
    Path("in/broken.py").symlink_to("nowhere.py")
    Path("in/loop.py").symlink_to("loop.py")
    Path("in/folder").symlink_to("../out")
    Path("in/folder.py").symlink_to("../out")
    found = load(["in"])
    assert names(found) == ["in/a.py"]
    assert [remark.split(":")[0] for remark in found.remarks] == ["in/broken.py", "in/loop.py", "in/outside.py"]
    assert names(load(["in/outside.py"])) == ["in/outside.py"]  # named: followed
    assert names(load(["in/folder"])) == ["in/folder/b.py", "in/folder/c.py"]  # likewise


def test_what_cannot_be_read_stops_nothing(monkeypatch):
    write("a.py", "secret.py", "sub/b.py", "z.py")
    Path("n.ipynb").write_text("{}")
    os.mkfifo("pipe.py")
    read, scan = files.content_of, os.scandir

    def refuse(path):
        if path.name in {"secret.py", "sub"}:
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "content_of", lambda real: refuse(real) or read(real))
    monkeypatch.setattr(os, "scandir", lambda path: refuse(Path(path)) or scan(path))
    found = load(["missing.py", "nul\0.py", "n.ipynb", "pipe.py", "."])
    assert names(found) == ["a.py", "z.py"]
    said = {error.path: error.what for error in found.errors}
    assert said == {
        "missing.py": "cannot be read: no such file or directory",
        "nul\0.py": said["nul\0.py"],
        "n.ipynb": "this is not the JSON of a notebook: nbformat is missing",
        "pipe.py": "this is not a regular file",
        "secret.py": "cannot be read: permission denied",
        "sub": "cannot be read: permission denied",
    }
    assert all(error.way_out for error in found.errors)


def without_privileges(work):
    """Run `work` as somebody to whom permissions apply, in a folder of their own; its exception is raised here."""
    if os.geteuid() != 0:
        work()
        return
    folder = tempfile.mkdtemp()  # not below tmp_path, which only its owner may enter
    read, write_end = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork, from 3.12, where the test runner has threads
        child = os.fork()
    if child == 0:
        try:
            os.chown(folder, 65534, 65534)
            os.setgid(65534)
            os.setuid(65534)
            os.chdir(folder)
            work()
        except BaseException:  # noqa: BLE001 (a failed assertion must not go on as a second test session)
            os.write(write_end, traceback.format_exc().encode()[-3000:])
            os._exit(1)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read, "rb") as stream:
        said = stream.read().decode()
    _, status = os.waitpid(child, 0)
    for path in Path(folder).rglob("*"):
        if not path.is_symlink():
            path.chmod(0o777)
    shutil.rmtree(folder)
    assert status == 0, said


def test_no_permission_to_read():
    def work():
        write("a.py", "b.py", "shut/c.py")
        Path("a.py").chmod(0)
        Path("shut").chmod(0)
        found = load([".", "shut/c.py"])
        assert names(found) == ["b.py"]
        assert [error.path for error in found.errors] == ["a.py", "shut", "shut/c.py"]
        assert {error.what for error in found.errors} == {"cannot be read: permission denied"}

    without_privileges(work)


def test_what_is_too_large_is_not_read(monkeypatch):
    write("big.py", "sub/big.py", content=TORCH + b"#" * 100)
    write("train.py", content=b"import torch, big\n")
    monkeypatch.setattr(reading, "LARGEST_BYTES", 100)
    monkeypatch.setattr(reading, "MIB", 1)
    found = load(["train.py", "big.py", "sub"])
    assert names(found) == ["train.py"]
    assert [str(error) for error in found.errors] == [
        "big.py: cannot be read: the file has 113 mib, and no more than 100 are read. Leave it out."
    ]
    assert found.remarks[0] == "sub/big.py: skipped, the file has 113 MiB, and no more than 100 are read"
    assert resolved("big") is None  # nor as a module
    assert project("train.py").beside("big.py").content == b""


def test_a_pipe_beside_a_program_is_not_waited_for():
    write("train.py")
    os.mkfifo("pipe.py")
    assert names(load(["."])) == ["train.py"]
    assert resolved("pipe") is None
    assert project("train.py").beside("pipe.py").content == b""


def test_git_runs_nothing_that_the_repository_asks_for():
    write("train.py", "out/a.py")
    for arguments in (
        ["init", "--quiet"],
        ["config", "core.fsmonitor", "touch bitten; false"],
        ["config", "diff.loud.textconv", "touch bitten; cat"],
        ["add", "train.py"],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "--quiet", "-m", "one"],
    ):
        subprocess.run(["git", *arguments], check=True)  # noqa: S607 (whichever git is there)
    Path(".gitattributes").write_text("*.py diff=loud\n")
    Path(".gitignore").write_text("out\n")
    Path("train.py").write_bytes(TORCH * 2)
    Path("bitten").unlink(missing_ok=True)  # by the commands above
    assert names(load(["."])) == ["train.py"]
    assert git.touched("HEAD", Path.cwd()).any_of(Path("train.py").resolve(), 2, 2)
    assert not Path("bitten").exists()


def test_folder_without_python_is_said():
    Path("empty").mkdir()
    assert load(["empty"]).remarks == ["empty: no Python files in this folder"]


def test_progress_is_told():
    write("a.py", "b.py")
    counts = []
    load(["."], counts.append)
    assert counts == [1, 2]


# ------------------------------------------------------------------------------------------------------- project


def project(*paths):
    return Project(load(paths).files)


def resolved(module, level=0, frm="train.py", named=("train.py",)):
    whole = project(*named, frm)
    file = whole.resolve(module, level, next(file for file in whole.named if file.path == frm))
    return file and file.path


def test_files_without_torch_are_not_parsed_unless_named(monkeypatch):
    write("pkg/plain.py", content=b"def (")
    write("pkg/train.py")
    assert [file.path for file in project("pkg").files] == ["pkg/train.py"]
    assert project("pkg").errors == ()
    assert [error.path for error in project("pkg/plain.py").errors] == ["pkg/plain.py"]


def test_modules_of_the_project_are_found():
    write("train.py", "data.py", "models/__init__.py", "models/net.py", "models/deep/layer.py", "models.py")
    write("src/lib/__init__.py", "scripts/run.py", "scripts/local.py", "space/part.py")
    assert resolved("data") == "data.py"
    assert resolved("models") == "models/__init__.py"  # a package comes before a module
    assert resolved("models.net") == "models/net.py"
    assert resolved("models.deep.layer") == "models/deep/layer.py"  # a folder without __init__ in between
    assert resolved("space") is None  # nothing to read in it
    assert resolved("space.part") == "space/part.py"
    assert resolved("lib") == "src/lib/__init__.py"
    assert resolved("local", frm="scripts/run.py") == "scripts/local.py"  # beside the script
    assert resolved("data", frm="scripts/run.py") == "data.py"  # from the current folder
    assert resolved("local") is None


def test_relative_imports():
    write("models/__init__.py", "models/net.py", "models/deep/__init__.py", "models/deep/layer.py", "train.py")
    layer = "models/deep/layer.py"
    assert resolved("", 1, layer) == "models/deep/__init__.py"
    assert resolved("net", 2, layer) == "models/net.py"
    assert resolved("", 2, layer) == "models/__init__.py"
    assert resolved("layer", 1, "models/deep/__init__.py") == layer
    assert resolved("layer", 99, layer) is None


def test_what_is_not_the_projects():
    write("project/pyproject.toml", "project/app/train.py", "project/site-packages/torch/__init__.py", "other.py")
    write(
        "project/app/random.py", "project/json.py", "elsewhere/real.py", "project/app/broken.py", "project/app/sys.py"
    )
    write("project/app/broken.py", content=b"def (")
    Path("project/app/away.py").symlink_to(Path("elsewhere/real.py").resolve())
    os.chdir("project")
    frm = "app/train.py"
    assert resolved("torch", frm=frm, named=()) is None
    assert resolved("site-packages.torch", frm=frm, named=()) is None
    assert resolved("other", frm=frm, named=()) is None  # above the project's top
    assert resolved("random", frm=frm, named=()) == "app/random.py"  # a script's folder comes before the library
    assert resolved("json", frm=frm, named=()) is None  # a folder above it does not
    assert resolved("sys", frm=frm, named=()) is None  # built in: nothing comes before it
    assert resolved("away", frm=frm, named=()) is None
    assert resolved("broken", frm=frm, named=()) is None
    write("app/__init__.py")
    assert resolved("random", frm=frm, named=()) is None  # in a package it is the library's


def test_imported_files_are_the_named_ones_where_they_are_named():
    write("train.py", "data.py")
    both = project("train.py", "data.py")
    assert both.resolve("data", 0, both.files[0]) is both.files[1]
    one = project("train.py")
    data = one.resolve("data", 0, one.files[0])
    assert data is not None
    assert not data.named
    assert one.resolve("data", 0, one.files[0]) is data  # one object a file


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_no_text():
    """The bytes of a name need not be UTF-8; that is no reason to fail."""
    name = os.fsdecode(b"\xff\xfe")
    write(f"{name}/{name}.py", f"{name}/train.py", content=TORCH + b"loss.backward()\n")
    found = Project(load(["."]).files)
    assert [file.path for file in found.entries] == [f"{name}/train.py", f"{name}/{name}.py"]
    assert importers(found, found.files, ()) == {file: {} for file in found.files}


def test_replaced_and_without():
    write("train.py", "data.py")
    both = project("train.py", "data.py")
    after = both.replaced({"data.py": b"x = 1\n"})
    assert after.resolve("data", 0, after.files[0]).content == b"x = 1\n"
    assert both.files[1].content == TORCH
    alone = both.without(frozenset({"data.py"}))
    assert [file.path for file in alone.files] == ["train.py"]
    assert not alone.resolve("data", 0, alone.files[0]).named


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"x = 1\ny = f(z)\n", (2, 5)),
        (b"\xef\xbb\xbfx = 1\r\ny = f(z)\r\n", (2, 5)),
        ("# é\ny, ß = f(z)\n".encode(), (2, 8)),
        ("# -*- coding: latin-1 -*-\nß = 'é', f(z)\n".encode("latin-1"), (2, 10)),
        ("x = '\u2028\x0c'\n'😀', f(z)\n".encode(), (2, 6)),
    ],
)
def test_places_are_counted_in_characters_from_one(content, place):
    file = SourceFile("a.py", content)
    call = next(node for node in ast.walk(file.tree) if isinstance(node, ast.Call))
    assert file.place(call) == (*place, place[0])


# ---------------------------------------------------------------------------------------------------------- save


def rewrite(name, new=b"new\n"):
    return Rewrite(name, Path(name).resolve(), Path(name).read_bytes(), new)


def leftovers(folder="."):
    return list(Path(folder).rglob(".migrate-*"))


def test_save_keeps_mode_link_and_neighbours():
    write("sub/a.py", "b.py", content=b"old\n")
    Path("sub/a.py").chmod(0o751)
    Path("link.py").symlink_to("sub/a.py")
    assert save([rewrite("link.py"), rewrite("b.py")]) == ()
    assert Path("link.py").is_symlink()
    assert Path("sub/a.py").read_bytes() == Path("b.py").read_bytes() == b"new\n"
    assert stat.S_IMODE(Path("sub/a.py").stat().st_mode) == 0o751
    assert leftovers() == []


def test_hard_links_are_broken_and_it_is_said():
    write("a.py", content=b"old\n")
    os.link("a.py", "store.py")
    assert save([rewrite("a.py")]) == ("a.py: the file has 1 other name (hard links), which keep the old content",)
    assert Path("store.py").read_bytes() == b"old\n"
    assert Path("store.py").stat().st_nlink == 1


def failing(monkeypatch, owner, name, at, error):
    """The `at`-th call of a function of the system fails."""
    real, calls = getattr(owner, name), []

    def wrapped(*args, **kwargs):
        calls.append(args)
        if len(calls) == at:
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, wrapped)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["disk", "ctrl-c"])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(("owner", "name"), [(os, "open"), (os, "fsync"), (Path, "replace"), (Path, "chmod")])
def test_any_failure_leaves_everything_old(owner, name, at, error, monkeypatch):
    write("a.py", "b/b.py", "c.py", content=b"old\n")
    inodes = [Path(p).stat().st_ino for p in ("a.py", "b/b.py", "c.py")]
    failing(monkeypatch, owner, name, at, error)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else WriteError) as raised:
        save([rewrite("a.py"), rewrite("b/b.py"), rewrite("c.py")])
    if isinstance(raised.value, WriteError):
        assert "no space left on device" in str(raised.value)
        assert raised.value.path == ("a.py", "b/b.py", "c.py")[at - 1]
    assert [Path(p).read_bytes() for p in ("a.py", "b/b.py", "c.py")] == [b"old\n"] * 3
    assert [Path(p).stat().st_ino for p in ("a.py", "b/b.py", "c.py")] == inodes
    assert leftovers() == []


def test_originals_are_put_back_where_hard_links_do_not_exist(monkeypatch):
    write("a.py", "b.py", content=b"old\n")
    monkeypatch.setattr(Path, "hardlink_to", lambda self, other: (_ for _ in ()).throw(PermissionError(1, "no links")))
    failing(monkeypatch, Path, "replace", 2, OSError(5, "Input/output error"))
    with pytest.raises(WriteError, match="input/output error"):
        save([rewrite("a.py"), rewrite("b.py")])
    assert Path("a.py").read_bytes() == Path("b.py").read_bytes() == b"old\n"
    assert leftovers() == []


def test_original_that_cannot_be_put_back_is_kept_and_named(monkeypatch):
    write("a.py", "b.py", content=b"old\n")
    real, calls = Path.replace, []

    def replace(self, target):
        calls.append(target)
        if len(calls) > 1:
            raise OSError(5, "Input/output error")
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(WriteError) as raised:
        save([rewrite("a.py"), rewrite("b.py")])
    kept = [path for path in leftovers() if str(path.resolve()) in raised.value.way_out]
    assert kept
    assert {path.read_bytes() for path in kept} == {b"old\n"}


def test_file_that_changed_meanwhile_stops_everything():
    write("a.py", "b.py", content=b"old\n")
    rewrites = [rewrite("a.py"), rewrite("b.py")]
    Path("b.py").write_bytes(b"edited by a person\n")
    with pytest.raises(WriteError, match=r"b\.py: the file changed while it was converted\. Nothing was written"):
        save(rewrites)
    assert Path("a.py").read_bytes() == b"old\n"
    assert leftovers() == []
    Path("b.py").unlink()
    with pytest.raises(WriteError, match=r"b\.py: cannot be written: no such file"):
        save(rewrites)
    assert Path("a.py").read_bytes() == b"old\n"


def meanwhile(monkeypatch, number, edit):
    """Something happens right before the rename of the `number`-th file."""
    real, calls = Path.replace, []

    def replace(self, target):
        calls.append(target)
        if len(calls) == number:
            edit()
        return real(self, target)

    monkeypatch.setattr(Path, "replace", replace)


def test_file_that_changes_at_the_last_moment_is_put_back(monkeypatch):
    def edit():
        with Path("b.py").open("ab") as stream:
            stream.write(b"mine\n")

    write("a.py", "b.py", "c.py", content=b"old\n")
    meanwhile(monkeypatch, 2, edit)
    with pytest.raises(WriteError, match=r"b\.py: the file changed while it was converted\. Nothing was written"):
        save([rewrite("a.py"), rewrite("b.py"), rewrite("c.py")])
    assert [Path(p).read_bytes() for p in ("a.py", "b.py", "c.py")] == [b"old\n", b"old\nmine\n", b"old\n"]
    assert leftovers() == []


def test_file_that_changes_while_others_are_renamed_is_kept(monkeypatch):
    write("a.py", "b.py", content=b"old\n")
    meanwhile(monkeypatch, 1, lambda: Path("b.py").write_bytes(b"mine\n"))
    with pytest.raises(WriteError, match=r"b\.py: the file changed while it was converted"):
        save([rewrite("a.py"), rewrite("b.py")])
    assert [Path(p).read_bytes() for p in ("a.py", "b.py")] == [b"old\n", b"mine\n"]
    assert leftovers() == []


def test_file_that_is_edited_after_its_rename_is_not_put_back(monkeypatch):
    def edit():
        Path("a.py").write_bytes(b"mine\n")
        raise OSError(5, "Input/output error")

    write("a.py", "b.py", content=b"old\n")
    meanwhile(monkeypatch, 2, edit)
    with pytest.raises(WriteError, match="could not be put back"):
        save([rewrite("a.py"), rewrite("b.py")])
    assert [Path(p).read_bytes() for p in ("a.py", "b.py")] == [b"mine\n", b"old\n"]
    assert [path.read_bytes() for path in leftovers()] == [b"old\n"]


def test_another_run_that_has_come_to_the_same_is_no_trouble(monkeypatch):
    write("a.py", "b.py", content=b"old\n")

    def other():
        Path("other").write_bytes(b"new\n")
        os.rename("other", "b.py")

    meanwhile(monkeypatch, 1, other)
    assert save([rewrite("a.py"), rewrite("b.py")]) == ()
    assert [Path(p).read_bytes() for p in ("a.py", "b.py")] == [b"new\n", b"new\n"]


def test_no_permission_to_write_stops_everything():
    def work():
        write("a.py", "b.py", "shut/c.py", content=b"old\n")
        Path("b.py").chmod(0o444)
        Path("shut").chmod(0o555)
        with pytest.raises(WriteError, match=r"b.py: the file is read-only\. .* Nothing was written"):
            save([rewrite("a.py"), rewrite("b.py")])
        with pytest.raises(
            WriteError, match=r"c.py: cannot be written: permission denied\. .* in its folder\. Nothing"
        ):
            save([rewrite("a.py"), rewrite("shut/c.py")])
        assert Path("a.py").read_bytes() == b"old\n"
        assert leftovers() == []

    without_privileges(work)


def test_leftovers_of_dead_processes_are_removed_and_no_others(monkeypatch):
    dead = 2**22 + 1  # above the largest process number that Linux gives
    theirs = [f".migrate-{module.MACHINE}-{dead}-0123abcd.tmp", f".migrate-{module.MACHINE}-{dead}-00000000.tmp"]
    kept = [
        f".migrate-{module.MACHINE}-{os.getppid()}-0123abcd.tmp",  # alive
        f".migrate-{module.MACHINE}-{os.getpid()}-0123abcd.tmp",  # ours
        f".migrate-somewhere-{dead}-0123abcd.tmp",  # of another machine, which may be at work
        ".migrate-notes.tmp",
        "migrate.tmp",
    ]
    write(*theirs, *kept)
    clean([Path(), Path("missing")])
    assert sorted(p.name for p in Path().iterdir()) == sorted(kept)
    now = time.time()
    monkeypatch.setattr(module.time, "time", lambda: now + STALE_S + 60)
    clean([Path()])
    assert sorted(p.name for p in Path().iterdir()) == sorted(kept[3:])


def test_the_disk_knows_where_links_lead(tmp_path):
    write("real/a.py", "real/sub/b.py")
    os.symlink("real", "link")
    os.symlink("../real/a.py", "real/c.py")
    os.symlink("loop", "loop")
    disk = Disk()
    for name in ("real/a.py", "link/a.py", "real/c.py", "link/c.py", "link", "loop", "loop/a.py", "no/a.py", "real/."):
        asked = f"{tmp_path}/{name}"
        assert disk.real(asked) == os.path.realpath(asked)
    for asked in (f"{tmp_path}/link/sub/..", f"{tmp_path}/link/../link/a.py", f"{tmp_path}/real/", "link/a.py", "/"):
        assert disk.real(asked) == os.path.realpath(asked)
