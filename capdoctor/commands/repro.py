"""``capdoctor repro``: start an engine with made-up weights, watch it, say what happened."""

from __future__ import annotations

import sys

import typer

from capdoctor.commands import new_app
from capdoctor.commands import repro_options as opt

app = new_app()


@app.command()
def repro(
    arguments: opt.Arguments = None,
    model: opt.Model = None,
    scenario: opt.Scenario = None,
    engine: opt.Engine = None,
    python: opt.Python = None,
    source: opt.Source = None,
    device: opt.DeviceName = opt.Device.CPU,
    as_torch: opt.AsTorch = None,
    tensor_parallel_size: opt.TensorParallelSize = None,
    engine_arg: opt.EngineArg = None,
    shrink: opt.Shrink = False,
    stop_after: opt.StopAfter = None,
    timeout: opt.Timeout = None,
    hang_after: opt.HangAfter = 300.0,
    repeat: opt.Repeat = 1,
    matrix: opt.Matrix = False,
    trace: opt.Trace = False,
    out: opt.Out = None,
    as_json: opt.AsJson = False,
    list_demos: opt.ListDemos = False,
) -> None:
    """Start an engine with made-up weights, watch it, say what happened.

    Exit code 0: it starts. 1: it crashes or hangs (the answer). 3: it could not be tried.
    """
    from capdoctor.commands import engine_spec, running

    if list_demos:
        raise typer.Exit(running.show_demos(as_json=as_json))
    model = running.required_model(model, scenario, arguments, sys.argv)
    spec = engine_spec.EngineSpec(
        kind=engine_spec.engine_kind(model, engine),
        model=model,
        python=python,
        source=engine_spec.existing_folder(source, "--source"),
        device=device.value,
        as_torch=engine_spec.torch_release(as_torch),
        tensor_parallel_size=tensor_parallel_size,
        engine_args=engine_spec.engine_arguments(engine_arg or ()),
        extra_args=tuple(arguments or ()),
        shrink=shrink,
        stop_after=engine_spec.stage(stop_after),
        timeout=timeout,
        hang_after=hang_after,
        trace=trace,
        out=engine_spec.output_folder(out),
        scenario=scenario,
    )
    raise typer.Exit(running.answered(spec, repeat=repeat, matrix=matrix, as_json=as_json))
