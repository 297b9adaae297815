"""What else a log gives away: the graph that failed, the arguments."""

from __future__ import annotations

import re

from capdoctor.diagnosis.incident import Incident
from capdoctor.logs import Run
from capdoctor.model import Json, Stage

_CAPTURING = {Stage.CAPTURE, Stage.PROFILE_CUDAGRAPH_MEMORY}
_SIZES = re.compile(r"cudagraph_capture_sizes['\"]?[:=]\s*\[([\d,\s]+)\]")


def findings_of(run: Run, root: Incident | None, stage: Stage | None) -> dict[str, Json]:
    """Give the findings that go beyond the contract, each with its source."""
    found: dict[str, Json] = {}
    if root is not None and stage in _CAPTURING:
        graph = _failing_graph(run, root)
        if graph:
            found["failing_graph"] = graph
    arguments = _arguments(run)
    if arguments:
        found["engine_args"] = arguments
    if run.engine is not None:
        found.setdefault("engine", run.engine)
    return found


def _failing_graph(run: Run, root: Incident) -> dict[str, Json]:
    """Graphs are captured largest first: the bar's position names the size (rank 0 prints it)."""
    bar = run.bar_before(root.line)
    if bar is None or bar.done >= bar.total:
        return {}
    graph: dict[str, Json] = {
        "mode": bar.mode,
        "number": bar.done + 1,
        "of": bar.total,
        "source": f"read: capture bar in line {bar.line}",
    }
    if bar.size is not None:
        graph["size"] = bar.size
        return graph
    sizes = _capture_sizes(run)
    if len(sizes) == bar.total:
        graph["size"] = sizes[bar.done]
        graph["size_source"] = "inferred: the capture sizes, largest first, at the bar's position"
    return graph


def _capture_sizes(run: Run) -> list[int]:
    for args in run.args:
        found = _SIZES.search(args.text)
        if found:
            numbers = [int(part) for part in found.group(1).split(",") if part.strip()]
            return sorted(numbers, reverse=True)
    return []


def _arguments(run: Run) -> dict[str, Json]:
    for kind in ("non_default_args", "server_args", "namespace", "command", "engine_config"):
        for args in run.args:
            if args.source == kind and args.values:
                values: dict[str, Json] = {**args.values}
                return {"values": values, "source": f"read: line {args.line}"}
    return {}
