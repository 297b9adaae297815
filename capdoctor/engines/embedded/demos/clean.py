# mypy: ignore-errors
"""A legal model: side stream joined, eager break, random numbers, writes by mask."""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8]
WIDTH, DROPPED_BELOW = 32, 0.9


class SharedExpert(nn.Module):
    """Runs beside the router on a stream of its own and joins before it is used."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, WIDTH, bias=False)
        self.side_stream = torch.cuda.Stream()

    def forward(self, hidden):
        main = torch.cuda.current_stream()
        self.side_stream.wait_stream(main)
        with torch.cuda.stream(self.side_stream):
            shared = torch.relu(self.up(hidden))
        gate = torch.sigmoid(hidden.mean(-1, keepdim=True))
        main.wait_stream(self.side_stream)
        return gate * shared


class Attention(nn.Module):
    eager_break = True

    def forward(self, hidden, lengths):
        return hidden * lengths.unsqueeze(-1) / lengths.max()


class CleanModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.expert = SharedExpert()
        self.attention = Attention()
        self.output = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, hidden, lengths):
        hidden = self.expert(hidden)
        hidden = self.attention(hidden, lengths)
        noise = torch.rand_like(hidden)
        hidden = torch.where(noise > DROPPED_BELOW, torch.zeros_like(hidden), hidden)
        hidden[hidden < 0] = 0.0
        return self.output(hidden)


def build():
    return CleanModel()


def inputs(batch):
    return torch.randn(batch, WIDTH, device="cuda"), torch.arange(1, batch + 1, device="cuda")
