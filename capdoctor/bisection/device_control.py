"""After a fault: does the device still work? Asked of a program that is known to be good.

A control run of the known-good commit costs an engine start; this one costs about a second, so it
can come first after every fault, before another commit is run on that device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from capdoctor.bisection.observation import Observation, Saw
from capdoctor.bisection.probes.probe import Place, visible_devices
from capdoctor.bisection.probes.strays import mark
from capdoctor.bisection.request import BisectRequest
from capdoctor.engines.gpus.device_check import DeviceState, device_state
from capdoctor.engines.gpus.memory import has_driver
from capdoctor.engines.gpus.needed import gpus_needed

DeviceCheck = Callable[[Place], Observation]
AskDevice = Callable[[Mapping[str, str], int], DeviceState]
HOW = "device check"


def device_check_for(request: BisectRequest, ask: AskDevice = device_state) -> DeviceCheck | None:
    """Return the check of the devices that a worker of this bisection uses.

    None where the probe uses no GPU, or none that can be checked (ROCm, a command that was not
    given its devices): then the known-good end is the control.

    Raises:
        CannotDo: the engine's Python cannot be found.
    """
    needed = _needed(request)
    if needed is None:
        return None
    variables = request.engine.environment if request.engine else {}

    def check(place: Place) -> Observation:
        return observed(ask({**variables, **mark(place.out), **visible_devices(place)}, needed))

    return check


def _needed(request: BisectRequest) -> int | None:
    """Return how many of the visible devices a run uses; 0 for all of them."""
    if request.probe == "engine" or request.probe.startswith("scenario:"):
        return gpus_needed(request.engine) if request.engine else None
    return 0 if request.gpus and not request.probe.startswith("fix:") and has_driver() else None


def observed(state: DeviceState) -> Observation:
    """Return the state of a device as a run that was clean, or that the machine spoilt."""
    return Observation(
        Saw.CLEAN if state.works else Saw.INFRA,
        title=state.why,
        provisioning=HOW,
        seconds=state.seconds,
        reason=state.why,
    )
