"""Optimisers sort tensors by device in C++, which sees host tensors: name the right device."""

from __future__ import annotations

from typing import Any

import torch

from capdoctor.capture.patches import Patches
from capdoctor.capture.session import DEVICE, Session

_NAME = "_group_tensors_by_device_and_dtype"


def install(patches: Patches, session: Session) -> None:
    """Replace the function of ``torch._C`` that sorts."""
    plain = getattr(torch._C, _NAME, None)  # noqa: SLF001
    if plain is None:
        return

    def group(lists: list[list[Any]], with_indices: bool = False) -> Any:
        found = {}
        for (device, dtype), group in plain(lists, with_indices).items():
            leaders = group[0][0]
            virtual = bool(leaders) and leaders[0] is not None and session.tags.is_cuda(leaders[0])
            found[(DEVICE if virtual else device, dtype)] = group
        return found

    patches.set(torch._C, _NAME, group)  # noqa: SLF001
