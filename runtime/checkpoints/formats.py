"""The two formats of files: safetensors, and that of `torch.save`. Tensors are written from where they lie.

The safetensors format (https://github.com/huggingface/safetensors) is a line of JSON and the bytes of the tensors, so
the package is not needed for it.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import importlib.util
import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from runtime.checkpoints.sink import Sink
from runtime.errors import LoadError, SaveError

_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2", torch.uint16: "U16", torch.uint32: "U32",
    torch.uint64: "U64",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_LENGTH = struct.Struct("<Q")
_ALIGN = 8  # bytes
_FORMAT = "format"  # what others ask the metadata for
_PLACES = ("numpy._core.multiarray", "numpy.core.multiarray")  # of NumPy 2 and 1


def fits_safetensors(state: Mapping[str, Any]) -> bool:
    """Whether all values are dense tensors of dtypes that the format has."""
    return all(isinstance(v, Tensor) and v.dtype in _NAMES and v.layout is torch.strided for v in state.values())


def without_aliases(state: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """`state` with one name for each tensor, as safetensors wants it, and the name kept for each left out."""
    kept: dict[tuple[Any, ...], str] = {}
    aliases: dict[str, str] = {}
    for name, tensor in state.items():
        place = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and place in kept:
            aliases[name] = kept[place]
        else:
            kept[(*place, name) if not tensor.numel() else place] = name
    return {name: state[name] for name in state if name not in aliases}, aliases


def write_safetensors(sink: Sink | IO[bytes], state: Mapping[str, Tensor]) -> None:
    """Write a dictionary of tensors; what is stored once is written once."""
    distinct, aliases = without_aliases(state)
    ordered = sorted(distinct.items(), key=lambda item: -item[1].element_size())  # so that every one is aligned
    header: dict[str, Any] = {"__metadata__": {**aliases, _FORMAT: "pt"}}
    at = 0
    for name, tensor in ordered:
        end = at + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGN)
    sink.write(_LENGTH.pack(len(text)) + text)
    for _, tensor in ordered:
        _write_tensor(sink, tensor)


def _write_tensor(sink: Sink | IO[bytes], tensor: Tensor) -> None:
    here = tensor.detach().to("cpu").contiguous()
    size = here.numel() * here.element_size()
    if size:
        sink.write(memoryview((ctypes.c_char * size).from_address(here.data_ptr())))


def mapped(path: Path) -> Tensor:
    """The bytes of a file, mapped into memory: they are read when they are used."""
    return torch.from_file(str(path), shared=False, size=path.stat().st_size, dtype=torch.uint8)


def safetensors_header(path: Path) -> tuple[int, dict[str, Any]]:
    """Where the values of a file begin, and its header.

    Raises:
        ValueError: there is none.
        struct.error: not even its length.
    """
    with open(path, "rb") as file:
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        return _LENGTH.size + length, json.loads(file.read(min(length, path.stat().st_size)))


def read_safetensors(path: Path, content: Tensor) -> dict[str, Tensor]:
    """The tensors of a file, of which `content` are the bytes. Names left out are there again.

    Raises:
        LoadError: it is not such a file.
    """
    try:
        base, header = safetensors_header(path)
        aliases = header.pop("__metadata__", None) or {}
        state = {name: _placed(content, base, row) for name, row in header.items()}
    except (ValueError, KeyError, TypeError, struct.error, RuntimeError) as error:
        raise LoadError(f"{path} is not a whole safetensors file: {error}.") from error
    aliases.pop(_FORMAT, None)  # no name, though a tensor may be called "pt"
    return state | {alias: state[name] for alias, name in aliases.items() if name in state}


def _placed(content: Tensor, base: int, row: Mapping[str, Any]) -> Tensor:
    start, end = row["data_offsets"]
    dtype = _DTYPES[row["dtype"]]
    own = content[base + start : base + end]
    if own.numel() == 0:
        return torch.empty(row["shape"], dtype=dtype)
    if (base + start) % dtype.itemsize:  # another writer need not align
        own = own.clone()
    return own.view(dtype).view(row["shape"])


def write_object(sink: Sink, item: Any) -> None:
    """Write anything in the format of `torch.save`."""
    with _without_crc():
        torch.save(item, sink)  # type: ignore[arg-type]  # write and flush are all it calls


@contextlib.contextmanager
def _without_crc() -> Iterator[None]:
    """The archive's own checksum costs more than a copy of the bytes; nothing reads it, the manifest has digests."""
    choose = getattr(torch.serialization, "set_crc32_options", None)
    if choose is None:
        yield
        return
    before = torch.serialization.get_crc32_options()
    choose(False)
    try:
        yield
    finally:
        choose(before)


def check_readable(path: Path, what: str) -> None:
    """Raise if a file that was just written could not be read again with `weights_only=True`.

    Raises:
        SaveError: it holds an object of a class that is not allowed.
    """
    with torch.serialization.safe_globals(_numpy_globals()):
        found = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    if found:
        raise SaveError(
            f"the state of {what} holds {', '.join(sorted(found))}, and files are only read with weights_only=True. "
            "Keep tensors, numbers, texts and containers of these in state_dict(), or allow the class in the script: "
            "torch.serialization.add_safe_globals([...])."
        )


def read_object(path: Path, map_location: Any = "cpu", file: Any = None, **options: Any) -> Any:
    """What `torch.save` wrote; always weights_only.

    Args:
        file: what is read in the place of `path`.
        options: of `torch.load`; `mmap` is left out for files in the format of before torch 1.6.

    Raises:
        LoadError: it cannot be read.
    """
    if options.get("mmap") and not zipfile.is_zipfile(path):
        del options["mmap"]
    try:
        with torch.serialization.safe_globals(_numpy_globals()):
            return torch.load(file or path, map_location=map_location, weights_only=True, **options)
    except Exception as error:
        raise LoadError(f"{path} cannot be read: {type(error).__name__}: {error}") from error


def _numpy_globals() -> list[Any]:
    """What arrays and numbers of NumPy are made of in a file: the states of its generators are such arrays."""
    if importlib.util.find_spec("numpy") is None:
        return []
    np: Any = importlib.import_module("numpy")
    core: Any = importlib.import_module("numpy._core.multiarray" if hasattr(np, "_core") else "numpy.core.multiarray")
    makers = [(maker, f"{place}.{maker.__name__}") for maker in (core._reconstruct, core.scalar) for place in _PLACES]  # noqa: SLF001  named so in files
    kinds = {type(np.dtype(kind)) for kind in (*np.sctypeDict.values(), "U", "S") if np.dtype(kind) != np.dtype("O")}
    return [*makers, np.ndarray, np.dtype, codecs.encode, *kinds]
