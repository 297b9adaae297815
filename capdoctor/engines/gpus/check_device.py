"""A program that is known to be good: does every GPU still compute, capture, replay and copy?

Run as a process of its own, on the standard library alone, as ``check_device.main()``; its one
argument is how many devices are needed (0: all that are visible). The answer on stdout is
``{"ok": true, "devices": [...]}`` or ``{"ok": false, "why": CLAUSE, "device": INDEX | null, ...}``.
"""

from __future__ import annotations

import json
import sys
import time
from ctypes import c_void_p
from dataclasses import dataclass
from typing import Any

from .driver import Driver, DriverError

WORDS = 1 << 20
LOOKED_AT = 4096
FIRST, SECOND = 0x5EED, 0xBEEF
# The driver cannot compile the kernel here (no compiler, too old or too new a GPU): that is no
# fault of the GPU's. 209, 218, 221, 222 and 223 in cuda.h.
NOT_COMPILED = frozenset({209, 218, 221, 222, 223})


class WrongResult(Exception):
    """The device did what it was told, and the result is wrong."""


@dataclass(frozen=True)
class Device:
    """A device under check: its number, name, context, and a megaword of its memory."""

    index: int
    name: str
    context: c_void_p
    place: c_void_p
    free: int
    total: int


def main() -> None:
    """Check, print, end."""
    begin = time.monotonic()
    answer = check(int(sys.argv[1]))
    told = json.dumps({**answer, "seconds": round(time.monotonic() - begin, 3)})
    sys.stdout.write(f"\n{told}\n")  # a line of its own, whatever the driver has printed before


def check(needed: int) -> dict[str, Any]:
    """Return the answer; the devices of this process, in their order."""
    state: dict[str, Any] = {"device": None}
    devices: list[Device] = []
    try:
        driver = Driver()
        count = _count(driver, needed)
        for index in range(count):
            state["device"] = index
            devices.append(_check_one(driver, index, state))
        for other in devices[1:]:
            state["device"] = other.index
            _check_copy(driver, devices[0], other)
    except (DriverError, WrongResult, OSError) as exc:
        return {"ok": False, "why": str(exc), **state}
    told = [{"name": one.name, "free": one.free, "total": one.total} for one in devices]
    return {"ok": True, "devices": told, **state, "device": None}


def _count(driver: Driver, needed: int) -> int:
    count = driver.device_count()
    if count < max(1, needed):
        raise WrongResult(f"{needed or 1} needed, and {count} can be seen")
    return needed or count


def _check_one(driver: Driver, index: int, state: dict[str, Any]) -> Device:
    number = driver.device(index)
    state["name"], state["uuid"] = driver.name(number), driver.uuid(number)
    context = driver.context(number)
    free, total = driver.free_memory()
    state["free"], state["total"] = free, total
    place = driver.allocate(4 * WORDS)
    stream = driver.stream()
    driver.fill(place, FIRST, WORDS, stream)
    driver.wait_for(stream)
    _expect(driver, place, FIRST, "after a fill")
    _check_capture(driver, place, stream, state)
    return Device(index, state["name"], context, place, free, total)


def _check_capture(
    driver: Driver, place: c_void_p, stream: c_void_p, state: dict[str, Any]
) -> None:
    """Record a fill and a kernel, replay them, look at the result."""
    kernel = _kernel(driver, state)
    driver.begin_capture(stream)
    driver.fill(place, SECOND, WORDS, stream)
    if kernel is not None:
        driver.launch(kernel, place, WORDS, stream)
    graph = driver.end_capture(stream)
    _expect(driver, place, FIRST, "after a capture, before its replay")
    driver.replay(graph, stream)
    driver.wait_for(stream)
    expected = SECOND if kernel is None else (3 * SECOND + 1)
    _expect(driver, place, expected, "after the replay of a graph")


def _kernel(driver: Driver, state: dict[str, Any]) -> c_void_p | None:
    try:
        return driver.kernel()
    except DriverError as exc:
        if exc.code not in NOT_COMPILED:
            raise
        state["no_kernel"] = str(exc)
        return None


def _check_copy(driver: Driver, first: Device, other: Device) -> None:
    driver.call("cuCtxSetCurrent", first.context)
    stream = driver.stream()
    driver.fill(first.place, FIRST + other.index, WORDS, stream)
    driver.wait_for(stream)
    driver.copy_to_peer((other.place, other.context), (first.place, first.context), 4 * WORDS)
    driver.call("cuCtxSetCurrent", other.context)
    _expect(driver, other.place, FIRST + other.index, f"after a copy from device {first.index}")


def _expect(driver: Driver, place: c_void_p, word: int, when: str) -> None:
    """Look at both ends of the memory: all of it would take longer than the rest of the check."""
    last = c_void_p((place.value or 0) + 4 * (WORDS - LOOKED_AT))
    for start in (place, last):
        wrong = next((w for w in driver.words(start, LOOKED_AT) if w != word), None)
        if wrong is not None:
            raise WrongResult(f"{when} its memory holds {wrong:#x} instead of {word:#x}")
