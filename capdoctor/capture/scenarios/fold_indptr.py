"""Scenario ``fold-indptr``: aiter's ``_fold_seqlen_indptr`` inside a whole capture.

The function turns the row pointer of a batch into that of a batch whose every sequence is split
into ``fold_factor`` ones. Facts: aiter PR 4964 (introduced), 5202 (repaired).
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from capdoctor.capture.scenarios.outcome import CannotExercise, NotApplicable, WrongResult
from capdoctor.capture.scenarios.sources import function_of, load, package_folder

_FUNCTION = "_fold_seqlen_indptr"
_USUAL_HOME = "mla.py"
# Lengths of the sequences of a batch, and into how many parts each one is folded.
SHAPES: tuple[tuple[tuple[int, ...], int], ...] = (
    ((1,), 1),
    ((3, 5), 2),
    ((4, 0, 7, 1), 4),
    ((0, 0, 2), 8),
    (tuple(range(1, 17)), 2),
)


class FoldIndptr:
    """One batch shape. Run eagerly, captured and replayed like a model's forward pass."""

    def __init__(self, function: Any, lengths: tuple[int, ...], fold: int, device: str) -> None:
        import torch

        self.torch = torch
        self.function = function
        self.fold = fold
        self.lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
        self.indptr = self._pointer(self.lengths)
        self.out = self._pointer(self.lengths.repeat_interleave(fold))

    def _pointer(self, lengths: Any) -> Any:
        torch = self.torch
        total = torch.cumsum(lengths, 0).to(lengths.dtype)
        return torch.nn.functional.pad(total, (1, 0))

    def forward(self) -> None:
        """Fold the pointer, as ``mla_decode_fwd`` does before it launches its kernel."""
        result = self.function(self.indptr, self.fold)
        if result.shape != self.out.shape or result.dtype != self.out.dtype:
            raise WrongResult(
                f"{_FUNCTION} gives {result.dtype}{list(result.shape)}, "
                f"not {self.out.dtype}{list(self.out.shape)}"
            )
        self.out.copy_(result)

    def change_inputs(self) -> None:
        """Turn the batch around; the graph reads the same memory."""
        self.lengths.copy_(self.lengths.flip(0))
        self.indptr.copy_(self._pointer(self.lengths))

    def check(self) -> None:
        """Compare the result with the definition."""
        self.torch.cuda.synchronize()
        wanted = self._pointer(self.lengths.repeat_interleave(self.fold))
        if not self.torch.equal(self.out, wanted):
            raise WrongResult(f"{_FUNCTION} folds {self.lengths.tolist()} wrongly")


def load_function(source: Path, torch: Any) -> Any:
    """Give the tree's function, callable as ``function(indptr, fold_factor)``.

    Raises:
        NotApplicable: the tree has no such function.
        CannotExercise: it takes other arguments.
    """
    package = package_folder(source, "aiter")
    path = _home(package)
    name = ".".join(("aiter", *path.relative_to(package).with_suffix("").parts))
    function = getattr(load(path, name, torch, {}), _FUNCTION)
    parameters = list(inspect.signature(function).parameters.values())
    required = [item for item in parameters if item.default is item.empty]
    if len(parameters) < 2 or len(required) > 2:  # noqa: PLR2004 - the pointer and the factor
        names = ", ".join(item.name for item in parameters)
        raise CannotExercise(f"{_FUNCTION}({names}) is not the function that the scenario knows")
    return function


def _home(package: Path) -> Path:
    """Give the file that defines the function, ``aiter/mla.py`` first."""
    usual = package / _USUAL_HOME
    if function_of(usual, _FUNCTION) is not None:
        return usual
    needle = f"def {_FUNCTION}(".encode()
    for path in sorted(package.rglob("*.py")):
        if needle in path.read_bytes() and function_of(path, _FUNCTION) is not None:
            return path
    raise NotApplicable(f"this tree has no {_FUNCTION}")
