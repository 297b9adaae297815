"""Which storages count as device memory and which as pinned host memory.

A virtual tensor is a plain CPU tensor; its storage is what carries the tag, so views, detached
tensors and parameters share it. A tag dies with its storage, and its bytes come back then.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

_address = torch._C._storage_address  # type: ignore[attr-defined]  # noqa: SLF001 - no mode sees it


def address_of(tensor: torch.Tensor) -> int | None:
    """What identifies the tensor's storage; None for sparse tensors, which have none."""
    try:
        return int(_address(tensor))
    except (RuntimeError, NotImplementedError):
        return None


class _Tag(weakref.ref[Any]):
    """A storage that counts as device memory: where it lies, and the bytes charged for it."""

    __slots__ = ("key", "size")

    key: int
    size: int


class Tags:
    """The tagged storages of one device, and how many bytes they hold."""

    def __init__(self) -> None:
        self.cuda: dict[int, _Tag] = {}
        self.pinned: dict[int, weakref.ref[Any]] = {}
        self._loose: dict[int, weakref.ref[Any]] = {}
        self.allocated = 0
        self.peak = 0

    def is_cuda(self, tensor: torch.Tensor) -> bool:
        """Say whether the tensor counts as one on the device."""
        try:
            return _address(tensor) in self.cuda
        except (RuntimeError, NotImplementedError):  # sparse and the like have no storage
            return id(tensor) in self._loose

    def is_pinned(self, tensor: torch.Tensor) -> bool:
        """Say whether the tensor lies in pinned host memory."""
        return address_of(tensor) in self.pinned

    def mark_cuda(self, tensor: torch.Tensor, limit: int | None = None) -> int | None:
        """Count the tensor's storage as device memory from now on.

        Gives None, or its bytes if they go over ``limit``: then they are not charged.
        """
        try:
            key = _address(tensor)
        except (RuntimeError, NotImplementedError):
            name, loose = id(tensor), self._loose
            loose[name] = weakref.ref(tensor, lambda _: loose.pop(name, None) and None)
            return None
        if key in self.cuda:
            return None
        return self.mark_storage(_storage(tensor), limit)

    def mark_storage(self, storage: Any, limit: int | None = None) -> int | None:
        """The same for a storage."""
        size: int = storage.nbytes()
        over = limit is not None and self.allocated + size > limit
        tag = _Tag(storage, self._gone)
        tag.key, tag.size = storage._cdata, 0 if over else size  # noqa: SLF001
        self.cuda[tag.key] = tag
        self.allocated += tag.size
        self.peak = max(self.peak, self.allocated)
        return size if over else None

    def _gone(self, tag: _Tag) -> None:
        if self.cuda.pop(tag.key, None) is not None:
            self.allocated -= tag.size

    def unmark_cuda(self, tensor: torch.Tensor) -> None:
        """Count the tensor's storage as host memory again."""
        tag = self.cuda.get(address_of(tensor) or 0)
        if tag is not None:
            self._gone(tag)

    def mark_pinned(self, tensor: torch.Tensor) -> None:
        """Count the tensor's storage as pinned host memory."""
        key = _address(tensor)
        pinned = self.pinned
        pinned[key] = weakref.ref(_storage(tensor), lambda _: pinned.pop(key, None) and None)


def _storage(tensor: torch.Tensor) -> Any:
    if not torch._C._len_torch_function_stack():  # noqa: SLF001 - the guard is slow
        return tensor.untyped_storage()
    with torch._C.DisableTorchFunction():  # noqa: SLF001
        return tensor.untyped_storage()
