# mypy: ignore-errors
"""A sampler with a generator of its own, so that its choices do not depend on other layers."""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8]
VOCABULARY, WIDTH = 64, 32


class GumbelSampler(nn.Module):
    def __init__(self, seed):
        super().__init__()
        self.generator = torch.Generator(device="cuda")
        self.generator.manual_seed(seed)

    def forward(self, logits):
        noise = torch.empty_like(logits)
        noise.exponential_(generator=self.generator)
        return (logits - noise.log()).argmax(dim=-1)


class LanguageHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.sampler = GumbelSampler(seed=7)

    def forward(self, hidden):
        return self.sampler(self.head(hidden))


def build():
    return LanguageHead()


def inputs(batch):
    return (torch.randn(batch, WIDTH, device="cuda"),)
