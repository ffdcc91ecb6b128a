"""Tensors in memory that peers can map, which is several times as fast as ordinary memory. torch's allocator is C++ and
has no way in from Python, so this is compiled when first used."""
from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import pathlib
import re
import subprocess
import tempfile
import threading
from typing import Any, Iterator, List, Optional

import torch

import tutti
from tutti._library import lib

BYTES_MIN = 1 << 20  # smaller tensors stay where they are: a block of mapped memory is a file
_SOURCE = pathlib.Path(__file__).with_name("mapped_memory.cpp")
_COMPILE_LIMIT_S = 600
_lock = threading.Lock()
_installed: Optional[ctypes.CDLL] = None
_depth = 0


def _command(target: str) -> List[str]:
    """Compiles against the torch that is loaded."""
    maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    c10 = re.search(r"/\S*/libc10\.so\S*", maps)
    if c10 is None:
        raise tutti.SystemError("torch's library libc10 is not among those of this process")
    headers = pathlib.Path(torch.__file__).parent / "include"
    include = ["-I", str(headers)] if headers.exists() else []  # else the system's, as Debian's libtorch-dev
    abi = int(torch.compiled_with_cxx11_abi())
    return [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-shared", "-fPIC", "-w", f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
            *include, str(_SOURCE), "-o", target, c10.group(0)]


def _cache() -> pathlib.Path:
    plain = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("TUTTI_CACHE_DIR") or pathlib.Path(plain) / "tutti")


def _build() -> pathlib.Path:
    """The compiled allocator, of an earlier run if there is one."""
    what = f"{torch.__version__} {torch.__file__}".encode() + _SOURCE.read_bytes()
    library_path = _cache() / f"torch-allocator-{hashlib.sha256(what).hexdigest()[:16]}.so"
    if library_path.exists():
        return library_path
    library_path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library_path.parent) as folder:
        target = f"{folder}/made.so"
        try:
            made = subprocess.run(_command(target), capture_output=True, text=True, timeout=_COMPILE_LIMIT_S, check=False)
        except OSError as problem:
            raise tutti.SystemError(f"mapped memory for torch needs a C++ compiler: {problem}") from None
        if made.returncode != 0:
            raise tutti.SystemError("mapped memory for torch needs torch's headers (Debian: libtorch-dev) and a C++ compiler: "
                                    + (made.stderr.strip().splitlines() or ["it failed without a message"])[0])
        os.replace(target, library_path)  # other ranks may be doing the same
    return library_path


def _install() -> ctypes.CDLL:
    """For the rest of the process."""
    global _installed
    if _installed is None:
        made = ctypes.CDLL(str(_build()))
        made.tutti_torch_install.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        made.tutti_torch_blocks.restype = ctypes.c_long
        made.tutti_torch_install(ctypes.cast(lib.tuttiMemAlloc, ctypes.c_void_p), ctypes.cast(lib.tuttiMemFree, ctypes.c_void_p),
                                 BYTES_MIN)
        _installed = made
    return _installed


@contextlib.contextmanager
def mapped_memory() -> Iterator[Any]:
    """Tensors of 1 MiB or more that are made within, by any thread, are in memory that peers can map.

        with tutti.torch.mapped_memory():
            model = DistributedDataParallel(model, gradient_as_bucket_view=True)
            ...                                       # the first two steps: after the first, DDP makes its buckets anew

    The memory is shared with processes that are forked later: what these write into it is seen here. Needs a C++ compiler
    and torch's headers, and some seconds when first used with a version of torch.

    Errors: SystemError (no compiler, no headers).
    """
    global _depth
    with _lock:
        made = _install()
        _depth += 1
        made.tutti_torch_use(1)
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            made.tutti_torch_use(int(_depth > 0))
