"""File names as tracebacks print them."""

from __future__ import annotations

import re

_ANCHOR = re.compile(r".*/(?:site-packages|dist-packages)/")
_STDLIB = re.compile(r".*/lib(?:64)?/python3(?:\.\d+)?/(?=[^/]+)")
# A source checkout: /opt/src/vllm/vllm/config.py. The package is the innermost of two like names,
# or the folder of that name that holds the rest.
_PACKAGES = (
    "vllm",
    "sglang",
    "aiter",
    "flashinfer",
    "sgl_kernel",
    "torch",
    "triton",
    "transformers",
    "ray",
    "deep_gemm",
    "csrc",
)
_CHECKOUT = re.compile(r"(?:.*/)?(?P<rest>(?:" + "|".join(_PACKAGES) + r")/.+)$")
# Our own files that run inside an engine; other folders of that name are somebody's project.
_OURS = re.compile(r".*/(?P<rest>capdoctor/(?:engines|capture)/.+)$")
_INDUCTOR = r".*/torchinductor_[^/]+/(?P<rest>.+)$"


def package_path(file: str) -> str:
    """Give the path from the package on (``vllm/v1/worker/gpu_worker.py``).

    A file of the standard library is given from the library's folder on
    (``multiprocessing/process.py``); a file outside any package as it is logged.
    """
    name = file.replace("\\", "/")
    for pattern in (_ANCHOR, _STDLIB):
        match = pattern.match(name)
        if match:
            return name[match.end() :]
    match = re.match(_INDUCTOR, name)
    if match:
        return "torchinductor/" + match["rest"]
    match = _OURS.match(name)
    if match:
        return match["rest"]
    match = _CHECKOUT.match(name) if "/" in name else None
    return match["rest"] if match else name
