"""What the GPUs of a run held before and after it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """A process that has a GPU's memory; ``memory`` in bytes, None where NVML does not tell."""

    pid: int
    name: str | None
    memory: int | None


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """One GPU; memory in bytes.

    ``returned``: after the run it uses no more than before it. Where it does, ``holders`` are the
    processes that have been there since: the run's own are gone by then.
    """

    index: int
    uuid: str
    name: str
    total: int
    before: int
    after: int
    returned: bool
    holders: tuple[GpuHolder, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuMemoryFacts:
    """The memory of the GPUs that a run could use, or ``not_measured``: why it is not known."""

    gpus: tuple[GpuMemory, ...] = ()
    not_measured: str | None = None

    @property
    def kept(self) -> tuple[GpuMemory, ...]:
        """The GPUs that hold more than before the run."""
        return tuple(gpu for gpu in self.gpus if not gpu.returned)
