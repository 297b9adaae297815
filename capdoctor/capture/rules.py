"""The rules of stream capture as a table, and the error that each one raises in a given torch."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

from capdoctor.capture.torch_version import Release, in_range

_CUDA_PAGE = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
# ROCm builds rewrite the name in the address too; newer ones point to AMD's own page.
_HIP_PAGE = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__HIPRT__TYPES.html"
_AMD_PAGE = "https://rocm.docs.amd.com/projects/HIP/en/latest/index.html"
_ASYNC = (
    "\n{vendor} kernel errors might be asynchronously reported at some other API call,"
    " so the stacktrace below might be incorrect."
    "\nFor debugging consider passing {blocking}"
)
_DSA = "\nCompile with `{dsa}` to enable device-side assertions.\n"


@dataclass(frozen=True, slots=True)
class DriverError:
    """One error of the driver: its names and the text that the runtime prints."""

    code: int
    cuda: str
    hip: str
    text: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``code`` is the driver's; rules without one raise torch's own ``message``."""

    id: str
    crash_class: str
    forbids: str
    why: str
    legal: str
    source: str
    invalidates: bool
    code: int | None = None
    error: str = "AcceleratorError"
    message: str = ""
    legal_anyway: bool = False
    variants: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    def for_torch(self, release: Release) -> Rule:
        """The rule as it is in one torch release."""
        for variant in self.variants:
            if in_range(release, variant["torch"]):
                return _varied(self, variant)
        return self

    def text(self, release: Release, params: Mapping[str, str], *, hip: bool = False) -> str:
        """The message of the error, tail included."""
        if self.code is None:
            return fill(self.message, params)
        return driver_message(driver_errors()[self.code], release, hip=hip)

    def error_type(self, release: Release) -> str:
        """The name of the exception class in ``torch`` or in builtins."""
        if self.code is not None:
            return "AcceleratorError" if release >= (2, 8) else "RuntimeError"
        return self.error


def fill(template: str, params: Mapping[str, str]) -> str:
    """Put parameters into a text; anything else in braces stays."""
    for name, value in params.items():
        template = template.replace("{" + name + "}", value)
    return template


def driver_message(error: DriverError, release: Release, *, hip: bool = False) -> str:
    """The text that torch makes of a driver error.

    Read: c10/cuda/CUDAException.cpp and CUDAMiscFunctions.cpp; measured for 2.11 and 2.13. The
    form of ROCm builds is known from sources and reports alone.
    """
    return _hip_message(error, release) if hip else _cuda_message(error, release)


def _cuda_message(error: DriverError, release: Release) -> str:
    head = f"CUDA error: {error.text}"
    if release >= (2, 9):
        head += f"\nSearch for `{error.cuda}' in {_CUDA_PAGE} for more information."
    if release >= (2, 13):
        return head + "\nFor more detailed error information, run with CUDA_LOG_FILE=stderr\n"
    hint = {"vendor": "CUDA", "blocking": "CUDA_LAUNCH_BLOCKING=1", "dsa": "TORCH_USE_CUDA_DSA"}
    return head + fill(_ASYNC + _DSA, hint)


def _hip_message(error: DriverError, release: Release) -> str:
    new = release >= (2, 12)
    head = f"{'CUDA' if new else 'HIP'} error: {error.text}"
    if release >= (2, 9):
        page = _AMD_PAGE if new else _HIP_PAGE
        head += f"\nSearch for `{error.hip}' in {page} for more information."
    hint = {"vendor": "HIP", "blocking": "AMD_SERIALIZE_KERNEL=3", "dsa": "TORCH_USE_HIP_DSA"}
    return head + fill(_ASYNC + _DSA, hint)


@cache
def driver_errors() -> Mapping[int, DriverError]:
    """The driver's errors by code."""
    rows = _load("driver.toml")["error"]
    return {row["code"]: DriverError(**row) for row in rows}


@cache
def rules() -> Mapping[str, Rule]:
    """All rules by id."""
    return {row["id"]: _rule(row) for row in _load("rules.toml")["rule"]}


def _rule(row: Mapping[str, Any]) -> Rule:
    names = {"class": "crash_class"}
    plain = {names.get(k, k): v for k, v in row.items() if k != "variant"}
    return Rule(**plain, variants=tuple(row.get("variant", ())))


def _varied(rule: Rule, variant: Mapping[str, Any]) -> Rule:
    changes = {k: v for k, v in variant.items() if k != "torch"}
    if "message" in changes or "error" in changes:
        changes.setdefault("code", None)
    return replace(rule, variants=(), **changes)


def _load(name: str) -> dict[str, Any]:
    folder = resources.files("capdoctor.capture") / "tables"
    return tomllib.loads((folder / name).read_text(encoding="utf-8"))
