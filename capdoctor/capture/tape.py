"""What a capture recorded: the operations, to be done again at every replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from capdoctor.capture.provenance import address_of


@dataclass(slots=True)
class Step:
    """One operation and the tensors that it gave; None where its arguments are written to."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    results: tuple[torch.Tensor, ...]


@dataclass(eq=False, slots=True, weakref_slot=True)
class Tape:
    """The steps of one graph; it keeps every tensor alive, as a graph's memory pool does.

    ``drawn`` holds the generators that random numbers came from.
    """

    steps: list[Step] = field(default_factory=list)
    made: dict[int, torch.Tensor] = field(default_factory=dict)
    before: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    drawn: dict[Any, None] = field(default_factory=dict)

    def keep(self, tensors: tuple[torch.Tensor, ...]) -> None:
        """Remember memory that the capture itself made; it has no former content."""
        for tensor in tensors:
            key = address_of(tensor)
            if key is not None:
                self.made.setdefault(key, tensor)

    def about_to_write(self, tensor: torch.Tensor) -> None:
        """Save what is overwritten: a capture only records, nothing has run when it ends."""
        key = address_of(tensor)
        if key is None or key in self.made or key in self.before:
            return
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():  # noqa: SLF001
            storage = tensor.untyped_storage()
            self.before[key] = (storage, _copied(storage))

    def restore(self) -> None:
        """Put the overwritten memory back as it was before the capture began."""
        with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():  # noqa: SLF001
            for storage, content in self.before.values():
                if storage.nbytes() == content.numel():
                    _bytes_of(storage).copy_(content)
        self.before.clear()

    def add(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        results: tuple[torch.Tensor, ...],
    ) -> None:
        """Record an operation."""
        self.steps.append(Step(function, args, kwargs, results))

    def bytes_held(self) -> int:
        """The memory of the results, which lives as long as the graph."""
        storages = {t.untyped_storage()._cdata: t for s in self.steps for t in s.results}  # noqa: SLF001
        return sum(t.untyped_storage().nbytes() for t in storages.values())

    def replay(self) -> None:
        """Do everything again; results land in the same memory as at the capture.

        Under inference mode, because captured tensors may be inference tensors.
        """
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.inference_mode():  # noqa: SLF001
            for step in self.steps:
                _repeat(step)


def _repeat(step: Step) -> None:
    fresh = step.function(*step.args, **step.kwargs)
    if not step.results:
        return
    again = tensors_of(fresh)
    for old, new in zip(step.results, again, strict=False):
        if old is not new and old.shape == new.shape:
            old.copy_(new)


def _bytes_of(storage: Any) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(storage)


def _copied(storage: Any) -> torch.Tensor:
    return _bytes_of(storage).clone()


def tensors_of(value: Any) -> tuple[torch.Tensor, ...]:
    """The tensors of an operation's result, in order."""
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(t for item in value for t in tensors_of(item))
    return ()
