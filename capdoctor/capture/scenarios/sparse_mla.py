"""Scenario ``sparse-mla``: vLLM's sparse MLA index group, record in a segment, wait in a break.

Loads the real ``index_group.py`` (and the HiSparse runtime that it imports) of a tree. One layer
computes indices on the capture stream and records that they are ready; two layers convert them
on a side stream, from an eager break. Facts: vLLM PR 56825 and issue 56785.
"""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from capdoctor.capture.scenarios.drive import Forward, GraphMode, run_eagerly
from capdoctor.capture.scenarios.ordering import Order
from capdoctor.capture.scenarios.outcome import CannotExercise, NotApplicable, WrongResult
from capdoctor.capture.scenarios.sources import load, package_folder
from capdoctor.capture.scenarios.vllm_stubs import vllm_stubs
from capdoctor.capture.scenarios.watched import Watch, WatchedTorch
from capdoctor.capture.segments import PiecewiseCapture

_INDEX_GROUP = "v1/attention/backends/mla/index_group.py"
_ROWS, _TOPK, _BLOCK = 4, 8, 4
_LAYERS = 2


class SparseMLA:
    """One index group of two layers, driven as the attention layers drive it."""

    def __init__(self, source: Path, device: str) -> None:
        import torch

        self.package = package_folder(source, "vllm")
        self.forward_pass = Forward()
        self.order = Order()
        self.watch = Watch(self.order)
        self.torch = torch
        self.hidden = torch.arange(_ROWS * _TOPK, device=device, dtype=torch.int32)
        self.hidden = self.hidden.view(_ROWS, _TOPK).remainder(_BLOCK * 2).clone()
        self.logical = torch.zeros(_ROWS, _TOPK, device=device, dtype=torch.int32)
        self.used = [torch.zeros_like(self.logical) for _ in range(_LAYERS)]
        self.metadata = self._metadata(device)
        self.module = self._load()
        self.group, self.layers = self._build_group()

    def _metadata(self, device: str) -> SimpleNamespace:
        """Give what the conversion asks of an attention metadata object."""
        torch = self.torch
        rows = torch.arange(_ROWS, device=device, dtype=torch.int32)
        table = torch.arange(_ROWS * 3, device=device, dtype=torch.int32).view(_ROWS, 3) + 3
        start = torch.arange(_ROWS + 1, device=device, dtype=torch.int32)
        return SimpleNamespace(
            req_id_per_token=rows,
            block_table=table,
            block_size=_BLOCK,
            query_start_loc=start,
            num_decodes=_ROWS,
            num_decode_tokens=_ROWS,
            num_actual_tokens=_ROWS,
            num_reqs=_ROWS,
            max_query_len=1,
            decode_max_query_len=1,
            prefill=None,
        )

    def _load(self) -> ModuleType:
        path = self.package / _INDEX_GROUP
        if not path.is_file():
            raise NotApplicable(f"this tree has no vllm/{_INDEX_GROUP} (vLLM 0.29 and older)")
        stubs = vllm_stubs(self.package, self.watch, self.forward_pass, self._convert)
        name = "vllm." + _INDEX_GROUP.removesuffix(".py").replace("/", ".")
        return load(path, name, WatchedTorch(self.watch), stubs)

    def _build_group(self) -> tuple[Any, list[int]]:
        builder_class = getattr(self.module, "SparseMLAIndexGroupBuilder", None)
        group_class = getattr(self.module, "SparseMLAIndexGroup", None)
        if builder_class is None or group_class is None:
            raise NotApplicable("this index_group.py has no SparseMLAIndexGroup and its builder")
        if not hasattr(group_class, "convert_logical_to_physical_topk"):
            raise NotApplicable("this index_group.py does not convert indices by itself")
        if not hasattr(group_class, "set_logical_topk_ready"):
            raise NotApplicable("this index_group.py records no event for its indices")
        builder = builder_class(self.logical)
        registered = [builder.register_layer(index == 0) for index in range(_LAYERS)]
        group = registered[0][0]
        if any(other is not group for other, _ in registered):
            raise CannotExercise("the builder gives a following layer a group of its own")
        return group, [index for _, index in registered]

    def forward(self) -> None:
        """Compute indices, say that they are ready, convert and use them layer by layer."""
        self.logical.copy_(self.hidden + 1)
        self._note_write()
        self.group.set_logical_topk_ready(self.layers[0])
        for layer in self.layers:
            run_eagerly(functools.partial(self._attend, layer), self.forward_pass)
            self.hidden.add_(0)

    def _note_write(self) -> None:
        capture = PiecewiseCapture.running()
        if capture is None:
            self._wrote_indices()
        else:
            # A replayed segment writes again, without Python.
            capture.note(self._wrote_indices)

    def _wrote_indices(self) -> None:
        self.order.wrote("logical_topk_indices", self.watch.here())

    def _attend(self, layer: int) -> None:
        """Be one layer's attention: convert the indices and read the result."""
        converted = self._call_convert(layer)
        self.order.reads("physical_topk_indices", self.watch.here())
        self.used[layer].copy_(converted)

    def _call_convert(self, layer: int) -> Any:
        convert = self.group.convert_logical_to_physical_topk
        known: dict[str, Any] = {
            "block_stride_rows": None,
            "return_valid_counts": False,
        }
        accepted = inspect.signature(convert).parameters
        given = {name: value for name, value in known.items() if name in accepted}
        return convert(layer, self.logical, self.metadata, **given)

    def _convert(self, *args: Any, **kwargs: Any) -> Any:
        """Stand in for the Triton kernel: real values, on whatever stream is current."""
        torch, here = self.torch, self.watch.here()
        self.order.reads("logical_topk_indices", here)
        request, table, logical = args[:3]
        block = int(kwargs.get("BLOCK_SIZE", _BLOCK))
        rows = request.long().unsqueeze(1)
        physical = table[rows, (logical // block).long()] * block + logical % block
        out = kwargs.get("out")
        if out is None:
            out = torch.empty_like(logical)
        out.copy_(physical)
        self.order.wrote("physical_topk_indices", here)
        counts = kwargs.get("valid_counts_out")
        if counts is not None:
            counts.fill_(logical.shape[1])
        return (out, counts) if kwargs.get("return_valid_counts") else out

    def change_inputs(self) -> None:
        """Give the hidden states other values; the graphs read the same memory."""
        self.hidden.copy_(self.hidden.flip(0))

    def check(self) -> None:
        """Compare what the layers used with what they should have used."""
        torch = self.torch
        torch.cuda.synchronize()
        self.order.barrier()
        logical = self.hidden + 1
        rows = torch.arange(_ROWS, device=logical.device).unsqueeze(1)
        table = self.metadata.block_table
        wanted = table[rows, (logical // _BLOCK).long()] * _BLOCK + logical % _BLOCK
        for layer, used in enumerate(self.used):
            if not torch.equal(used, wanted):
                raise WrongResult(f"layer {layer} used indices of an earlier batch")


MODES = (GraphMode.PIECEWISE, GraphMode.FULL)
