"""What the callers of a function say about its parameters."""

from __future__ import annotations

import pytest

from capdoctor.capture.static.rank import candidates
from capdoctor.capture.static.reach import Tree
from capdoctor.capture.static.read_file import read_source

HEAD = """
import torch

def total(lens: torch.Tensor, scale: torch.Tensor = None):
    if scale is None:
        scale = torch.tensor([1.0], device=lens.device)
    return (lens * 2).sum().item()

def captured(x: torch.Tensor, lens_cpu: torch.Tensor, maybe: torch.Tensor | None):
"""


def rules(body: str) -> list[str]:
    source = read_source(HEAD + f"    {body}\n", "m.py", "m")
    other = read_source("import torch\n", "other.py", "other")
    return [item.rule for item in candidates(Tree([source, other]))]


BOTH = ["host-read", "host-to-device-copy"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("total(x)", BOTH),
        ("total(lens_cpu)", ["host-to-device-copy"]),
        ("total(lens=lens_cpu)", ["host-to-device-copy"]),
        ("total(lens_cpu); total(x)", BOTH),
        ("total(x, x)", ["host-read"]),
        ("total(x, scale=x)", ["host-read"]),
        ("total(x, scale=x.scale)", ["host-read"]),
        ("total(x, maybe)", BOTH),
        ("total(x, None)", BOTH),
        ("total(x, x); total(x)", BOTH),
        ("total(lens_cpu, x)", []),
        ("total(*[lens_cpu, x])", BOTH),
        ("total(**{'lens': lens_cpu})", BOTH),
        ("list(map(total, [lens_cpu]))", BOTH),
    ],
)
def test_what_every_caller_gives_decides(body: str, expected: list[str]) -> None:
    assert sorted(rules(body)) == expected


@pytest.mark.parametrize("argument", ["lens_cpu", "lens=lens_cpu"])
def test_a_method_is_called_without_its_self(argument: str) -> None:
    source = read_source(
        "import torch\n"
        "class Layer(torch.nn.Module):\n"
        "    def forward(self, x: torch.Tensor, lens_cpu: torch.Tensor):\n"
        f"        return self.total({argument})\n"
        "    def total(self, lens: torch.Tensor):\n"
        "        return lens.sum().item()\n",
        "m.py",
        "m",
    )
    assert candidates(Tree([source])) == []


def test_a_root_is_called_by_others_too() -> None:
    source = read_source(
        "import torch\n"
        "class Layer(torch.nn.Module):\n"
        "    def forward(self, lens: torch.Tensor):\n"
        "        return lens.sum().item()\n"
        "    def run(self, lens_cpu):\n"
        "        return self.forward(lens_cpu)\n",
        "m.py",
        "m",
    )
    assert [item.rule for item in candidates(Tree([source]))] == ["host-read"]
