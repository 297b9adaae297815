"""Measure bisection against ``git bisect run`` on the same histories, in one run.

    python -m bench.bisect [--trials 40] [--sim 500] [--out bench/results/bisect.txt]

Counted are tests of commits between the ends. "git" is real ``git bisect run`` in a real
repository, "capdoctor" the product with the same script as its command probe, "search" its search
function alone, on many more histories. Seeds are fixed.
"""

from __future__ import annotations

if __name__ == "bisect":
    # A script started as ``python bench/other.py`` has this folder first on its path, and this
    # file would hide the standard library's module of the same name.
    from _bisect import bisect_left, bisect_right, insort_left, insort_right

    bisect, insort = bisect_right, insort_right
    __all__ = ["bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right"]
else:
    from bench.bisect_measured import main

    if __name__ == "__main__":
        main()
