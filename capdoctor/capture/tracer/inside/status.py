"""Asks the driver how the capture of a stream stands, through the library that torch loaded.

``cudaStreamIsCapturing`` is legal inside a capture and does not disturb it (CUDA runtime reference,
"Stream Management"). Capture ids come from the driver's ``cuStreamGetCaptureInfo_v2``, whose
arguments are fixed; the runtime's function of that name has other arguments in every major release.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

NONE, ACTIVE, INVALIDATED, UNKNOWN = 0, 1, 2, -1

_POINTER = ctypes.c_void_p
_LIBRARIES = (
    ("libcudart.so", "cudaStreamIsCapturing"),
    ("libamdhip64.so", "hipStreamIsCapturing"),
    ("libcuda.so", "cuStreamIsCapturing"),
)


class DriverStatus:
    """The status of any stream, by handle. A library that is not loaded answers UNKNOWN."""

    def __init__(self) -> None:
        loaded = _loaded_libraries()
        self._ask = _first(loaded, _LIBRARIES)
        self._info = _first(loaded, (("libcuda.so", "cuStreamGetCaptureInfo_v2"),))
        self._hip_info = _first(loaded, (("libamdhip64.so", "hipStreamGetCaptureInfo"),))

    def status(self, stream: int) -> int:
        """NONE, ACTIVE or INVALIDATED; UNKNOWN where the driver does not say."""
        if self._ask is None:
            return UNKNOWN
        answer = ctypes.c_int(UNKNOWN)
        failed = self._ask(_POINTER(stream), ctypes.byref(answer))
        return UNKNOWN if failed else answer.value

    def asker(self, stream: int) -> tuple[Callable[[], Any], Any]:
        """A call that asks about one stream, and where its answer then stands as ``value``.

        Both are objects of C: a profile hook that asks at every event must not call Python code.
        """
        answer = ctypes.c_int(UNKNOWN)
        if self._ask is None:
            return int, answer
        return partial(self._ask, _POINTER(stream), ctypes.byref(answer)), answer

    def capture_id(self, stream: int) -> int | None:
        """The driver's own number of the capture that the stream takes part in."""
        answer, number = ctypes.c_int(UNKNOWN), ctypes.c_ulonglong(0)
        where = (_POINTER(stream), ctypes.byref(answer), ctypes.byref(number))
        if self._info is not None:
            failed = self._info(*where, None, None, None)
        elif self._hip_info is not None:
            failed = self._hip_info(*where)
        else:
            return None
        return None if failed or answer.value == NONE else number.value


def _loaded_libraries() -> list[str]:
    try:
        maps = Path("/proc/self/maps").read_text("utf-8", errors="replace")
    except OSError:
        return []
    return sorted({line.split(None, 5)[-1].strip() for line in maps.splitlines() if ".so" in line})


def _first(loaded: list[str], wanted: Any) -> Any:
    for name, symbol in wanted:
        for path in loaded:
            if path.rpartition("/")[2].startswith(name):
                try:
                    return getattr(ctypes.CDLL(path), symbol)
                except (OSError, AttributeError):
                    continue
    return None
