# mypy: ignore-errors
"""Sparse attention whose index conversion runs ahead on a side stream.

The event that says "the top-k indices are there" is recorded by code that piecewise mode captures,
and waited for by code that runs eagerly between two captured segments.
"""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8]
HIDDEN, TOPK, BLOCK = 32, 4, 16


class SparseMLAIndexGroup:
    """Shares one conversion of logical to physical indices among the layers of a group."""

    def __init__(self):
        self.side_stream = torch.cuda.Stream()
        self.logical_topk_ready = torch.cuda.Event()
        self.converted = torch.cuda.Event()

    def set_logical_topk_ready(self):
        self.logical_topk_ready.record(torch.cuda.current_stream())

    def convert_logical_to_physical_topk(self, logical, block_table):
        physical = self._convert_once(logical, block_table)
        torch.cuda.current_stream().wait_event(self.converted)
        return physical

    def _convert_once(self, logical, block_table):
        side_stream = self.side_stream
        side_stream.wait_event(self.logical_topk_ready)
        with torch.cuda.stream(side_stream):
            physical = block_table.gather(1, logical // BLOCK) * BLOCK + logical % BLOCK
            self.converted.record(side_stream)
        return physical


class Indexer(nn.Module):
    """Chooses the tokens that each query attends to."""

    def __init__(self, group):
        super().__init__()
        self.score = nn.Linear(HIDDEN, 2 * BLOCK, bias=False)
        self.group = group

    def forward(self, hidden):
        logical = self.score(hidden).topk(TOPK, dim=-1).indices
        self.group.set_logical_topk_ready()
        return logical


class MLAAttention(nn.Module):
    """Attends to the chosen tokens; too irregular for a graph."""

    eager_break = True

    def __init__(self, group):
        super().__init__()
        self.group = group

    def forward(self, hidden, logical, block_table, kv_cache):
        physical = self.group.convert_logical_to_physical_topk(logical, block_table)
        keys = kv_cache[physical]
        weights = torch.softmax((keys * hidden.unsqueeze(1)).sum(-1), dim=-1)
        return (weights.unsqueeze(-1) * keys).sum(1)


class SparseMLAModel(nn.Module):
    def __init__(self):
        super().__init__()
        group = SparseMLAIndexGroup()
        self.indexer = Indexer(group)
        self.attention = MLAAttention(group)
        self.output = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.register_buffer("kv_cache", torch.randn(4 * BLOCK, HIDDEN))

    def forward(self, hidden, block_table):
        logical = self.indexer(hidden)
        attended = self.attention(hidden, logical, block_table, self.kv_cache)
        return self.output(attended + hidden)


def build():
    return SparseMLAModel()


def inputs(batch):
    hidden = torch.randn(batch, HIDDEN, device="cuda")
    block_table = torch.randint(0, 4, (batch, 2), device="cuda")
    return hidden, block_table
