# mypy: ignore-errors
"""Attention that picks its kernel by the longest sequence, which only the device knows."""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8]
WIDTH, SPLIT_ABOVE = 32, 64


def _choose_num_splits(seq_lens):
    longest = int(seq_lens.max())
    return 4 if longest > SPLIT_ABOVE else 1


class SplitAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden, seq_lens):
        splits = _choose_num_splits(seq_lens)
        parts = self.query(hidden).chunk(splits, dim=-1)
        return torch.cat([part / seq_lens.unsqueeze(-1) for part in parts], dim=-1)


def build():
    return SplitAttention()


def inputs(batch):
    hidden = torch.randn(batch, WIDTH, device="cuda")
    return hidden, torch.full((batch,), 96, device="cuda")
