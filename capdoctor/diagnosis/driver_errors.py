"""What a message gives away about the driver's or a library's own error code.

The tables are in ``data/driver_errors.toml``. Names win over texts, since texts nest: 800's is part
of 900's and 907's, 801's of 717's. A library's status wins over the runtime's table, because
``CUDA error: CUBLAS_STATUS_…`` is cuBLAS speaking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from capdoctor.diagnosis.tables import table

# Patterns are compiled when a message first needs them: the start of the program pays for each.
_STATUS = (
    r"\b((?:CUBLAS|HIPBLAS|CUDNN|MIOPEN|CUSOLVER|HIPSOLVER|CUSPARSE|HIPSPARSE|CUFFT)_STATUS_\w+"
    r"|rocblas_status_\w+|miopenStatus\w+)"
)
_NCCL = (
    r"\bnccl(UnhandledCudaError|SystemError|InternalError|InvalidUsage|InvalidArgument|RemoteError)"
)
_NCCL_TEXT = (
    r"(?i)NCCL error: (unhandled cuda error|unhandled system error|internal error|invalid usage"
    r"|invalid argument|remote process exited or there was a network error)"
)
_NCCL_NAMES = {
    "unhandled cuda error": "UnhandledCudaError",
    "unhandled system error": "SystemError",
    "internal error": "InternalError",
    "invalid usage": "InvalidUsage",
    "invalid argument": "InvalidArgument",
    "remote process exited or there was a network error": "RemoteError",
}
_NAME = (
    r"\b(cuda|hip)Error([A-Z]\w*)|\b(?:CUDA|HIP)_ERROR_([A-Z_]+)\b|\bCUDBG_EXCEPTION_([A-Z_]+)\b"
)
# What may stand right before a text of the table.
_MARKER = (
    r"(?i)(?:(?:CUDA|HIP|CUDART|ROCm)(?: driver| runtime)? error(?: code)?(?: \d+)?(?: at [^ ]+)?"
    r"(?: \([^()\s]+:\d+\))?:?"
    r"|Triton Error \[(?:CUDA|HIP)\]:(?:\s*Code: \d+, Mess+age:)?"
    r"|(?:Cuda|HIP) failure(?: \d+)?"
    r"|Failed: (?:(?:Cuda|HIP) error )?\S+"
    r"|\[HIP error\]|\bError \d{1,4}:|_error_string:)\s*[('\"]?\s*$"
)
_MARKER_REACH = 160
# A text of which at least so much is left counts, in a line of at most so many characters.
_SHORTEST_CUT = 16
_LONGEST_CUT_LINE = 240
_NUMBERED = r"Triton Error \[HIP\]:\s*Code: (\d+)|(?:CUDA|HIP) error(?: code)? (\d{1,4})\b"
_HIP_SIGN = r"(?i)\bHIP\b|hipError|hipblas|\bROCm\b|\[AITER\]|TORCH_USE_HIP_DSA|RCCL"
_CUDA_SIGN = r"\bCUDA\b|cudaError|CUBLAS|\bCuda\b"


@dataclass(frozen=True, slots=True)
class DriverError:
    """A code and the name it goes by; ``api`` is the library that speaks: cuda, hip, cublas, …."""

    code: int | None
    name: str | None
    api: str
    sticky: bool = False

    @property
    def short(self) -> str:
        """The name without ``cudaError``/``hipError``, the same on both platforms if it can be."""
        if self.code is not None and self.api in {"cuda", "hip", "triton", "nccl"}:
            return _index().short_by_code.get(self.code, str(self.code))
        return self.name or ""


@dataclass(frozen=True, slots=True)
class _Index:
    texts: tuple[tuple[str, int], ...]  # lower case, longest first
    code_by_name: dict[str, int]
    short_by_code: dict[int, str]
    hip_by_code: dict[int, str]
    sticky: frozenset[int]
    needs_marker: frozenset[int]


@lru_cache(maxsize=1)
def _index() -> _Index:
    data = table("driver_errors")
    texts: list[tuple[str, int]] = []
    names: dict[str, int] = {}
    short: dict[int, str] = {}
    hip: dict[int, str] = {}
    for code, cuda_name, cuda_text, hip_name, hip_text in data["rows"]:
        short[code] = cuda_name if cuda_name != "-" else hip_name
        if cuda_name != "-":
            names["cuda" + cuda_name] = code
        if cuda_text != "-":
            texts.append((cuda_text.lower(), code))
        if hip_name != "-":
            hip[code] = hip_name or cuda_name
            names["hip" + hip[code]] = code
        if hip_text not in {"", "-", cuda_text}:
            texts.append((hip_text.lower(), code))
    names |= {"driver" + name: code for name, code in data["driver_names"].items()}
    names |= {"debugger" + name: code for name, code in data["debugger_names"].items()}
    return _Index(
        texts=tuple(sorted(texts, key=lambda row: -len(row[0]))),
        code_by_name=names,
        short_by_code=short,
        hip_by_code=hip,
        sticky=frozenset(data["sticky"]),
        needs_marker=frozenset(data["needs_marker"]),
    )


def platform_of(text: str) -> str | None:
    """Say ``rocm`` or ``cuda`` when the text itself says so; HIP's own signs win."""
    if re.search(_HIP_SIGN, text):
        return "rocm"
    return "cuda" if re.search(_CUDA_SIGN, text) else None


def decode(message: str) -> DriverError | None:
    """Find the error code that a message carries, or None."""
    return _library_status(message) or _nccl(message) or _runtime(message)


def _library_status(message: str) -> DriverError | None:
    if "tatus" not in message and "_STATUS_" not in message:
        return None
    found = re.search(_STATUS, message)
    if found is None:
        return None
    name = found.group(1)
    return DriverError(None, name, re.split(r"_STATUS_|_status_|Status", name)[0].lower())


def _nccl(message: str) -> DriverError | None:
    if "nccl" not in message and "NCCL error" not in message:
        return None
    found = re.search(_NCCL, message)
    text = None if found else re.search(_NCCL_TEXT, message)
    if found is None and text is None:
        return None
    tail = found.group(1) if found else _NCCL_NAMES[text.group(1).lower()] if text else ""
    inner = _runtime(message)
    code = inner.code if inner else None
    return DriverError(code, "nccl" + tail, "nccl", sticky=bool(inner and inner.sticky))


def _runtime(message: str) -> DriverError | None:
    index = _index()
    code = _code_by_name(message, index)
    if code is None:
        code = _code_by_text(message, index)
    if code is None:
        return None
    hip = platform_of(message) == "rocm" and code in index.hip_by_code
    api = "hip" if hip else "cuda"
    name = f"hipError{index.hip_by_code[code]}" if hip else f"cudaError{index.short_by_code[code]}"
    return DriverError(code, name, api, sticky=code in index.sticky)


def _code_by_name(message: str, index: _Index) -> int | None:
    for found in re.finditer(_NAME, message):
        family, name, driver_name, debugger_name = found.groups()
        if driver_name or debugger_name:
            key = "driver" + driver_name if driver_name else "debugger" + debugger_name
        else:
            key = family + name
        if key in index.code_by_name:
            return index.code_by_name[key]
    number = re.search(_NUMBERED, message)
    if number is None:
        return None
    code = int(number.group(1) or number.group(2))
    return code if code in index.short_by_code else None


def _code_by_text(message: str, index: _Index) -> int | None:
    lowered = message.lower()
    cut = _code_of_cut_text(lowered, index)
    if cut is not None:
        return cut
    for text, code in index.texts:
        at = lowered.find(text)
        while at >= 0:
            marked = re.search(_MARKER, message[max(0, at - _MARKER_REACH) : at]) is not None
            if marked or code not in index.needs_marker:
                return code
            at = lowered.find(text, at + 1)
    return None


def _code_of_cut_text(lowered: str, index: _Index) -> int | None:
    """The code of a text whose end is missing, as in a line cut at the edge of a terminal.

    What is left must be the beginning of one text only, and no whole text itself.
    """
    if "\n" in lowered or len(lowered) > _LONGEST_CUT_LINE:
        return None
    whole = {text for text, _ in index.texts}
    codes: set[int] = set()
    longest = _SHORTEST_CUT - 1
    for text, code in index.texts:
        for size in range(len(text) - 1, longest - 1, -1):
            if size < _SHORTEST_CUT or not lowered.endswith(text[:size]):
                continue
            codes = codes | {code} if size == longest else {code}
            longest = size
            break
    if len(codes) != 1 or any(lowered.endswith(text) and len(text) >= longest for text in whole):
        return None
    start = len(lowered) - longest
    marked = re.search(_MARKER, lowered[max(0, start - _MARKER_REACH) : start]) is not None
    return next(iter(codes)) if marked else None
