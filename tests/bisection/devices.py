"""Devices of a worker that work or do not, for the loop around them."""

from __future__ import annotations

from dataclasses import dataclass, field

from capdoctor.bisection.device_control import observed
from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.probe import Place
from capdoctor.engines.gpus.device_check import DeviceState


@dataclass
class Device:
    """A device that works or does not; ``asked`` records which worker was asked about it."""

    works: bool = True
    asked: list[int] = field(default_factory=list)

    def check(self, place: Place) -> Observation:
        self.asked.append(place.worker)
        why = "a known-good program runs" if self.works else "GPU 0 (H200): cuInit gave 999 (999)"
        return observed(DeviceState(self.works, why, 0.9))


def suspect(saw: Saw = Saw.HANG, **more: object) -> Observation:
    options: dict[str, object] = {"title": "it hung", "suspect": True, "seconds": 1.0, **more}
    return Observation(saw, **options)  # type: ignore[arg-type]
