"""Hold nearly all memory of the first visible GPU until standard input ends; says when it does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from capdoctor.engines.gpus.driver import Driver, DriverError

SMALLEST = 1 << 20


def main() -> None:
    driver = Driver()
    driver.context(driver.device(0))
    free = size = driver.free_memory()[0]
    held = 0
    while size >= SMALLEST and held < free:
        try:
            driver.allocate(size)
            held += size
        except DriverError:
            size //= 2
    print(f"holding {held >> 20} MiB", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
