# mypy: ignore-errors
"""Decode attention that folds query heads into the batch.

The fold repeats every sequence length and sums the lengths up into an index pointer, whose first
entry is written as a Python scalar.
"""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8]
HEADS, SUPPORTED_HEADS, WIDTH = 32, 16, 8


def _fold_seqlen_indptr(indptr, fold_factor):
    """Repeat each length ``fold_factor`` times and sum up, starting at 0."""
    lengths = indptr[1:] - indptr[:-1]
    folded = lengths.repeat_interleave(fold_factor)
    out = torch.empty(folded.numel() + 1, dtype=indptr.dtype, device=indptr.device)
    out[0] = 0
    out[1:] = torch.cumsum(folded, dim=0).to(indptr.dtype)
    return out


class MLADecode(nn.Module):
    """Scales each head's output by the length of its folded sequence."""

    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, HEADS * WIDTH, bias=False)
        self.fold_factor = HEADS // SUPPORTED_HEADS

    def forward(self, hidden, kv_indptr):
        batch = hidden.shape[0]
        query = self.query(hidden).view(batch * self.fold_factor, SUPPORTED_HEADS, WIDTH)
        indptr = _fold_seqlen_indptr(kv_indptr, self.fold_factor)
        lengths = (indptr[1:] - indptr[:-1]).to(query.dtype)
        return (query / lengths[:, None, None]).reshape(batch, HEADS, WIDTH)


def build():
    return MLADecode()


def inputs(batch):
    hidden = torch.randn(batch, WIDTH, device="cuda")
    kv_indptr = torch.arange(0, 3 * batch + 1, 3, dtype=torch.int32, device="cuda")
    return hidden, kv_indptr
