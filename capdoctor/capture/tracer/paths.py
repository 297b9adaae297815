"""Files of a stack as the model's frames name them: from the package on."""

from __future__ import annotations

_SITES = ("/site-packages/", "/dist-packages/")


def shown_path(file: str) -> str:
    """``vllm/v1/worker.py`` for an installed package's file, else the path as it is."""
    for site in _SITES:
        if site in file:
            return file.rpartition(site)[2]
    return file
