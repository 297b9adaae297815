"""``capdoctor bisect``: find the commit that introduced a crash."""

from __future__ import annotations

import sys

import typer

from capdoctor.commands import bisect_options as opt
from capdoctor.commands import new_app, repro_options

app = new_app(invoke_without_command=True)


@app.callback()
def bisect(
    context: typer.Context,
    repo: opt.Repo = None,
    good: opt.Good = None,
    bad: opt.Bad = None,
    model: repro_options.Model = None,
    reference: opt.Reference = None,
    probe: opt.Probe = "engine",
    any_failure: opt.AnyFailure = False,
    find_fix: opt.FindFix = False,
    first_parent: opt.FirstParent = True,
    paths: opt.Paths = None,
    revert_check: opt.RevertCheck = False,
    flaky: opt.Flaky = False,
    workers: opt.Workers = 1,
    gpus: opt.Gpus = None,
    budget: opt.Budget = None,
    timeout: opt.RunTimeout = None,
    work_dir: opt.WorkDir = None,
    python: repro_options.Python = None,
    device: repro_options.DeviceName = repro_options.Device.CPU,
    as_torch: repro_options.AsTorch = None,
    tensor_parallel_size: repro_options.TensorParallelSize = None,
    engine_arg: repro_options.EngineArg = None,
    shrink: opt.Shrink = True,
    stop_after: repro_options.StopAfter = None,
    as_json: repro_options.AsJson = False,
) -> None:
    """Find the commit that introduced a crash: only the same crash counts as bad.

    Exit code 1: there is an answer. 3: it could not be started, or is paused.
    """
    given = {name: value for name, value in locals().items() if name != "context"}
    if context.invoked_subcommand is not None:
        return
    from capdoctor.commands import bisecting

    raise typer.Exit(bisecting.begin(given, as_json=as_json))


@app.command()
def resume(work_dir: opt.WorkDirArgument = None, as_json: repro_options.AsJson = False) -> None:
    """Go on with a bisection where its journal ends."""
    from capdoctor.commands import bisecting

    raise typer.Exit(bisecting.go_on(work_dir, as_json=as_json))


@app.command()
def status(work_dir: opt.WorkDirArgument = None, as_json: repro_options.AsJson = False) -> None:
    """Say what a bisection has done so far."""
    from capdoctor.commands import bisecting

    raise typer.Exit(bisecting.show_status(work_dir, as_json=as_json))


@app.command()
def log(work_dir: opt.WorkDirArgument = None) -> None:
    """Print the verdicts as a file for `git bisect replay`."""
    from capdoctor.bisection import replay_log

    sys.stdout.write(replay_log(work_dir))


@app.command()
def undo(work_dir: opt.WorkDirArgument = None, commit: opt.Commit = None) -> None:
    """Take back the last verdict, or those of a commit."""
    from capdoctor.bisection import undo as take_back

    for sha in take_back(work_dir, commit):
        sys.stdout.write(f"{sha}\n")


@app.command()
def probe(
    model: opt.RequiredModel,
    reference: opt.Reference = None,
    any_failure: opt.AnyFailure = False,
    python: repro_options.Python = None,
    engine_arg: repro_options.EngineArg = None,
    stop_after: repro_options.StopAfter = None,
    as_json: repro_options.AsJson = False,
) -> None:
    """Judge the current checkout, for `git bisect run`.

    Exit code 0: good. 1: bad. 125: cannot be judged. 128 and more: stop.
    """
    from capdoctor.commands import bisecting

    given = {
        "model": model,
        "python": python,
        "engine_arg": engine_arg,
        "stop_after": stop_after,
        "shrink": True,
    }
    code = bisecting.judge(given, reference, any_failure=any_failure, as_json=as_json)
    raise typer.Exit(code)
