"""Which names of torch are replaced while the device is on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from capdoctor.capture import (
    device_info,
    foreach_groups,
    generators,
    graphs,
    pickling,
    storages,
    streams,
)
from capdoctor.capture.factories import is_cuda_device
from capdoctor.capture.patches import Patches, replace_all
from capdoctor.capture.session import Session


def install(patches: Patches, session: Session, watch_thread: Callable[[Any], Any]) -> None:
    """Replace everything; ``watch_thread`` wraps what a new thread runs."""
    streams.Stream.session = streams.Event.session = session
    graphs.CUDAGraph.session = generators.CudaGenerator.session = session
    _streams_and_graphs(patches)
    _generic(patches)
    _device(patches, session)
    patches.set(torch.Tensor, "record_stream", lambda _self, _stream: None)
    pickling.install(patches, session)
    foreach_groups.install(patches, session)
    storages.install(patches, session)
    patches.set(
        threading.Thread,
        "_bootstrap_inner",
        watch_thread(threading.Thread._bootstrap_inner),  # type: ignore[attr-defined]  # noqa: SLF001
    )


def _streams_and_graphs(patches: Patches) -> None:
    cuda = torch.cuda
    own = {
        "Stream": streams.Stream,
        "ExternalStream": streams.ExternalStream,
        "Event": streams.Event,
    }
    replace_all(patches, cuda.streams, own)
    functions = {
        "current_stream": streams.current_stream,
        "default_stream": streams.default_stream,
        "set_stream": streams.set_stream,
        "get_stream_from_external": streams.external_stream,
        "synchronize": streams.synchronize,
        "is_current_stream_capturing": streams.is_current_stream_capturing,
        "graph_pool_handle": graphs.graph_pool_handle,
        "CUDAGraph": graphs.CUDAGraph,
    }
    replace_all(patches, cuda, {**own, **functions})
    in_graphs = ("is_current_stream_capturing", "graph_pool_handle", "CUDAGraph")
    replace_all(patches, cuda.graphs, {name: functions[name] for name in in_graphs})
    patches.set(cuda.graph, "default_capture_stream", None)
    low_level = {**device_info.LOW_LEVEL, "_cuda_getCurrentRawStream": streams.current_handle}
    replace_all(patches, torch._C, low_level)  # noqa: SLF001 - absent on CPU builds


def _generic(patches: Patches) -> None:
    patches.set(torch, "Stream", streams.generic(torch.Stream, streams.Stream, "Stream"))
    patches.set(torch, "Event", streams.generic(torch.Event, streams.Event, "Event"))
    patches.set(torch, "Generator", generators.Generator)
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    replace_all(
        patches,
        accelerator,
        {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "current_accelerator": lambda check_available=False: torch.device("cuda"),  # noqa: ARG005
            "current_device_index": lambda: 0,
            "current_device_idx": lambda: 0,
            "set_device_index": is_cuda_device,
            "set_device_idx": is_cuda_device,
            "current_stream": streams.current_stream,
            "set_stream": streams.set_stream,
            "synchronize": streams.synchronize,
            "empty_cache": lambda: None,
            "empty_host_cache": lambda: None,
        },
    )
    if hasattr(accelerator, "Graph"):
        patches.set(accelerator, "Graph", _no_generic_graph)


def _no_generic_graph(*_args: Any, **_kwargs: Any) -> None:
    """Refuse as torch 2.13 does, the first release with that class (measured on an H200).

    Raises:
        RuntimeError: always.
    """
    raise RuntimeError("Graph is not supported on device type: cuda")


def _device(patches: Patches, session: Session) -> None:
    cuda = torch.cuda
    info = device_info.DeviceInfo(session)
    replace_all(patches, cuda, info.functions())
    in_random = ("_lazy_init", "is_initialized", "device_count", "current_device")
    replace_all(patches, cuda.random, {name: info.functions()[name] for name in in_random})
    replace_all(patches, cuda.memory, info.memory_functions())
    replace_all(patches, cuda.nvtx, info.nvtx_functions())
    cudnn = getattr(torch.backends.cudnn, "m", torch.backends.cudnn)
    patches.set(cudnn, "is_acceptable", lambda _tensor: False)  # the values lie on the host
    default = generators.CudaGenerator.__new__(generators.CudaGenerator)
    generators.CudaGenerator.__init__(default)
    patches.set(cuda, "default_generators", (default,))
    for name, dtype in device_info.TENSOR_TYPES.items():
        patches.set(cuda, name, device_info.tensor_type(name, dtype))
