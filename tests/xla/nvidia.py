"""Empty libraries in the place of NVIDIA's, for a build of PyTorch that wants them on a machine without a GPU.

    python tests/xla/nvidia.py        # with the Python of the environment that torch was installed into (--no-deps)

torch_xla is tested with torch 2.9, whose package links gigabytes of CUDA libraries that XLA's CPU client never calls.
Here every function of theirs answers "no device". Where all libraries can be found there is nothing to do. Needs gcc
and readelf (binutils).
"""

from __future__ import annotations

import collections
import re
import subprocess
import sysconfig
import tempfile
from pathlib import Path

SYSTEM = re.compile(r"^(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp.*)\.so|ld-linux)")
NO_DEVICE = 100  # cudaErrorNoDevice, CUDA_ERROR_NO_DEVICE
#: The name of a library without "lib" and ".so" → how the names of its functions begin.
FUNCTIONS = {
    "cublas": r"cublas(?!Lt)",
    "cublasLt": r"cublasLt",
    "cuda": r"cu[A-Z](?!da|blas|dnn|fft|rand|sparse|solver|File)",
    "cudart": r"cuda[A-Z]|__cuda",
    "cudnn": r"cudnn",
    "cufft": r"cufft",
    "cufile": r"cuFile",
    "cupti": r"cupti",
    "curand": r"curand",
    "cusolver": r"cusolver",
    "cusparse": r"cusparse(?!Lt)",
    "cusparseLt": r"cusparseLt",
    "nccl": r"p?nccl",
    "nvrtc": r"nvrtc",
    "nvshmem_host": r"nvshmem",
}


def told(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wanted(folder: Path) -> tuple[list[str], dict[str, set[str]]]:
    """The libraries that are asked for and not there, and the functions by the version that they are asked for in."""
    own = {path.name for path in folder.glob("*.so*")}
    libraries: dict[str, None] = {}
    functions: dict[str, set[str]] = collections.defaultdict(set)
    for name in sorted(own):
        for library in re.findall(r"\(NEEDED\).*\[(.*)\]", told("readelf", "-dW", str(folder / name))):
            if library not in own and not SYSTEM.match(library):
                libraries[library] = None
        for line in told("readelf", "--dyn-syms", "-W", str(folder / name)).splitlines():
            columns = line.split()
            if len(columns) >= 8 and columns[6] == "UND":
                function, _, version = columns[7].partition("@")
                functions[version.lstrip("@")].add(function)
    return list(libraries), functions


def write(folder: Path, library: str, functions: dict[str, set[str]]) -> int:
    """The empty library; how many functions it has."""
    base = re.match(r"lib(.*?)\.so", library)
    pattern = re.compile(FUNCTIONS.get(base[1] if base else "", r"$^"))
    lines, versions, seen = [], [], set()
    for version, names in functions.items():
        mine = sorted(name for name in names if pattern.match(name) and name not in seen)
        seen.update(mine)
        lines += [f"long {name}(void) {{ return {0 if name.startswith('_') else NO_DEVICE}; }}" for name in mine]
        if version and mine:
            versions.append(f"{version} {{ global: {' '.join(f'{name};' for name in mine)} }};")
    with tempfile.TemporaryDirectory() as place:
        source, script = Path(place, "empty.c"), Path(place, "versions")
        source.write_text("\n".join([*lines, "int nothing_else;"]))
        script.write_text("\n".join(versions))
        command = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{library}", "-o", str(folder / library), str(source)]
        told(*command, *([f"-Wl,--version-script={script}"] if versions else []))
    return len(seen)


def main() -> None:
    folder = Path(sysconfig.get_paths()["purelib"], "torch", "lib")
    libraries, functions = wanted(folder)
    for library in libraries:
        print(f"{library}: {write(folder, library, functions)} functions")


if __name__ == "__main__":
    main()
