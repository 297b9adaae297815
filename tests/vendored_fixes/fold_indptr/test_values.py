"""Old and new function give the same tensor, over the whole grid, on every case that changes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from capdoctor import vendored_fixes
from tests.helpers.fix_cases import Case, cases_of

torch = pytest.importorskip("torch")
if TYPE_CHECKING:
    from torch import Tensor

BATCHES = (0, 1, 2, 8, 37, 129)
FACTORS = (1, 2, 3, 8, 16)
ROOM = Path(vendored_fixes.__file__).parent / "fold_indptr"
CASES = [case for case in cases_of(ROOM) if case.changes]
Fold = Callable[["Tensor", int], "Tensor"]


def function(data: bytes) -> Fold:
    """Run a case's file and give its function; ``fold_on_device`` is what a case calls."""
    space: dict[str, Any] = {"fold_on_device": by_lists}
    exec(compile(data, "case", "exec"), space)  # noqa: S102 - our own case file
    found: Fold = space.get("_fold_seqlen_indptr") or space["Folding"]._fold_seqlen_indptr
    return found


def by_lists(indptr: Tensor, factor: int) -> Tensor:
    """What the rest must be, computed in plain Python."""
    lengths = [int(b - a) for a, b in itertools.pairwise(indptr.tolist())]
    folded = [length for length in lengths for _ in range(factor)]
    return torch.tensor(list(itertools.accumulate(folded)), dtype=indptr.dtype)


def indptrs(batch: int, dtype: Any, *, strided: bool) -> Tensor:
    """Give an indptr of ``batch`` lengths, zeros among them, contiguous or every second element."""
    generator = torch.Generator().manual_seed(batch)
    lengths = torch.randint(0, 5, (batch,), generator=generator)
    starts = torch.zeros(batch + 1, dtype=dtype)
    starts[1:] = lengths.cumsum(0)
    if not strided:
        return starts
    wide = torch.full((2 * (batch + 1),), -7, dtype=dtype)
    wide[::2] = starts
    return wide[::2]


def test_the_grid_is_not_trivial() -> None:
    assert not indptrs(37, torch.int32, strided=True).is_contiguous()
    assert indptrs(37, torch.int32, strided=False).diff().eq(0).any()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_shape_dtype_and_values_stay(case: Case, dtype: Any, strided: bool) -> None:
    ((name, new),) = case.after.items()
    old_fold, new_fold = function(case.before[name]), function(new)
    for batch, factor in itertools.product(BATCHES, FACTORS):
        indptr = indptrs(batch, dtype, strided=strided)
        kept = indptr.clone()
        before, after = old_fold(indptr, factor), new_fold(indptr, factor)
        assert (after.shape, after.dtype) == (before.shape, before.dtype)
        assert torch.equal(after, before)
        assert after[0] == 0
        assert torch.equal(after[1:], by_lists(indptr, factor))
        assert torch.equal(indptr, kept), "the input is not written to"
        assert after.is_contiguous() == before.is_contiguous()
