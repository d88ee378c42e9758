"""The stand-in's library, compiled once for each text of its sources, compiler and version of PyTorch."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
NAME = "standin_tpu"


class NotBuilt(Exception):
    """The library cannot be made here, and why."""


def library(cache: Path) -> Path:
    """The library in `cache`, compiled if it is not there (half a minute).

    Raises:
        NotBuilt: there is no C++ compiler, or no Python headers.
    """
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise NotBuilt("no C++ compiler (g++, clang++ or $CXX) to build the stand-in for a TPU")
    python = Path(sysconfig.get_paths()["include"])
    if not (python / "Python.h").is_file():
        raise NotBuilt(f"no Python.h in {python} to build the stand-in for a TPU")
    command = [compiler, *_flags(python)]
    text = b"".join((HERE / name).read_bytes() for name in ("device.h", "group.cpp"))
    key = hashlib.sha256(text + repr((command, _version(compiler))).encode()).hexdigest()[:16]
    target = cache / f"{NAME}-{key}.so"
    with (cache / "lock").open("w") as lock:  # several workers of a test run want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_file():
            aside = cache / f"{NAME}-{key}.part"
            _run([*command, "-o", str(aside)])
            aside.replace(target)
    return target


def _flags(python: Path) -> list[str]:
    import torch

    root = Path(torch.__file__).parent
    include = [root / "include", root / "include/torch/csrc/api/include", python]
    return [
        "-std=c++20", "-O0", "-fPIC", "-shared", "-w",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *(f"-I{folder}" for folder in include),
        str(HERE / "group.cpp"),
        f"-L{root / 'lib'}", "-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10",
        f"-DTORCH={torch.__version__}",
    ]  # fmt: skip


def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:  # there is a compiler, so this is a mistake in the sources or a change in PyTorch
        raise RuntimeError(f"the stand-in for a TPU does not compile:\n{done.stderr[-4000:]}")
