"""What a log gives away besides its errors: versions, arguments, torch's own asserts."""

from __future__ import annotations

import re

from capdoctor.logs.values import AllocatorAssert, EngineArgs, VersionHint

_VALUE = r"(?P<value>v?\d[\w.+!-]*)"
_VERSIONS: tuple[tuple[str, str, str, str], ...] = (
    # needle, package, how, pattern
    ("API server version", "vllm", "api_server", r"vLLM API server version " + _VALUE),
    ("vLLM server version", "vllm", "api_server", r"vLLM server version " + _VALUE),
    ("LLM engine (v", "vllm", "engine_init", r"nitializing an? (?:V\d )?LLM engine \(" + _VALUE),
    ("LLM engine (v", "vllm", "dump", r"Dumping input data for V1 LLM engine \(" + _VALUE),
    ("  version ", "vllm", "logo", r"[\u2580-\u259f]\s*  version " + _VALUE),
    ("vLLM Version", "vllm", "collect_env", r"vLLM Version\s*: *" + _VALUE),
    ("PyTorch version", "torch", "collect_env", r"PyTorch version\s*: *" + _VALUE),
    ("ROCM used to build", "rocm", "collect_env", r"ROCM used to build PyTorch\s*: *" + _VALUE),
    ("CUDA used to build", "cuda", "collect_env", r"CUDA used to build PyTorch\s*: *" + _VALUE),
    ("river version", "driver", "collect_env", r"(?:Nvidia d|AMD d|D)river version\s*: *" + _VALUE),
    ("Driver Version", "driver", "nvidia_smi", r"Driver Version: *" + _VALUE),
    ("CUDA Version", "cuda", "banner", r"CUDA Version:? *" + _VALUE),
    ("nccl==", "nccl", "log", r"is using nccl==" + _VALUE),
    ("CCL version", "nccl", "log", r"(?:NCCL|RCCL) version\s*:? *" + _VALUE),
    ("__version__", "vllm", "log", r"vllm\.__version__\W{1,4}" + _VALUE),
    ("sglang", "sglang", "log", r"sglang(?: version|==)[ :=]*" + _VALUE),
)
_PIP = re.compile(
    r"(?:\[(?:pip3?|conda)\] )?(?P<package>vllm(?:-cpu|-rocm)?|torch|triton|pytorch-triton-rocm"
    r"|flashinfer[\w-]*|(?:amd[-_])?aiter|sglang|sgl-kernel|transformers|nvidia-nccl-cu\d+"
    r"|xformers|deep[-_]gemm|pydantic|numpy|huggingface[-_]hub|ray)(?:==| {2,}|\t)"
    + _VALUE
    + r"\s*"
)
_DIST = r"/(?P<package>vllm|torch|sglang|aiter)-(?P<value>\d[\w.+]*)\.dist-info"
_ASSERT = (
    r"(?P<expression>\S.{0,400}?) INTERNAL ASSERT FAILED at "
    r"\\?\"(?P<file>[^\"\\]{1,400})\\?\":(?P<line>\d{1,9})"
)
_PAIR = re.compile(r"""['"]?(?P<key>[A-Za-z_]\w{0,80})['"]?\s*[:=]\s*""")
_ARGS: tuple[tuple[str, str], ...] = (
    ("non-default args: ", "non_default_args"),
    ("server_args=ServerArgs(", "server_args"),
    ("args: Namespace(", "namespace"),
    (" with config: ", "engine_config"),
)
_OPEN, _CLOSE = "([{<", ")]}>"
_VALUE_LENGTH = 2_000


def version_hints(text: str, number: int) -> list[VersionHint]:
    """Give the versions that a line prints."""
    found = []
    for needle, package, how, pattern in _VERSIONS:
        if needle in text and (match := re.search(pattern, text)):
            value = match["value"].removeprefix("v").rstrip(".")
            found.append(VersionHint(package, value, how, number, text[:300]))
    match = _PIP.match(text)
    if match:
        package = match["package"].replace("_", "-").lower()
        found.append(VersionHint(package, match["value"], "pip", number, text[:300]))
    if ".dist-info" in text and (match := re.search(_DIST, text)):
        found.append(VersionHint(match["package"], match["value"], "path", number, text[:300]))
    return found


def allocator_assert(text: str, number: int) -> AllocatorAssert | None:
    """Read ``expr INTERNAL ASSERT FAILED at "file":line``."""
    match = re.search(_ASSERT, text) if "INTERNAL ASSERT FAILED" in text else None
    if match is None:
        return None
    expression = match["expression"].rsplit("Error: ", 1)[-1]
    return AllocatorAssert(expression, match["file"], int(match["line"]), number)


def engine_args(text: str, number: int) -> EngineArgs | None:
    """Read the line in which an engine prints what it was started with."""
    for needle, source in _ARGS:
        at = text.find(needle)
        if at < 0 or (source == "engine_config" and "LLM engine (v" not in text[:at]):
            continue
        values = split_values(text[at + len(needle) :].lstrip("{("))
        return EngineArgs(source, number, text[:_VALUE_LENGTH], values)  # type: ignore[arg-type]
    return None


def split_values(text: str) -> dict[str, str]:
    """Split ``'a': 1, 'b': {...}`` or ``a=1, b=X(...)`` at the top level; values as printed."""
    values: dict[str, str] = {}
    at = 0
    while at < len(text) and (match := _PAIR.match(text, at)):
        end = _value_end(text, match.end())
        values[match["key"]] = text[match.end() : end].strip()[:_VALUE_LENGTH]
        at = end + 1
        while at < len(text) and text[at] in " ,":
            at += 1
    return values


def _value_end(text: str, at: int) -> int:
    """Where a value ends: at a comma, or a bracket that it did not open, outside quotes."""
    depth, quote = 0, ""
    while at < len(text):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            if depth == 0:
                return at
            depth -= 1
        elif char == "," and depth == 0:
            return at
        at += 1
    return at
