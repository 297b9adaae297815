"""What one run of the embedded engine is told, worked out from the engine spec."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capdoctor.capture.torch_version import parse_release
from capdoctor.engines.embedded.demo_list import PREFIX, demo_file, find_demo
from capdoctor.errors import CannotDo, UsageError
from capdoctor.model import EngineSpec, Json

MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
DEFAULT_MODE = "FULL_AND_PIECEWISE"
_GRAPH_KEYS = ("cudagraph_mode", "cudagraph_capture_sizes")
# Accepted because users and the matrix pass them to every engine; they change nothing here.
_IGNORED = frozenset(
    {"load_format", "max_model_len", "max_num_seqs", "gpu_memory_utilization", "dtype", "seed",
     "skip_tokenizer_init", "disable_log_stats", "tensor_parallel_size"}
)  # fmt: skip
_MEMORY = "memory_budget_bytes"
_KV_CACHE = "kv_cache_memory_bytes"


@dataclass(frozen=True, slots=True)
class Settings:
    """One run. ``file`` is the model's source, ``shown`` the path that tracebacks name.

    ``sizes`` overrides the capture sizes of the model; ``memory`` is in bytes.
    """

    model: str
    file: str
    shown: str
    device: str = "cpu"
    as_torch: str | None = None
    mode: str = DEFAULT_MODE
    sizes: tuple[int, ...] = ()
    memory: int | None = None
    kv_cache_bytes: int | None = None
    trace: bool = False

    def as_json(self) -> dict[str, Json]:
        """The settings as the child reads them."""
        plain: dict[str, Json] = dataclasses.asdict(self)
        plain["sizes"] = list(self.sizes)
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Settings:
        """The reverse of ``as_json``."""
        return cls(**{**plain, "sizes": tuple(plain["sizes"])})


def settings_for(spec: EngineSpec) -> Settings:
    """Work out the settings.

    Raises:
        UsageError: an option that is unknown here, malformed, or contradicts another one.
        CannotDo: the model file does not exist.
    """
    _check_options(spec)
    arguments = _flattened(spec.engine_args)
    file, shown, budget = _model_file(spec)
    memory = arguments.get(_MEMORY, budget)
    kv_cache = arguments.get(_KV_CACHE)
    return Settings(
        model=spec.model,
        file=str(file),
        shown=shown,
        device=spec.device,
        as_torch=spec.as_torch,
        mode=_mode(spec, arguments),
        sizes=_sizes(arguments.get("cudagraph_capture_sizes", [])),
        memory=None if memory is None else _count(memory, _MEMORY),
        kv_cache_bytes=None if kv_cache is None else _count(kv_cache, _KV_CACHE),
        trace=spec.trace,
    )


def _check_options(spec: EngineSpec) -> None:
    if spec.as_torch is not None:
        parse_release(spec.as_torch)
        if spec.device == "cuda":
            raise UsageError(
                "--as-torch and --device cuda contradict each other.",
                "A real device follows the torch that is installed.",
            )
    if spec.extra_args:
        raise UsageError(
            f"The embedded engine takes no {spec.extra_args[0]!r} after --.",
            "Use --engine-arg KEY=VALUE.",
        )
    if (spec.tensor_parallel_size or 1) != 1:
        raise UsageError("The embedded engine runs on one device.", "Leave -tp out.")


def _flattened(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Engine arguments as vLLM names them, ``compilation_config`` opened.

    Raises:
        UsageError: an argument that this engine does not know.
    """
    flat = {k: v for k, v in arguments.items() if k != "compilation_config"}
    nested = arguments.get("compilation_config", {})
    if not isinstance(nested, Mapping):
        raise UsageError("compilation_config must be a JSON object.", 'Like {"cudagraph_mode": 1}.')
    flat.update({k: v for k, v in nested.items() if k in _GRAPH_KEYS})
    known = {*_GRAPH_KEYS, *_IGNORED, "enforce_eager", _KV_CACHE, _MEMORY}
    unknown = sorted(set(flat) - known)
    if unknown:
        raise UsageError(
            f"The embedded engine has no argument {unknown[0]!r}.",
            f"It knows {', '.join(sorted(known - _IGNORED))}.",
        )
    return flat


def _model_file(spec: EngineSpec) -> tuple[Path, str, int | None]:
    if spec.model.startswith(PREFIX):
        demo = find_demo(spec.model)
        file = demo_file(demo.name)
        return file, PREFIX + file.name, demo.memory
    file = (spec.source / spec.model) if spec.source else Path(spec.model)
    if file.is_dir():
        raise CannotDo(f"{file} is a folder.", "The embedded engine takes one Python file.")
    if not file.is_file():
        raise CannotDo(f"There is no file {file}.", "Give a Python file or demo/NAME.")
    return file.resolve(), spec.model, None


def _mode(spec: EngineSpec, arguments: Mapping[str, Any]) -> str:
    asked = arguments.get("cudagraph_mode")
    forced = getattr(spec, "graph_mode", None)
    if forced is not None:
        return "NONE" if forced == "EAGER" else _known_mode(forced)
    if arguments.get("enforce_eager"):
        if asked not in (None, "NONE"):
            raise UsageError(
                f"enforce_eager and cudagraph_mode {asked} contradict each other.", "Choose one."
            )
        return "NONE"
    return DEFAULT_MODE if asked is None else _known_mode(asked)


def _known_mode(mode: Any) -> str:
    name = str(mode).upper()
    if name not in MODES:
        raise UsageError(f"There is no cudagraph mode {mode!r}.", f"One of {', '.join(MODES)}.")
    return name


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise UsageError("cudagraph_capture_sizes must be a list of numbers.", "Like [1, 2, 4].")
    return tuple(sorted({_count(size, "cudagraph_capture_sizes") for size in value}))


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name}: {value!r} is no positive number.", "Like 4.")
    return value
