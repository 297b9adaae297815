"""The memory of the virtual device: its budget, its statistics, torch's words when it is full."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from capdoctor.capture.session import Session
from capdoctor.capture.torch_version import Release

_MIB = 1 << 20
_BLOCK = 512  # the caching allocator rounds every request up to this (read: CUDACachingAllocator)


def claim(session: Session, tensors: Iterable[torch.Tensor]) -> None:
    """Count new tensors as device memory.

    Raises:
        torch.OutOfMemoryError: they do not fit.
    """
    mark, limit = session.tags.mark_cuda, session.memory
    for tensor in tensors:
        over = mark(tensor, limit)
        if over is not None:
            if session.stop_at_first:
                session.tags.unmark_cuda(tensor)
            refuse(session, over)


def check_request(session: Session, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse a factory call that cannot fit before the host tries to make it."""
    if not session.stop_at_first:
        return
    shape = args[0] if args else kwargs.get("size")
    if not isinstance(shape, list | tuple) or not all(isinstance(n, int) for n in shape):
        return
    dtype = kwargs.get("dtype") or torch.get_default_dtype()
    size = math.prod(shape) * dtype.itemsize
    if session.tags.allocated + size > session.memory:
        refuse(session, size)


def refuse(session: Session, size: int) -> None:
    """Write torch's out-of-memory error down, and raise it under ``stop_at_first``."""
    rule = session.rule("out_of_memory")
    kind = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)  # the name since 2.5
    error = kind(out_of_memory_text(session, size))
    session.note(rule, "allocation", str(error))
    if session.stop_at_first:
        raise error


def out_of_memory_text(session: Session, size: int) -> str:
    """Torch's sentence (read: CUDACachingAllocator.cpp; seen in public reports of 2.4 to 2.13)."""
    rounded = -(-size // _BLOCK) * _BLOCK
    allocated = session.tags.allocated
    pools = sum(tape.bytes_held() for tape in session.live_tapes())
    private = (
        f", with {_size(pools)} allocated in private pools (e.g., CUDA Graphs)" if pools else ""
    )
    variable, page = _advice(session.release)
    return (
        f"CUDA out of memory. Tried to allocate {_size(rounded)}. GPU 0 has a total capacity of"
        f" {_size(session.memory)} of which {_size(max(session.memory - allocated, 0))} is free."
        f" Including non-PyTorch memory, this process has {_size(allocated)} memory in use."
        f" Of the allocated memory {_size(allocated)} is allocated by PyTorch{private},"
        f" and {_size(0)} is reserved by PyTorch but unallocated."
        " If reserved but unallocated memory is large try setting"
        f" {variable}=expandable_segments:True to avoid fragmentation. "
        " See documentation for Memory Management "
        f" (https://{page})"
    )


def _advice(release: Release) -> tuple[str, str]:
    """The variable and the page that the sentence names (read: binaries of 2.8 to 2.14)."""
    if release >= (2, 13):
        anchor = "optimizing-memory-usage-with-pytorch-cuda-alloc-conf"
        return "PYTORCH_CUDA_ALLOC_CONF", f"docs.pytorch.org/docs/stable/notes/cuda.html#{anchor}"
    page = "pytorch.org/docs/stable/notes/cuda.html#environment-variables"
    return ("PYTORCH_ALLOC_CONF" if release >= (2, 10) else "PYTORCH_CUDA_ALLOC_CONF"), page


def _size(count: int) -> str:
    """Write a size as c10 does (read: format_size in c10)."""
    if count <= 1024:  # noqa: PLR2004
        return f"{count} bytes"
    if count <= _MIB:
        return f"{count / 1024:.2f} KiB"
    if count <= 1 << 30:
        return f"{count / _MIB:.2f} MiB"
    return f"{count / (1 << 30):.2f} GiB"
