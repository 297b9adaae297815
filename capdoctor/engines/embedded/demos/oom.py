# mypy: ignore-errors
"""Split-K products with a workspace for each batch size, kept so that graphs can use it again."""

import torch
from torch import nn

CAPTURE_SIZES = [1, 2, 4, 8, 16, 32]
WIDTH, SPLITS = 64, 16
WORKSPACE_ROWS = 8192


class SplitKScale(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.Parameter(torch.randn(SPLITS, 1, WIDTH), requires_grad=False)
        self._workspaces = {}

    def _workspace(self, batch):
        """Partial sums of all splits, padded to whole tiles; a graph needs them to stay."""
        if not torch.cuda.is_current_stream_capturing():
            return torch.empty(SPLITS, batch, WIDTH, device="cuda")
        if batch not in self._workspaces:
            self._workspaces[batch] = torch.empty(SPLITS, WORKSPACE_ROWS, WIDTH, device="cuda")
        return self._workspaces[batch][:, :batch]

    def forward(self, hidden):
        partial = self._workspace(hidden.shape[0])
        torch.mul(hidden.unsqueeze(0), self.scales, out=partial)
        return partial.sum(0)


def build():
    return SplitKScale()


def inputs(batch):
    return (torch.randn(batch, WIDTH, device="cuda"),)
