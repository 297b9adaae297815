"""The HiSparse half of ``sparse-mla``: residency is resolved on a copy stream, behind the event.

Loads the real ``vllm/v1/hisparse/runtime.py`` and calls its ``_resolve_and_stage_group``, the
third place that the fix of vLLM PR 56825 touches.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

from capdoctor.capture.scenarios.outcome import NotApplicable
from capdoctor.capture.scenarios.sources import load
from capdoctor.capture.scenarios.sparse_mla import SparseMLA
from capdoctor.capture.scenarios.vllm_stubs import vllm_stubs
from capdoctor.capture.scenarios.watched import WatchedTorch

_RUNTIME = "v1/hisparse/runtime.py"
_METHOD = "_resolve_and_stage_group"


def _swap_nothing(rows: slice) -> None:
    """Stand in for the copy of rows from host memory."""
    del rows


class HiSparse(SparseMLA):
    """The index group of `SparseMLA`, whose conversion is the HiSparse runtime's."""

    def _build_group(self) -> tuple[Any, list[int]]:
        group, layers = super()._build_group()
        self.runtime = self._build_runtime(group)
        return group, layers

    def _build_runtime(self, group: Any) -> Any:
        path = self.package / _RUNTIME
        if not path.is_file():
            raise NotApplicable(f"this tree has no vllm/{_RUNTIME}")
        stubs = vllm_stubs(self.package, self.watch, self.forward_pass, self._convert)
        module = load(path, "vllm.v1.hisparse.runtime", WatchedTorch(self.watch), stubs)
        runtime_class: Any = getattr(module, "HiSparseRuntime", None)
        if not hasattr(runtime_class, _METHOD):
            raise NotApplicable(f"this HiSparse runtime has no {_METHOD}")
        runtime = runtime_class.__new__(runtime_class)
        self.resolved = self.torch.empty_like(self.logical)
        runtime.index_group = SimpleNamespace(
            logical_topk_ready=group.logical_topk_ready,
            copy_stream=group.side_stream,
            followers=[],
            request_ids=self.metadata.req_id_per_token.clone(),
            row_indices=self.metadata.req_id_per_token.clone(),
        )
        runtime._layer_ready_event = None  # noqa: SLF001 - the runtime's own fields
        runtime._swap_staged = False  # noqa: SLF001
        runtime._resolve_residency = self._resolve  # noqa: SLF001
        runtime._swap_rows = _swap_nothing  # noqa: SLF001
        return runtime

    def _resolve(self, **given: Any) -> None:
        """Stand in for the residency kernel: convert, on the copy stream."""
        self._convert(
            self.metadata.req_id_per_token,
            given["block_table"],
            given["topk_indices"],
            BLOCK_SIZE=given["block_size"],
            out=self.resolved,
        )

    def _call_convert(self, layer: int) -> Any:
        if layer == self.layers[0]:
            self._stage()
        event = self.runtime._layer_ready_event  # noqa: SLF001
        self.watch.current_stream().wait_event(event)
        return self.resolved

    def _stage(self) -> None:
        method = getattr(self.runtime, _METHOD)
        known: dict[str, Any] = {
            "resident": SimpleNamespace(decode_batch=True),
            "req_id_per_token": self.metadata.req_id_per_token,
            "block_table": self.metadata.block_table,
            "logical_topk_indices": self.logical,
            "block_size": self.metadata.block_size,
            "return_valid_counts": False,
            "shared_rows": slice(0, self.logical.shape[0]),
            "attention_indices_out": None,
            "valid_counts_out": None,
            "num_valid_rows": self.metadata.query_start_loc[-1:],
        }
        accepted = inspect.signature(method).parameters
        method(**{name: value for name, value in known.items() if name in accepted})
