"""What ``bisect`` does around the bisection: the request, the progress, the answer."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from capdoctor import bisection
from capdoctor.commands import engine_spec
from capdoctor.commands.bisect_progress import BisectProgress
from capdoctor.errors import UsageError
from capdoctor.model import BisectResult
from capdoctor.report.json_text import document
from capdoctor.report.safe_text import one_line, printable

SCHEMA = "capdoctor.bisect/1"
ANSWERED = 1
_REQUEST_FIELDS = (
    *("probe", "any_failure", "find_fix", "first_parent", "revert_check"),
    *("flaky", "workers", "budget", "timeout", "reference"),
)


def begin(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Start a bisection from the command line's options and give the exit code."""
    for name in ("repo", "good", "bad"):
        if not given[name]:
            raise UsageError(
                f"--{name} is missing.",
                "For instance: capdoctor bisect --repo vllm --good v0.29.0 --bad main --model M",
            )
    if given["probe"] == "engine" and not given["model"]:
        raise UsageError("The engine probe needs a model.", "Add --model, or another --probe.")
    request = bisection.BisectRequest(
        repo=given["repo"],
        good=given["good"],
        bad=given["bad"],
        engine=_engine(given),
        paths=tuple(given["paths"] or ()),
        gpus=tuple(given["gpus"] or ()),
        **{name: given[name] for name in _REQUEST_FIELDS},
    )
    progress = BisectProgress()
    with _ended_politely():
        result = bisection.bisect(request, listener=progress, work_dir=given["work_dir"])
    return _answer(result, as_json=as_json)


def go_on(work_dir: Path | None, *, as_json: bool) -> int:
    """Resume a bisection and give the exit code."""
    with _ended_politely():
        result = bisection.resume(work_dir, listener=BisectProgress())
    return _answer(result, as_json=as_json)


@contextmanager
def _ended_politely() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for Ctrl-C: end what runs, and say how to go on."""
    before = {
        number: signal.signal(number, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def show_status(work_dir: Path | None, *, as_json: bool) -> int:
    """Write what a bisection has done so far to stdout and give the exit code."""
    found = bisection.status(work_dir)
    if as_json:
        sys.stdout.write(document("capdoctor.bisect-status/1", found) + "\n")
        return 0
    request = found.begin.request
    lines = [
        f"work folder   {found.work_dir}",
        f"search        {request.repo}, good {request.good}, bad {request.bad}",
        f"runs          {found.runs} in {found.seconds / 60:.1f} minutes",
    ]
    if found.last is not None:
        lines.append(f"last          {found.last.sha[:12]} {found.last.verdict.value}")
    sys.stdout.write(printable("\n".join([*lines, f"resume        {found.resume_command}"])) + "\n")
    return 0


def judge(
    given: Mapping[str, Any], reference: Path | None, *, any_failure: bool, as_json: bool
) -> int:
    """Judge the current checkout and give the exit code that ``git bisect run`` reads."""
    from capdoctor.engines.start import run

    spec = _engine({"tensor_parallel_size": None, "as_torch": None, "device": None, **given})
    if spec is None:
        raise UsageError("--model is missing.", "Give what the engine shall start.")
    found = bisection.judge_checkout(
        Path.cwd(), spec, reference, run_engine=run, any_failure=any_failure
    )
    if as_json:
        body = {"verdict": found.verdict, "reason": found.reason}
        sys.stdout.write(document("capdoctor.bisect-probe/1", body) + "\n")
    else:
        sys.stdout.write(one_line(f"{found.verdict.value}: {found.reason}") + "\n")
    return int(found.exit_code)


def _engine(given: Mapping[str, Any]) -> engine_spec.EngineSpec | None:
    """Give what the engine probe starts; None where no model was named."""
    model = given["model"]
    device: Literal["cpu", "cuda"] = "cuda" if given["device"] == "cuda" else "cpu"
    release = engine_spec.torch_release(given["as_torch"])
    if not model:
        # A scenario probe still wants to know the device.
        return engine_spec.EngineSpec("embedded", "", device=device, as_torch=release)
    kind = engine_spec.engine_kind(model, None)
    spec = engine_spec.EngineSpec(
        kind=kind,
        model=model,
        python=given["python"],
        device=device,
        as_torch=release,
        tensor_parallel_size=given["tensor_parallel_size"],
        engine_args=engine_spec.engine_arguments(given["engine_arg"] or ()),
        shrink=given["shrink"] and kind == "vllm",
        stop_after=engine_spec.stage(given["stop_after"]),
    )
    engine_spec.check_consistent(spec, repeat=1, matrix=False)
    return spec


def _answer(result: BisectResult, *, as_json: bool) -> int:
    text = document(SCHEMA, result) if as_json else printable(bisection.markdown(result))
    sys.stdout.write(text.rstrip("\n") + "\n")
    return ANSWERED
