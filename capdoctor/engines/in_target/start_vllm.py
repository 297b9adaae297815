"""Start a vLLM engine in the Python that has it: ``python start_vllm.py SPEC REPORT``.

This file is handed to another Python: it imports the standard library and vLLM only, and keeps to
the syntax of Python 3.9. SPEC is a JSON file::

    {"model": ..., "defaults": {...}, "engine_args": {...}, "argv": [...],
     "graph_mode": null, "expect_package": null}

``argv`` is parsed by vLLM's own parser, ``engine_args`` are keyword arguments of ``LLM`` and win
over ``defaults``, of which only those are used that this release knows. ``graph_mode`` wins over
all. What happened is written to the JSON file REPORT, replaced whole after each step: ``step`` is
``imported``, ``configured``, ``ready``, or ``refused`` with the ``reason`` why nothing was started;
``lean`` holds a sentence on each thing that was done otherwise than vLLM does it, to save time.

vLLM looks at a model's class in a new process; here a fork does it (``fork_inspection.py``). The
collector of cyclic garbage rests during the imports, which make next to no garbage;
``CAPDOCTOR_IMPORT_GC=1`` lets it run.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib
import importlib.util
import inspect
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

Dict = dict[str, Any]
List = list[str]

REFUSED = 64
GC_SWITCH = "CAPDOCTOR_IMPORT_GC"
RESTED = "the garbage collector rested during the imports and leaves alone what they made"
SERVER_ARGUMENTS = (  # where the parser of ``vllm serve`` lies: 0.33, 0.32, before
    "vllm.entrypoints.common.cli_args",
    "vllm.entrypoints.launchers.cli_args",
    "vllm.entrypoints.openai.cli_args",
)


class Report:
    """The facts known so far; ``note`` writes them all, so a reader never sees half a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._facts: Dict = {"pid": os.getpid()}

    def note(self, step: str, **facts: Any) -> None:
        """Add facts and replace the file."""
        self._facts.update(facts, step=step, seconds=time.time())
        partial = self._path + ".part"
        with open(partial, "w", encoding="utf-8") as file:  # noqa: PTH123 - as small as can be
            json.dump(self._facts, file, default=str)
        os.replace(partial, self._path)  # noqa: PTH105


def main() -> None:
    """Do what SPEC says; the engine's own errors go their own way, untouched."""
    spec = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    report = Report(sys.argv[2])
    rests = os.environ.get(GC_SWITCH) != "1"
    if rests:
        gc.disable()
    vllm = importlib.import_module("vllm")
    report.note("imported", **_identity(vllm))
    expected = spec.get("expect_package")
    if expected and Path(str(vllm.__file__)).parent.resolve() != Path(expected).resolve():
        _refuse(report, "another vllm than the overlay was imported: " + str(vllm.__file__))
    arguments = _arguments(spec, vllm.LLM, report)
    if rests:  # before CUDA is in use, so that nothing of it is exempt from later collections
        gc.freeze()
        gc.enable()
    lean, used = [RESTED] * rests, _used_defaults(spec, arguments)
    report.note("configured", arguments=sorted(arguments), defaults=used, lean=lean)
    fork = _beside("fork_inspection")
    fork.inspect_in_a_fork(lambda: report.note("configured", lean=[*lean, fork.FORKED]))
    engine = vllm.LLM(**arguments)
    report.note("ready", resolved=_resolved(engine))


def _refuse(report: Report, reason: str) -> NoReturn:
    report.note("refused", reason=reason)
    sys.stderr.write(reason + "\n")
    sys.exit(REFUSED)


def _identity(vllm: Any) -> Dict:
    return {
        "vllm_file": getattr(vllm, "__file__", None),
        "version": getattr(vllm, "__version__", None),
        "torch": getattr(sys.modules.get("torch"), "__version__", None),
    }


def _arguments(spec: Dict, llm: Any, report: Report) -> Dict:
    """Merge defaults, keyword arguments and parsed command-line arguments, in rising order."""
    engine_args = importlib.import_module("vllm.engine.arg_utils").EngineArgs
    known = {field.name for field in dataclasses.fields(engine_args)}
    defaults = dict(spec.get("defaults") or {})
    parsed = _parsed(spec.get("argv") or [], engine_args, report)
    given = dict(spec.get("engine_args") or {})
    unknown = set(given) - known - set(inspect.signature(llm.__init__).parameters)
    if unknown:
        _refuse(report, "this vLLM has no such engine argument: " + ", ".join(sorted(unknown)))
    given.update(parsed)
    if not {"gpu_memory_utilization", "kv_cache_memory_bytes"} & set(given):
        defaults.update(_cpu_memory())
    merged = {key: value for key, value in defaults.items() if key in known}
    merged.update(given)
    merged.setdefault("model", spec["model"])
    if spec.get("graph_mode"):
        _set_graph_mode(merged, spec["graph_mode"])
    return merged


def _used_defaults(spec: Dict, arguments: Dict) -> Dict:
    """Return the arguments that nobody asked for."""
    ours = {**(spec.get("defaults") or {}), "gpu_memory_utilization": None}
    words = {word.replace("_", "-") for word in spec.get("argv") or []}
    asked = set(spec.get("engine_args") or {}) | words
    flags = {"--" + key.replace("_", "-"): key for key in ours}
    asked |= {key for flag, key in flags.items() if any(a.startswith(flag) for a in asked)}
    return {key: arguments[key] for key in ours if key in arguments and key not in asked}


def _parsed(argv: List, engine_args: Any, report: Report) -> Dict:
    """Return what ARGV sets, and nothing else, as fields of EngineArgs, read by vLLM's own parser.

    Arguments that belong to the front end of ``vllm serve`` (a port, say) are read and left out.
    """
    if not argv:
        return {}
    try:
        given = _explicit(engine_args.add_cli_args(_parser_class()()), argv)
    except _NOT_UNDERSTOOD:
        try:
            given = _explicit(_server_parser(), argv)
        except _NOT_UNDERSTOOD as exc:
            _refuse(report, f"vLLM does not understand these arguments: {' '.join(argv)}: {exc}")
    names = {field.name for field in dataclasses.fields(engine_args)}
    return {name: value for name, value in given.items() if name in names}


class _Misread(Exception):
    """What an argument parser has to say on a wrong command line."""


# The parser also takes options apart (``-cc.mode=0``) and reads files; these are what it raises.
_NOT_UNDERSTOOD = (
    *(_Misread, argparse.ArgumentError, AssertionError),
    *(ValueError, LookupError, OSError),
)


def _explicit(parser: Any, argv: List) -> Dict:
    """Parse without defaults, so that an argument given at its default value counts as given."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to list them
        action.default = argparse.SUPPRESS

    def misread(message: str) -> NoReturn:
        raise _Misread(message)

    parser.error = misread
    # Only ``parse_args`` of vLLM's parser knows dotted options, ``-O3``, underscores, ``--config``.
    return dict(vars(parser.parse_args(list(argv))))


def _server_parser() -> Any:
    for module in SERVER_ARGUMENTS:
        try:
            make_arg_parser = importlib.import_module(module).make_arg_parser
        except ImportError:
            continue
        return make_arg_parser(_parser_class()())
    sys.exit(REFUSED)


def _parser_class() -> Any:
    """Return vLLM's own kind of argument parser, where this release keeps it."""
    try:
        module = importlib.import_module("vllm.utils.argparse_utils")
    except ImportError:
        module = importlib.import_module("vllm.utils")
    return module.FlexibleArgumentParser


def _set_graph_mode(arguments: Dict, mode: str) -> None:
    """Set the CUDA graph mode over whatever was asked for; ``EAGER`` turns graphs off whole."""
    if mode == "EAGER":
        arguments["enforce_eager"] = True
        return
    arguments["enforce_eager"] = False
    config = arguments.get("compilation_config") or {}
    if isinstance(config, int):
        config = {"mode": config}
    if isinstance(config, str):
        config = json.loads(config)
    if isinstance(config, dict):
        arguments["compilation_config"] = dict(config, cudagraph_mode=mode)
        return
    config.cudagraph_mode = importlib.import_module("vllm.config").CUDAGraphMode[mode]


def _cpu_memory() -> Dict:
    """Return a share of memory that the CPU engine will find free.

    It wants its share of a NUMA node as *free* memory and counts the page cache as used, so that
    its default share is often not there on a healthy machine.
    """
    platform = importlib.import_module("vllm.platforms").current_platform
    if not platform.is_cpu() or os.environ.get("VLLM_CPU_KVCACHE_SPACE"):
        return {}
    shares = [_free_share(path) for path in Path("/sys/devices/system/node").glob("node*/meminfo")]
    return {"gpu_memory_utilization": round(min([0.25, *(0.6 * share for share in shares)]), 3)}


def _free_share(meminfo: Path) -> float:
    words = [line.split() for line in meminfo.read_text(encoding="ascii").splitlines()]
    sizes = {line[2].rstrip(":"): int(line[3]) for line in words if line[3:]}
    return sizes["MemFree"] / sizes["MemTotal"] if sizes.get("MemTotal") else 1.0


def _beside(name: str) -> Any:
    """Load another file of this folder, which is on no path of modules."""
    spec: Any = importlib.util.spec_from_file_location(name, Path(__file__).with_name(name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _resolved(engine: Any) -> Dict:
    """Return what the engine settled on, as far as this release shows it."""
    config = getattr(getattr(engine, "llm_engine", None), "vllm_config", None)
    model = getattr(config, "model_config", None)
    compilation = getattr(config, "compilation_config", None)
    attention = getattr(config, "attention_config", None)
    parallel = getattr(config, "parallel_config", None)
    facts = {
        "cudagraph_mode": getattr(compilation, "cudagraph_mode", None),
        "cudagraph_capture_sizes": getattr(compilation, "cudagraph_capture_sizes", None),
        "attention_backend": getattr(attention, "backend", None),
        "max_model_len": getattr(model, "max_model_len", None),
        "tensor_parallel_size": getattr(parallel, "tensor_parallel_size", None),
        "architecture": getattr(model, "architecture", None),
    }
    return {key: value for key, value in facts.items() if value is not None}


if __name__ == "__main__":
    main()
