# mypy: ignore-errors
"""An expert that is prefetched on a copy stream and awaited only after attention.

Attention is an eager break, so the fork lies in one captured segment and the join in the next.
"""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8]
WIDTH = 32


class ExpertOffloader:
    """Brings the weights of the next expert into a staging buffer."""

    def __init__(self, weight):
        self.copy_stream = torch.cuda.Stream()
        self.weight = weight
        self.staged = torch.empty_like(weight)

    def start_prefetch(self):
        self.copy_stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.copy_stream):
            self.staged.copy_(self.weight)

    def wait_for_expert(self):
        torch.cuda.current_stream().wait_stream(self.copy_stream)
        return self.staged


class Attention(nn.Module):
    eager_break = True

    def forward(self, hidden):
        return torch.softmax(hidden, dim=-1) * hidden


class OffloadedLayer(nn.Module):
    def __init__(self):
        super().__init__()
        weight = torch.randn(WIDTH, WIDTH, device="cuda")
        self.offloader = ExpertOffloader(weight)
        self.norm = nn.LayerNorm(WIDTH)
        self.attention = Attention()

    def forward(self, hidden):
        self.offloader.start_prefetch()
        hidden = self.norm(hidden)
        hidden = self.attention(hidden)
        expert = self.offloader.wait_for_expert()
        return hidden @ expert


def build():
    return OffloadedLayer()


def inputs(batch):
    return (torch.randn(batch, WIDTH, device="cuda"),)
