"""What the virtual device says about itself: availability, properties, memory numbers, markers."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from capdoctor.capture.factories import is_cuda_device
from capdoctor.capture.session import Session

TENSOR_TYPES = {
    "FloatTensor": torch.float32, "DoubleTensor": torch.float64, "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16, "ByteTensor": torch.uint8, "CharTensor": torch.int8,
    "ShortTensor": torch.int16, "IntTensor": torch.int32, "LongTensor": torch.int64,
    "BoolTensor": torch.bool,
}  # fmt: skip
LOW_LEVEL: dict[str, Any] = {
    "_cuda_getDevice": lambda: 0,
    "_cuda_setDevice": lambda _device: None,
    "_cuda_exchangeDevice": lambda _device: 0,
    "_cuda_maybeExchangeDevice": lambda _device: 0,
    "_cuda_init": lambda: None,
    "_host_emptyCache": lambda: None,
}
_NAME = "capdoctor virtual device"


@dataclass(frozen=True)
class Properties:
    """What ``get_device_properties`` gives; the numbers of the chip are those of an H200."""

    total_memory: int
    name: str = _NAME
    major: int = 9
    minor: int = 0
    multi_processor_count: int = 132
    warp_size: int = 32
    regs_per_multiprocessor: int = 65536
    max_threads_per_multi_processor: int = 2048
    shared_memory_per_block: int = 49152
    shared_memory_per_block_optin: int = 232448
    shared_memory_per_multiprocessor: int = 233472
    L2_cache_size: int = 62914560
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    gcnArchName: str = ""  # noqa: N815 - torch's name


class DeviceInfo:
    """Functions to put in place of those of ``torch.cuda``."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.properties = Properties(session.memory, gcnArchName="gfx942" if session.hip else "")

    def functions(self) -> dict[str, Any]:
        """Replacements in ``torch.cuda``."""
        plain: dict[str, Any] = {
            "_initialized": True,
            "_lazy_init": _nothing,
            "init": _nothing,
            "is_available": lambda: True,
            "is_initialized": lambda: True,
            "is_bf16_supported": lambda *_args, **_kwargs: True,
            "device_count": lambda: 1,
            "current_device": lambda: 0,
            "set_device": _set_device,
            "_exchange_device": lambda _device: 0,
            "_maybe_exchange_device": lambda _device: 0,
            "get_device_name": lambda _device=None: _NAME,
            "get_device_capability": lambda _device=None: (9, 0),
            "get_device_properties": lambda _device=None: self.properties,
            "get_arch_list": lambda: ["sm_90"],
            "can_device_access_peer": lambda *_: False,
            "ipc_collect": _nothing,
            "_sleep": self._sleep,
            "set_sync_debug_mode": _nothing,
            "get_sync_debug_mode": lambda: 0,
            "utilization": lambda _device=None: 0,
            "current_blas_handle": lambda: 1,
        }
        return {**plain, **self.memory_functions()}

    def _sleep(self, cycles: int) -> None:
        del cycles
        self.session.launch("torch.cuda._sleep")

    def memory_functions(self) -> dict[str, Any]:
        """Replacements in ``torch.cuda.memory`` and, under the same names, in ``torch.cuda``."""
        tags = self.session.tags
        used: Callable[..., int] = lambda _device=None: tags.allocated  # noqa: E731
        peak: Callable[..., int] = lambda _device=None: tags.peak  # noqa: E731
        return {
            "empty_cache": _nothing,
            "mem_get_info": self._mem_get_info,
            "memory_allocated": used,
            "memory_reserved": used,
            "max_memory_allocated": peak,
            "max_memory_reserved": peak,
            "reset_peak_memory_stats": self._reset_peak,
            "reset_max_memory_allocated": self._reset_peak,
            "reset_accumulated_memory_stats": _nothing,
            "memory_stats": self._stats,
            "memory_stats_as_nested_dict": self._stats,
            "memory_summary": lambda *_args, **_kwargs: f"{tags.allocated} bytes allocated",
            "memory_snapshot": lambda *_args, **_kwargs: [],
            "set_per_process_memory_fraction": _nothing,
            "caching_allocator_alloc": _nothing,
            "MemPool": MemPool,
            "use_mem_pool": use_mem_pool,
        }

    def _mem_get_info(self, device: Any = None) -> tuple[int, int]:
        del device
        return max(self.session.memory - self.session.tags.allocated, 0), self.session.memory

    def _reset_peak(self, device: Any = None) -> None:
        del device
        self.session.tags.peak = self.session.tags.allocated

    def _stats(self, device: Any = None) -> OrderedDict[str, int]:
        del device
        tags = self.session.tags
        stats: OrderedDict[str, int] = OrderedDict()
        for kind in ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"):
            stats[f"{kind}.all.current"] = tags.allocated
            stats[f"{kind}.all.peak"] = tags.peak
        stats["num_ooms"] = stats["num_alloc_retries"] = 0
        return stats

    def nvtx_functions(self) -> dict[str, Any]:
        """Replacements in ``torch.cuda.nvtx``: markers that nobody reads."""
        return {
            "range_push": lambda _msg: 0,
            "range_pop": lambda: 0,
            "mark": _nothing,
            "range_start": lambda _msg: 0,
            "range_end": _nothing,
            "range": _nvtx_range,
        }


class MemPool:
    """A memory pool: a token, since all virtual memory is one."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        from capdoctor.capture.graphs import graph_pool_handle

        self.id = graph_pool_handle()

    def snapshot(self, *_args: Any) -> list[Any]:
        """Nothing to show."""
        return []


@contextlib.contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Allocate from a pool; here that changes nothing."""
    del pool, device
    yield


@contextlib.contextmanager
def _nvtx_range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    del msg, args, kwargs
    yield


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """For calls that have no effect on a virtual device."""


def _set_device(device: Any) -> None:
    is_cuda_device(device)


def tensor_type(name: str, dtype: torch.dtype) -> Any:
    """A stand-in for ``torch.cuda.FloatTensor`` and its kin."""

    class _Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, torch.Tensor) and instance.type() == f"torch.cuda.{name}"

    def new(cls: Any, *args: Any) -> torch.Tensor:
        del cls
        if args and not isinstance(args[0], int):
            return torch.tensor(args[0], dtype=dtype, device="cuda")
        return torch.empty(args or (0,), dtype=dtype, device="cuda")

    return _Meta(name, (), {"__new__": new, "__module__": "torch.cuda", "dtype": dtype})
