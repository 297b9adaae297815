"""What the static pass takes for illegal, and what it must not."""

from __future__ import annotations

import textwrap

import pytest

from capdoctor.capture.static.rank import candidates
from capdoctor.capture.static.reach import Tree
from capdoctor.capture.static.read_file import read_source
from capdoctor.model import Candidate

HEAD = """
import numpy as np
import torch
import torch.nn as nn
from torch import Tensor

class Layer(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.scale = torch.ones(n, n)
        self.table = torch.zeros(n, dtype=torch.int32, device="cuda")
        self.names = ["a"]
        self.event = torch.cuda.Event()

    def forward(self, x: Tensor, lens: torch.Tensor, lens_cpu: Tensor, n: int, flag: bool = True):
"""


def found(body: str) -> list[Candidate]:
    """Give the candidates of a forward method with this body."""
    source = HEAD + textwrap.indent(textwrap.dedent(body).strip(), " " * 8) + "\n"
    return candidates(Tree([read_source(source, "layer.py", "layer")]))


def rules(body: str) -> list[str]:
    return [item.rule for item in found(body) if item.certainty != "weak"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("return lens.sum().item()", "host-read"),
        ("return lens.tolist()", "host-read"),
        ("return int(lens[0])", "host-read"),
        ("return x[: lens[0]]", "host-read"),
        ("print(x)", "host-read"),
        ("return self.table.max().item()", "host-read"),
        ("y = x.reshape(-1)\nz = y + 1\nreturn float(z.sum())", "host-read"),
        ("return [int(v) for v in lens]", "host-read"),
        ("if lens.max() > 4:\n    x = x * 2", "host-branch"),
        ("assert torch.all(lens >= 0)", "host-branch"),
        ("while (lens > 0).any():\n    lens = lens - 1", "host-branch"),
        ("y = 1 if x.sum() > 0 else 2", "host-branch"),
        ("if flag and not torch.isfinite(x).all():\n    x = x * 0", "host-branch"),
        ("return x.cpu()", "device-to-host-copy"),
        ("return x.to('cpu')", "device-to-host-copy"),
        ("return x.to(device='cpu')", "device-to-host-copy"),
        ("lens_cpu.copy_(lens)", "device-to-host-copy"),
        ("return torch.tensor([1, 2], device=x.device)", "host-to-device-copy"),
        ("return torch.tensor(1.0, device='cuda')", "host-to-device-copy"),
        ("return torch.as_tensor(self.names, device=x.device)", "host-to-device-copy"),
        ("return lens_cpu.to(x.device)", "host-to-device-copy"),
        ("return lens_cpu.cuda()", "host-to-device-copy"),
        ("return torch.from_numpy(np.zeros(3)).to(x.device)", "host-to-device-copy"),
        ("return torch.arange(n).to(x.device)", "host-to-device-copy"),
        ("lens.copy_(lens_cpu)", "host-to-device-copy"),
        ("out = torch.empty(n + 1, device=x.device)\nout[0] = 0", "scalar-setitem"),
        ("out = torch.empty((n, n), device='cuda')\nout[0, 1] = 2.0", "scalar-setitem"),
        ("out = torch.cumsum(lens.view(-1), 0)\nout[-1] = n", "scalar-setitem"),
        ("self.table[0] = n", "scalar-setitem"),
        ("return x[[0, 1]]", "list-index"),
        ("return x[:, [0, 2, 1]]", "list-index"),
        ("return x[x > 0]", "data-dependent-shape"),
        ("m = lens > 0\nreturn x[m]", "data-dependent-shape"),
        ("return torch.nonzero(lens)", "data-dependent-shape"),
        ("return lens.nonzero(as_tuple=True)", "data-dependent-shape"),
        ("return torch.where(lens > 0)", "data-dependent-shape"),
        ("return torch.unique(lens)", "data-dependent-shape"),
        ("return x.masked_select(x > 0)", "data-dependent-shape"),
        ("return x.repeat_interleave(lens)", "data-dependent-shape"),
        ("return torch.repeat_interleave(x, lens, dim=0)", "data-dependent-shape"),
        ("return torch.equal(x, x + 1)", "host-compare"),
        ("return x.allclose(x + 1)", "host-compare"),
        ("torch.cuda.synchronize()", "synchronize"),
        ("torch.cuda.current_stream().synchronize()", "synchronize"),
        ("self.event.synchronize()", "synchronize"),
        ("return self.event.query()", "event-query"),
        ("torch.manual_seed(0)", "rng-state"),
        ("match n:\n    case 1:\n        return x.tolist()\nreturn x", "host-read"),
        ("with torch.device('cuda'):\n    y = torch.zeros(3)\nreturn y.tolist()", "host-read"),
        ("if (y := x + 1) is not None:\n    y.tolist()", "host-read"),
        ("try:\n    y = x + 1\nfinally:\n    x.tolist()", "host-read"),
    ],
)
def test_what_a_capture_refuses_is_a_candidate(body: str, rule: str) -> None:
    assert rule in rules(body)


@pytest.mark.parametrize(
    "body",
    [
        "return lens_cpu.sum().item()",
        "return lens_cpu.tolist()",
        "return int(x.shape[0])",
        "return x.size(0) + x.numel() + x.dim()",
        "if x.shape[0] > 4:\n    x = x * 2",
        "if x is None or lens is not None:\n    x = x * 2",
        "if x.dtype == torch.float16:\n    x = x * 2",
        "if flag and n > 3:\n    x = x * 2",
        "if torch.is_floating_point(x):\n    x = x * 2",
        "assert x.is_contiguous() and x.dim() == 2",
        "print(x.shape, n)",
        "return x.to(torch.float16)",
        "return x.to(lens.device)",
        "return x.to('cuda')",
        "return lens_cpu.to(torch.int64)",
        "p = torch.empty(n, pin_memory=True)\nreturn p.to(x.device, non_blocking=True)",
        "return torch.tensor([1, 2])",
        "return torch.zeros(n, device=x.device)",
        "return torch.arange(n, device='cuda')",
        "return torch.full((n,), 3, device=x.device)",
        "return torch.as_tensor(x)",
        "out = torch.empty(n + 1, device=x.device)\nout[0:1] = 0",
        "out = torch.empty(n + 1, device=x.device)\nout[:1].zero_()",
        "out = torch.empty(n + 1, device=x.device)\nout[1:] = x",
        "out = torch.empty((n, n), device='cuda')\nout[0] = 0",
        "out = torch.empty(n, device='cuda')\nout[out > 0] = 0",
        "out = torch.empty(n)\nout[0] = 0",
        "out = [0] * n\nout[0] = 1",
        "out = {}\nout['a'] = 1",
        "return x[:, 0]",
        "return x[lens]",
        "return x[..., None]",
        "return torch.where(x > 0, x, -x)",
        "return x.repeat_interleave(4)",
        "return x.repeat_interleave(lens, output_size=n)",
        "return torch.equal(lens_cpu, lens_cpu)",
        "for i in range(n):\n    x = x + i",
        "for name in self.names:\n    x = x + len(name)",
        "self.event.record()",
        "return np.asarray([1]).tolist()",
        "raise ValueError(f'bad {x}')",
        "if x.is_cpu:\n    return x.tolist()\nreturn x",
        "if x.device.type == 'cpu':\n    return x.tolist()\nreturn x",
        "if torch.cuda.is_current_stream_capturing():\n    return x\nreturn x.tolist()",
        "if not torch.cuda.is_current_stream_capturing():\n    x.tolist()\nreturn x",
        "if flag and not is_capturing():\n    torch.cuda.synchronize()",
        "if n < 0:\n    print(x)\n    raise ValueError(x.tolist())",
        "match x:\n    case y:\n        pass\nreturn y.tolist()",
        "def later():\n    return x.tolist()\nreturn later",
    ],
)
def test_what_is_legal_or_never_captured_is_no_candidate(body: str) -> None:
    assert rules(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "if self.cached is None:\n    self.cached = torch.tensor([1.0], device=x.device)",
        "if n not in self.names:\n    torch.cuda.synchronize()",
        "t = self.names.get(n)\nif t is None:\n    t = torch.tensor([n], device=x.device)",
        "if self.cached is not None:\n    return\nself.cached = x.tolist()",
        "if attn.num_prefills > 0:\n    return x.tolist()",
        "if DEBUG:\n    print(x)",
        "try:\n    y = x\nexcept RuntimeError:\n    y = x.cpu()",
    ],
)
def test_what_runs_once_or_seldom_is_only_a_weak_candidate(body: str) -> None:
    assert [item.certainty for item in found(body)] == ["weak"]


def test_a_candidate_says_how_sure_it_is_and_why() -> None:
    (item,) = found("out = torch.empty(n, device='cuda')\nout[0] = 0")
    assert (item.certainty, item.function, item.operation) == ("likely", "Layer.forward", "out[0]")
    assert item.why == "by inference; a forward method"
    assert item.line == HEAD.count("\n") + 2
    assert item.legal_way


def test_every_rule_names_the_run_time_rule_that_confirms_it() -> None:
    from capdoctor.capture.rules import rules as run_time_rules
    from capdoctor.capture.static.tables import rules as static_rules

    assert {rule.confirmed_by for rule in static_rules().values()} <= run_time_rules().keys()


def test_what_is_known_of_branches_that_meet_is_what_holds_on_both() -> None:
    mixed = "y = x\nif flag:\n    y = lens_cpu\nreturn y.tolist()"
    assert rules(mixed) == []
    assert rules("y = x\nif flag:\n    y = x + 1\nreturn y.tolist()") == ["host-read"]


EVENTS = """
import torch
class Group:
    def __init__(self):
        self.side = torch.cuda.Stream()
        self.ready = torch.cuda.Event()
        self.kept = {{}}
    def start(self):
        {record}
    def convert(self):
        {wait}
"""


@pytest.mark.parametrize(
    ("record", "wait", "count"),
    [
        ("self.ready.record()", "self.side.wait_event(self.ready)", 1),
        ("torch.cuda.current_stream().record_event(self.ready)", "a.wait_event(self.ready)", 1),
        ("for e in self.kept.values(): e.record()", "a.wait_event(self.kept[1])", 1),
        ("pass", "self.ready.record(); self.side.wait_event(self.ready)", 0),
        ("self.ready.record()", "self.side.wait_stream(torch.cuda.current_stream())", 0),
        (
            "self.ready.record()",
            "if not in_piecewise_cudagraph(): self.side.wait_event(self.ready)",
            0,
        ),
        ("self.other.record()", "self.side.wait_event(self.ready)", 0),
        ("event.record()", "self.side.wait_event(event)", 0),
    ],
)
def test_events_between_methods_need_a_look(record: str, wait: str, count: int) -> None:
    source = EVENTS.format(record=record, wait=wait)
    items = candidates(Tree([read_source(source, "group.py", "group")]))
    assert [item.rule for item in items] == ["event-across-capture"] * count
