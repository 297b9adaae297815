"""Arguments from the command line: ``x=float32[8,16]@cuda``, ``n=3``, ``names=['a','b']``."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from capdoctor.errors import UsageError

if TYPE_CHECKING:
    import torch

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_TENSOR = re.compile(
    r"(?P<dtype>[a-z]\w*)\[(?P<shape>[\d,\s]*)\](?:@(?P<device>[\w:]+?))?(?::(?P<fill>[a-z]+))?\Z"
)
_FILLS = ("zeros", "ones", "rand", "randn", "arange")
_DEVICE = re.compile(r"(cpu|pinned|cuda(:0)?)\Z")
_HINT = "for example: x=float32[8,16]@cuda, lengths=int32[4]@cuda:ones, n=3, names=['a']"
_SEED = 0


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor to be made: ``device`` is cpu, pinned or cuda; ``fill`` says with what."""

    dtype: str
    shape: tuple[int, ...]
    device: str
    fill: str


@dataclass(frozen=True, slots=True)
class Argument:
    """One named argument: a tensor to be made, or a Python value."""

    name: str
    value: TensorSpec | Any


def parse_argument(text: str) -> Argument:
    """Give the argument that ``NAME=VALUE`` describes.

    Raises:
        UsageError: the text is not of that form.
    """
    name, separator, value = text.partition("=")
    if not separator or not _NAME.match(name):
        raise UsageError(f"--arg {text} is not NAME=VALUE", _HINT)
    found = _TENSOR.match(value.strip())
    if found is not None:
        return Argument(name, _tensor(text, found))
    try:
        return Argument(name, ast.literal_eval(value))
    except (ValueError, SyntaxError) as error:
        raise UsageError(f"--arg {text} is neither a tensor nor a Python value", _HINT) from error


def _tensor(text: str, found: re.Match[str]) -> TensorSpec:
    device, fill = found["device"] or "cuda", found["fill"]
    if device in _FILLS and fill is None:
        device, fill = "cuda", device
    if not _DEVICE.match(device):
        raise UsageError(
            f"--arg {text}: there is no device {device}", "use cuda (there is one), cpu or pinned"
        )
    if fill is not None and fill not in _FILLS:
        raise UsageError(f"--arg {text}: there is no filling {fill}", f"use {', '.join(_FILLS)}")
    sizes = tuple(int(part) for part in found["shape"].split(",") if part.strip())
    usual = "randn" if found["dtype"].startswith(("float", "bfloat", "half", "double")) else "zeros"
    return TensorSpec(found["dtype"], sizes, device, fill or usual)


def build(arguments: tuple[Argument, ...]) -> dict[str, Any]:
    """Make the arguments; the same numbers at every run. Call it under the virtual device.

    Raises:
        UsageError: torch has no such dtype, or cannot fill it that way.
    """
    return {
        argument.name: _made(argument.value) if isinstance(argument.value, TensorSpec)
        else argument.value
        for argument in arguments
    }  # fmt: skip


def _made(spec: TensorSpec) -> torch.Tensor:
    import torch

    dtype = getattr(torch, spec.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise UsageError(f"torch has no dtype {spec.dtype}", _HINT)
    try:
        values = _filled(spec).to(dtype)
    except (RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        text = f"a {spec.dtype} tensor of {spec.shape} cannot be filled with {spec.fill}: {reason}"
        raise UsageError(text, _HINT) from error
    if spec.device == "pinned":
        return values.pin_memory()
    return values if spec.device == "cpu" else values.to(spec.device)


def _filled(spec: TensorSpec) -> torch.Tensor:
    import torch

    if spec.fill == "arange":
        count = 1
        for size in spec.shape:
            count *= size
        return torch.arange(count).reshape(spec.shape)
    if spec.fill in {"zeros", "ones"}:
        return torch.full(spec.shape, int(spec.fill == "ones"))
    generator = torch.Generator().manual_seed(_SEED)
    make = torch.rand if spec.fill == "rand" else torch.randn
    return make(spec.shape, generator=generator)
