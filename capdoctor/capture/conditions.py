"""When an operator that may break a rule does: named conditions of the operations table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from capdoctor.capture.provenance import Tags

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]
_MASKS = (torch.bool, torch.uint8)


def _no_output_size(_tags: Tags, args: Args, kwargs: Kwargs) -> bool:
    given = args[1] if len(args) > 1 else kwargs.get("output_size")
    return given is None


def _indexed_by_device_mask(tags: Tags, args: Args, _kwargs: Kwargs) -> bool:
    return any(
        index is not None and index.dtype in _MASKS and tags.is_cuda(index) for index in args[1]
    )


def _mask_store_of_tensor(tags: Tags, args: Args, kwargs: Kwargs) -> bool:
    """A host scalar stored by mask becomes masked_fill_; anything else needs the positions.

    Read: canDispatchToMaskedFill in TensorAdvancedIndexing.
    """
    value = args[2]
    accumulate = args[3] if len(args) > 3 else kwargs.get("accumulate", False)  # noqa: PLR2004
    host_scalar = value.numel() == 1 and not tags.is_cuda(value) and not accumulate
    return not host_scalar and _indexed_by_device_mask(tags, args, kwargs)


def _two_different_tensors(_tags: Tags, args: Args, _kwargs: Kwargs) -> bool:
    """torch.equal answers on the host alone for one and the same tensor, or for other shapes."""
    left, right = args
    if left.shape != right.shape or left.numel() == 0:
        return False
    same = left.data_ptr() == right.data_ptr() and left.stride() == right.stride()
    return not (same and left.dtype == right.dtype)


def _third_is_on_device(tags: Tags, args: Args, _kwargs: Kwargs) -> bool:
    return tags.is_cuda(args[2])


def _many_test_elements(_tags: Tags, args: Args, _kwargs: Kwargs) -> bool:
    """Above this size isin sorts instead of comparing (read: isin in TensorCompare)."""
    elements, tests = args[0].numel(), args[1].numel()
    return bool(tests >= 10.0 * elements**0.145)


def _checks_lengths(_tags: Tags, _args: Args, kwargs: Kwargs) -> bool:
    return not kwargs.get("unsafe", False)


def _range_from_values(_tags: Tags, args: Args, kwargs: Kwargs) -> bool:
    low = args[2] if len(args) > 2 else kwargs.get("min", 0)  # noqa: PLR2004
    high = args[3] if len(args) > 3 else kwargs.get("max", 0)  # noqa: PLR2004
    return bool(low == high)


CONDITIONS: Mapping[str, Callable[[Tags, Args, Kwargs], bool]] = {
    "no_output_size": _no_output_size,
    "indexed_by_device_mask": _indexed_by_device_mask,
    "mask_store_of_tensor": _mask_store_of_tensor,
    "two_different_tensors": _two_different_tensors,
    "third_is_on_device": _third_is_on_device,
    "many_test_elements": _many_test_elements,
    "checks_lengths": _checks_lengths,
    "range_from_values": _range_from_values,
}
