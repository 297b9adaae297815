"""From what the user wrote to the probe that does it."""

from __future__ import annotations

from capdoctor.bisection.probes.command import CommandProbe
from capdoctor.bisection.probes.engine import EngineProbe
from capdoctor.bisection.probes.fix import fix_probe
from capdoctor.bisection.probes.probe import Probe
from capdoctor.bisection.probes.scenario import scenario_probe
from capdoctor.bisection.request import BisectRequest
from capdoctor.errors import UsageError


def probe_for(request: BisectRequest) -> Probe:
    """Return the probe of a request.

    Raises:
        UsageError: unknown fix or scenario, or an engine probe without a model.
    """
    kind, _, name = request.probe.partition(":")
    spec = request.engine
    if request.probe == "engine":
        if spec is None:
            raise UsageError("the engine probe needs a model", "add --model MODEL")
        return EngineProbe(spec, request.installed_commit)
    if kind == "fix" and name and " " not in request.probe:
        return fix_probe(name)
    if kind == "scenario" and name and " " not in request.probe:
        device, as_torch = (spec.device, spec.as_torch) if spec else ("cpu", None)
        return scenario_probe(name, device, as_torch)
    if not request.probe.strip():
        raise UsageError("the probe's command is empty", "give a shell command")
    return CommandProbe(request.probe, request.timeout)
