"""How many GPUs of this machine an engine takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capdoctor.engines.gpus.memory import has_driver
from capdoctor.engines.pythons import find_python
from capdoctor.model import EngineSpec

# The sizes whose product is the number of ranks, with the short option of each.
_SIZES = {
    "tensor_parallel_size": "-tp",
    "pipeline_parallel_size": "-pp",
    "data_parallel_size": "-dp",
    "prefill_context_parallel_size": "-pcp",
}
# With one of these the ranks may lie on several machines, and how many are here is not known.
_SPREAD = {
    "nnodes": "-n",
    "data_parallel_size_local": "-dpl",
    "data_parallel_address": "-dpa",
    "data_parallel_backend": "-dpb",
    "distributed_executor_backend": "",
}
_KEEPS_HERE = {"nnodes": "1", "data_parallel_backend": "mp", "distributed_executor_backend": "mp"}
ALL = 0


def gpus_needed(spec: EngineSpec) -> int | None:
    """Give how many GPUs an engine takes here; 0 for all that it sees (ranks on several machines).

    None: it takes none, or that cannot be checked here.

    Raises:
        CannotDo: the engine's Python cannot be found.
    """
    if not has_driver():
        return None
    if spec.kind == "embedded":
        return 1 if spec.device == "cuda" else None
    build = find_python(spec.python).torch_build or ""
    return _ranks(spec) if build.startswith("cuda") else None


def _ranks(spec: EngineSpec) -> int:
    given = _given(spec)
    if any(given.get(name) is not None and not _keeps_here(name, given) for name in _SPREAD):
        return ALL
    ranks = 1
    for name in _SIZES:
        ranks *= max(1, _number(given.get(name)))
    return ranks


def _keeps_here(name: str, given: Mapping[str, Any]) -> bool:
    return str(given[name]) == _KEEPS_HERE.get(name)


def _given(spec: EngineSpec) -> dict[str, Any]:
    """Give what was asked for; what stands after ``--`` wins, as in the engine itself."""
    tensor = spec.tensor_parallel_size
    given = dict(spec.engine_args) | ({"tensor_parallel_size": tensor} if tensor else {})
    return given | options_in(spec.extra_args, {**_SIZES, **_SPREAD})


def options_in(words: tuple[str, ...], known: Mapping[str, str]) -> dict[str, str]:
    """Give the values of the ``known`` options (name: short form) on a command line.

    As vLLM reads them: ``--a-b 2``, ``--a_b=2``, the short form, the last one wins.
    """
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        name = next((name for name, short in known.items() if _means(option, name, short)), None)
        if name is not None:
            found[name] = value if equals else "".join(words[at + 1 : at + 2])
    return found


def _means(option: str, name: str, short: str) -> bool:
    return option == short or (option.startswith("--") and option[2:].replace("-", "_") == name)


def _number(value: Any) -> int:
    text = str(value)
    return int(text) if text.isdecimal() and text.isascii() else 1
