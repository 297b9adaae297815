"""A small tree of our own that holds aiter's function before and after its repair."""

from __future__ import annotations

from pathlib import Path

_HEAD = '''"""A stand-in for the module that folds index pointers."""

import torch


def _fold_seqlen_indptr(indptr, fold_factor):
    lens = (indptr[1:] - indptr[:-1]).repeat_interleave(fold_factor)
'''
_BODIES = {
    "before": """    out = torch.empty(lens.numel() + 1, dtype=indptr.dtype, device=indptr.device)
    out[0] = 0
    out[1:] = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return out
""",
    "after": """    folded = torch.cumsum(lens, dim=0).to(indptr.dtype)
    return torch.nn.functional.pad(folded, (1, 0), value=0)
""",
}


def write_tree(folder: Path, which: str) -> None:
    """Write ``aiter/mla.py`` as it was ``before`` or is ``after`` the repair."""
    package = folder / "aiter"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    (package / "mla.py").write_text(_HEAD + _BODIES[which])
