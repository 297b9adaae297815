# mypy: ignore-errors
"""Attention metadata from a table of tuned split counts, which was filled for other sizes."""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8]
WIDTH = 32

# Found by the tuning script for the batch sizes of its traces.
TUNED_SPLITS = {1: 8, 2: 4, 8: 1}


def _build_decode_metadata(seq_lens):
    batch = seq_lens.shape[0]
    num_splits = TUNED_SPLITS[batch]
    return num_splits, seq_lens.repeat(num_splits)


class DecodeAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden, seq_lens):
        num_splits, lengths = _build_decode_metadata(seq_lens)
        query = self.query(hidden).repeat(num_splits, 1) / lengths.unsqueeze(-1)
        return query.view(num_splits, *hidden.shape).sum(0)


def build():
    return DecodeAttention()


def inputs(batch):
    hidden = torch.randn(batch, WIDTH, device="cuda")
    return hidden, torch.full((batch,), 16, device="cuda")
