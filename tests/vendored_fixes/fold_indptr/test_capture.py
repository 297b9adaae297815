"""One capture on the virtual device: the old function breaks it, the new one does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capdoctor import vendored_fixes
from tests.helpers.fix_cases import Case, cases_of
from tests.vendored_fixes.fold_indptr.test_values import by_lists, function

torch = pytest.importorskip("torch")
ROOM = Path(vendored_fixes.__file__).parent / "fold_indptr"
CASES = [
    case
    for case in cases_of(ROOM)
    # Those call what no virtual device can run, or allocate on another device.
    if case.changes and case.path.stem not in {"no_running_sum", "other_device"}
]


def captured(data: bytes, name: str) -> Any:
    """Capture one call; give the result on the host and what it must be."""
    from capdoctor.capture.device import VirtualDevice

    fold = function(data)
    with VirtualDevice():
        indptr = torch.tensor([0, 3, 3, 7], dtype=torch.int32, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = fold(indptr, 4)
        graph.replay()
        return name, out.cpu(), by_lists(indptr.cpu(), 4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_the_old_one_breaks_the_capture_and_the_new_one_does_not(case: Case) -> None:
    ((name, after),) = case.after.items()
    if case.path.stem != "two_branches":  # its first definition is fixed already
        with pytest.raises(RuntimeError, match="Cannot copy between CPU and CUDA tensors"):
            captured(case.before[name], name)
    _, out, wanted = captured(after, name)
    assert out[0] == 0
    assert torch.equal(out[1:], wanted)
